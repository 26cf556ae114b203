// SPDX-License-Identifier: Apache-2.0
// Known profiles, and what is in them by counting stacks one at a time: slow and obvious.
import { Duplex } from 'node:stream';
import { createInflateRaw } from 'node:zlib';

// Debian 12's Node 18 has the browsers' DecompressionStream without its deflate-raw (Node has it since 21.2 and 20.12).
try {
	new DecompressionStream('deflate-raw');
} catch {
	const Known = globalThis.DecompressionStream;
	globalThis.DecompressionStream = function inflate(format) {
		return format === 'deflate-raw' ? Duplex.toWeb(createInflateRaw()) : new Known(format);
	};
}

/** mulberry32 */
export function randomOf(seed) {
	let a = seed >>> 0;
	return () => {
		a = (a + 0x6d2b79f5) >>> 0;
		let t = Math.imul(a ^ (a >>> 15), 1 | a);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

const SUFFIXES = ['', '', '', '_[k]', '_[p]', '_[j]', '_[i]'];

/** Stacks with much recursion, direct and indirect: [[frames root first, count]...], no stack twice. */
export function knownStacks(seed, lines = 400, names = 30) {
	const random = randomOf(seed);
	const pick = (n) => Math.floor(random() * random() * n);
	const table = Array.from({ length: names }, (_, i) => `ns${i % 4}::fn_${i}${SUFFIXES[i % SUFFIXES.length]}`);
	const stacks = new Map();
	for (let i = 0; i < lines; i++) {
		const depth = 1 + Math.floor(random() * 14);
		const frames = [];
		for (let d = 0; d < depth; d++) {
			frames.push(d && random() < 0.2 ? frames[d - 1] : table[pick(names)]);
		}
		const key = frames.join(';');
		stacks.set(key, (stacks.get(key) ?? 0) + 1 + Math.floor(random() * 50));
	}
	return [...stacks].map(([key, count]) => [key.split(';'), count]);
}

export function foldedText(stacks) {
	return stacks.map(([frames, count]) => `${frames.join(';')} ${count}\n`).join('');
}

/** What the page shows instead of the suffix. */
export function shownName(name) {
	return name.replace(/_\[(k|p|pn|pe|j|i|1|0|rb|php|net)\]$/, '');
}

export function totalOf(stacks) {
	return stacks.reduce((sum, [, count]) => sum + count, 0);
}

/** name -> { self, total } */
export function countFunctions(stacks) {
	const out = new Map();
	const of = (name) => out.get(name) ?? out.set(name, { self: 0, total: 0 }).get(name);
	for (const [frames, count] of stacks) {
		const names = frames.map(shownName);
		of(names.at(-1)).self += count;
		for (const name of new Set(names)) of(name).total += count;
	}
	return out;
}

export function shareMatching(stacks, test) {
	return totalOf(stacks.filter(([frames]) => frames.some((f) => test(shownName(f))))) / totalOf(stacks);
}

function addPath(tree, path, count) {
	for (let i = 1; i <= path.length; i++) {
		const key = path.slice(0, i).join(';');
		tree.set(key, (tree.get(key) ?? 0) + count);
	}
	return tree;
}

/** Trees as Map(path joined by ; -> total). */
export function plainTree(stacks) {
	return stacks.reduce((tree, [frames, count]) => addPath(tree, frames.map(shownName), count), new Map());
}

export function invertedPaths(stacks) {
	return stacks.reduce((tree, [frames, count]) => addPath(tree, frames.map(shownName).reverse(), count), new Map());
}

export function collapsedPaths(stacks) {
	return stacks.reduce((tree, [frames, count]) => {
		const names = frames.map(shownName).filter((name, i, all) => name !== all[i - 1]);
		return addPath(tree, names, count);
	}, new Map());
}

/** From the outermost call of the function: callers upwards and callees downwards. */
export function sandwichPaths(stacks, name) {
	const callers = new Map();
	const callees = new Map();
	for (const [frames, count] of stacks) {
		const names = frames.map(shownName);
		const at = names.indexOf(name);
		if (at < 0) continue;
		addPath(callers, names.slice(0, at + 1).reverse(), count);
		addPath(callees, names.slice(at), count);
	}
	return { callers, callees };
}

/**
 * A pprof file (profile.proto of github.com/google/pprof) of stacks with several values each.
 * types: [[name, unit]...]; samples: [[frames root first, values, labels]...]; a frame that ends in _[k] is the kernel's; labels: numbers
 * or texts by name, or none. wanted: its default_sample_type.
 */
export function pprofOf(types, samples, wanted = '') {
	const strings = [''];
	const text = (s) => (strings.includes(s) ? strings.indexOf(s) : strings.push(s) - 1);
	const varint = (n) => {
		const out = [];
		let value = BigInt.asUintN(64, BigInt(n));
		for (; value > 127n; value >>= 7n) out.push(Number(value & 127n) | 128);
		return [...out, Number(value)];
	};
	const number = (field, n) => [...varint(field * 8), ...varint(n)];
	const block = (field, bytes) => [...varint(field * 8 + 2), ...varint(bytes.length), ...bytes];
	const names = [...new Set(samples.flatMap(([frames]) => frames))];
	const out = types.flatMap(([name, unit]) => block(1, [...number(1, text(name)), ...number(2, text(unit))]));
	const label = ([key, value]) => block(3, [...number(1, text(key)), ...(typeof value === 'number' ? number(3, value) : number(2, text(value)))]);
	for (const [frames, values, labels = {}] of samples) {
		const ids = frames.map((f) => names.indexOf(f) + 1).reverse();
		out.push(...block(2, [...block(1, ids.flatMap(varint)), ...block(2, values.flatMap(varint)), ...Object.entries(labels).flatMap(label)]));
	}
	for (const [i, file] of ['/bin/program', '[kernel.kallsyms]'].entries()) {
		out.push(...block(3, [...number(1, i + 1), ...number(5, text(file)), ...number(7, 1)]));
	}
	for (const [i, name] of names.entries()) {
		const isKernel = name.endsWith('_[k]');
		out.push(...block(4, [...number(1, i + 1), ...number(2, isKernel ? 2 : 1), ...block(4, number(1, i + 1))]));
		out.push(...block(5, [...number(1, i + 1), ...number(2, text(isKernel ? name.slice(0, -4) : name))]));
	}
	if (wanted) out.push(...number(14, text(wanted)));
	const texts = strings.map((s) => Buffer.from(s)); // as they are: a text may be of a megabyte
	return Buffer.concat([Buffer.from(out), ...texts.flatMap((bytes) => [Buffer.from([...varint(6 * 8 + 2), ...varint(bytes.length)]), bytes])]);
}

/** A tree of the page in the same shape. */
export function pathsOfTree(tree, nameOf) {
	const paths = new Map();
	const open = [];
	for (let i = 1; i < tree.count; i++) {
		open.length = tree.level[i] - 1;
		open.push(nameOf(tree.frame[i]));
		paths.set(open.join(';'), tree.total[i]);
	}
	return paths;
}

/** Stacks after a step of the view, by changing each stack: what web/transforms.js must give. */
export function steppedStacks(stacks, op, name, kindOf) {
	const out = [];
	for (const [frames, count] of stacks) {
		const at = frames.findIndex((f) => shownName(f) === name);
		if (op === 'focus' && at >= 0) out.push([frames.slice(at), count]);
		if (op === 'only' && at >= 0) out.push([frames, count]);
		if (op === 'drop' && at < 0) out.push([frames, count]);
		if (op === 'hide') out.push([frames.filter((f) => shownName(f) !== name), count]);
		if (op === 'merge') out.push([at < 0 ? frames : frames.slice(0, at + 1), count]);
		if (op === 'recursion') out.push([at < 0 ? frames : collapsedCalls(frames, name), count]);
		if (op === 'group') out.push([[runtimeOf(frames, kindOf), ...frames], count]);
		if (op === 'process') {
			const first = frames.findIndex((f) => kindOf(f) === 'process');
			out.push([first < 0 ? ['(no process)', ...frames] : [frames[first], ...frames.filter((_, i) => i !== first)], count]);
		}
	}
	return out;
}

/** A call of `name` below one of its own: the frames behind it hang below the outermost one. */
function collapsedCalls(frames, name) {
	const first = frames.findIndex((f) => shownName(f) === name);
	const last = frames.findLastIndex((f) => shownName(f) === name);
	return [...frames.slice(0, first + 1), ...frames.slice(last + 1)];
}

function runtimeOf(frames, kindOf) {
	let best = '';
	for (const f of frames) {
		const runtime = kindOf(f).split('-')[0];
		const weak = (r) => (r === '' ? 3 : r === 'kernel' ? 2 : r === 'native' ? 1 : 0);
		if (weak(runtime) <= weak(best)) best = runtime;
	}
	return best;
}
