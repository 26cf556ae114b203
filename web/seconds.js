// SPDX-License-Identifier: Apache-2.0
// When in the second it costs what: a column for each second, painted upwards in steps of 20 ms, walked by arrow keys. What
// is chosen is one stretch of time, from one cell to another, over any number of seconds.
import { colourOf, scaleOf } from './blocks.js';
import { AXIS, coloursOf, drawTimeAxis, showTip } from './heat.js';

const GUTTER = 50;
const ROW_HEIGHTS = [6, 12]; // as the window has room
const BELOW = 110; // what stands below the map: pixels
const PAGE_ROWS = 10;
const MARKS = 5; // of a second

/**
 * @typedef {{ start_ms: number, from_ms: number, to_ms: number, columns: number, rows: number, step_ms: number, unit: string, sample: string, total: number, untimed: number,
 *   profiles: number, profiles_timed: number, last: boolean, partial: boolean, cells: number[] }} SecondsAnswer
 */

/** Cells of an answer of /api/v1/subseconds, in the order of time. */
export class Seconds {
	/** @param {SecondsAnswer} answer */
	constructor(answer) {
		this.start = answer.start_ms;
		this.columns = answer.columns;
		this.rows = answer.rows;
		this.step = answer.step_ms;
		this.cells = answer.cells;
		this.isTime = answer.unit === 'nanoseconds';
		this.scale = scaleOf([this.cells.map((value) => this.rate(value, 1))]);
	}

	/** The time of cells first..last: [from, to) in ms. */
	span(first, last = first) {
		return [this.start + first * this.step, this.start + (last + 1) * this.step];
	}

	/** Time per second, so CPUs; other units as they are. */
	rate(value, count) {
		return this.isTime ? value / 1e6 / (count * this.step) : value;
	}

	sum(first, last) {
		let sum = 0;
		for (let at = first; at <= last; at++) sum += this.cells[at];
		return sum;
	}

	/** The dearest cell of first..last. */
	peak(first, last) {
		let best = first;
		for (let at = first + 1; at <= last; at++) if (this.cells[at] > this.cells[best]) best = at;
		return best;
	}

	cellAt(time) {
		return Math.min(this.cells.length - 1, Math.max(0, Math.floor((time - this.start) / this.step)));
	}
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const dayMonth = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

const exact = (ms) => `${clock.format(new Date(ms))}.${String(ms % 1000).padStart(3, '0')}`;

/** "14:05:10.020 – 14:05:10.040", with the day when it is not today's. */
export function exactSpan(from, to, now = Date.now()) {
	const isToday = new Date(from).toDateString() === new Date(now).toDateString();
	return `${isToday ? '' : dayMonth.format(new Date(from)) + ' '}${exact(from)} – ${exact(to)}`;
}

/** "14:05:10.020 – 10.040", where there is little room. */
export function shortSpan(from, to) {
	const [first, last] = [exact(from), exact(to)];
	return `${first} – ${first.slice(0, 6) === last.slice(0, 6) ? last.slice(6) : last}`;
}

/**
 * Told of a stretch of time, by its first and last cell.
 * @template Result
 * @typedef {(first: number, last: number) => Result} StretchTold
 */

export class SecondsMap {
	/**
	 * @param {HTMLElement} box takes the focus
	 * @param {{ chosen: StretchTold<void>, moved: StretchTold<void>, tell: StretchTold<string[]>, tip: HTMLElement }} hooks as of HeatMap
	 */
	constructor(box, { chosen, moved, tell, tip }) {
		this.box = box;
		this.canvas = box.querySelector('canvas');
		this.picture = document.createElement('canvas');
		this.chosen = chosen;
		this.moved = moved;
		this.tell = tell;
		this.tip = tip;
		/** @type {Seconds | null} */
		this.seconds = null;
		this.anchor = this.head = 0;
		this.rowHeight = ROW_HEIGHTS[0];
		/** @type {{ at: number, isWhole: boolean } | null} */
		this.hover = null;
		/** @type {{ at: number, isWhole: boolean } | null} where a drag began */
		this.dragging = null;
		box.addEventListener('keydown', (event) => this.key(event));
		box.addEventListener('focus', () => this.draw());
		box.addEventListener('blur', () => this.draw());
		this.canvas.addEventListener('pointerdown', (event) => this.begin(event));
		this.canvas.addEventListener('pointermove', (event) => this.drag(event));
		this.canvas.addEventListener('pointerup', () => this.end());
		this.canvas.addEventListener('pointercancel', () => this.leave());
		this.canvas.addEventListener('pointerleave', () => this.dragging || this.leave());
		new ResizeObserver(() => this.paint()).observe(box);
		new MutationObserver(() => this.paint()).observe(document.documentElement, { attributeFilter: ['data-theme'] });
	}

