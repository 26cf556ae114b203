// SPDX-License-Identifier: Apache-2.0
// A selection of the collector as a source of the page (source.js): a flame graph, or two as one tree.
import { profileOfJson } from './data.js';
import { decodeAside } from './decoder.js';
import { ask } from './api.js';

const NODES = 100000;
const ASIDE_BYTES = 65536;
const NODES_MAX = 5000000;

/** A worker of a page that a collector serves; null where there can be none. */
export function startServerWorker() {
	try {
		return new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
	} catch {
		return null;
	}
}

/** Groups as a parameter: names of labels are encoded once more. */
function formatGroups(groups) {
	return groups.map((text) => text.replace(/[%,+]/g, encodeURIComponent)).join(',');
}

function splitAnswer(answer) {
	const size = new DataView(answer).getUint32(0, true);
	const meta = JSON.parse(new TextDecoder().decode(new Uint8Array(answer, 4, size)));
	return { meta, packed: new Uint8Array(answer, 4 + size) };
}

/**
 * What `meta` of an answer says about the values, as the page's sources do.
 * @returns {ValueType}
 */
export function typeOfMeta(meta) {
	const { unit } = meta;
	return { name: meta.sample, unit, scale: meta.scale ?? 1, nanoseconds: unit === 'nanoseconds' ? 0 : meta.nanoseconds ?? 0 };
}

/** @implements {Source} */
export class ServerSource {
	/** path: 'flame' or 'compare'; params: as docs/api.yaml has them. options: also nodes, grouped, offered (source.js). */
	static async open(path, params, options = {}) {
		const { nodes = NODES, grouped = [], offered = [] } = options;
		const answer = await ask(path, { ...params, group: formatGroups(grouped), 'max-nodes': nodes, format: 'bin' }, options);
		let profile;
		let meta;
		if ((answer.headers.get('Content-Type') ?? '').startsWith('application/json')) {
			const json = await answer.json();
			meta = json.meta;
			profile = profileOfJson(json);
		} else {
			const { meta: head, packed } = splitAnswer(await answer.arrayBuffer());
			meta = head;
			profile = await decodeAside(packed.length > ASIDE_BYTES ? startServerWorker() : null, packed);
		}
		return Object.assign(new ServerSource(path, params, nodes, meta, profile), { grouped, offered });
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
