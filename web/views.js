// SPDX-License-Identifier: Apache-2.0
// Trees made from the tree: inverted, callers, callees, recursion collapsed. A complete inverted tree is several times
// the tree, so all are built by partition with a smallest value, and built again when a part is zoomed into.
import { layoutTree } from './layout.js';

const DEPTH_MAX = 4096;
const NODES_MAX = 400000;

/** Nodes, and what of each counts; `base`: how much of that is the base's, of two profiles as one. */
class Pool {
	constructor(isCompared) {
		this.node = new Uint32Array(1024);
		this.weight = new Float64Array(1024);
		this.base = isCompared ? new Float64Array(1024) : null;
		this.count = 0;
	}

	enlarge(count) {
		let room = this.node.length;
		while (room < count) room *= 2;
		for (const key of ['node', 'weight', 'base']) {
			const column = this[key];
			if (!column || column.length === room) continue;
			this[key] = new column.constructor(room);
			this[key].set(column);
		}
		this.count = count;
	}
}

/** @typedef {{ frame: number, total: number, base: number, count?: number, at?: number, from?: number, to?: number, level?: number, x?: number, isRest?: boolean }} Group */

/** Groups entries by frame: the heaviest last, so that a stack takes it first. */
class Partition {
	constructor(frameCount, isCompared) {
		this.slot = new Int32Array(frameCount + 2).fill(-1);
		/** @type {Group[]} */
		this.groups = [];
		this.node = [];
		this.weight = [];
		this.base = isCompared ? [] : null;
		this.group = [];
	}

	add(frame, node, weight, base) {
		let slot = this.slot[frame];
		if (slot < 0) {
			slot = this.slot[frame] = this.groups.length;
			this.groups.push({ frame, total: 0, base: 0, count: 0, at: 0 });
		}
		this.groups[slot].total += weight;
		this.groups[slot].base += base;
		this.groups[slot].count++;
		this.node.push(node);
		this.weight.push(weight);
		this.base?.push(base);
		this.group.push(slot);
	}

	/**
	 * Moves the groups of at least `min` to the pool. Returns { kept: them as { frame, total, base, from, to }, lightest first,
	 * all, rest: what all and those that were not kept have, as { total, base } }.
	 */
	take(pool, min, only) {
		const sumOf = (groups) => groups.reduce((sum, g) => ({ total: sum.total + g.total, base: sum.base + g.base }), { total: 0, base: 0 });
		const kept = this.groups.filter((g) => g.total >= min && g.total > 0 && (only < 0 || g.frame === only));
		const [all, shown] = [sumOf(this.groups), sumOf(kept)];
		const rest = only < 0 ? { total: all.total - shown.total, base: all.base - shown.base } : { total: 0, base: 0 };
		kept.sort((a, b) => a.total - b.total || b.frame - a.frame);
		for (const g of this.groups) g.at = -1;
		let at = pool.count;
		for (const g of kept) {
			g.from = g.at = at;
			at += g.count;
			g.to = at;
		}
		pool.enlarge(at);
		for (let i = 0; i < this.node.length; i++) {
			const g = this.groups[this.group[i]];
			if (g.at < 0) continue;
			pool.node[g.at] = this.node[i];
			if (pool.base) pool.base[g.at] = this.base[i];
			pool.weight[g.at++] = this.weight[i];
		}
		for (const g of this.groups) this.slot[g.frame] = -1;
		this.groups = [];
		for (const list of [this.node, this.weight, this.base, this.group]) if (list) list.length = 0;
		return { kept, all, rest };
	}
}

function finishTree(out) {
	const Values = out.total[0] < 2 ** 32 ? Uint32Array : Float64Array;
	let deepest = 0;
	for (const l of out.level) deepest = Math.max(deepest, l);
	const level = deepest < 65536 ? Uint16Array.from(out.level) : Uint32Array.from(out.level);
	const tree = layoutTree(level, Uint32Array.from(out.frame), Values.from(out.total), Values.from(out.self), deepest);
	if (out.base) Object.assign(tree, { base: Values.from(out.base), baseSelf: Values.from(out.baseSelf) });
	tree.isCut = out.isCut;
	tree.rests = Uint32Array.from(out.rests);
	return tree;
}

/**
 * buildTree - grow a tree by steps
 * @param {number} frameCount
 * @param {{ frame: number, total: number, base?: number }} root base: of two profiles as one
 * @param start (partition) => void: adds the entries of the first row
 * @param grow (group, pool, partition) => void: adds what lies below the entries pool[from..to) of a group; what is left is its own
 * @param options path: frames to follow without their siblings; share: smallest total shown, as a part of the last frame's on the path;
 *        window: { from, to, least }: below what lies there the smallest total shown is `least`
 */
