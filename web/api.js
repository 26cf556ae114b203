// SPDX-License-Identifier: Apache-2.0
// Requests to the collector (docs/api.yaml), and what went wrong in words.

/** Where the API is: beside the folder that this file came from. Tests have it from a disk. */
export const API = import.meta.url.startsWith('http') ? new URL('../api/v1/', import.meta.url).pathname : '/api/v1/';

const REASONS = {
	401: 'Sign in to see this.', 403: 'Your token does not allow this.', 404: 'Nothing is stored for this selection.',
	409: 'The profiles of this selection measure different things; choose one type.',
	429: 'The expressions over labels take too long. Choose fewer values, or a shorter range.',
	503: 'The collector is busy. Try again in a moment.', 504: 'The query took too long. Choose a shorter range.',
};

// What the collector says of these itself is meant for people: too large, cannot be kept, no room.
const OWN_WORDS = new Set([413, 501, 507]);

export class ApiError extends Error {
	/** words: the collector's own, or '' */
	constructor(status, text, words = '') {
		super(text);
		this.status = status;
		this.words = words;
	}
}

/** What an answer means for a person. text: the collector's own words. */
export function reasonOf(status, text = '') {
	const words = text.slice(0, 300);
	if (status === 404 && words.includes('--sample-times')) return 'The samples of this time have no times of their own. Agents give them with --sample-times.';
	if (status === 400) return 'The collector did not understand: ' + words;
	if (status === 503 && words.includes('out of memory')) return 'This does not fit into the memory that the server may use.';
	if (OWN_WORDS.has(status) && words) return words[0].toUpperCase() + words.slice(1) + '.';
	return REASONS[status] ?? `The collector refused (${status}). ${words}`;
}

/** The address of a request; parameters that are empty are left out, but those of a base: there missing ones are as in the selection. */
export function apiUrl(path, params = {}) {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(params)) {
		if (value === null || value === undefined || (value === '' && !name.startsWith('base-'))) continue;
		query.set(name, String(value));
	}
	const text = query.toString();
	return API + path + (text ? '?' + text : '');
}

const NODES = 100000;

/** Groups as a parameter: names of labels are encoded once more. */
function formatGroups(groups) {
	return groups.map((text) => text.replace(/[%,+]/g, encodeURIComponent)).join(',');
}

/** What a graph is asked for with. params: of the selection; at most so many nodes, the rest cut by the collector. */
export function graphParams(params, grouped = [], nodes = NODES) {
	return { ...params, group: formatGroups(grouped), 'max-nodes': nodes, format: 'bin' };
}

/** What first.js has asked for, once, if it is this; else null, and it was for nothing. From now on it comes too late. */
function takeFirst(url, signal) {
	const first = globalThis.hearthFirst;
	globalThis.hearthFirst = null;
	if (!first) return null;
	if (url !== first.url || signal?.aborted) {
		first.cancel.abort();
		return null;
	}
	signal?.addEventListener('abort', () => first.cancel.abort());
	return first.answer;
}

/** Nothing is asked for any more that was not taken. */
export function dropFirst() {
	takeFirst('', null);
}

/** The collector's own words in an answer that refuses, or ''. */
export async function ownWords(response) {
	try {
		return String((await response.json()).error ?? '').slice(0, 300);
	} catch {
		return ''; // not one of the collector's own errors
	}
}

/** The answer to a request; throws ApiError. options: signal, method, body (sent as JSON). */
export async function ask(path, params, options = {}) {
	const { signal, method = 'GET', body } = options;
	const url = apiUrl(path, params);
	let response;
	try {
		response = await ((path === 'flame' && takeFirst(url, signal)) || fetch(url, {
			signal, method, credentials: 'same-origin', ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
		}));
	} catch (problem) {
		if (problem.name === 'AbortError') throw problem;
		throw new ApiError(0, 'The collector does not answer.');
	}
	if (response.ok) return response;
	const words = await ownWords(response);
	throw new ApiError(response.status, reasonOf(response.status, words), words);
}

/**
 * What an answer carries; throws ApiError when it breaks off.
 * @param {Response} response
 * @param {'json' | 'arrayBuffer'} as
 */
export async function readBody(response, as) {
	try {
		return await response[as]();
	} catch (problem) {
		throw problem instanceof TypeError ? new ApiError(0, "The collector's answer broke off.") : problem;
	}
}

/**
 * The binary form of a flame graph: meta, and the packed columns.
 * @param {ArrayBuffer} answer
 */
export function splitAnswer(answer) {
	const size = new DataView(answer).getUint32(0, true);
	const meta = JSON.parse(new TextDecoder().decode(new Uint8Array(answer, 4, size)));
	return { meta, packed: new Uint8Array(answer, 4 + size) };
}

/** The answer as JSON; null when it has no content. */
export async function askJson(path, params, options) {
	const response = await ask(path, params, options);
	return response.status === 204 ? null : readBody(response, 'json');
}