	get first() {
		return Math.min(this.anchor, this.head);
	}

	get last() {
		return Math.max(this.anchor, this.head);
	}

	/** The same moment stays chosen where it is still there. */
	show(seconds) {
		const time = this.seconds && this.seconds.span(this.head)[0];
		this.seconds = seconds;
		this.anchor = this.head = time === null ? seconds.cells.length - seconds.rows : seconds.cellAt(time);
		const room = (window.innerHeight - this.box.getBoundingClientRect().top - AXIS - BELOW) / seconds.rows;
		this.rowHeight = Math.min(ROW_HEIGHTS[1], Math.max(ROW_HEIGHTS[0], Math.floor(room)));
		this.box.style.height = AXIS + seconds.rows * this.rowHeight + 'px';
		this.paint();
		this.leave();
	}

	/* Drawing */

	wide() {
		return Math.max(1, this.box.clientWidth - GUTTER) / this.seconds.columns;
	}

	/** The corner of a cell: left edge, upper edge, in pixels of CSS. */
	placeOfCell(at) {
		const { rows } = this.seconds;
		return [GUTTER + Math.floor(at / rows) * this.wide(), AXIS + (rows - 1 - (at % rows)) * this.rowHeight];
	}

	fit(canvas) {
		const ratio = window.devicePixelRatio || 1;
		canvas.width = Math.round(this.box.clientWidth * ratio);
		canvas.height = Math.round(this.box.clientHeight * ratio);
		const context = canvas.getContext('2d');
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		return context;
	}

	/** All cells once; what moves over them is drawn over this picture. */
	paint() {
		if (!this.seconds || !this.box.clientWidth) return;
		const context = this.fit(this.picture);
		const { ramp, text } = coloursOf(this.box);
		this.paintAxes(context, text);
		const { seconds } = this;
		const wide = this.wide();
		const gap = wide > 5 ? 1 : 0;
		for (let at = 0; at < seconds.cells.length; at++) {
			const [x, y] = this.placeOfCell(at);
			const left = Math.round(x);
			context.fillStyle = colourOf(ramp, seconds.rate(seconds.cells[at], 1), seconds.scale.full) ?? ramp[0];
			context.fillRect(left, y, Math.max(1, Math.round(x + wide) - left - gap), this.rowHeight - 1);
		}
		this.draw();
	}

	paintAxes(context, text) {
		const { seconds } = this;
		drawTimeAxis(context, { start: seconds.start, step: 1000, columns: seconds.columns }, GUTTER, this.box.clientWidth, text);
		context.textBaseline = 'middle';
		context.textAlign = 'right';
		for (let i = 0; i < MARKS; i++) {
			const row = Math.round((i * seconds.rows) / MARKS);
			context.fillText(`${row * seconds.step} ms`, GUTTER - 6, AXIS + (seconds.rows - 1 - row) * this.rowHeight + this.rowHeight / 2);
		}
		context.textAlign = 'left';
	}

	draw() {
		if (!this.seconds || !this.box.clientWidth || !this.picture.width) return;
		const context = this.fit(this.canvas);
		context.drawImage(this.picture, 0, 0, this.box.clientWidth, this.box.clientHeight);
		const colours = coloursOf(this.box);
		if (document.activeElement === this.box || this.dragging) this.outline(context, this.first, this.last, colours);
		if (this.hover && !this.dragging) this.outline(context, ...this.stretchOf(this.hover, this.hover), colours);
	}

