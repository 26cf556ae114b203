// SPDX-License-Identifier: Apache-2.0
// Two profiles that came as one tree, side by side again: the base left, the other right. Both keep the order of the one tree, so
// that the same functions lie in the same order; zooming into a frame and scrolling move both.
import { TreeMirror } from './a11y.js';
import { byId, makeElement, showTip } from './around.js';
import { FlameView, PRINT_RATIO, ROW_HEIGHT } from './flame.js';
import { visibleText } from './format.js';
import { TREE_KEY, neighbour } from './halves.js';
import { layoutTree } from './layout.js';

/**
 * One of the two profiles that a tree was made of: the nodes that have any of it. `origin`: their numbers in the tree, `sideOf`: the tree.
 * @param {Tree} tree
 * @returns {Tree}
 */
export function sideTree(tree, isBase) {
	const { base, baseSelf } = tree;
	const total = isBase ? (i) => base[i] : (i) => tree.total[i] - base[i];
	const self = isBase ? (i) => baseSelf[i] : (i) => tree.self[i] - baseSelf[i];
	const nodes = new Uint32Array(tree.count);
	let count = 0;
	for (let i = 0; i < tree.count; i++) if (i === 0 || total(i) > 0) nodes[count++] = i;
	const origin = nodes.slice(0, count);
	const pick = (like, of) => {
		const out = new like.constructor(count);
		for (let k = 0; k < count; k++) out[k] = of(origin[k]);
		return out;
	};
	const level = pick(tree.level, (i) => tree.level[i]);
	// As deep as the whole: the same row is at the same height on both sides.
	const side = layoutTree(level, pick(tree.frame, (i) => tree.frame[i]), pick(tree.total, total), pick(tree.self, self), tree.deepest);
	return Object.assign(side, { origin, sideOf: tree });
}

/** The node of a side for one of the whole tree, or for the nearest above it that the side has. */
export function nodeOfSide(side, node) {
	const { origin, sideOf } = side;
	for (let i = node; i > 0; i = sideOf.parent[i]) {
		let low = 0;
		let high = origin.length;
		while (low < high) {
			const middle = (low + high) >>> 1;
			if (origin[middle] < i) low = middle + 1;
			else high = middle;
		}
		if (origin[low] === i) return low;
	}
	return 0;
}

const PICTURE_GAP = 20; // pixels between the two

class Side {
	constructor(sides, name, isBase) {
		const id = isBase ? 'side-base' : 'side-now';
		const mirror = makeElement('div', 'mirror');
		Object.assign(mirror, { id: id + '-mirror', role: 'tree', tabIndex: 0, ariaLabel: `Call tree, ${name}` });
		const canvas = makeElement('canvas');
		canvas.ariaHidden = 'true';
		const scroller = makeElement('div', 'scroller', canvas, makeElement('div', 'spacer'));
		Object.assign(scroller, { id, role: 'group', tabIndex: 0, ariaLabel: `Graph, ${name}` });
		this.isBase = isBase;
		this.title = makeElement('h2', 'half', name);
		this.box = makeElement('div', 'side-part', this.title, mirror, scroller);
		const { viewer } = sides;
		this.flame = new FlameView(scroller, {
			click: (node) => sides.choose(this, node),
			menu: (node, event) => viewer.steps.openFor(this.flame.tree.frame[node], event.clientX, event.clientY),
			hover: (node, event, view, run) => showTip(node, event, view, { ...viewer.tipFacts(), whole: view.tree?.total[0] ?? 0 }, run),
			moved: () => {},
		});
		this.mirror = new TreeMirror(mirror, byId('live'));
		this.current = 0;
		mirror.addEventListener('keydown', (event) => this.keys(event, sides));
		mirror.addEventListener('focus', () => this.setCurrent(this.current));
		mirror.addEventListener('blur', () => this.flame.select(-1));
	}

	show(tree, sides, zoom, animate) {
		const { flame } = this;
		const { viewer } = sides;
		const node = nodeOfSide(this.treeOf(tree), zoom);
		const replaced = flame.tree !== this.tree || flame.flip !== viewer.state.flip;
		flame.flip = viewer.state.flip;
		flame.hooks.frames = viewer.frames;
		if (replaced) flame.setTree(this.tree);
		flame.setColours(viewer.colours);
		flame.zoomTo(node, animate && !replaced);
		viewer.setHits(flame);
		if (!replaced && (this.current < node || this.current >= node + this.tree.size[node])) {
			this.current = node; // what was current lies outside of the picture
			this.mirror.update(this.tree, viewer.frames, node);
		}
		if (!replaced) return;
		flame.resize();
		flame.scrollToRoot();
		this.current = node;
		this.mirror.update(this.tree, viewer.frames, node);
	}

