// SPDX-License-Identifier: Apache-2.0
// Draws one tree on a canvas the size of its window: boxes of a row that would be narrower than a CSS pixel are merged,
// the rest goes to the canvas bucketed by colour.
import { BLOCK_BITS, findAtMost, gallopTo } from './layout.js';
import { BUCKETS, COLOURS, LABEL_COLOUR, MUTED_OFFSET } from './colour.js';
import { lastPart, shortened, visibleText, withoutArguments } from './format.js';

export const ROW_HEIGHT = 19;
const LABEL_MIN = 24;
const LABEL_CHARS_MAX = 400;
const ZOOM_MS = 140;
const PRINT_WIDTH = 1040;
const PRINT_HEIGHT_MAX = 5000;
export const PRINT_RATIO = 2;
const WHEEL_REST_MS = 300;
const RUN_REACH = 12; // pixels to each side of the pointer: a row may be one run from end to end
const BLOCK_MASK = (1 << BLOCK_BITS) - 1;

class LabelFitter {
	constructor(context, font) {
		this.context = context;
		this.font = font;
		this.widths = new Map();
	}

	charWidth(c) {
		let width = this.widths.get(c);
		if (width === undefined) {
			this.context.font = this.font;
			this.widths.set(c, (width = this.context.measureText(c).width));
		}
		return width;
	}

