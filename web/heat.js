// SPDX-License-Identifier: Apache-2.0
// A heat map on a canvas: rows over time, walked by arrow keys, blocks chosen by dragging or with Shift.
import { makeElement, placeBeside } from './around.js';
import { STOPS, axisMarks, colourOf, rampOf } from './blocks.js';

/** The height of the axis above the cells. */
export const AXIS = 20;
const AREA_MAX = 8e6; // pixels: beyond it a canvas has one pixel for each of CSS
const PAGE_ROWS = 10;

/**
 * Told of a block; row -1 is all of them.
 * @template Result
 * @typedef {(row: number, first: number, last: number) => Result} BlockTold
 */

/**
 * Lines beside the pointer, the first one of them as a name.
 * @param {HTMLElement} tip
 * @param {PointerEvent} event
 * @param {string[]} lines
 */
export function showTip(tip, event, lines) {
	tip.replaceChildren(makeElement('b', '', lines[0]), ...lines.slice(1).map((line) => makeElement('span', '', line)));
	tip.hidden = false;
	placeBeside(tip, event);
}

/** What the style sheet says of a heat map's colours, in the theme of now. */
export function coloursOf(box) {
	const style = getComputedStyle(box);
	return { ramp: rampOf(Array.from({ length: STOPS }, (_, i) => style.getPropertyValue(`--heat-${i}`))), outline: style.getPropertyValue('--outline'),
		text: style.getPropertyValue('--quiet'), back: style.getPropertyValue('--back') };
}

/**
 * Marks of time above the columns of a heat map that begin at @left and end at @right.
 * @param {CanvasRenderingContext2D} context
 * @param {{ start: number, step: number, columns: number }} of
 * @param {number} left
 * @param {number} right
 * @param {string} colour
 */
export function drawTimeAxis(context, of, left, right, colour) {
	const wide = (right - left) / of.columns;
	context.font = '11px system-ui, sans-serif';
	context.fillStyle = colour;
	context.textBaseline = 'top';
	for (const [at, label] of axisMarks(of, right - left)) {
		const x = left + at * wide;
		if (x + context.measureText(label).width + 4 > right) continue;
		context.fillRect(Math.round(x), AXIS - 6, 1, 6);
		context.fillText(label, Math.round(x) + 3, 2);
	}
}