	/** Made once for each tree. */
	treeOf(tree) {
		if (this.tree?.sideOf !== tree) this.tree = sideTree(tree, this.isBase);
		return this.tree;
	}

	setCurrent(node) {
		if (!this.tree || node >= this.tree.count) return;
		this.current = node;
		this.flame.select(node);
		this.mirror.update(this.tree, this.flame.hooks.frames, node);
	}

	keys(event, sides) {
		if (event.ctrlKey || event.altKey || event.metaKey || !this.tree) return;
		if (TREE_KEY.test(event.key)) this.setCurrent(neighbour(this.tree, this.current, event.key, this.flame.flip, this.flame.zoomed));
		else if (event.key === 'Enter') sides.choose(this, this.current);
		else return;
		sides.viewer.setCurrent(this.tree.origin[this.current]); // what single keys are about
		event.preventDefault();
		event.stopPropagation();
	}
}

export class Sides {
	/**
	 * @param {import('./viewer.js').Viewer} viewer
	 * @param {HTMLElement} stage
	 */
	constructor(viewer, stage) {
		this.viewer = viewer;
		this.on = false;
		this.note = makeElement('span'); // what the widths mean, for the line above the graph
		this.parts = [new Side(this, 'base', true), new Side(this, 'now', false)];
		this.box = makeElement('section', 'pane sides', ...this.parts.map((part) => part.box));
		this.box.ariaLabel = 'Side by side';
		this.box.hidden = true;
		stage.append(this.box);
		viewer.flames.push(...this.parts.map((part) => part.flame));
		const scrollers = this.parts.map((part) => part.flame.scroller);
		for (const [i, scroller] of scrollers.entries()) {
			scroller.addEventListener('scroll', () => (scrollers[1 - i].scrollTop = scroller.scrollTop), { passive: true });
		}
	}

	/** Can the tree be shown as two? */
	takes(tree) {
		return this.on && Boolean(tree.base);
	}

	/** Are they on the screen? `tree`: what the viewer shows now; others are not kept. */
	setShown(isShown, tree) {
		this.box.hidden = !isShown;
		this.note.textContent = isShown ? 'each graph has its own total as its width' : 'width: both together';
		for (const part of this.parts) if (part.tree && part.tree.sideOf !== tree) part.tree = part.flame.tree = null;
	}

	/** The graphs as they are on the screen, with what stands above each; none where the viewer shows something else. */
	graphs() {
		return this.box.hidden ? [] : this.parts.map(({ flame, title }) => ({ flame, title: title.textContent }));
	}

	/**
	 * graphs() beside each other as a promise of a PNG.
	 * @returns {Promise<Blob | null>}
	 */
	async picture() {
		const [{ flame }] = this.parts;
		const style = getComputedStyle(flame.scroller);
		const bitmaps = [];
		for (const part of this.parts) bitmaps.push(await createImageBitmap(await part.flame.picture()));
		const [gap, top] = [PICTURE_GAP * PRINT_RATIO, ROW_HEIGHT * PRINT_RATIO];
		const canvas = makeElement('canvas');
		canvas.width = bitmaps.reduce((sum, { width }) => sum + width, gap);
		canvas.height = top + Math.max(...bitmaps.map(({ height }) => height));
		const context = canvas.getContext('2d');
		context.fillStyle = style.backgroundColor;
		context.fillRect(0, 0, canvas.width, canvas.height);
		context.fillStyle = style.color;
		context.font = `bold ${12 * PRINT_RATIO}px ${style.fontFamily}`;
		context.textBaseline = 'middle';
		let x = 0;
		for (const [i, bitmap] of bitmaps.entries()) {
			context.fillText(visibleText(this.parts[i].title.textContent), x + 3 * PRINT_RATIO, top / 2, bitmap.width);
			context.drawImage(bitmap, x, this.parts[i].flame.flip ? canvas.height - bitmap.height : top);
			x += bitmap.width + gap;
			bitmap.close();
		}
		return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
	}

	/** The frame under the pointer, or -1. */
	hovered() {
		const part = this.parts.find(({ flame }) => flame.hovered >= 0 && flame.tree);
		return part && !this.box.hidden ? part.flame.tree.frame[part.flame.hovered] : -1;
	}

	/** titles: what stands above each */
	name(titles) {
		for (const [i, part] of this.parts.entries()) part.title.textContent = titles[i];
	}

	show(tree, zoom, animate) {
		for (const part of this.parts) part.show(tree, this, zoom, animate);
	}

	choose(part, node) {
		this.viewer.clickNode('graph', part.tree.origin[node]);
	}
}
