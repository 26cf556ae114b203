// SPDX-License-Identifier: Apache-2.0
// From the page's data block to columns. The writer and the description of the bytes are in src/render/columns.c.
import { treeOfNodes, withBase } from './layout.js';
import { packNames } from './build.js';

const COLUMN_COUNT = 13;
const FLAG_PRUNED = 1;
const FLAG_HIDDEN = 2;
const FLAG_COMPARED = 4;

export function decodeBase64(text) {
	if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	return bytes;
}

export async function inflateBytes(packed) {
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

class ByteReader {
	/** @param {Uint8Array} bytes */
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}

	number() {
		let value = 0;
		let unit = 1;
		for (;;) {
			const b = this.bytes[this.at++];
			if (b === undefined) throw new RangeError('the data ends early');
			value += (b & 127) * unit;
			if (b < 128) return value;
			unit *= 128;
		}
	}
}

/**
 * Fills out[from..] with numbers below 2^31: the fast path for most columns.
 * @template {Levels | Values} Column
 * @param {Uint8Array} bytes
 * @param {Column} out
 */
function readNumbers(bytes, out, from) {
	let at = 0;
	for (let i = from; i < out.length; i++) {
		let b = bytes[at++];
		let value = b & 127;
		for (let shift = 7; b >= 128; shift += 7) {
			b = bytes[at++];
			value |= (b & 127) << shift;
		}
		out[i] = value;
	}
	if (at !== bytes.length) throw new RangeError('a column of the data has the wrong length');
	return out;
}

/**
 * @template {Levels | Values} Column
 * @param {Uint8Array} bytes
 * @param {Column} out
 */
function readWideNumbers(bytes, out, from) {
	const reader = new ByteReader(bytes);
	for (let i = from; i < out.length; i++) out[i] = reader.number();
	return out;
}

function decodeNames(columns, count) {
	const heads = readNumbers(columns.nameHeads, new Uint32Array(2 * count), 0);
	const ends = new Uint32Array(count);
	let size = 0;
	for (let i = 0; i < count; i++) ends[i] = size += heads[2 * i] + heads[2 * i + 1];
	const text = new Uint8Array(size);
	const plain = new Uint8Array(count);
	for (let i = 0, from = 0, at = 0, before = 0; i < count; i++) {
		const own = heads[2 * i + 1];
		text.copyWithin(at, before, before + heads[2 * i]);
		before = at;
		at += heads[2 * i];
		text.set(columns.nameBytes.subarray(from, from + own), at);
		from += own;
		at += own;
		let bits = 0;
		for (let k = before; k < at; k++) bits |= text[k];
		plain[i] = bits < 128 ? 1 : 0;
	}
	return { text, ends, plain };
}

function decodeModules(columns, count) {
	const sizes = readNumbers(columns.moduleSizes, new Uint32Array(count), 0);
	const utf8 = new TextDecoder();
	const modules = [''];
	let at = 0;
	for (const size of sizes) {
		modules.push(utf8.decode(columns.moduleBytes.subarray(at, at + size)));
		at += size;
	}
	return modules;
}

/** The callees of each frame, and of the root behind them: those of frame f are callees[first[f]..first[f + 1]). */
function decodeCallees(columns, frames) {
	const counts = readNumbers(columns.calleeCounts, new Uint32Array(frames + 1), 0);
	const first = new Uint32Array(frames + 2);
	for (let i = 0; i <= frames; i++) first[i + 1] = first[i] + counts[i];
	return { first, callees: readNumbers(columns.callees, new Uint32Array(first[frames + 1]), 0) };
}

/** Nodes as they come, in preorder, of stacks cut by the collector: what is hidden below a node becomes its last child, a box that can be opened. */
class NodeColumns {
	/**
	 * @param {number} count of nodes that are not hidden
	 * @param {typeof Uint32Array | typeof Float64Array} Values
	 */
	constructor(count, frames, deepest, Values, isCut, isCompared) {
		const room = isCut ? 2 * count : count;
		const rows = isCut ? deepest + 2 : deepest + 1;
		this.count = this.depth = 0;
		this.rest = frames + 1; // the frame of what is hidden: behind the root's
		this.level = rows < 65536 ? new Uint16Array(room) : new Uint32Array(room);
		this.frame = new Uint32Array(room);
		this.parent = new Uint32Array(room);
		this.self = new Values(room);
		this.baseSelf = isCompared ? new Values(room) : null;
		this.rowCounts = new Uint32Array(rows);
		// Of the node that is open at a level.
		this.open = new Uint32Array(rows);
		this.hidden = isCut ? new Float64Array(rows) : null;
		this.baseHidden = isCompared ? new Float64Array(rows) : null;
	}

	/** The next node; base: of a comparison, its node @i. */
	add(l, frame, self, hidden, base = null, i = 0) {
		if (this.hidden !== null) this.close(l);
		const at = this.count++;
		this.level[at] = l;
		this.frame[at] = frame;
		if (l > 0) this.parent[at] = this.open[l - 1];
		this.self[at] = self;
		this.open[l] = at;
		this.rowCounts[l]++;
		this.depth = l + 1;
		if (this.hidden !== null) this.hidden[l] = hidden;
		if (base === null) return;
		this.baseSelf[at] = base.self[i];
		this.baseHidden[l] = base.hidden[i];
	}