function buildTree(frameCount, root, start, grow, options) {
	const isCompared = root.base !== undefined;
	const out = { level: [], frame: [], total: [], self: [], base: isCompared ? [] : null, baseSelf: isCompared ? [] : null, rests: [], isCut: false };
	const pool = new Pool(isCompared);
	const partition = new Partition(frameCount, isCompared);
	const { path = [], share = 0, window = null } = options;
	let min = root.total * share;
	const minBelow = (x, total) => (window && x < window.to && x + total > window.from ? Math.min(min, window.least) : min);
	/** @param {{ frame: number, total: number, base?: number }} group */
	const put = (level, group) => {
		const { frame, total, base } = group;
		out.level.push(level);
		out.frame.push(frame);
		out.total.push(total);
		out.base?.push(base);
		out.baseSelf?.push(0);
		return out.self.push(0) - 1;
	};
	// What is too narrow is one frame, the last of its row: nothing would look as if nobody called.
	const expand = (level, x, total) => {
		const least = minBelow(x, total);
		const followed = level < path.length;
		const at = pool.count;
		const { kept, all, rest } = partition.take(pool, followed ? 0 : least, followed ? path[level] : -1);
		if (rest.total > 0 && rest.total >= least) kept.unshift({ frame: frameCount + 1, ...rest, from: at, to: at, isRest: true });
		let left = x;
		for (let i = kept.length - 1; i >= 0; left += kept[i--].total) kept[i].x = left;
		return { kept, all };
	};
	put(0, root);
	start(partition);
	/** @type {Group[]} */
	const stack = expand(0, 0, root.total).kept.map((g) => ({ ...g, level: 1 }));
	while (stack.length) {
		const group = stack.pop();
		pool.count = group.to;
		if (group.level === path.length) min = group.total * share;
		const at = put(group.level, group);
		if (group.isRest) out.rests.push(at);
		out.isCut ||= at >= NODES_MAX || group.level >= DEPTH_MAX;
		if (at >= NODES_MAX || group.level >= DEPTH_MAX || group.frame > frameCount) continue;
		grow(group, pool, partition);
		const { kept, all } = expand(group.level, group.x, group.total);
		out.self[at] = group.total - all.total;
		if (isCompared) out.baseSelf[at] = group.base - all.base;
		for (const child of kept) {
			child.level = group.level + 1;
			stack.push(child);
		}
	}
	return finishTree(out);
}

/** @param {Tree} tree */
function rootOf(tree) {
	return { frame: tree.frame[0], total: tree.total[0], base: tree.base?.[0] };
}

/**
 * Adds the children of a node; a child of the same frame counts as the node itself when recursion is collapsed.
 * @param {Tree} tree
 * @param {Partition} partition
 */
function addChildren(tree, node, collapse, partition) {
	const pending = [node];
	while (pending.length) {
		const top = pending.pop();
		const end = top + tree.size[top];
		for (let c = top + 1; c < end; c += tree.size[c]) {
			if (collapse && tree.frame[c] === tree.frame[node]) pending.push(c);
			else partition.add(tree.frame[c], c, tree.total[c], tree.base ? tree.base[c] : 0);
		}
	}
}

/** @param {Tree} tree */
function growDown(tree, collapse) {
	return (group, pool, partition) => {
		for (let i = group.from; i < group.to; i++) addChildren(tree, pool.node[i], collapse, partition);
	};
}

/** @param {Tree} tree */
function growUp(tree) {
	return (group, pool, partition) => {
		for (let i = group.from; i < group.to; i++) {
			const above = tree.parent[pool.node[i]];
			if (above) partition.add(tree.frame[above], above, pool.weight[i], pool.base ? pool.base[i] : 0);
		}
	};
}

/**
 * Direct recursion (a function that calls itself) folded into one frame. options: path, share.
 * @param {Tree} tree
 */
export function collapsedTree(tree, frameCount, options = {}) {
	return buildTree(frameCount, rootOf(tree), (p) => addChildren(tree, 0, true, p), growDown(tree, true), options);
}

/**
 * Every function with self value, its callers below it.
 * @param {Tree} tree
 */
export function invertedTree(tree, frameCount, options = {}) {
	const start = (partition) => {
		const { self, frame, count, baseSelf } = tree;
		for (let i = 1; i < count; i++) {
			if (self[i]) partition.add(frame[i], i, self[i], baseSelf ? baseSelf[i] : 0);
		}
	};
	return buildTree(frameCount, rootOf(tree), start, growUp(tree), options);
}

/**
 * The nodes of a frame that have no node of that frame above them.
 * @param {Tree} tree
 */
export function topmostNodes(tree, frame) {
	const nodes = [];
	for (let i = 1; i < tree.count;) {
		if (tree.frame[i] === frame) {
			nodes.push(i);
			i += tree.size[i];
		} else {
			i++;
		}
	}
	return nodes;
}

/**
 * @param {Tree} tree
 * @param {number[]} nodes
 * @param {{ share?: number }} options
 */
function sandwichHalf(tree, frameCount, nodes, grow, options) {
	const { total, base } = tree;
	const sumOf = (column) => nodes.reduce((sum, node) => sum + column[node], 0);
	const frame = nodes.length ? tree.frame[nodes[0]] : frameCount;
	const start = (partition) => {
		for (const node of nodes) partition.add(frame, node, total[node], base ? base[node] : 0);
	};
	return buildTree(frameCount, { frame: tree.frame[0], total: sumOf(total), base: base && sumOf(base) }, start, grow, { share: options.share ?? 1 / 5000 });
}

/**
 * Callers and callees of one function over all its topmost calls; each is a tree whose first row is the function.
 * @param {Tree} tree
 * @param {{ share?: number, collapse?: boolean }} options
 */
export function sandwichTrees(tree, frameCount, frame, options = {}) {
	const nodes = topmostNodes(tree, frame);
	return {
		callers: sandwichHalf(tree, frameCount, nodes, growUp(tree), options),
		callees: sandwichHalf(tree, frameCount, nodes, growDown(tree, options.collapse ?? false), options),
	};
}

/**
 * Self and total per frame; total counts a recursive function once.
 * @param {Tree} tree
 * @returns {Totals}
 */
export function functionTotals(tree, frameCount) {
	const self = new Float64Array(frameCount);
	const total = new Float64Array(frameCount);
	const depth = new Uint32Array(frameCount + 1);
	const open = new Uint32Array(tree.deepest + 2);
	let last = 0;
	for (let i = 1; i < tree.count; i++) {
		const f = tree.frame[i];
		const l = tree.level[i];
		while (last >= l) depth[open[last--]]--;
		if (!depth[f]++) total[f] += tree.total[i];
		self[f] += tree.self[i];
		open[(last = l)] = f;
	}
	return { self, total };
}
