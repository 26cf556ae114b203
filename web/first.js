// SPDX-License-Identifier: Apache-2.0
// Asks for the graph that the address means before the page's own script is there: most of what somebody waits for is
// the collector's work and that script, side by side. What app.js asks for under the same address gets this answer
// (takeFirst() of api.js). Addresses whose steps need groups are left to it: they need more modules than this should have.
import { apiUrl, graphParams } from './api.js';
import { parseSelection, partParams } from './selection.js';

const selection = parseSelection(location.hash);
const hasSteps = /[?&]t=/.test(location.hash);
if (globalThis.hearthFirst === undefined && selection.page === 'profile' && !hasSteps) {
	const cancel = new AbortController();
	const url = apiUrl('flame', graphParams(partParams(selection)));
	const answer = fetch(url, { signal: cancel.signal, credentials: 'same-origin' });
	answer.catch(() => {}); // said by who takes it
	globalThis.hearthFirst = { url, cancel, answer };
}
