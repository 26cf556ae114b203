// SPDX-License-Identifier: Apache-2.0
// A tree that comes again and again keeps its shape: siblings stay in the order in which they were first met.
import { layoutTree, nodeChildren, withBase } from './layout.js';

const KNOWN_MAX = 200000;

/**
 * place(children, of): the children of a node as [{ node, at }...] in their order; `at` is the `of` of their children.
 * @param {Tree} tree
 * @returns {Tree}
 */
function reordered(tree, top, place) {
	const out = { level: tree.level.slice(), frame: tree.frame.slice(), total: tree.total.slice(), self: tree.self.slice(), ...(tree.base && { baseSelf: tree.baseSelf.slice() }) };
	const open = [{ node: 0, at: top }];
	for (let i = 0; open.length; i++) {
		const { node, at } = open.pop();
		for (const column of Object.keys(out)) out[column][i] = tree[column][node];
		const placed = place(nodeChildren(tree, node), at);
		for (let k = placed.length - 1; k >= 0; k--) open.push(placed[k]);
	}
	const made = { ...layoutTree(out.level, out.frame, out.total, out.self, tree.deepest), origin: null };
	return tree.base ? withBase(made, out.baseSelf) : made;
}

/**
 * The tree with siblings by the ranks of their frames; what has none, and what was too narrow, is last.
 * @param {Tree} tree
 * @param {Uint32Array} ranks
 */
export function rankedOrder(tree, ranks) {
	const rankOf = (node) => ranks[tree.frame[node]] ?? ranks.length;
	return reordered(tree, null, (nodes) => nodes.sort((a, b) => rankOf(a) - rankOf(b) || a - b).map((node) => ({ node, at: null })));
}

/**
 * The tree with its heaviest siblings first, as a collector sends it.
 * @param {Tree} tree
 */
export function heaviestFirst(tree) {
	return reordered(tree, null, (nodes) => nodes.sort((a, b) => tree.total[b] - tree.total[a] || a - b).map((node) => ({ node, at: null })));
}

export class SiblingOrder {
	constructor() {
		this.forget();
	}

	/** The next tree is taken as it comes. */
	forget() {
		this.root = { rank: 0, children: new Map() };
		this.known = 0;
	}

	/** Children of a place in the order of their ranks; new ones get the next ranks, in the order given. */
	place(known, nodes, keyOf) {
		const placed = nodes.map((node) => {
			const key = keyOf(node);
			let at = known.children.get(key);
			if (!at) {
				at = { rank: key === null ? Infinity : known.children.size, children: new Map() };
				if (key !== null) {
					known.children.set(key, at);
					this.known++;
				}
			}
			return { node, at };
		});
		return placed.sort((a, b) => (a.at.rank === b.at.rank ? a.node - b.node : a.at.rank - b.at.rank));
	}

	/**
	 * profile: as decodeProfile() gives it; frames: its FrameTable. Returns the same profile, its tree in the kept order.
	 * @param {Profile} profile
	 * @param {import('./data.js').FrameTable} frames
	 * @returns {Profile}
	 */
	arrange(profile, frames) {
		if (this.known > KNOWN_MAX) this.forget();
		const { tree } = profile;
		const keys = new Array(frames.count);
		const keyOf = (node) => {
			const frame = tree.frame[node];
			if (frame >= frames.count) return null; // what was too narrow: always last
			return (keys[frame] ??= `${frames.kind(frame)}\n${frames.moduleName(frame)}\n${frames.name(frame)}`);
		};
		return { ...profile, tree: reordered(tree, this.root, (nodes, known) => this.place(known, nodes, keyOf)) };
	}
}
