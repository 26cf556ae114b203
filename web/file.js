// SPDX-License-Identifier: Apache-2.0
// A file that somebody dropped, as a source (source.js): read here, sent nowhere.
import { TreeGrower, packNames } from './build.js';
import { KINDS } from './colour.js';
import { decodeBase64, decodeProfile } from './data.js';
import { readPprof } from './pprof.js';

// The last two say whose a stack is.
const KIND_NAMES = [...Object.keys(KINDS), 'process', 'container'];
const SUFFIX_KINDS = new Map(
	Object.keys(KINDS).filter((name) => KINDS[name].suffix).map((name) => [KINDS[name].suffix, name]),
);
const INFLATED_MAX = 2 ** 30; // bytes; as much as hearth's own readers have here
const TOO_LARGE = 'unpacked it is larger than 1 GiB; hearth convert and hearth view read larger files';
const BROKEN_PAGE = 'it is no page that hearth wrote, or a part of one';
const LAYERS_MAX = 2; // of gzip, as hearth convert takes
const FEW_FORMATS = 'This page reads only folded, .col, pprof, speedscope and pages of hearth: hearth was built without its other readers, ' +
	'or the browser does not run them. hearth convert and hearth view read the rest';
const MOST = 2 ** 63; // what all values of a profile may be together; a number has no place for one less
const SUFFIX = /^(.+)(_\[\w+\])$/s;

/**
 * Cuts the largest values, so that all together are at most MOST, as hearth's own readers do (saturate() of src/render/tree.c).
 * @param {Float64Array} values
 */
function saturate(values) {
	const sum = (top) => values.reduce((all, value) => all + Math.min(value, top), 0);
	if (sum(Infinity) <= MOST) return;
	let top = 0;
	for (let by = MOST; by >= 1; by /= 2) if (sum(top + by) <= MOST) top += by;
	for (let i = 0; i < values.length; i++) values[i] = Math.min(values[i], top);
}

/** Stacks that are added frame by frame, to a profile as decodeProfile() gives it. */
export class StackReader {
	constructor() {
		this.numbers = new Map();
		this.list = [];
		this.grower = new TreeGrower(0);
		/** @type {Negative} */
		this.negative = { samples: 0, value: 0 };
	}

	frame(name, kind = 'native', module = '') {
		const key = `${kind}\n${module}\n${name}`;
		let number = this.numbers.get(key);
		if (number === undefined) {
			this.numbers.set(key, (number = this.list.length));
			this.list.push({ name, kind, module });
		}
		return number;
	}

	/**
	 * @param {number[]} frames root first
	 * @param {number} value
	 */
	add(frames, value) {
		if (value < 0) {
			this.negative.samples++;
			this.negative.value = Math.min(MOST, this.negative.value - value);
			return;
		}
		let at = 0;
		for (const frame of frames) at = this.grower.child(at, frame);
		this.grower.self[at] += value;
	}

	/**
	 * Frames in the order of their names, as everything expects them.
	 * @returns {Profile}
	 */
	finish() {
		const { list, grower } = this;
		const order = list.map((_, i) => i).sort((a, b) => (list[a].name < list[b].name ? -1 : list[a].name > list[b].name ? 1 : a - b));
		const place = new Uint32Array(list.length);
		for (const [at, old] of order.entries()) place[old] = at;
		for (let i = 1; i < grower.count; i++) grower.frame[i] = place[grower.frame[i]];
		grower.frame[0] = list.length;
		saturate(grower.self);
		const sorted = order.map((i) => list[i]);
		const modules = ['', ...new Set(sorted.map((f) => f.module).filter(Boolean))];
		const moduleNumbers = new Map(modules.map((name, i) => [name, i]));
		const tree = grower.finish();
		tree.origin = null;
		return {
			frames: { count: list.length, names: packNames(sorted.map((f) => f.name)), kinds: Uint8Array.from(sorted, (f) => Math.max(0, KIND_NAMES.indexOf(f.kind))),
				module: Uint32Array.from(sorted, (f) => moduleNumbers.get(f.module)), modules, origin: null },
			tree,
		};
	}
}

