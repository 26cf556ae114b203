// SPDX-License-Identifier: Apache-2.0
// What a heat map shows, without a browser.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Blocks, axisMarks, colourOf, rampOf, scaleOf, shortTime, spanText, utcSpan, utcText } from '../../web/blocks.js';
import { Seconds, exactSpan, shortSpan } from '../../web/seconds.js';
import { NOBODY, formatSelection, parseSelection, partTimes, whoseText } from '../../web/selection.js';

const answer = {
	from_ms: 1005000, to_ms: 1047999, start_ms: 1000000, step_ms: 10000, unit: 'nanoseconds',
	series: [{ value: 'a', total: 0, points: [5e9, 20e9, 10e9, 0, 8e9] }, { value: '', other: true, total: 0, points: [1e9, 1e9, 1e9, 1e9, 1e9] }],
};

test('blocks: values are shares of time; a block that is opened does not reach beyond the range', () => {
	const blocks = new Blocks(answer);
	assert.deepEqual([0, 1, 4].map((at) => blocks.span(at)), [[1005000, 1010000], [1010000, 1020000], [1040000, 1048000]]);
	assert.deepEqual([0, 1, 2, 3, 4].map((at) => blocks.cell(0, at)), [0.5, 2, 1, 0, 0.8], 'a short piece of a block does not count as if it were long');
	assert.equal(blocks.rate(blocks.sum(0, 0, 4), 0, 4), 43 / 50);
	assert.deepEqual(blocks.sums, [6e9, 21e9, 11e9, 1e9, 9e9]);
	assert.equal(blocks.sum(-1, 1, 2), 32e9);
	assert.equal(blocks.peak(0), 1);
	assert.deepEqual(blocks.pieces(2), [[0, 2], [3, 4]]);
	assert.deepEqual(blocks.pieces(12), [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]);
	assert.deepEqual([999999, 1000000, 1019999, 1020000, 9e9].map((time) => blocks.columnAt(time)), [0, 0, 1, 2, 4]);
	assert.equal(blocks.scale.most, 2, 'all others together are not on the scale');
});

test('a range says its years where they are not this one', () => {
	const at = (year, month, day, hour = 0) => new Date(year, month - 1, day, hour).getTime();
	const now = at(2026, 11, 29, 12);
	assert.equal(spanText(at(2026, 11, 29, 9), at(2026, 11, 29, 10), now), '09:00 – 10:00');
	assert.equal(spanText(at(2026, 11, 28, 9), at(2026, 11, 29, 10), now), '28 Nov 09:00 – 29 Nov 10:00');
	assert.equal(spanText(at(1970, 1, 1), at(2001, 9, 15), now), '1 Jan 1970 00:00 – 15 Sept 2001 00:00');
	assert.equal(spanText(at(2025, 11, 28, 9), at(2025, 11, 28, 10), now), '28 Nov 2025 09:00 – 10:00');
	assert.equal(shortTime(at(2027, 1, 1), 864e5 * 365, at(2026, 1, 1)), '1 Jan 2027');
});

test('blocks: other units are not divided by time', () => {
	const blocks = new Blocks({ ...answer, unit: 'bytes' });
	assert.equal(blocks.cell(0, 0), 5e9);
});

test('blocks: a part of time as a request has it does not have its end', () => {
	assert.deepEqual(partTimes([1795000000000, 1795000010000]), { from: 1795000000000, to: '1795000009999999999' });
});

test('the scale: one block in a hundred and more does not hide the others; what costs something is never nothing', () => {
	const many = Array.from({ length: 300 }, (_, i) => 1 + (i % 10));
	assert.deepEqual(scaleOf([many, [1000]]), { full: 10, most: 1000 });
	assert.deepEqual(scaleOf([[0, 0]]), { full: 1, most: 0 });
	assert.deepEqual(scaleOf([[7]]), { full: 7, most: 7 });
	const ramp = rampOf(['#000000', ' #404040', '#808080', '#c0c0c0', '#ffffff'], 5);
	assert.deepEqual(ramp, ['rgb(0 0 0)', 'rgb(64 64 64)', 'rgb(128 128 128)', 'rgb(192 192 192)', 'rgb(255 255 255)']);
	assert.equal(colourOf(ramp, 0, 10), null);
	assert.equal(colourOf(ramp, 1e-9, 10), ramp[1]);
	assert.equal(colourOf(ramp, 2.5, 10), ramp[2]);
	assert.equal(colourOf(ramp, 500, 10), ramp[4]);
});

