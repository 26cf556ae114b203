// SPDX-License-Identifier: Apache-2.0
// Trees made from the tree: inverted, callers, callees, recursion collapsed. A complete inverted tree is several times
// the tree, so all are built by partition with a smallest value, and built again when a part is zoomed into.
import { layoutTree } from './layout.js';

const DEPTH_MAX = 4096;
const NODES_MAX = 400000;

class Pool {
	constructor() {
		this.node = new Uint32Array(1024);
		this.weight = new Float64Array(1024);
		this.count = 0;
	}

	push(node, weight) {
		if (this.count === this.node.length) {
			const [oldNode, oldWeight] = [this.node, this.weight];
			this.node = new Uint32Array(2 * this.count);
			this.node.set(oldNode);
			this.weight = new Float64Array(2 * this.count);
			this.weight.set(oldWeight);
		}
		this.node[this.count] = node;
		this.weight[this.count++] = weight;
	}
}

/** @typedef {{ frame: number, total: number, count?: number, at?: number, from?: number, to?: number, level?: number }} Group */

/** Groups entries by frame: the heaviest last, so that a stack takes it first. */
class Partition {
	constructor(frameCount) {
		this.slot = new Int32Array(frameCount + 2).fill(-1);
		/** @type {Group[]} */
		this.groups = [];
		this.node = [];
		this.weight = [];
		this.group = [];
	}

	add(frame, node, weight) {
		let slot = this.slot[frame];
		if (slot < 0) {
			slot = this.slot[frame] = this.groups.length;
			this.groups.push({ frame, total: 0, count: 0, at: 0 });
		}
		this.groups[slot].total += weight;
		this.groups[slot].count++;
		this.node.push(node);
		this.weight.push(weight);
		this.group.push(slot);
	}

	/** Moves the groups of at least `min` to the pool. Returns { kept: them as { frame, total, from, to }, lightest first, rest: the others' sum }. */
	take(pool, min, only) {
		const kept = this.groups.filter((g) => g.total >= min && g.total > 0 && (only < 0 || g.frame === only));
		const rest = only < 0 ? this.groups.reduce((sum, g) => sum + g.total, 0) - kept.reduce((sum, g) => sum + g.total, 0) : 0;
		kept.sort((a, b) => a.total - b.total || b.frame - a.frame);
		for (const g of this.groups) g.at = -1;
		let at = pool.count;
		for (const g of kept) {
			g.from = g.at = at;
			at += g.count;
			g.to = at;
		}
		while (pool.count < at) pool.push(0, 0);
		for (let i = 0; i < this.node.length; i++) {
			const g = this.groups[this.group[i]];
			if (g.at < 0) continue;
			pool.node[g.at] = this.node[i];
			pool.weight[g.at++] = this.weight[i];
		}
		for (const g of this.groups) this.slot[g.frame] = -1;
		this.groups = [];
		this.node.length = this.weight.length = this.group.length = 0;
		return { kept, rest };
	}
}

function finishTree(out, root) {
	const Values = root.total < 2 ** 32 ? Uint32Array : Float64Array;
	let deepest = 0;
	for (const l of out.level) deepest = Math.max(deepest, l);
	const level = deepest < 65536 ? Uint16Array.from(out.level) : Uint32Array.from(out.level);
	const tree = layoutTree(level, Uint32Array.from(out.frame), Values.from(out.total), Values.from(out.self), deepest);
	tree.isCut = out.isCut;
	return tree;
}

/**
 * buildTree - grow a tree by steps
 * @param start (partition) => void: adds the entries of the first row
 * @param grow (group, pool, partition) => self value; adds what lies below the entries pool[from..to) of a group
 * @param options path: frames to follow without their siblings; share: smallest total shown, as a part of the last frame's on the path
 */
