// SPDX-License-Identifier: Apache-2.0
// From the page's data block to columns. The writer and the description of the bytes are in src/render/columns.c.
import { layoutTree } from './layout.js';

const COLUMN_COUNT = 13;

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

/** Fills out[from..] with numbers below 2^31: the fast path for most columns. */
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

/** Total of each node from the self values, children before parents. */
function sumTotals(self, level, deepest) {
	const total = new self.constructor(self.length);
	const below = new Float64Array(deepest + 2);
	for (let i = self.length - 1; i >= 0; i--) {
		const l = level[i];
		const sum = self[i] + below[l + 1];
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
	const pruned = (reader.number() & 1) === 1;
	const [frames, modules, nodes, deepest, total] = [0, 0, 0, 0, 0].map(() => reader.number());
	const sizes = Array.from({ length: COLUMN_COUNT }, () => reader.number());
	const parts = [];
	let at = reader.at;
	for (const size of sizes) parts.push(bytes.subarray(at, (at += size)));
	if (at !== bytes.length) throw new RangeError('the data has the wrong length');
	const [moduleSizes, moduleBytes, nameHeads, nameBytes, kinds, frameModules, calleeCounts, callees, pops, calls,
		selves, frameOrigins, nodeOrigins] = parts;
	return {
		head: { pruned, frames, modules, nodes, deepest, total },
		columns: { moduleSizes, moduleBytes, nameHeads, nameBytes, kinds, frameModules, calleeCounts, callees, pops, calls,
			selves, frameOrigins, nodeOrigins },
	};
}

/**
 * decodeProfile - inflated bytes to typed arrays
 *
 * Returns { frames: {count, names, kinds, module, modules, origin}, tree } where tree is as layoutTree() gives it, with
 * self; origin of a pruned copy holds the frames' and nodes' numbers in the whole tree.
 */
export function decodeProfile(bytes) {
	const { head, columns } = splitColumns(bytes);
	const level = decodeLevels(columns.pops, head.nodes, head.deepest);
	const frame = decodeFrameOfNodes(columns, head, level);
	const Values = head.total < 2 ** 32 ? Uint32Array : Float64Array;
	const read = head.total < 2 ** 31 ? readNumbers : readWideNumbers;
	const self = read(columns.selves, new Values(head.nodes), 1);
	const total = sumTotals(self, level, head.deepest);
	self[0] = head.total - total[0];
	total[0] = head.total;
	const tree = layoutTree(level, frame, total, self, head.deepest);
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

/** The buffers of a decoded profile that can change threads without a copy. */
export function profileBuffers(profile) {
	const { frames, tree } = profile;
	const arrays = [...Object.values(tree), ...Object.values(frames), ...Object.values(frames.names)];
	return [...new Set(arrays.filter(ArrayBuffer.isView).map((a) => a.buffer))];
}

/** FrameTable - names on demand: most frames are never looked at. */
export class FrameTable {
	constructor(frames, kindNames) {
		this.count = frames.count;
		this.kinds = frames.kinds;
		this.kindNames = kindNames;
		this.origin = frames.origin;
		this.module = frames.module;
		this.modules = frames.modules;
		this.raw = frames.names;
		this.cache = new Array(frames.count);
		// One byte, one character: positions in this string are positions in the bytes.
		this.ascii = new TextDecoder('windows-1252').decode(frames.names.text);
		this.utf8 = new TextDecoder();
	}

	name(frame) {
		if (frame >= this.count) return 'all';
		const known = this.cache[frame];
		if (known !== undefined) return known;
		const { text, ends, plain } = this.raw;
		const from = frame ? ends[frame - 1] : 0;
		const name = plain[frame] ? this.ascii.slice(from, ends[frame])
			: this.utf8.decode(text.subarray(from, ends[frame]));
		return (this.cache[frame] = name);
	}

	kind(frame) {
		return frame >= this.count ? '' : this.kindNames[this.kinds[frame]] ?? 'native';
	}

	moduleName(frame) {
		return frame >= this.count ? '' : this.modules[this.module[frame]];
	}
}

export async function readProfile(text) {
	return decodeProfile(await inflateBytes(decodeBase64(text.trim())));
}
