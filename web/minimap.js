// SPDX-License-Identifier: Apache-2.0
// The whole graph beside the part that is shown: where one is, and a way to elsewhere.
import { afterPainting } from './around.js';
import { COLOURS } from './colour.js';
import { gallopTo } from './layout.js';

const ROW_MAX_PIXELS = 5;

export class Minimap {
	/**
	 * @param {HTMLCanvasElement} canvas
	 * @param {import('./flame.js').FlameView} view
	 */
	constructor(canvas, view) {
		this.canvas = canvas;
		this.view = view;
		this.drawn = null;
		this.back = document.createElement('canvas');
		view.hooks.drawn = () => this.draw();
		canvas.addEventListener('pointerdown', (event) => {
			canvas.setPointerCapture(event.pointerId);
			this.held = true;
			this.moveTo(event);
		});
		canvas.addEventListener('pointermove', (event) => this.held && this.moveTo(event));
		canvas.addEventListener('pointerup', () => {
			this.held = false;
			view.hooks.moved(view.from, view.to, view);
		});
	}

	/** The middle of what is shown goes where the pointer is. */
	moveTo(event) {
		const { view, canvas } = this;
		const whole = view.tree.total[0];
		const span = view.to - view.from;
		view.setWindow((event.offsetX / canvas.clientWidth) * whole - span / 2, span);
		const row = event.offsetY / this.rowHeight;
		const share = (view.flip ? view.tree.deepest - row : row) / (view.tree.deepest + 1);
		view.scroller.scrollTop = share * view.contentHeight() - view.height / 2;
	}

	/** The whole tree is drawn once; then only the frame around what is shown moves. */
	draw() {
		const { view, canvas } = this;
		const { tree } = view;
		if (!tree || !canvas.clientWidth) return;
		const ratio = window.devicePixelRatio || 1;
		const [width, height] = [canvas.clientWidth, canvas.clientHeight];
		this.rowHeight = Math.min(ROW_MAX_PIXELS, Math.max(0.1, height / (tree.deepest + 1)));
		const style = getComputedStyle(canvas);
		const key = [width, height, ratio, view.flip, style.backgroundColor].join();
		if (this.drawn !== tree || this.key !== key || this.colours !== view.hooks.colours) {
			this.drawn = tree;
			this.key = key;
			this.colours = view.hooks.colours;
			canvas.width = this.back.width = Math.round(width * ratio);
			canvas.height = this.back.height = Math.round(height * ratio);
			// After the graph itself: a large tree takes some milliseconds.
			afterPainting(() => {
				if (this.drawn !== tree) return;
				this.drawTree(tree, this.back.getContext('2d'), style.backgroundColor);
				this.draw();
			});
		}
		const context = canvas.getContext('2d');
		context.setTransform(1, 0, 0, 1, 0, 0);
		context.drawImage(this.back, 0, 0);
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		const whole = tree.total[0];
		const rows = Math.min(1, view.height / view.contentHeight()) * (tree.deepest + 1);
		const first = (view.scroller.scrollTop / view.contentHeight()) * (tree.deepest + 1);
		context.strokeStyle = style.getPropertyValue('--outline');
		context.lineWidth = 1.5;
		context.strokeRect((view.from / whole) * width + 1, first * this.rowHeight + 1, Math.max(3, ((view.to - view.from) / whole) * width - 2),
			Math.max(4, Math.min(height, rows * this.rowHeight) - 2));
	}

	/** One pixel, one colour: the first box that begins in it. The graph may have given @tree back meanwhile. */
	drawTree(tree, context, back) {
		const { view, rowHeight } = this;
		const wide = this.back.width;
		const ratio = window.devicePixelRatio || 1;
		const scale = wide / tree.total[0];
		context.fillStyle = back;
		context.fillRect(0, 0, wide, this.back.height);
		const step = Math.max(1, Math.floor(1 / (rowHeight * ratio)));
		for (let row = 0; row <= tree.deepest; row += step) {
			const y = (view.flip ? tree.deepest - row : row) * rowHeight * ratio;
			let free = 0;
			const end = tree.rowStart[row + 1];
			for (let p = tree.rowStart[row]; p < end; p = Math.max(p + 1, gallopTo(tree.rowX, p, end, free / scale))) {
				const left = Math.floor(tree.rowX[p] * scale);
				const right = Math.max(left + 1, Math.round((tree.rowX[p] + tree.rowTotal[p]) * scale));
				if (right <= free) continue;
				const node = tree.order[p];
				context.fillStyle = COLOURS[view.hooks.colours.of(tree.frame[node], node, tree)];
				context.fillRect(Math.max(left, free), y, right - Math.max(left, free), Math.max(1, rowHeight * ratio));
				free = right;
			}
		}
	}
}
