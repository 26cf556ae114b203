// SPDX-License-Identifier: Apache-2.0
// Known profiles, and what is in them by counting stacks one at a time: slow and obvious.

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
