// SPDX-License-Identifier: Apache-2.0
// Values over time on small canvases: a sparkline, and a timeline with a part that can be chosen.
import { spanText } from './blocks.js';

const HANDLE_MS = 300; // keys come faster than graphs
const HANDLE_PIXELS = 4;

/** @param {HTMLCanvasElement} canvas */
function fitCanvas(canvas, width = canvas.clientWidth, height = canvas.clientHeight) {
	const ratio = window.devicePixelRatio || 1;
	canvas.width = Math.max(1, Math.round(width * ratio));
	canvas.height = Math.max(1, Math.round(height * ratio));
	const context = canvas.getContext('2d');
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	return { context, width, height };
}

/**
 * Canvases of one page, thousands of them too: all are measured before the first one is drawn, because a canvas that gets its size makes
 * the browser lay out the whole page again when the next one is measured.
 * @param {[HTMLCanvasElement, number[]][]} trends
 */
export function drawSparklines(trends) {
	if (!trends.length) return;
	const style = getComputedStyle(trends[0][0]);
	const [line, fill] = ['--trend-line', '--trend-fill'].map((name) => style.getPropertyValue(name));
	const sizes = trends.map(([canvas]) => [canvas.clientWidth, canvas.clientHeight]);
	for (const [i, [canvas, points]] of trends.entries()) drawSparkline(fitCanvas(canvas, ...sizes[i]), points, line, fill);
}

function drawSparkline({ context, width, height }, points, lineColour, fillColour) {
	const most = points.reduce((a, b) => Math.max(a, b), 0);
	if (!most || points.length < 2) return;
	const step = width / (points.length - 1);
	const y = (value) => height - 1 - (value / most) * (height - 3);
	context.beginPath();
	for (const [i, value] of points.entries()) context.lineTo(i * step, y(value));
	context.strokeStyle = lineColour;
	context.lineWidth = 1.3;
	context.stroke();
	context.lineTo(width, height);
	context.lineTo(0, height);
	context.fillStyle = fillColour;
	context.fill();
}

/** Bars over time; a part of it is chosen by dragging, or by keys on its two handles. Times are in ms. */
export class Timeline {
	/**
	 * @param {HTMLElement} box
	 * @param {(from: number | null, to: number | null) => void} chosen called with ms when a part was chosen; null, null: all of it
	 */
	constructor(box, chosen) {
		this.box = box;
		this.canvas = box.querySelector('canvas');
		this.text = box.querySelector('output');
		this.chosen = chosen;
		this.points = [];
		this.range = null;
		this.from = this.to = 0;
		this.handles = [...box.querySelectorAll('input')];
		for (const handle of this.handles) handle.addEventListener('change', () => this.handleMoved());
		this.canvas.addEventListener('pointerdown', (event) => this.begin(event));
		this.canvas.addEventListener('pointermove', (event) => {
			this.drag(event);
			this.say(this.timeAt(event));
		});
		this.canvas.addEventListener('pointerleave', () => this.say(null));
		this.canvas.addEventListener('pointerup', (event) => this.end(event));
		this.canvas.addEventListener('dblclick', () => this.chosen(null, null));
		new ResizeObserver(() => this.draw()).observe(this.canvas);
	}

	/**
	 * @param {number[]} points
	 * @param {number} from
	 * @param {number} step
	 * @param {readonly number[] | null} range of the chosen part
	 */
	show(points, from, step, range) {
		this.points = points;
		this.from = from;
		this.step = step;
		this.to = from + step * points.length;
		this.range = range;
		for (const [i, handle] of this.handles.entries()) {
			handle.max = String(points.length);
			handle.value = String(range ? Math.round((range[i] - from) / step) : i * points.length);
			this.nameHandle(handle);
		}
		this.draw();
		this.say(null);
	}

	/** Which time this is; of the bar under the pointer. */
	say(time) {
		if (!this.text || !this.points.length) return;
		const bar = time === null ? -1 : Math.floor((time - this.from) / this.step) * this.step;
		this.text.textContent = bar < 0 ? spanText(this.from, this.to) : spanText(this.from + bar, this.from + bar + this.step);
	}

	nameHandle(handle) {
		handle.setAttribute('aria-valuetext', new Date(this.from + Number(handle.value) * this.step).toLocaleString());
	}

	handleMoved() {
		const [a, b] = this.handles.map((handle) => this.from + Number(handle.value) * this.step);
		clearTimeout(this.moving);
		if (a !== b) this.moving = setTimeout(() => this.chosen(Math.min(a, b), Math.max(a, b)), HANDLE_MS);
	}

	timeAt(event) {
		const share = Math.min(1, Math.max(0, event.offsetX / Math.max(1, this.canvas.clientWidth)));
		return this.from + share * (this.to - this.from);
	}

	begin(event) {
		if (event.button || !this.points.length) return;
		this.canvas.setPointerCapture(event.pointerId);
		this.start = { time: this.timeAt(event), x: event.offsetX };
	}

	drag(event) {
		if (!this.start) return;
		const now = this.timeAt(event);
		this.range = [Math.min(this.start.time, now), Math.max(this.start.time, now)];
		this.draw();
	}

	end(event) {
		const { start } = this;
		this.start = null;
		if (!start) return;
		if (Math.abs(event.offsetX - start.x) < HANDLE_PIXELS) {
			this.chosen(null, null);
			return;
		}
		const snap = (time, round) => this.from + round((time - this.from) / this.step) * this.step;
		const [a, b] = [start.time, this.timeAt(event)];
		this.chosen(snap(Math.min(a, b), Math.floor), snap(Math.max(a, b), Math.ceil));
	}

	draw() {
		const { points, range } = this;
		if (!this.canvas.clientWidth) return;
		const { context, width, height } = fitCanvas(this.canvas);
		const style = getComputedStyle(this.canvas);
		const most = points.reduce((a, b) => Math.max(a, b), 0);
		const wide = width / Math.max(1, points.length);
		const x = (time) => ((time - this.from) / (this.to - this.from)) * width;
		for (const [i, value] of points.entries()) {
			const middle = this.from + (i + 0.5) * this.step;
			const inside = !range || (middle >= range[0] && middle < range[1]);
			context.fillStyle = style.getPropertyValue(inside ? '--bar-in' : '--bar-out');
			const tall = most ? (value / most) * (height - 2) : 0;
			context.fillRect(i * wide, height - tall, Math.max(0.7, wide - (wide > 3 ? 1 : 0)), tall);
		}
		if (!range) return;
		context.strokeStyle = style.getPropertyValue('--outline');
		context.strokeRect(x(range[0]) + 0.5, 0.5, Math.max(2, x(range[1]) - x(range[0])) - 1, height - 1);
	}
}