/** Folded stacks and .col: "a;b;c 12" lines; lines that begin with # are comments. */
export function readFolded(text) {
	const reader = new StackReader();
	const known = new Map();
	const frameOf = (piece) => {
		if (!known.has(piece)) {
			const found = SUFFIX.exec(piece);
			const kind = found && SUFFIX_KINDS.get(found[2]);
			known.set(piece, kind ? reader.frame(found[1], kind) : reader.frame(piece));
		}
		return known.get(piece);
	};
	let lines = 0;
	for (const line of text.split(/\r?\n/)) {
		const found = line.startsWith('#') ? null : /^(.+?)\s+(\d+(?:\.\d+)?)$/.exec(line);
		if (!found) continue;
		reader.add(found[1].split(';').map(frameOf), Number(found[2]));
		lines++;
	}
	if (!lines) throw new Error('it is none of the formats that this page reads');
	return { types: [{ name: 'samples', unit: 'samples', scale: 1, nanoseconds: 0 }], kinds: KIND_NAMES, profiles: [reader.finish()] };
}

/** Calls add(stack, weight) for each sample; of an evented profile for what lies between two events. */
function eachSpeedscopeSample(one, add) {
	if (one.type === 'sampled') {
		for (const [i, stack] of one.samples.entries()) add(stack, Number(one.weights[i]) || 0);
		return;
	}
	const open = [];
	let now = one.startValue;
	for (const { type, frame, at } of one.events) {
		if (open.length && at > now) add(open, at - now);
		now = at;
		if (type === 'O') open.push(frame);
		else if (open.pop() !== frame) throw new Error('a frame closes that is not the innermost one');
	}
	if (open.length && one.endValue > now) add(open, one.endValue - now);
}

function readSpeedscope(json) {
	const frames = json.shared.frames;
	const types = [];
	const profiles = [];
	for (const one of json.profiles) {
		if (one.type !== 'sampled' && one.type !== 'evented') continue;
		const reader = new StackReader();
		const kindOf = (f) => (KIND_NAMES.includes(f.kind) ? f.kind : 'native');
		const numbers = frames.map((f) => reader.frame(String(f.name), kindOf(f), String(f.module ?? f.file ?? '')));
		eachSpeedscopeSample(one, (stack, weight) => reader.add(stack.map((f) => numbers[f] ?? 0), weight));
		types.push({ name: String(one.name), unit: one.unit === 'none' ? 'samples' : String(one.unit), scale: 1, nanoseconds: 0, negative: reader.negative });
		profiles.push(reader.finish());
	}
	if (!profiles.length) throw new Error('it has no profile');
	return { types, kinds: KIND_NAMES, profiles };
}

function pprofProfiles(bytes) {
	const { types, first, samples, frameOf } = readPprof(bytes);
	const readers = types.map((_, column) => {
		const reader = new StackReader();
		for (const { frames, values } of samples) {
			if (!values[column]) continue;
			reader.add(frames.map((f) => {
				const { name, kind, module } = frameOf(f);
				return reader.frame(name, kind, module);
			}), values[column]);
		}
		return reader;
	});
	for (const list of [types, readers]) list.unshift(...list.splice(first, 1));
	return { types: types.map((t, i) => ({ ...t, scale: 1, nanoseconds: 0, negative: readers[i].negative })), kinds: KIND_NAMES, profiles: readers.map((reader) => reader.finish()) };
}

/**
 * Unpacked bytes; `room.left` of them at most, which they take.
 * @param {Uint8Array} packed
 * @param {CompressionFormat} format
 * @param {{ left: number }} room
 */
async function inflateInto(packed, format, room) {
	const counted = new TransformStream({
		transform(part, controller) {
			room.left -= part.length;
			if (room.left < 0) controller.error(new Error(TOO_LARGE));
			else controller.enqueue(part);
		},
	});
	const parts = /** @type {BlobPart[]} */ ([packed]);
	try {
		return new Uint8Array(await new Response(new Blob(parts).stream().pipeThrough(new DecompressionStream(format)).pipeThrough(counted)).arrayBuffer());
	} catch (problem) {
		throw room.left < 0 ? new Error(TOO_LARGE) : problem; // a browser says only that the stream broke off
	}
}

const LESS_THAN = 0x3c;

