// SPDX-License-Identifier: Apache-2.0
// From the page's data block to columns. The writer and the description of the bytes are in src/render/columns.c.
import { columnLike, layoutTree, withBase } from './layout.js';
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

function decodeFrameOfNodes(columns, head, level) {
	const { frames, nodes } = head;
	const counts = readNumbers(columns.calleeCounts, new Uint32Array(frames + 1), 0);
	const first = new Uint32Array(frames + 2);
	for (let i = 0; i <= frames; i++) first[i + 1] = first[i] + counts[i];
	const callees = readNumbers(columns.callees, new Uint32Array(first[frames + 1]), 0);
	const frame = readNumbers(columns.calls, new Uint32Array(nodes), 1);
	const path = new Uint32Array(head.deepest + 1);
	frame[0] = path[0] = frames;
	for (let i = 1; i < nodes; i++) {
		const callee = callees[first[path[level[i] - 1]] + frame[i]];
		frame[i] = callee;
		path[level[i]] = callee;
	}
	return frame;
}

function decodeLevels(pops, nodes, deepest) {
	const level = deepest < 65536 ? new Uint16Array(nodes) : new Uint32Array(nodes);
	readNumbers(pops, level, 1);
	for (let i = 1; i < nodes; i++) level[i] = level[i - 1] + 1 - level[i];
	return level;
}

/**
 * Total of each node from the self values and what is hidden below it, children before parents.
 * @param {Values} self
 * @param {Values | null} hidden
 * @param {Levels} level
 */
function sumTotals(self, hidden, level, deepest) {
	const total = columnLike(self, self.length);
	const below = new Float64Array(deepest + 2);
	for (let i = self.length - 1; i >= 0; i--) {
		const l = level[i];
		const sum = self[i] + (hidden ? hidden[i] : 0) + below[l + 1];
		total[i] = sum;
		below[l] += sum;
		below[l + 1] = 0;
	}
	return total;
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

/** What is hidden below a node as its last child, the frame behind the root's: a box that can be opened. */
function showHidden(columns, frames, deepest) {
	const { level, hidden, base } = columns;
	if (!hidden) return layoutTree(level, columns.frame, columns.total, columns.self, deepest);
	const count = level.length;
	let more = 0;
	for (let i = 0; i < count; i++) more += hidden[i] > 0 ? 1 : 0;
	const room = count + more;
	const out = { level: deepest + 1 < 65536 ? new Uint16Array(room) : new Uint32Array(room), frame: new Uint32Array(room),
		total: columnLike(columns.total, room), self: columnLike(columns.total, room) };
	const baseSelf = base && columnLike(columns.total, room);
	const open = [];
	let at = 0;
	let last = 0;
	const put = (l, frame, total, self, ofBase) => {
		out.level[at] = l;
		out.frame[at] = frame;
		out.total[at] = total;
		out.self[at] = self;
		if (base) baseSelf[at] = ofBase;
		if (l > last) last = l;
		at++;
	};
	const close = (l) => {
		while (open.length > l) {
			const node = open.pop();
			if (hidden[node] > 0) put(level[node] + 1, frames + 1, hidden[node], hidden[node], base ? base.hidden[node] : 0);
		}
	};
	for (let i = 0; i < count; i++) {
		close(level[i]);
		put(level[i], columns.frame[i], columns.total[i], columns.self[i], base ? base.self[i] : 0);
		open.push(i);
	}
	close(0);
	const tree = layoutTree(out.level, out.frame, out.total, out.self, last);
	return base ? withBase(tree, baseSelf) : tree;
}

/**
 * The JSON form of the collector's flame graphs (docs/api.yaml), as decodeProfile() gives the other one.
 * @returns {Profile}
 */
export function profileOfJson(json) {
	const frames = json.names.length;
	const Values = json.meta.total < 2 ** 32 ? Uint32Array : Float64Array;
	const columns = { level: Uint32Array.from(json.level), frame: Uint32Array.from(json.frame), total: Values.from(json.total),
		self: Values.from(json.self), hidden: json.hidden ? Values.from(json.hidden) : null,
		base: json.base_self ? { self: Values.from(json.base_self), hidden: Values.from(json.base_hidden) } : null };
	const tree = showHidden(columns, frames, columns.level.reduce((deepest, l) => Math.max(deepest, l), 0));
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
	const level = decodeLevels(columns.pops, head.nodes, head.deepest);
	const frame = decodeFrameOfNodes(columns, head, level);
	const Values = head.total < 2 ** 32 ? Uint32Array : Float64Array;
	const read = head.total < 2 ** 31 ? readNumbers : readWideNumbers;
	const self = read(columns.selves, new Values(head.nodes), 1);
	const hidden = head.isCut ? read(columns.hidden, new Values(head.nodes), 0) : null;
	const total = sumTotals(self, hidden, level, head.deepest);
	self[0] = head.total - total[0];
	total[0] = head.total;
	const base = head.isCompared ? { self: read(columns.baseSelves, new Values(head.nodes), 0),
		hidden: read(columns.baseHidden, new Values(head.nodes), 0) } : null;
	const tree = showHidden({ level, frame, total, self, hidden, base }, head.frames, head.deepest);
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
