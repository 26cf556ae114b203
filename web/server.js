// SPDX-License-Identifier: Apache-2.0
// A selection of the collector as a source of the page (source.js): a flame graph, or two as one tree.
import { profileOfJson } from './data.js';
import { decodeAside } from './decoder.js';
import { ask, graphParams, readBody, splitAnswer } from './api.js';

const ASIDE_BYTES = 65536;
const STARTING_BYTES = 1 << 20; // an answer of this size is decoded here sooner than a worker starts
const SLOW_MS = 50; // an answer that takes longer may be a large one
const NODES_MAX = 5000000;

/** A worker of a page that a collector serves; null where there can be none. */
export function startServerWorker() {
	try {
		return new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
	} catch {
		return null;
	}
}

let idle = null;
const broken = new WeakSet(); // workers that could not start, or ended with an error
const started = new WeakSet(); // workers that have said something

function startDecoder() {
	const worker = startServerWorker();
	worker?.addEventListener('message', () => started.add(worker), { once: true });
	worker?.addEventListener('error', () => broken.add(worker));
	return worker;
}

/** A worker that decodes; it stays for the next answer. */
function takeDecoder() {
	const worker = idle ?? startDecoder();
	idle = null;
	return worker;
}

function keepDecoder(worker) {
	if (idle || broken.has(worker)) worker?.terminate();
	else idle = worker;
}

/** Starts the worker of the next answer; who has clicked does not wait for it then. */
export function warmDecoder() {
	keepDecoder(takeDecoder());
}

/** A graph, and what the answer says about it. */
async function askProfile(path, params, options) {
	// It starts while the collector works: beside the page's own start it would be in the way of a small answer.
	let worker = idle ? takeDecoder() : null;
	const slow = setTimeout(() => (worker ??= takeDecoder()), SLOW_MS);
	let isUsed = false;
	try {
		const answer = await ask(path, params, options);
		if (Number(answer.headers.get('Content-Length')) > STARTING_BYTES) worker ??= takeDecoder();
		if ((answer.headers.get('Content-Type') ?? '').startsWith('application/json')) {
			const json = await readBody(answer, 'json');
			return { meta: json.meta, profile: profileOfJson(json) };
		}
		const { meta, packed } = splitAnswer(await readBody(answer, 'arrayBuffer'));
		if (packed.length > STARTING_BYTES) worker ??= takeDecoder(); // it came in pieces, and fast
		isUsed = worker && !broken.has(worker) && packed.length > (started.has(worker) ? ASIDE_BYTES : STARTING_BYTES);
		return { meta, profile: await decodeAside(isUsed ? worker : null, packed, keepDecoder) };
	} finally {
		clearTimeout(slow);
		if (worker && !isUsed) keepDecoder(worker);
	}
}

/**
 * What `meta` of an answer says about the values, as the page's sources do.
 * @returns {ValueType}
 */
export function typeOfMeta(meta) {
	const { unit, negative, base_negative: base } = meta;
	const both = negative && base ? { samples: negative.samples + base.samples, value: negative.value + base.value } : negative;
	return { name: meta.sample, unit, scale: meta.scale ?? 1, nanoseconds: unit === 'nanoseconds' ? 0 : meta.nanoseconds ?? 0, negative: both };
}

/** @implements {Source} */
export class ServerSource {
	/** path: 'flame' or 'compare'; params: as docs/api.yaml has them. options: also nodes, grouped, offered (source.js). */
	static async open(path, params, options = {}) {
		const { nodes, grouped = [], offered = [] } = options;
		const asked = graphParams(params, grouped, nodes);
		const { meta, profile } = await askProfile(path, asked, options);
		options.signal?.throwIfAborted(); // while it was unpacked
		return Object.assign(new ServerSource(path, params, asked['max-nodes'], meta, profile), { grouped, offered });
	}

	constructor(path, params, nodes, meta, profile) {
		this.grouped = [];
		this.offered = []; // none: regroup() is not asked
		this.path = path;
		this.params = params;
		this.nodes = nodes;
		this.answer = meta;
		this.profile = profile;
		this.meta = { title: meta.service ?? '', types: [typeOfMeta(meta)], kinds: meta.kinds };
	}

	/** Has the answer left nodes out that a larger one would have? */
	get isCut() {
		return (this.answer.whole_nodes ?? 0) > this.answer.nodes && this.nodes < NODES_MAX;
	}

	/** The same selection with more of its nodes. */
	more(options) {
		return ServerSource.open(this.path, this.params, { ...this.options, ...options, nodes: Math.min(NODES_MAX, this.nodes * 10) });
	}

	get options() {
		const { nodes, grouped, offered } = this;
		return { nodes, grouped, offered };
	}

	/** The same selection with frames for these groups above its stacks. */
	regroup(grouped) {
		return ServerSource.open(this.path, this.params, { ...this.options, grouped });
	}

	startWorker() {
		return startServerWorker();
	}

	overview() {
		return null;
	}

	open() {
		return Promise.resolve(this.profile);
	}
}