/** Does that text stand there, in any case? */
function standsAt(bytes, at, text) {
	for (let i = 0; i < text.length; i++) if ((bytes[at + i] | 0x20) !== (text.charCodeAt(i) | 0x20)) return false;
	return true;
}

/** What the scripts of a page with an id have in them. Nothing of the page runs or is laid out; a worker has no parser of pages. */
function scriptsOf(bytes) {
	const found = new Map();
	const utf8 = new TextDecoder();
	let id = null;
	let from = 0;
	for (let at = bytes.indexOf(LESS_THAN); at >= 0; at = bytes.indexOf(LESS_THAN, at + 1)) {
		if (id === null && standsAt(bytes, at, '<script')) {
			from = bytes.indexOf(0x3e, at) + 1;
			if (!from) break;
			id = / id="([\w-]+)"/.exec(utf8.decode(bytes.subarray(at, Math.min(from, at + 1000))))?.[1] ?? '';
		} else if (id !== null && standsAt(bytes, at, '</script')) {
			if (id && !found.has(id)) found.set(id, bytes.subarray(from, at));
			id = null;
		}
	}
	return (name) => {
		if (!found.has(name)) throw new Error(BROKEN_PAGE);
		return utf8.decode(found.get(name));
	};
}

/** A page that hearth wrote: its data blocks. */
async function readPage(bytes, room) {
	const textOf = scriptsOf(bytes);
	const { types, kinds } = JSON.parse(textOf('meta'));
	if (!Array.isArray(types) || !types.length || !Array.isArray(kinds)) throw new Error(BROKEN_PAGE);
	const profiles = [];
	for (let i = 0; i < types.length; i++) profiles.push(decodeProfile(await inflateInto(decodeBase64(textOf(i ? 'data-' + i : 'data').trim()), 'deflate-raw', room)));
	return { types, kinds, profiles };
}

/** What is in a file: { types, kinds, profiles }. Throws with words for people. max: bytes that it may be unpacked. */
export async function readFile(bytes, max = INFLATED_MAX) {
	const room = { left: max };
	const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
	let plain = bytes;
	for (let layers = 0; layers < LAYERS_MAX && plain[0] === 0x1f && plain[1] === 0x8b; layers++) plain = await inflateInto(plain, 'gzip', room);
	const head = new TextDecoder().decode(plain.subarray(0, 64)).trimStart().toLowerCase();
	if (head.startsWith('<!doctype')) return readPage(plain, room);
	if (head.startsWith('{')) return readSpeedscope(JSON.parse(new TextDecoder().decode(plain)));
	// The first field of a pprof file: a message, or a string table.
	if (isGzip || plain[0] === 0x0a) {
		try {
			return pprofProfiles(plain);
		} catch (problem) {
			if (plain[0] === 0x0a && !isGzip) throw problem;
		}
	}
	return readFolded(new TextDecoder().decode(plain));
}

/**
 * What is in a file of the formats of this module, as readFile().
 * @param {Blob} file or anything with size and arrayBuffer()
 * @param {boolean} isPage no other readers are there for the other formats: words say so
 */
export async function readPlainly(file, isPage) {
	if (file.size > INFLATED_MAX) throw new Error(TOO_LARGE);
	const bytes = new Uint8Array(await file.arrayBuffer());
	try {
		return await readFile(bytes);
	} catch (problem) {
		throw isPage || problem.message === TOO_LARGE ? problem : new Error(`${problem.message}. ${FEW_FORMATS}`);
	}
}

/** @implements {Source} */
export class FileSource {
	/** file: a File, or anything with name, size and arrayBuffer(). read: as readInWorker() does; where it gives null, the formats of this module are read here. */
	static async open(file, startWorker, read = null, options = {}) {
		const found = await read?.(file, options) ?? await readPlainly(file, !read);
		return new FileSource(file.name, found, startWorker);
	}

	constructor(name, { types, kinds, profiles, words = '' }, startWorker) {
		this.profiles = profiles;
		this.words = words; // about what was left out
		this.startWorker = startWorker;
		this.meta = { title: name, types, kinds };
	}

	overview() {
		return null;
	}

	open(index) {
		return Promise.resolve(this.profiles[index]);
	}
}