	/** As much of the text as fits; null when nothing sensible does. */
	cut(text, room) {
		let width = 0;
		let end = 0;
		let roomy = 0;
		const dots = this.charWidth('…') + (/^.?[([{<]/.test(text) ? this.charWidth('>') : 0);
		for (const c of text) {
			width += this.charWidth(c);
			if (width > room) return roomy > 1 ? shortened(text.slice(0, roomy)) : null;
			end += c.length;
			if (width + dots <= room) roomy = end;
		}
		return text;
	}

	fits(text, room) {
		let width = 0;
		for (const c of text) {
			width += this.charWidth(c);
			if (width > room) return false;
		}
		return true;
	}
}

/**
 * The positions [first, last) of a row's order that pixel `pixel` shows: one box, none, or the narrow ones around it that touch each
 * other, as far as RUN_REACH pixels on each side.
 * @param {Tree} tree
 * @param {number} scale pixels a unit
 */
export function boxesAt(tree, row, pixel, from, scale) {
	const none = { first: 0, last: 0 };
	if (row < 0 || row > tree.deepest) return none;
	const { rowX, rowTotal, rowStart } = tree;
	const [start, end] = [rowStart[row], rowStart[row + 1]];
	const left = (i) => (rowX[i] - from) * scale;
	const isNarrow = (i) => rowTotal[i] * scale < 1;
	let at = findAtMost(rowX, start, end, from + (pixel + 1) / scale);
	while (at >= start && (isNarrow(at) ? left(at) >= pixel + 1 : Math.round(left(at)) > pixel)) at--; // begins to the right of it
	if (at < start) return none;
	const right = left(at) + rowTotal[at] * scale;
	if (!isNarrow(at)) return right > pixel ? { first: at, last: at + 1 } : none;
	if (Math.floor(left(at)) !== pixel && right <= pixel) return none;
	const isNext = (i) => isNarrow(i) && isNarrow(i + 1) && Math.floor(left(i + 1)) - Math.floor(left(i)) <= 1;
	let first = at;
	while (first > start && left(first - 1) > pixel - RUN_REACH && isNext(first - 1)) first--;
	let last = at + 1;
	while (last < end && left(last) < pixel + RUN_REACH && isNext(last - 1)) last++;
	return { first, last };
}

/**
 * What is drawn of a row between two places: each box that is a pixel wide or wider, and those that are narrower as one, a run.
 * @param {Tree} tree
 * @param {number} scale pixels a unit
 * @param {(node: number, left: number, right: number) => void} box left and right in pixels
 * @param {(left: number, right: number, first: number, last: number) => void} run of the positions [first, last) of the row's order
 */
export function eachBox(tree, row, from, to, scale, box, run) {
	const { rowX, rowTotal, order, blockSpan } = tree;
	const end = tree.rowStart[row + 1];
	let i = Math.max(findAtMost(rowX, tree.rowStart[row], end, from), tree.rowStart[row]);
	let runFrom = -1;
	let runTo = -1;
	let runStart = 0;
	let runEnd = 0;
	while (i < end && rowX[i] < to) {
		const left = (rowX[i] - from) * scale;
		const right = left + rowTotal[i] * scale;
		if (right - left >= 1) {
			if (right > 0) box(order[i], left, right);
			i++;
			continue;
		}
		const pixel = Math.floor(left);
		let next = 0;
		let reached = pixel + 1;
		if ((i & BLOCK_MASK) === 0 && i + BLOCK_MASK < end && blockSpan[i >> BLOCK_BITS] * scale < 1) {
			next = i + BLOCK_MASK + 1;
			reached = Math.ceil((rowX[next - 1] + rowTotal[next - 1] - from) * scale);
		} else {
			next = Math.max(i + 1, gallopTo(rowX, i, Math.min(end, (i | BLOCK_MASK) + 1), from + (pixel + 1) / scale));
			// The last one that starts in this pixel may be wide.
			if (next - 1 > i && rowTotal[next - 1] * scale >= 1) next--;
		}
		if (pixel > runTo) {
			if (runFrom >= 0) run(runFrom, runTo, runStart, runEnd);
			runFrom = pixel;
			runStart = i;
		}
		runTo = Math.max(runTo, reached);
		runEnd = next;
		i = next;
	}
	if (runFrom >= 0) run(runFrom, runTo, runStart, runEnd);
}

/**
 * Several boxes that are drawn as one: the positions [first, last) of a row's order.
 * @param {Tree} tree
 * @returns {NarrowRun}
 */
export function describeRun(tree, { first, last }) {
	const { rowX, rowTotal, order, frame } = tree;
	const functions = new Set();
	let total = 0;
	for (let p = first; p < last; p++) {
		functions.add(frame[order[p]]);
		total += rowTotal[p];
	}
	return { tree, first, last, from: rowX[first], to: rowX[last - 1] + rowTotal[last - 1], functions: functions.size, total };
}

export class FlameView {
	/**
	 * @param {HTMLElement} scroller
	 * @param {FlameHooks} hooks
	 */
	constructor(scroller, hooks) {
		this.scroller = scroller;
		this.canvas = scroller.querySelector('canvas');
		this.spacer = scroller.querySelector('.spacer');
		this.context = this.canvas.getContext('2d', { alpha: false });
		this.hooks = hooks;
		/** @type {Tree | null} */
		this.tree = null;
		this.flip = false;
		this.firstRow = 0;
		this.from = this.to = 0;
		this.zoomed = 0;
		this.hovered = this.selected = -1;
		/** @type {NarrowRun | null} */
		this.run = null; // the last one that was pointed at
		this.hits = this.hitsBefore = null;
		this.rects = COLOURS.map(() => []);
		this.used = new Uint32Array(COLOURS.length);
		this.labels = [];
		this.shown = new Map();
		this.frameTimes = [];
		this.pending = 0;
		this.animation = null;
		const family = getComputedStyle(document.body).fontFamily;
		this.fitter = new LabelFitter(this.context, `12px ${family}`);
		this.listen();
	}

	listen() {
		const { scroller, canvas } = this;
		scroller.addEventListener('scroll', () => this.invalidate(), { passive: true });
		canvas.addEventListener('mousemove', (event) => this.pointAt(event));
		canvas.addEventListener('mouseleave', (event) => this.setHover(-1, event));
		canvas.addEventListener('click', (event) => {
			const { node, run } = this.hit(event.offsetX, event.offsetY);
			if (node >= 0) this.hooks.click(node, this, event);
			else if (run) this.zoomToRun(run, event);
		});
		canvas.addEventListener('contextmenu', (event) => {
			const { node } = this.hit(event.offsetX, event.offsetY);
			if (node < 0 || !this.hooks.menu) return;
			event.preventDefault();
			this.hooks.menu(node, event, this);
		});
		canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
		new ResizeObserver(() => this.resize()).observe(scroller);
	}

	/** @param {Tree} tree */
	setTree(tree) {
		this.tree = tree;
		this.hovered = this.selected = -1;
		this.hitsBefore = null;
		this.resize();
	}

	/** @param {BoxColours} colours */
	setColours(colours) {
		this.hooks.colours = colours;
		this.invalidate();
	}

	/**
	 * @param {Uint8Array | null} hits
	 * @param {Uint32Array | null} hitsBefore as countHits() of search.js gives it
	 */
	setHits(hits, hitsBefore) {
		this.hits = hits;
		this.hitsBefore = hitsBefore;
		this.invalidate();
	}

	resize() {
		const width = this.scroller.clientWidth;
		const height = this.scroller.clientHeight;
		const ratio = window.devicePixelRatio || 1;
		const lost = this.flip && this.tree && height > 0 && height < this.height;
		const below = lost ? Math.max(0, this.contentHeight() - this.height - this.scroller.scrollTop) : 0;
		this.width = width;
		this.height = height;
		const resized = this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio);
		if (resized) {
			this.canvas.width = Math.round(width * ratio);
			this.canvas.height = Math.round(height * ratio);
			this.canvas.style.width = width + 'px';
			this.canvas.style.height = height + 'px';
		}
		if (this.tree) {
			this.spacer.style.height = Math.max(0, this.contentHeight() - height) + 'px';
			// A root at the bottom stays as near as it was; the browser keeps what is at the top.
			if (lost) this.scroller.scrollTop = this.contentHeight() - height - below;
			// Now, not in the next frame: a canvas that changed its size is empty.
			if (resized) this.draw();
			else this.invalidate();
		}
	}

	contentHeight() {
		return (this.tree.deepest + 1 - this.firstRow) * ROW_HEIGHT + 2;
	}

	/** Pixels from the top of the canvas to a row. */
	rowTop(row) {
		const place = row - this.firstRow;
		if (!this.flip) return place * ROW_HEIGHT - this.scroller.scrollTop;
		const content = Math.max(this.contentHeight(), this.height);
		return content - (place + 1) * ROW_HEIGHT - this.scroller.scrollTop;
	}

	rowAt(y) {
		if (!this.flip) return Math.floor((y + this.scroller.scrollTop) / ROW_HEIGHT) + this.firstRow;
		const content = Math.max(this.contentHeight(), this.height);
		return Math.floor((content - y - this.scroller.scrollTop) / ROW_HEIGHT) + this.firstRow;
	}

	revealRow(row) {
		const top = this.rowTop(row);
		if (top < 0) this.scroller.scrollTop += top - 2 * ROW_HEIGHT;
		else if (top + ROW_HEIGHT > this.height) this.scroller.scrollTop += top + 3 * ROW_HEIGHT - this.height;
	}

	scrollToRoot() {
		this.scroller.scrollTop = this.flip ? this.scroller.scrollHeight : 0;
	}

	/**
	 * What is drawn there: a node, or several that are drawn as one because each is narrower than a pixel.
	 * @returns {{ node: number, run: NarrowRun | null }}
	 */
	hit(x, y) {
		const { tree, from, to, width } = this;
		if (!tree) return { node: -1, run: null };
		const found = boxesAt(tree, this.rowAt(y), Math.floor(x), from, width / (to - from));
		return { node: found.last - found.first === 1 ? tree.order[found.first] : -1, run: found.last - found.first > 1 ? this.runOf(found) : null };
	}

	/** Moving about on one run counts it once. */
	runOf(found) {
		const { tree, run } = this;
		if (run?.tree !== tree || run.first !== found.first || run.last !== found.last) this.run = describeRun(tree, found);
		return this.run;
	}

	pointAt(event) {
		const { node, run } = this.hit(event.offsetX, event.offsetY);
		this.setHover(node, event, run);
	}

	/** @param {NarrowRun | null} [run] what the pointer is on when it is on no node */
	setHover(node, event, run = null) {
		this.canvas.style.cursor = node >= 0 || run ? 'pointer' : 'default';
		if (node !== this.hovered) {
			this.hovered = node;
			this.invalidate();
		}
		this.hooks.hover(node, event, this, run);
	}

	/** As wide as the graph; Back returns. */
	zoomToRun({ from, to }, event) {
		this.setHover(-1, event);
		this.setWindow(from, to - from);
		this.hooks.moved(this.from, this.to, this);
	}

	select(node) {
		this.selected = node;
		if (node >= 0) this.revealRow(this.tree.level[node]);
		this.invalidate();
	}

	/** Ctrl and the wheel: free zoom around the pointer. */
	wheel(event) {
		if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
		event.preventDefault();
		const span = this.to - this.from;
		if (event.ctrlKey) {
			const at = this.from + (event.offsetX / this.width) * span;
			const next = Math.min(span * Math.exp(event.deltaY / 200), this.tree.total[0]);
			this.setWindow(at - (event.offsetX / this.width) * next, next);
		} else {
			this.setWindow(this.from + (event.deltaX / this.width) * span, span);
		}
		clearTimeout(this.wheelTimer);
		this.wheelTimer = setTimeout(() => this.hooks.moved(this.from, this.to, this), WHEEL_REST_MS);
	}

	setWindow(from, span) {
		const whole = this.tree.total[0];
		const least = Math.min(whole, 1);
		const wide = Math.max(least, Math.min(span, whole));
		this.animation = null;
		this.from = Math.max(0, Math.min(from, whole - wide));
		this.to = this.from + wide;
		this.invalidate();
	}

	/**
	 * @param {number} node
	 * @param {boolean} animate
	 * @param {readonly number[] | null} [range] the part of the width to show instead of all of the node
	 */
	zoomTo(node, animate, range) {
		const { tree } = this;
		clearTimeout(this.wheelTimer);
		const [from, to] = range && range[1] <= tree.total[0] ? range : [tree.x[node], tree.x[node] + tree.total[node]];
		const moved = this.to > this.from && (this.from !== from || this.to !== to);
		this.zoomed = node;
		if (animate && moved && !matchMedia('(prefers-reduced-motion: reduce)').matches) {
			this.animation = { start: performance.now(), from: this.from, to: this.to, goalFrom: from, goalTo: to };
		} else {
			this.animation = null;
			this.from = from;
			this.to = to;
		}
		this.invalidate();
	}

	/** The whole tree from its root, as wide as a sheet, for as long as the browser prints. */
	layOutForPrint() {
		if (!this.tree || !this.scroller.clientWidth) return;
		const ratio = PRINT_RATIO;
		this.scroller.scrollTop = 0;
		this.width = PRINT_WIDTH;
		this.height = Math.min(this.contentHeight(), PRINT_HEIGHT_MAX);
		this.canvas.width = this.width * ratio;
		this.canvas.height = this.height * ratio;
		this.canvas.style.width = '100%';
		this.canvas.style.height = 'auto';
		this.spacer.style.height = '0';
		this.draw(ratio);
	}

	/**
	 * All rows of what is shown as a promise of a PNG; throws where there is nothing to draw, or no room for it.
	 * @returns {Promise<Blob | null>}
	 */
	async picture() {
		if (!this.tree || !this.scroller.clientWidth) throw new Error('there is no graph');
		const top = this.scroller.scrollTop;
		this.layOutForPrint();
		try {
			return await new Promise((resolve) => this.canvas.toBlob(resolve, 'image/png'));
		} finally {
			this.canvas.width = 0;
			this.resize();
			this.scroller.scrollTop = top;
		}
	}

	invalidate() {
		if (!this.pending) this.pending = requestAnimationFrame((now) => this.frame(now));
	}

	frame(now) {
		this.pending = 0;
		if (!this.tree || !this.width) return;
		const a = this.animation;
		if (a) {
			const t = Math.min(1, Math.max(0, (now - a.start) / ZOOM_MS));
			const eased = 1 - (1 - t) ** 3;
			this.from = t < 1 ? a.from + (a.goalFrom - a.from) * eased : a.goalFrom;
			this.to = t < 1 ? a.to + (a.goalTo - a.to) * eased : a.goalTo;
			if (t < 1) this.invalidate();
			else this.animation = null;
		}
		this.draw();
	}

	draw(ratio = window.devicePixelRatio || 1) {
		const start = performance.now();
		const { context, tree } = this;
		const style = getComputedStyle(this.scroller);
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.fillStyle = style.backgroundColor;
		context.fillRect(0, 0, this.width, this.height);
		this.used.fill(0);
		this.labels.length = 0;
		const [a, b] = [this.rowAt(0), this.rowAt(this.height)];
		const first = Math.max(this.firstRow, Math.min(a, b));
		const last = Math.min(tree.deepest, Math.max(a, b));
		for (let row = first; row <= last; row++) this.drawRow(row, this.rowTop(row));
		this.paintBuckets();
		this.paintLabels();
		this.paintOutline(this.hovered, style.getPropertyValue('--outline-hover'), 1);
		this.paintOutline(this.selected, style.getPropertyValue('--outline'), 2);
		this.hooks.drawn?.();
		this.frameTimes.push(performance.now() - start);
		if (this.frameTimes.length > 2000) this.frameTimes.splice(0, 1000);
	}

	drawRow(row, top) {
		const { tree, from, to, width } = this;
		const muteRow = row < tree.level[this.zoomed] && this.zoomed > 0;
		eachBox(tree, row, from, to, width / (to - from), (node, left, right) => this.addBox(node, left, right, top, muteRow),
			(left, right, first, last) => this.addRun(left, right, top, first, last));
	}

	addRun(left, right, top, from, to) {
		const hit = this.hitsBefore && this.hitsBefore[to] > this.hitsBefore[from];
		const bucket = hit ? BUCKETS.hit : BUCKETS.run;
		const x = Math.max(0, left);
		if (right > 0) this.push(bucket, x, top, Math.min(right, this.width) - x);
	}

	addBox(node, left, right, top, muteRow) {
		const x = Math.max(0, Math.round(left));
		const wide = Math.min(this.width, Math.round(right)) - x;
		const w = wide > 3 ? wide - 1 : Math.max(1, wide);
		const frame = this.tree.frame[node];
		let bucket;
		if (this.hits && this.hits[frame]) bucket = BUCKETS.hit;
		else bucket = this.hooks.colours.of(frame, node, this.tree) + (this.hits || muteRow ? MUTED_OFFSET : 0);
		this.push(bucket, x, top, w);
		if (w >= LABEL_MIN) this.labels.push({ frame, node, x, top, w });
	}

	push(bucket, x, top, w) {
		const list = this.rects[bucket];
		const at = this.used[bucket];
		list[at] = x;
		list[at + 1] = top;
		list[at + 2] = w;
		this.used[bucket] = at + 3;
	}

	paintBuckets() {
		const { context } = this;
		for (let bucket = 0; bucket < this.rects.length; bucket++) {
			const list = this.rects[bucket];
			const end = this.used[bucket];
			if (!end) continue;
			context.fillStyle = COLOURS[bucket];
			for (let i = 0; i < end; i += 3) context.fillRect(list[i], list[i + 1] + 1, list[i + 2], ROW_HEIGHT - 1);
		}
	}

	labelForms(frame) {
		let forms = this.shown.get(frame);
		if (!forms) {
			const name = visibleText(this.hooks.frames.name(frame).slice(0, 4 * LABEL_CHARS_MAX)).slice(0, LABEL_CHARS_MAX);
			forms = [name, withoutArguments(name), lastPart(name)];
			this.shown.set(frame, forms);
		}
		return forms;
	}

	paintLabels() {
		const { context, fitter } = this;
		context.font = fitter.font;
		context.fillStyle = LABEL_COLOUR;
		context.textBaseline = 'middle';
		const { colours } = this.hooks;
		for (const { frame, node, x, top, w } of this.labels) {
			const mark = colours.mark ? colours.mark(frame, node, this.tree) : '';
			const room = w - 8 - (mark ? context.measureText(mark).width : 0);
			const forms = this.labelForms(frame);
			const whole = forms.find((form) => fitter.fits(form, room));
			const text = whole ?? fitter.cut(forms[2], room);
			if (text) context.fillText(mark + text, x + 4, top + ROW_HEIGHT / 2 + 1);
		}
	}

	boxOf(node) {
		const { tree, from, to, width } = this;
		const scale = width / (to - from);
		const left = Math.max(0, Math.round((tree.x[node] - from) * scale));
		const right = Math.min(width, Math.round((tree.x[node] + tree.total[node] - from) * scale));
		return { x: left, y: this.rowTop(tree.level[node]), w: Math.max(1, right - left), h: ROW_HEIGHT };
	}

	paintOutline(node, colour, thickness) {
		if (node < 0 || node >= this.tree.count) return;
		const { x, y, w, h } = this.boxOf(node);
		if (x > this.width || y > this.height || y + h < 0) return;
		this.context.strokeStyle = colour;
		this.context.lineWidth = thickness;
		this.context.strokeRect(x + 0.5, y + 1, Math.max(1, w - 1), h - 1);
	}
}
