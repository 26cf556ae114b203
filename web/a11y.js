// SPDX-License-Identifier: Apache-2.0
// What a screen reader gets instead of the canvas: a tree that holds only the way to the current node, its siblings
// nearby and its heaviest children, and a live region.
import { nodeChildren, nodePath, sidesOf } from './layout.js';
import { formatShare, visibleText } from './format.js';

const PATH_MAX = 64;
const SIBLINGS_MAX = 15;
const CHILDREN_MAX = 7;
const SPOKEN_CHARS_MAX = 200;

export class TreeMirror {
	/**
	 * @param {HTMLElement} root
	 * @param {HTMLElement} live
	 * @param {number} first nodes before it are left out
	 */
	constructor(root, live, first = 0) {
		this.root = root;
		this.first = first;
		this.live = live;
		/** @type {HTMLElement[]} */
		this.items = [];
	}

	item(at) {
		while (this.items.length <= at) {
			const item = document.createElement('div');
			item.setAttribute('role', 'treeitem');
			item.id = this.root.id + '-item-' + this.items.length;
			this.items.push(item);
			this.root.append(item);
		}
		return this.items[at];
	}

	/**
	 * Shows the surroundings of `node` and makes it the active one.
	 * @param {Tree} tree
	 * @param {import('./data.js').FrameTable} frames
	 * @param {number} node
	 */
	update(tree, frames, node) {
		const path = [0, ...nodePath(tree, node)].filter((above) => above >= this.first).slice(-PATH_MAX);
		const siblings = node > 0 ? nodeChildren(tree, tree.parent[node]) : [node];
		const place = siblings.indexOf(node);
		const from = Math.max(0, Math.min(place - (SIBLINGS_MAX >> 1), siblings.length - SIBLINGS_MAX));
		const nearby = siblings.slice(from, from + SIBLINGS_MAX);
		const children = nodeChildren(tree, node);
		const shown = [];
		for (const above of path.slice(0, -1)) shown.push([above, -1, -1]);
		for (const [i, sibling] of nearby.entries()) {
			shown.push([sibling, from + i, siblings.length]);
			if (sibling !== node) continue;
			for (const [k, child] of children.slice(0, CHILDREN_MAX).entries()) shown.push([child, k, children.length]);
		}
		for (const [i, [of, position, count]] of shown.entries()) this.fill(this.item(i), tree, frames, of, position, count, node);
		for (let i = shown.length; i < this.items.length; i++) this.items[i].hidden = true;
	}

	/**
	 * @param {HTMLElement} item
	 * @param {Tree} tree
	 * @param {import('./data.js').FrameTable} frames
	 */
	fill(item, tree, frames, of, position, count, node) {
		item.hidden = false;
		item.textContent = this.describe(tree, frames, of);
		item.setAttribute('aria-level', String(tree.level[of] + 1 - this.first));
		item.setAttribute('aria-selected', String(of === node));
		if (tree.size[of] > 1) item.setAttribute('aria-expanded', String(of <= node && node < of + tree.size[of]));
		else item.removeAttribute('aria-expanded');
		if (count > 0) {
			item.setAttribute('aria-posinset', String(position + 1));
			item.setAttribute('aria-setsize', String(count));
		} else {
			item.removeAttribute('aria-posinset');
			item.removeAttribute('aria-setsize');
		}
		if (of === node) this.root.setAttribute('aria-activedescendant', item.id);
	}

	/**
	 * @param {Tree} tree
	 * @param {import('./data.js').FrameTable} frames
	 */
	describe(tree, frames, node) {
		const name = visibleText(frames.name(tree.frame[node])).slice(0, SPOKEN_CHARS_MAX) || '(empty name)';
		const sides = sidesOf(tree, node);
		if (sides) {
			const share = ({ total, whole }) => formatShare(total, whole);
			return `${name}, base ${share(sides.base)}, now ${share(sides.now)}`;
		}
		const whole = tree.total[0];
		return `${name}, total ${formatShare(tree.total[node], whole)}, self ${formatShare(tree.self[node], whole)}`;
	}

	say(text) {
		this.live.textContent = text;
	}
}
