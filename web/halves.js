// SPDX-License-Identifier: Apache-2.0
// Moving through a drawn tree by keys, and the two halves of the sandwich: each a graph with a tree of its own for keys
// and screen readers.
import { TreeMirror } from './a11y.js';
import { nodeChildren } from './layout.js';

export const TREE_KEY = /^(Arrow(Up|Down|Left|Right)|Home)$/;

/**
 * The node a key leads to. `flip`: the root is at the bottom; `home`: where Home goes.
 * @param {Tree} tree
 */
export function neighbour(tree, at, key, flip, home) {
	if (key === 'Home') return home;
	if (key === (flip ? 'ArrowUp' : 'ArrowDown')) return tree.size[at] > 1 ? at + 1 : at;
	if (at === 0) return 0;
	if (key === 'ArrowUp' || key === 'ArrowDown') return tree.parent[at];
	const siblings = nodeChildren(tree, tree.parent[at]);
	const place = siblings.indexOf(at) + (key === 'ArrowLeft' ? -1 : 1);
	return siblings[Math.max(0, Math.min(place, siblings.length - 1))];
}

/** Node 1 is the function itself; nothing above it is shown. */
export class SandwichHalf {
	/**
	 * @param {import('./flame.js').FlameView} flame
	 * @param {HTMLElement} mirrorBox
	 * @param {HTMLElement} live
	 * @param {(frame: number) => void} choose
	 * @param {(half: SandwichHalf) => void} moved another box has become the current one
	 */
	constructor(flame, mirrorBox, live, choose, moved) {
		this.moved = moved;
		this.flame = flame;
		this.mirror = new TreeMirror(mirrorBox, live, 1);
		this.current = 1;
		flame.firstRow = 1;
		mirrorBox.addEventListener('keydown', (event) => this.keys(event, choose));
		mirrorBox.addEventListener('focus', () => this.setCurrent(this.current));
		mirrorBox.addEventListener('blur', () => flame.select(-1));
	}

	/**
	 * @param {Tree} tree
	 * @param {import('./data.js').FrameTable} frames
	 */
	show(tree, frames) {
		const { flame } = this;
		this.frames = frames;
		if (flame.tree === tree) return;
		flame.tree = tree;
		flame.hovered = flame.selected = -1;
		flame.hitsBefore = null;
		flame.zoomTo(0, false);
		flame.scroller.style.maxHeight = flame.contentHeight() + 'px';
		flame.resize();
		flame.scrollToRoot();
		this.current = 1;
		if (tree.count > 1) this.mirror.update(tree, frames, 1);
	}

	setCurrent(node) {
		const { tree } = this.flame;
		if (!tree || node < 1 || node >= tree.count) return;
		this.current = node;
		this.flame.select(node);
		this.mirror.update(tree, this.frames, node);
		this.moved(this);
	}

	keys(event, choose) {
		const { tree, flip } = this.flame;
		if (event.ctrlKey || event.altKey || event.metaKey || !tree || tree.count < 2) return;
		if (TREE_KEY.test(event.key)) this.setCurrent(neighbour(tree, this.current, event.key, flip, 1));
		else if (event.key === 'Enter') choose(tree.frame[this.current]);
		else return;
		event.preventDefault();
		event.stopPropagation();
	}
}
