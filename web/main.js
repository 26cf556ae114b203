// SPDX-License-Identifier: Apache-2.0
// The page that has its profile in itself. The same text runs as the worker that decodes the data.
import { runWorker } from './aside.js';
import { DiffColours } from './diff.js';
import { EmbeddedSource } from './source.js';
import { Viewer, showProblem } from './viewer.js';

function documentEnd() {
	if (document.readyState !== 'loading') return Promise.resolve();
	return new Promise((resolve) => document.addEventListener('DOMContentLoaded', resolve, { once: true }));
}

async function startPage(script) {
	const source = new EmbeddedSource(document, script, documentEnd());
	const viewer = new Viewer(source);
	window.__viewer = viewer;
	// A page of two profiles: nothing else has a tree with a base.
	viewer.madeColours = (frames, mode) => (viewer.raw.tree.base ? new DiffColours(frames, viewer.raw.tree, mode, true) : null);
	try {
		await viewer.openFirst();
	} catch (problem) {
		showProblem(problem);
	}
}

if (typeof document === 'undefined') {
	if (typeof WorkerGlobalScope !== 'undefined') runWorker();
} else {
	await startPage(document.currentScript?.textContent ?? '');
}
