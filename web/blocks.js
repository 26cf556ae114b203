// SPDX-License-Identifier: Apache-2.0
// What a heat map shows, without a page: rows over steps of time, a scale for their values, and the blocks in them; times as text.

const SCALE_SHARE = 0.99;
export const STOPS = 5; // colours of the scale

/**
 * @typedef {{ value: string, other: boolean, total: number, profiles: number, points: number[] }} TimelineRow
 * @typedef {{ start_ms: number, step_ms: number, from_ms: number, to_ms: number, unit: string, series: TimelineRow[] }} TimelineAnswer
 */

/**
 * Rows and steps of an answer of /api/v1/timeline with round steps. The first and the last step may lie in the range only
 * in part; a block never reaches beyond it.
 */
export class Blocks {
	/** @param {TimelineAnswer} answer */
	constructor(answer) {
		this.start = answer.start_ms;
		this.step = answer.step_ms;
		this.from = answer.from_ms;
		this.to = answer.to_ms + 1; // the range has its last millisecond
		this.rows = answer.series;
		this.columns = answer.series[0]?.points.length ?? 0;
		this.isTime = answer.unit === 'nanoseconds';
		this.sums = Array.from({ length: this.columns }, (_, at) => this.rows.reduce((sum, row) => sum + row.points[at], 0));
		this.scale = scaleOf(this.rows.filter((row) => !row.other).map((row) => row.points.map((value, at) => this.rate(value, at, at))));
	}

	/** row: -1 is all of them */
	points(row) {
		return row < 0 ? this.sums : this.rows[row].points;
	}

	/** The time of columns first..last: [from, to) in ms. */
	span(first, last = first) {
		return [Math.max(this.from, this.start + first * this.step), Math.min(this.to, this.start + (last + 1) * this.step)];
	}

	/** Time per second, so CPUs; other units as they are. Profiles count where they begin, so columns count as a whole at the range's ends, too. */
	rate(value, first, last) {
		return this.isTime ? value / 1e6 / ((last - first + 1) * this.step) : value;
	}

	cell(row, at) {
		return this.rate(this.points(row)[at], at, at);
	}

	sum(row, first, last) {
		return this.points(row).slice(first, last + 1).reduce((sum, value) => sum + value, 0);
	}

	columnAt(time) {
		return Math.min(this.columns - 1, Math.max(0, Math.floor((time - this.start) / this.step)));
	}

	/** The columns in at most `count` pieces of equal length: [[first, last]...]. */
	pieces(count) {
		const size = Math.max(1, Math.ceil(this.columns / count));
		return Array.from({ length: Math.ceil(this.columns / size) }, (_, i) => [i * size, Math.min(this.columns, (i + 1) * size) - 1]);
	}

	/** The dearest column of a row. */
	peak(row) {
		const points = this.points(row);
		return points.reduce((best, value, at) => (this.rate(value, at, at) > this.rate(points[best], best, best) ? at : best), 0);
	}
}

/** Full colour is what all but the highest hundredth stay below, so that one block does not hide all others. */
export function scaleOf(rows) {
	const values = rows.flat().filter((value) => value > 0).sort((a, b) => a - b);
	if (!values.length) return { full: 1, most: 0 };
	const most = values.at(-1);
	return { full: values[Math.min(values.length - 1, Math.floor(values.length * SCALE_SHARE))], most };
}

/** Colours from nothing to full. stops: '#rrggbb', STOPS of them. */
export function rampOf(stops, count = 64) {
	const parts = stops.map((hex) => [1, 3, 5].map((at) => parseInt(hex.trim().slice(at, at + 2), 16)));
	return Array.from({ length: count }, (_, i) => {
		const at = (i / (count - 1)) * (parts.length - 1);
		const below = Math.min(parts.length - 2, Math.floor(at));
		const mixed = parts[below].map((value, k) => Math.round(value + (parts[below + 1][k] - value) * (at - below)));
		return `rgb(${mixed.join(' ')})`;
	});
}

/** The ramp's colour of a value, by its root: small ones are told apart, and what costs anything is never shown as nothing. */
export function colourOf(ramp, value, full) {
	if (!(value > 0)) return null;
	return ramp[Math.min(ramp.length - 1, Math.max(1, Math.round(Math.sqrt(value / full) * (ramp.length - 1))))];
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const clockSeconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const dayMonth = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const dayMonthYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

const yearOf = (ms) => new Date(ms).getFullYear();
const isOneYear = (...moments) => moments.every((ms) => yearOf(ms) === yearOf(moments[0]));

/** A moment, as short as its neighbours allow: step is the distance to them, in ms. With the day, and the year, where that is not that of `before`. */
export function shortTime(ms, step, before = ms) {
	const date = new Date(ms);
	if (step >= 86400000) return (isOneYear(ms, before) ? dayMonth : dayMonthYear).format(date);
	const time = (step % 60000 ? clockSeconds : clock).format(date);
	return date.toDateString() === new Date(before).toDateString() ? time : `${dayMonth.format(date)} ${time}`;
}

/** "14:05 – 14:10", "22 Nov 14:05 – 14:10" when the day is not today's, with years when they are not this one. */
export function spanText(from, to, now = Date.now()) {
	const isToday = new Date(from).toDateString() === new Date(now).toDateString();
	const isOneDay = new Date(from).toDateString() === new Date(to).toDateString();
	const style = from % 60000 || to % 60000 ? clockSeconds : clock;
	const day = (ms) => (isOneYear(from, to, now) ? dayMonth : dayMonthYear).format(new Date(ms)) + ' ';
	return `${isToday && isOneDay ? '' : day(from)}${style.format(new Date(from))} – ${isOneDay ? '' : day(to)}${style.format(new Date(to))}`;
}

const UTC_CHARS = { second: 19, minute: 16 }; // of the ISO form

/**
 * A moment in UTC: the same for all who open a link.
 * @param {'second' | 'minute'} last its last part
 */
export function utcText(ms, last = 'second') {
	const date = new Date(ms);
	return Number.isNaN(date.getTime()) ? 'an unknown time' : date.toISOString().slice(0, UTC_CHARS[last]).replace('T', ' ') + ' UTC';
}

/** Both ends in UTC, the day once. */
export function utcSpan(from, to) {
	const [a, b] = [utcText(from), utcText(to)];
	return a.slice(0, 10) === b.slice(0, 10) ? `${a.slice(0, 19)} – ${b.slice(11)}` : `${a.slice(0, 19)} – ${b}`;
}

/** Where an axis of `width` pixels gets its marks: [[column, text]...]. */
export function axisMarks(blocks, width, textWidth = 64) {
	const most = Math.max(1, Math.floor(width / textWidth));
	const units = [1, 2, 3, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440, 2880, 10080];
	const every = units.map((n) => n * (blocks.step < 60000 ? blocks.step : 60000)).find((ms) => ms >= blocks.step && ms % blocks.step === 0 && (blocks.columns * blocks.step) / ms <= most)
		?? blocks.step * Math.ceil(blocks.columns / most);
	const shift = new Date(blocks.start).getTimezoneOffset() * 60000; // marks at full local hours
	/** @type {[number, string][]} */
	const marks = [];
	for (let at = 0; at < blocks.columns; at++) {
		const time = blocks.start + at * blocks.step;
		if ((time - shift) % every >= blocks.step) continue;
		marks.push([at, shortTime(time, every, marks.length ? blocks.start + marks.at(-1)[0] * blocks.step : undefined)]);
	}
	return marks;
}