test('the axis: marks have room, and stand at multiples', () => {
	for (const [step, columns] of [[10000, 90], [20000, 180], [120000, 181], [3600000, 169], [86400000, 30], [7 * 86400000, 3]]) {
		const start = 1795000000000 - (1795000000000 % step);
		const blocks = { start, step, columns };
		for (const width of [250, 1100]) {
			const marks = axisMarks(blocks, width);
			assert.ok(marks.length > 0 && marks.length <= width / 60, `${step} ${width}: ${marks.length}`);
			const gaps = new Set(marks.slice(1).map(([at], i) => at - marks[i][0]));
			assert.ok(gaps.size <= 1, [...gaps].join());
			assert.equal(marks.filter(([, text]) => /[A-Z]/.test(text)).length <= 8 || step >= 86400000, true, 'the day stands where it changes');
		}
	}
});

test('the address holds whose samples are shown, and what rows are', () => {
	const selection = parseSelection('#/profile?process=12-99&program=a%20b&thread=7&threadname=%3Cb%3E');
	assert.deepEqual([selection.process, selection.program, selection.thread, selection.threadName], ['12-99', 'a b', '7', '<b>']);
	assert.deepEqual(parseSelection(formatSelection(selection)), selection);
	assert.equal(whoseText(selection), 'a b 12, thread <b> 7');
	assert.equal(whoseText(NOBODY), '');
	assert.deepEqual([parseSelection('#/heat?rows=&by=nonsense').rows, parseSelection('#/hosts?by=nonsense').by], ['host', 'process']);
	assert.equal(formatSelection(parseSelection('#/heat?rows=service')), '#/heat?rows=service');
});

test('seconds: cells in the order of time, stretches of any length', () => {
	const cells = Array.from({ length: 150 }, (_, at) => (at === 77 ? 40e6 : at % 2 ? 20e6 : 0));
	const seconds = new Seconds({ start_ms: 1795000000000, columns: 3, rows: 50, step_ms: 20, unit: 'nanoseconds', cells });
	assert.deepEqual(seconds.span(49, 50), [1795000000980, 1795000001020]);
	assert.deepEqual(seconds.span(0, 149), [1795000000000, 1795000003000]);
	assert.equal(seconds.sum(0, 149), cells.reduce((a, b) => a + b, 0));
	assert.equal(seconds.rate(seconds.sum(76, 77), 2), 1, '40 ms of CPU time in 40 ms');
	assert.equal(seconds.peak(50, 99), 77);
	assert.deepEqual([0, 1795000000980, 1795000000999, 1795000001000, 9e15].map((time) => seconds.cellAt(time)), [0, 49, 49, 50, 149]);
	assert.deepEqual(seconds.scale, { full: 2, most: 2 });
	assert.equal(new Seconds({ start_ms: 0, columns: 1, rows: 2, step_ms: 500, unit: 'bytes', cells: [7, 0] }).scale.most, 7, 'other units are not divided by time');
	assert.match(exactSpan(1795000000980, 1795000061020, 1795000002000), /^[\d:]+\.980 – [\d:]+\.020$/);
	assert.match(exactSpan(1795000000980, 1795000001020, 0), /^\d+ \w+ [\d:]+\.980 – [\d:]+\.020$/);
	assert.match(shortSpan(1795000000980, 1795000001020), /^\d\d:\d\d:\d\d\.980 – \d\d\.020$/);
	assert.match(shortSpan(1795000000980, 1795000061020), /^\d\d:\d\d:\d\d\.980 – \d\d:\d\d:\d\d\.020$/);
});

test('the address holds a stretch of single samples\' times', () => {
	const selection = parseSelection('#/profile?within=1795000000020-1795000000040');
	assert.deepEqual(selection.within, [1795000000020, 1795000000040]);
	assert.deepEqual(parseSelection(formatSelection(selection)), selection);
	for (const odd of ['9-1', '5-5', '1-2-3', 'x-y', '1.5-2', '-1-2', '1e400-2', '9007199254740990-9007199254740991', '1-8640000000000001']) {
		const { within, part } = parseSelection(`#/profile?within=${odd}&part=${odd}`);
		assert.deepEqual([within, part], [null, null], odd);
	}
	assert.deepEqual(parseSelection('#/profile?part=1-8640000000000000').part, [1, 8640000000000000]);
});

test('times in UTC, to the second or the minute, the day of a span once', () => {
	const [from, to, later] = [Date.UTC(2026, 10, 22, 11, 45, 7, 999), Date.UTC(2026, 10, 22, 12), Date.UTC(2026, 10, 23)];
	assert.deepEqual([utcText(from), utcText(from, 'minute'), utcText(undefined), utcText(9e15)], ['2026-11-22 11:45:07 UTC', '2026-11-22 11:45 UTC', 'an unknown time', 'an unknown time']);
	assert.deepEqual([utcSpan(from, to), utcSpan(from, later)], ['2026-11-22 11:45:07 – 12:00:00 UTC', '2026-11-22 11:45:07 – 2026-11-23 00:00:00 UTC']);
});