	/** Around a stretch of time: the rest of its first second, whole seconds, the begin of its last. */
	outline(context, first, last, { outline, back }) {
		const { rows } = this.seconds;
		const wide = this.wide();
		const columns = [Math.floor(first / rows), Math.floor(last / rows)];
		for (const [colour, width] of [[back, 4], [outline, 2]]) {
			context.strokeStyle = colour;
			context.lineWidth = width;
			context.beginPath();
			if (columns[1] - columns[0] < 2) {
				for (let column = columns[0]; column <= columns[1]; column++) {
					this.addBox(context, Math.max(first, column * rows), Math.min(last, (column + 1) * rows - 1), wide);
				}
			} else {
				this.addShape(context, first, last, wide);
			}
			context.stroke();
		}
	}

	/** Cells of one second. */
	addBox(context, first, last, wide) {
		const [left, top] = this.placeOfCell(last);
		const bottom = this.placeOfCell(first)[1] + this.rowHeight - 1;
		context.rect(left, top, Math.max(2, wide), bottom - top);
	}

	addShape(context, first, last, wide) {
		const { rows } = this.seconds;
		const [left, low] = this.placeOfCell(first);
		const [end, high] = this.placeOfCell(last);
		const bottom = AXIS + rows * this.rowHeight - 1;
		const corners = [[left, low + this.rowHeight - 1], [left, AXIS], [end, AXIS], [end, high], [end + wide, high], [end + wide, bottom], [left + wide, bottom], [left + wide, low + this.rowHeight - 1]];
		for (const [i, [x, y]] of corners.entries()) context[i ? 'lineTo' : 'moveTo'](x, y);
		context.closePath();
	}

	/* The pointer */

	/** isWhole: above the cells, where whole seconds are chosen. */
	placeOf(event) {
		const { columns, rows } = this.seconds;
		const column = Math.min(columns - 1, Math.max(0, Math.floor((event.offsetX - GUTTER) / this.wide())));
		const row = Math.min(rows - 1, Math.max(0, rows - 1 - Math.floor((event.offsetY - AXIS) / this.rowHeight)));
		return { at: column * rows + row, isWhole: event.offsetY < AXIS };
	}

	stretchOf(from, to) {
		const { rows } = this.seconds;
		const [first, last] = [Math.min(from.at, to.at), Math.max(from.at, to.at)];
		return from.isWhole ? [first - (first % rows), last - (last % rows) + rows - 1] : [first, last];
	}

	begin(event) {
		if (event.button || !this.seconds) return;
		this.canvas.setPointerCapture(event.pointerId);
		this.dragging = this.placeOf(event);
		[this.anchor, this.head] = this.stretchOf(this.dragging, this.dragging);
		this.draw();
	}

	drag(event) {
		if (!this.seconds) return;
		const place = this.placeOf(event);
		if (this.dragging) [this.anchor, this.head] = this.stretchOf(this.dragging, place);
		else this.hover = place;
		this.showTip(event, ...this.stretchOf(this.dragging ?? place, place));
		this.draw();
	}

	end() {
		if (!this.dragging) return;
		this.leave();
		this.chosen(this.first, this.last);
	}

	leave() {
		this.dragging = this.hover = null;
		this.tip.hidden = true;
		this.draw();
	}

	showTip(event, first, last) {
		showTip(this.tip, event, this.tell(first, last));
	}

	/* Keys */

	key(event) {
		if (!this.seconds || event.altKey || event.metaKey || event.ctrlKey) return;
		const { rows, cells } = this.seconds;
		const moves = { ArrowUp: 1, ArrowDown: -1, ArrowRight: rows, ArrowLeft: -rows, PageUp: PAGE_ROWS, PageDown: -PAGE_ROWS, Home: -cells.length, End: cells.length };
		if (event.key in moves) {
			this.head = Math.min(cells.length - 1, Math.max(0, this.head + moves[event.key]));
			if (!event.shiftKey) this.anchor = this.head;
		} else if (event.key === 'Escape' && this.first !== this.last) {
			this.anchor = this.head;
		} else if (event.key !== 'Enter') {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
		if (event.key === 'Enter') {
			this.chosen(this.first, this.last);
			return;
		}
		this.hover = null;
		this.tip.hidden = true;
		this.draw();
		this.moved(this.first, this.last);
	}
}