	/** Closes what is open from this level on, the deepest first. */
	close(level) {
		for (let l = this.depth - 1; l >= level; l--) {
			if (this.hidden[l] === 0) continue;
			const at = this.count++;
			this.level[at] = l + 1;
			this.frame[at] = this.rest;
			this.parent[at] = this.open[l];
			this.self[at] = this.hidden[l];
			if (this.baseSelf) this.baseSelf[at] = this.baseHidden[l];
			this.rowCounts[l + 1]++;
		}
	}

	/** total: of all nodes */
	tree(total) {
		if (this.hidden !== null) this.close(0);
		const { count, level, frame, parent, self, baseSelf, rowCounts } = this;
		const own = (column) => (column.length > count ? column.slice(0, count) : column);
		const rows = rowCounts.subarray(0, 1 + rowCounts.findLastIndex((nodes) => nodes > 0)); // below the deepest nothing may be hidden
		const tree = treeOfNodes(own(level), own(frame), own(parent), own(self), rows, total);
		return baseSelf ? withBase(tree, own(baseSelf)) : tree;
	}
}

/**
 * All nodes in one pass: a page has just started, and each loop is slow until the engine has compiled it.
 * @returns {Tree}
 */
function decodeNodes(columns, head) {
	const { nodes, frames, deepest, total, isCut, isCompared } = head;
	const { first, callees } = decodeCallees(columns, frames);
	const Values = total < 2 ** 32 ? Uint32Array : Float64Array;
	const out = new NodeColumns(nodes, frames, deepest, Values, isCut, isCompared);
	const { pops, calls } = columns;
	const read = (bytes, from) => (total < 2 ** 31 ? readNumbers : readWideNumbers)(bytes, new Values(nodes), from);
	const self = read(columns.selves, 1);
	const hidden = isCut ? read(columns.hidden, 0) : null;
	const base = isCompared ? { self: read(columns.baseSelves, 0), hidden: read(columns.baseHidden, 0) } : null;
	const path = new Uint32Array(deepest + 1);
	path[0] = frames;
	out.add(0, frames, self[0], hidden === null ? 0 : hidden[0], base);
	let [popAt, callAt] = [0, 0];
	for (let i = 1; i < nodes; i++) {
		let b = pops[popAt++];
		let pop = b & 127;
		for (let shift = 7; b >= 128; shift += 7) {
			b = pops[popAt++];
			pop |= (b & 127) << shift;
		}
		b = calls[callAt++];
		let call = b & 127;
		for (let shift = 7; b >= 128; shift += 7) {
			b = calls[callAt++];
			call |= (b & 127) << shift;
		}
		const l = out.depth - pop;
		if (l < 1 || l > out.depth || l > deepest) throw new RangeError('the data has a node outside of the tree');
		const f = callees[first[path[l - 1]] + call];
		path[l] = f;
		out.add(l, f, self[i], hidden === null ? 0 : hidden[i], base, i);
	}
	if (popAt !== pops.length || callAt !== calls.length) throw new RangeError('a column of the data has the wrong length');
	return out.tree(total);
}

function origins(bytes, count, from) {
	const out = readNumbers(bytes, new Uint32Array(count), from);
	for (let i = 1; i < count; i++) out[i] += out[i - 1];
	return out;
}

function splitColumns(bytes) {
	const reader = new ByteReader(bytes);
	const version = reader.number();
	if (version !== 1) throw new RangeError('the data has version ' + version + ', this page reads 1');
	const flags = reader.number();
	const pruned = (flags & FLAG_PRUNED) !== 0;
	const hasRoomFor = (n) => n <= 2 * bytes.length; // each takes a byte, but the root
	const count = COLUMN_COUNT + (flags & FLAG_HIDDEN ? 1 : 0) + (flags & FLAG_COMPARED ? 2 : 0);
	const [frames, modules, nodes, deepest, total] = [0, 0, 0, 0, 0].map(() => reader.number());
	if (![frames, modules, nodes, deepest].every(hasRoomFor)) throw new RangeError('the data ends early');
	const sizes = Array.from({ length: count }, () => reader.number());
	const parts = [];
	let at = reader.at;
	for (const size of sizes) parts.push(bytes.subarray(at, (at += size)));
	if (at !== bytes.length) throw new RangeError('the data has the wrong length');
	const [moduleSizes, moduleBytes, nameHeads, nameBytes, kinds, frameModules, calleeCounts, callees, pops, calls,
		selves, frameOrigins, nodeOrigins, hidden, baseSelves, baseHidden] = parts;
	return {
		head: { pruned, isCut: Boolean(flags & FLAG_HIDDEN), isCompared: (flags & (FLAG_COMPARED | FLAG_HIDDEN)) === (FLAG_COMPARED | FLAG_HIDDEN), frames, modules, nodes, deepest, total },
		columns: { moduleSizes, moduleBytes, nameHeads, nameBytes, kinds, frameModules, calleeCounts, callees, pops, calls,
			selves, frameOrigins, nodeOrigins, hidden, baseSelves, baseHidden },
	};
}

