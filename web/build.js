// SPDX-License-Identifier: Apache-2.0
// Trees from paths: what the transforms and the readers of dropped files build with.
import { layoutTree, withBase } from './layout.js';

const LOAD_MAX = 0.6;

/**
 * Names as the decoder gives them: one block of UTF-8.
 * @param {string[]} list
 * @returns {PackedNames}
 */
export function packNames(list) {
	const encoder = new TextEncoder();
	const parts = list.map((name) => encoder.encode(name));
	const text = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
	const ends = new Uint32Array(list.length);
	const plain = new Uint8Array(list.length);
	let at = 0;
	for (const [i, part] of parts.entries()) {
		text.set(part, at);
		ends[i] = at += part.length;
		plain[i] = part.length === list[i].length ? 1 : 0;
	}
	return { text, ends, plain };
}

/** Paths of frames grow a tree; node 0 is the root. isCompared: of two profiles as one, baseSelf has the base's part of self. */
export class TreeGrower {
	/** @param {number} rootFrame */
	constructor(rootFrame, expected = 1024, isCompared = false) {
		let slots = 1024;
		while (slots * LOAD_MAX < expected) slots *= 2;
		this.slots = new Int32Array(slots).fill(-1);
		const room = Math.max(1024, expected + 1);
		this.frame = new Uint32Array(room);
		this.parent = new Uint32Array(room);
		this.self = new Float64Array(room);
		this.baseSelf = isCompared ? new Float64Array(room) : null;
		this.frame[0] = rootFrame;
		this.count = 1;
	}

	slotOf(slots, parent, frame) {
		const mask = slots.length - 1;
		let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame + 1, 0x85ebca6b);
		hash ^= hash >>> 15;
		hash = Math.imul(hash, 0x2c1b3c6d);
		let at = (hash ^ (hash >>> 13)) & mask;
		for (;;) {
			const node = slots[at];
			if (node < 0 || (this.parent[node] === parent && this.frame[node] === frame)) return at;
			at = (at + 1) & mask;
		}
	}

	/** The child of a node that has this frame; made when there is none. */
	child(parent, frame) {
		const at = this.slotOf(this.slots, parent, frame);
		if (this.slots[at] >= 0) return this.slots[at];
		if (this.count === this.frame.length) this.enlarge();
		const node = this.count++;
		this.parent[node] = parent;
		this.frame[node] = frame;
		this.slots[at] = node;
		if (this.count > this.slots.length * LOAD_MAX) this.rehash();
		return node;
	}

	/** What a node of another tree has itself, or with all that is below it. */
	addSelf(at, tree, node) {
		this.self[at] += tree.self[node];
		if (this.baseSelf) this.baseSelf[at] += tree.baseSelf[node];
	}

	addTotal(at, tree, node) {
		this.self[at] += tree.total[node];
		if (this.baseSelf) this.baseSelf[at] += tree.base[node];
	}

	enlarge() {
		for (const key of ['frame', 'parent', 'self', 'baseSelf']) {
			const column = this[key];
			if (!column) continue;
			this[key] = new column.constructor(2 * column.length);
			this[key].set(column);
		}
	}

	rehash() {
		const slots = new Int32Array(2 * this.slots.length).fill(-1);
		for (let node = 1; node < this.count; node++) slots[this.slotOf(slots, this.parent[node], this.frame[node])] = node;
		this.slots = slots;
	}

	/**
	 * The children of all nodes, heaviest first: those of node n are order[start[n]..start[n + 1]).
	 * @param {Float64Array} total
	 */
	sortedChildren(total) {
		const { parent, frame, count } = this;
		const start = new Uint32Array(count + 1);
		for (let i = 1; i < count; i++) {
			if (total[i] > 0) start[parent[i] + 1]++;
		}
		for (let i = 0; i < count; i++) start[i + 1] += start[i];
		const order = new Uint32Array(start[count]);
		const fill = start.slice(0, count);
		for (let i = 1; i < count; i++) {
			if (total[i] > 0) order[fill[parent[i]]++] = i;
		}
		const before = (a, b) => total[b] - total[a] || frame[a] - frame[b];
		for (let i = 0; i < count; i++) {
			let sorted = true;
			for (let k = start[i] + 1; k < start[i + 1] && sorted; k++) sorted = before(order[k - 1], order[k]) < 0;
			if (!sorted) order.subarray(start[i], start[i + 1]).sort(before);
		}
		return { start, order };
	}

	/** The tree as layoutTree() gives it, with both sides of a comparison; what has no value is left out. */
	finish() {
		const { parent, frame, self, baseSelf, count } = this;
		const total = self.slice(0, count);
		for (let i = count - 1; i > 0; i--) total[parent[i]] += total[i];
		const { start, order } = this.sortedChildren(total);
		const kept = order.length + 1;
		const Values = total[0] < 2 ** 32 ? Uint32Array : Float64Array;
		const out = { level: new Uint32Array(kept), frame: new Uint32Array(kept), total: new Values(kept), self: new Values(kept) };
		const base = baseSelf && new Values(kept);
		const stack = [0];
		const levels = [0];
		let deepest = 0;
		for (let at = 0; stack.length; at++) {
			const node = stack.pop();
			const level = levels.pop();
			if (level > deepest) deepest = level;
			out.level[at] = level;
			out.frame[at] = frame[node];
			out.total[at] = total[node];
			out.self[at] = self[node];
			if (base) base[at] = baseSelf[node];
			for (let k = start[node + 1] - 1; k >= start[node]; k--) {
				stack.push(order[k]);
				levels.push(level + 1);
			}
		}
		const level = deepest < 65536 ? Uint16Array.from(out.level) : out.level;
		const tree = layoutTree(level, out.frame, out.total, out.self, deepest);
		return base ? withBase(tree, base) : tree;
	}
}