export class HeatMap {
	/**
	 * @param {HTMLElement} box takes the focus
	 * @param {{ chosen: BlockTold<void>, moved: BlockTold<void>, tell: BlockTold<string[]>, tip: HTMLElement }} hooks moved: for who cannot see it; tell: lines of a tip
	 */
	constructor(box, { chosen, moved, tell, tip }) {
		this.box = box;
		this.canvas = box.querySelector('canvas');
		this.chosen = chosen;
		this.moved = moved;
		this.tell = tell;
		this.tip = tip;
		/** @type {import('./blocks.js').Blocks | null} */
		this.blocks = null;
		this.row = 0;
		this.first = this.last = 0;
		/** @type {{ row: number, at: number } | null} */
		this.hover = null;
		/** @type {{ at: number } | null} where a drag began */
		this.dragging = null;
		/** @type {'first' | 'last' | null} the end that keys move */
		this.tail = null;
		box.addEventListener('keydown', (event) => this.key(event));
		box.addEventListener('focus', () => this.draw());
		box.addEventListener('blur', () => this.draw());
		this.canvas.addEventListener('pointerdown', (event) => this.begin(event));
		this.canvas.addEventListener('pointermove', (event) => this.drag(event));
		this.canvas.addEventListener('pointerup', () => this.end());
		this.canvas.addEventListener('pointercancel', () => this.leave());
		this.canvas.addEventListener('pointerleave', () => this.dragging || this.leave());
		new ResizeObserver(() => this.draw()).observe(box);
		new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ['data-theme'] });
	}

	/** The same place stays chosen where it is still there. */
	show(blocks) {
		const time = this.blocks && this.blocks.span(this.first)[0];
		this.blocks = blocks;
		this.row = Math.min(this.row, blocks.rows.length - 1);
		this.first = this.last = time === null || time === undefined ? blocks.columns - 1 : blocks.columnAt(time);
		this.rowHeight = blocks.rows.length <= 40 ? 24 : 16;
		this.box.style.height = AXIS + blocks.rows.length * this.rowHeight + 'px';
		this.leave();
	}

	/** A row's middle, from the top of the box. */
	rowTop(row) {
		return AXIS + row * this.rowHeight;
	}

	draw() {
		const { blocks, canvas } = this;
		const [width, height] = [this.box.clientWidth, this.box.clientHeight];
		if (!blocks?.columns || !width) return;
		const ratio = width * height > AREA_MAX ? 1 : window.devicePixelRatio || 1;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		const context = canvas.getContext('2d');
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		const colours = coloursOf(this.box);
		drawTimeAxis(context, blocks, 0, width, colours.text);
		this.drawCells(context, width, colours);
		if (document.activeElement === this.box || this.dragging) this.outline(context, this.row, this.first, this.last, colours);
		if (this.hover && !this.dragging) this.outline(context, this.hover.row, this.hover.at, this.hover.at, colours);
	}

	drawCells(context, width, { ramp }) {
		const { blocks } = this;
		const wide = width / blocks.columns;
		const gap = wide > 5 ? 1 : 0;
		for (let row = 0; row < blocks.rows.length; row++) {
			const top = this.rowTop(row);
			for (let at = 0; at < blocks.columns; at++) {
				const left = Math.round(at * wide);
				context.fillStyle = colourOf(ramp, blocks.cell(row, at), blocks.scale.full) ?? ramp[0];
				context.fillRect(left, top, Math.max(1, Math.round((at + 1) * wide) - left - gap), this.rowHeight - 1);
			}
		}
	}

	outline(context, row, first, last, { outline, back }) {
		const wide = this.box.clientWidth / this.blocks.columns;
		const [left, right] = [Math.round(first * wide), Math.round((last + 1) * wide)];
		const [top, height] = row < 0 ? [0, this.box.clientHeight] : [this.rowTop(row), this.rowHeight - 1];
		for (const [colour, inset] of [[outline, 0], [back, 2]]) {
			context.strokeStyle = colour;
			context.lineWidth = inset ? 1 : 2;
			const room = right - left - 2 * inset;
			if (room > 2) context.strokeRect(left + inset + 0.5, top + inset + 0.5, room - 1, height - 2 * inset - 1);
			else if (!inset) context.strokeRect(left - 0.5, top + 0.5, Math.max(2, right - left) + 1, height - 1);
		}
	}

	/* The pointer */

	placeOf(event) {
		const { blocks } = this;
		const at = Math.min(blocks.columns - 1, Math.max(0, Math.floor((event.offsetX / Math.max(1, this.box.clientWidth)) * blocks.columns)));
		return { row: event.offsetY < AXIS ? -1 : Math.min(blocks.rows.length - 1, Math.floor((event.offsetY - AXIS) / this.rowHeight)), at };
	}

	begin(event) {
		if (event.button || !this.blocks?.columns) return;
		this.canvas.setPointerCapture(event.pointerId);
		const { row, at } = this.placeOf(event);
		this.dragging = { at };
		this.row = row;
		this.first = this.last = at;
		this.draw();
	}

	drag(event) {
		if (!this.blocks?.columns) return;
		const place = this.placeOf(event);
		if (this.dragging) {
			this.first = Math.min(this.dragging.at, place.at);
			this.last = Math.max(this.dragging.at, place.at);
		} else {
			this.hover = place;
		}
		this.showTip(event, this.dragging ? { row: this.row, first: this.first, last: this.last } : { row: place.row, first: place.at, last: place.at });
		this.draw();
	}

	end() {
		if (!this.dragging) return;
		this.leave();
		this.chosen(this.row, this.first, this.last);
	}

	leave() {
		this.dragging = this.hover = null;
		this.tip.hidden = true;
		this.draw();
	}

	showTip(event, { row, first, last }) {
		showTip(this.tip, event, this.tell(row, first, last));
	}

	/* Keys */

	key(event) {
		if (!this.blocks?.columns || event.altKey || event.metaKey || event.ctrlKey) return;
		const last = this.blocks.columns - 1;
		const bottom = this.blocks.rows.length - 1;
		const head = this.tail === 'first' ? this.first : this.last; // the end that moves
		const rows = { ArrowUp: -1, ArrowDown: 1, PageUp: -PAGE_ROWS, PageDown: PAGE_ROWS };
		const columns = { ArrowLeft: head - 1, ArrowRight: head + 1, Home: 0, End: last };
		if (event.key in columns) this.moveTo(Math.min(last, Math.max(0, columns[event.key])), event.shiftKey);
		else if (event.key in rows) this.row = Math.min(bottom, Math.max(-1, this.row + rows[event.key]));
		else if (event.key === 'Enter') this.chosen(this.row, this.first, this.last);
		else if (event.key === 'Escape' && this.first !== this.last) this.moveTo(head, false);
		else return;
		event.preventDefault();
		event.stopPropagation();
		if (event.key === 'Enter') return;
		this.hover = null;
		this.tip.hidden = true;
		this.draw();
		this.moved(this.row, this.first, this.last);
	}

	/** Shift keeps the other end where it is. */
	moveTo(at, isLonger) {
		if (!isLonger) {
			this.first = this.last = at;
			this.tail = null;
			return;
		}
		this.anchor = this.first === this.last ? this.first : this.anchor;
		this.first = Math.min(this.anchor, at);
		this.last = Math.max(this.anchor, at);
		this.tail = at < this.anchor ? 'first' : 'last';
	}
}