function buildTree(frameCount, rootFrame, rootTotal, start, grow, options) {
	const out = { level: [0], frame: [rootFrame], total: [rootTotal], self: [0], isCut: false };
	const pool = new Pool();
	const partition = new Partition(frameCount);
	const { path = [], share = 0 } = options;
	let min = rootTotal * share;
	// What is too narrow is one frame, the last of its row: nothing would look as if nobody called.
	const expand = (level) => {
		const followed = level < path.length;
		const at = pool.count;
		const { kept, rest } = partition.take(pool, followed ? 0 : min, followed ? path[level] : -1);
		if (rest > 0 && rest >= min) kept.unshift({ frame: frameCount + 1, total: rest, from: at, to: at });
		return kept;
	};
	start(partition);
	/** @type {Group[]} */
	const stack = expand(0).map((g) => ({ ...g, level: 1 }));
	while (stack.length) {
		const group = stack.pop();
		pool.count = group.to;
		if (group.level === path.length) min = group.total * share;
		const at = out.level.push(group.level) - 1;
		out.frame.push(group.frame);
		out.total.push(group.total);
		out.self.push(0);
		out.isCut ||= at >= NODES_MAX || group.level >= DEPTH_MAX;
		if (at >= NODES_MAX || group.level >= DEPTH_MAX || group.frame > frameCount) continue;
		out.self[at] = grow(group, pool, partition);
		for (const child of expand(group.level)) {
			child.level = group.level + 1;
			stack.push(child);
		}
	}
	return finishTree(out, { total: rootTotal });
}

/**
 * Adds the children of a node; a child of the same frame counts as the node itself when recursion is collapsed.
 * @param {Tree} tree
 * @param {Partition} partition
 */
function addChildren(tree, node, collapse, partition) {
	let self = tree.self[node];
	const pending = [node];
	while (pending.length) {
		const top = pending.pop();
		const end = top + tree.size[top];
		for (let c = top + 1; c < end; c += tree.size[c]) {
			if (collapse && tree.frame[c] === tree.frame[node]) {
				self += tree.self[c];
				pending.push(c);
			} else {
				partition.add(tree.frame[c], c, tree.total[c]);
			}
		}
	}
	return self;
}

/** @param {Tree} tree */
function growDown(tree, collapse) {
	return (group, pool, partition) => {
		let self = 0;
		for (let i = group.from; i < group.to; i++) self += addChildren(tree, pool.node[i], collapse, partition);
		return self;
	};
}

/** @param {Tree} tree */
function growUp(tree) {
	return (group, pool, partition) => {
		let ended = 0;
		for (let i = group.from; i < group.to; i++) {
			const above = tree.parent[pool.node[i]];
			if (above) partition.add(tree.frame[above], above, pool.weight[i]);
			else ended += pool.weight[i];
		}
		return ended;
	};
}

/**
 * Direct recursion (a function that calls itself) folded into one frame. options: path, share.
 * @param {Tree} tree
 */
export function collapsedTree(tree, frameCount, options = {}) {
	return buildTree(frameCount, tree.frame[0], tree.total[0], (p) => addChildren(tree, 0, true, p),
		growDown(tree, true), options);
}

/**
 * Every function with self value, its callers below it.
 * @param {Tree} tree
 */
export function invertedTree(tree, frameCount, options = {}) {
	const start = (partition) => {
		const { self, frame, count } = tree;
		for (let i = 1; i < count; i++) {
			if (self[i]) partition.add(frame[i], i, self[i]);
		}
	};
	return buildTree(frameCount, tree.frame[0], tree.total[0], start, growUp(tree), options);
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
	let sum = 0;
	for (const node of nodes) sum += tree.total[node];
	const frame = nodes.length ? tree.frame[nodes[0]] : frameCount;
	const partition = (p) => {
		for (const node of nodes) p.add(frame, node, tree.total[node]);
	};
	return buildTree(frameCount, tree.frame[0], sum, partition, grow, { share: options.share ?? 1 / 5000 });
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