/**
 * The JSON form of the collector's flame graphs (docs/api.yaml), as decodeProfile() gives the other one.
 * @returns {Profile}
 */
export function profileOfJson(json) {
	const frames = json.names.length;
	const Values = json.meta.total < 2 ** 32 ? Uint32Array : Float64Array;
	const { level, frame, self, hidden = null, base_self: baseSelf = null, base_hidden: baseHidden = [] } = json;
	const deepest = level.reduce((most, l) => Math.max(most, l), 0);
	const base = baseSelf && { self: baseSelf, hidden: baseHidden };
	const out = new NodeColumns(level.length, frames, deepest, Values, hidden !== null, base !== null);
	for (let i = 0; i < level.length; i++) {
		if (level[i] > out.depth) throw new RangeError('the data has a node outside of the tree');
		out.add(level[i], frame[i], self[i], hidden ? hidden[i] : 0, base, i);
	}
	const tree = out.tree(json.meta.total);
	tree.origin = null;
	return {
		frames: { count: frames, names: packNames(json.names), kinds: Uint8Array.from(json.kind), module: Uint32Array.from(json.module),
			modules: json.modules.length ? json.modules : [''], origin: null },
		tree,
	};
}

/**
 * decodeProfile - inflated bytes to typed arrays
 *
 * Returns { frames: {count, names, kinds, module, modules, origin}, tree } where tree is as layoutTree() gives it, with
 * self; origin of a pruned copy holds the frames' and nodes' numbers in the whole tree.
 * @param {Uint8Array} bytes
 * @returns {Profile}
 */
export function decodeProfile(bytes) {
	const { head, columns } = splitColumns(bytes);
	const tree = decodeNodes(columns, head);
	tree.origin = head.pruned ? origins(columns.nodeOrigins, head.nodes, 1) : null;
	return {
		frames: {
			count: head.frames,
			names: decodeNames(columns, head.frames),
			kinds: columns.kinds.slice(),
			module: readNumbers(columns.frameModules, new Uint32Array(head.frames), 0),
			modules: decodeModules(columns, head.modules),
			origin: head.pruned ? origins(columns.frameOrigins, head.frames, 0) : null,
		},
		tree,
	};
}

/**
 * The buffers of a decoded profile that can change threads without a copy.
 * @param {Profile} profile
 */
export function profileBuffers(profile) {
	const { frames, tree } = profile;
	const arrays = [...Object.values(tree), ...Object.values(frames), ...Object.values(frames.names)];
	return [...new Set(arrays.filter(ArrayBuffer.isView).map((a) => a.buffer))];
}

/** FrameTable - names on demand: most frames are never looked at. `added`: frames that steps of the view have made. */
export class FrameTable {
	/**
	 * @param {Frames} frames
	 * @param {string[]} kindNames
	 * @param {AddedFrame[]} added
	 */
	constructor(frames, kindNames, added = []) {
		this.own = frames.count;
		this.added = added;
		this.count = frames.count + added.length;
		this.kinds = frames.kinds;
		this.kindNames = kindNames;
		this.origin = frames.origin;
		this.module = frames.module;
		this.modules = frames.modules;
		this.raw = frames.names;
		// What all tables of these frames share. One byte, one character: positions in this string are positions in the bytes.
		frames.shared ??= { names: new Array(frames.count), ascii: new TextDecoder('windows-1252').decode(frames.names.text) };
		this.cache = frames.shared.names;
		this.ascii = frames.shared.ascii;
		this.shared = frames.shared;
		this.utf8 = new TextDecoder();
	}

	name(frame) {
		if (frame >= this.count) return frame === this.count ? 'all' : '(too narrow to show)';
		const known = this.cache[frame];
		if (known !== undefined) return known;
		if (frame >= this.own) return this.added[frame - this.own].name;
		const { text, ends, plain } = this.raw;
		const from = frame ? ends[frame - 1] : 0;
		const name = plain[frame] ? this.ascii.slice(from, ends[frame])
			: this.utf8.decode(text.subarray(from, ends[frame]));
		return (this.cache[frame] = name);
	}

	/** The frames of exactly this name; most are told apart by the length of their bytes. */
	named(name) {
		const size = new TextEncoder().encode(name).length;
		const { ends } = this.raw;
		const found = [];
		for (let f = 0; f < this.own; f++) {
			if (ends[f] - (f ? ends[f - 1] : 0) === size && this.name(f) === name) found.push(f);
		}
		return found;
	}

	kind(frame) {
		if (frame >= this.own) return this.added[frame - this.own]?.kind ?? '';
		return this.kindNames[this.kinds[frame]] ?? 'native';
	}

	moduleName(frame) {
		if (frame >= this.own) return this.added[frame - this.own]?.module ?? '';
		return this.modules[this.module[frame]];
	}
}

export async function readProfile(text) {
	return decodeProfile(await inflateBytes(decodeBase64(text.trim())));
}
