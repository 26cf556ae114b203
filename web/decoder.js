// SPDX-License-Identifier: Apache-2.0
// Decoding beside the page: the page's own script once more, as a worker.
import { profileBuffers, readProfile } from './data.js';

/** A worker that decodes, started before the data has arrived; null where there can be none. */
export function startWorker(source) {
	try {
		return new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
	} catch {
		return null;
	}
}

export function decodeAside(worker, text) {
	if (!worker) return readProfile(text);
	return new Promise((resolve, reject) => {
		worker.onerror = () => resolve(readProfile(text));
		worker.onmessage = ({ data }) => {
			worker.terminate();
			if (data.error) reject(new Error(data.error));
			else resolve(data.profile);
		};
		worker.postMessage(text);
	});
}

export function runWorker() {
	onmessage = async ({ data }) => {
		try {
			const profile = await readProfile(data);
			postMessage({ profile }, profileBuffers(profile));
		} catch (problem) {
			postMessage({ error: String(problem?.message ?? problem) });
		}
	};
}
