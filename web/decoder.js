// SPDX-License-Identifier: Apache-2.0
// Decoding beside the page: the page's own script once more, as a worker (aside.js has its side).
import { decodeProfile, inflateBytes, readProfile } from './data.js';

/** A worker that decodes, started before the data has arrived; null where there can be none. */
export function startWorker(source) {
	try {
		return new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
	} catch {
		return null;
	}
}

/** data: the text of a block, or the deflated bytes themselves. */
export async function decodeHere(data) {
	return typeof data === 'string' ? readProfile(data) : decodeProfile(await inflateBytes(data));
}

/** done: what becomes of the worker afterwards */
export function decodeAside(worker, text, done = (idle) => idle.terminate()) {
	if (!worker) return decodeHere(text);
	return new Promise((resolve, reject) => {
		worker.onerror = () => resolve(decodeHere(text));
		worker.onmessage = ({ data }) => {
			if (data.started) return;
			worker.onerror = worker.onmessage = null; // they hold the text; the worker may wait long for the next one
			done(worker);
			if (data.error) reject(new Error(data.error));
			else resolve(data.profile);
		};
		worker.postMessage(text);
	});
}
