// SPDX-License-Identifier: Apache-2.0
// When did which host (service, label) cost how much, or when in the second? A block opens its flame graph.
import { byId, makeElement, shownName } from './around.js';
import { askJson } from './api.js';
import { Blocks, STOPS, rampOf, shortTime, spanText } from './blocks.js';
import { labelChips, showChips } from './choices.js';
import { cpusText, formatCount, formatShare, formatValue } from './format.js';
import { HeatMap } from './heat.js';
import { formatLabels, withoutLabel } from './labels.js';
import { SECONDS_ROWS, whoseParams } from './selection.js';
import { Seconds, SecondsMap, exactSpan } from './seconds.js';
import { headRow } from './services_page.js';

const ROWS = [20, 200, 1000]; // at first, and each time that more is asked for
const COLUMN_PIXELS = 7;
const COLUMNS_MAX = 240;
const PIECES = 12;
const LABELS_SHOWN = 20;
const TABLE_ROWS = 200;
const SECONDS_LAST = '5m'; // of a range that is too long for single seconds
const SECONDS_PIECE = 5; // rows of a cell of the table

export class HeatPage {
	/** @param {PageApp} app */
	constructor(app) {
		this.app = app;
		this.level = 0;
		/** @type {PageSelection} what the answer is of */
		this.of = null;
		this.map = new HeatMap(byId('heat-map'), {
			chosen: (...block) => this.open(...block),
			moved: (...block) => (byId('heat-place').textContent = this.describe(...block).join(', ')),
			tell: (...block) => this.describe(...block),
			tip: byId('heat-tip'),
		});
		/** @type {Seconds | null} */
		this.seconds = null;
		this.secondsMap = new SecondsMap(byId('seconds-map'), {
			chosen: (...stretch) => app.go(this.stretchSelection(...stretch)),
			moved: (...stretch) => (byId('heat-place').textContent = this.describeStretch(...stretch).join(', ')),
			tell: (...stretch) => this.describeStretch(...stretch),
			tip: byId('heat-tip'),
		});
		byId('heat-rows').addEventListener('change', () => app.go({ page: 'heat', rows: byId('heat-rows').value }));
		byId('heat-service').addEventListener('change', () => app.go({ page: 'heat', service: byId('heat-service').value }));
		byId('heat-more').addEventListener('click', () => this.more());
		byId('heat-table').addEventListener('toggle', () => this.fillTable());
		byId('seconds-table').addEventListener('toggle', () => this.fillSecondsTable());
		new MutationObserver(() => this.drawLegend()).observe(document.documentElement, { attributeFilter: ['data-theme'] });
	}

	/** Labels that rows are made of are in no filter: all of them are shown. */
	params() {
		const { type, sample, service, labels, rows, from, to } = this.app.selection;
		return { type, sample, from, to, service: rows === 'service' ? '' : service, labels: formatLabels(withoutLabel(labels, rows)), ...whoseParams(this.app.selection) };
	}

	async show(signal) {
		const { selection } = this.app;
		const { rows } = selection;
		if (rows !== this.shownRows) this.level = 0;
		showChips(byId('heat-chosen'), labelChips(this.app, rows));
		this.shownRows = rows;
		if (rows === SECONDS_ROWS) {
			await this.showSeconds(signal);
			return;
		}
		const width = byId('heat-page').clientWidth * 0.85;
		const points = Math.max(24, Math.min(COLUMNS_MAX, Math.floor(width / COLUMN_PIXELS)));
		const [answer] = await Promise.all([
			askJson('timeline', { ...this.params(), group: rows, steps: 'round', limit: ROWS[this.level], points }, { signal }),
			this.showChoices(signal),
		]);
		this.answer = answer;
		this.of = selection;
		this.blocks = this.scaled = new Blocks(answer);
		byId('seconds-work').hidden = byId('seconds-none').hidden = true;
		this.fill();
	}

	async showSeconds(signal) {
		const { selection } = this.app;
		const [answer] = await Promise.all([askJson('subseconds', { ...this.params(), last: SECONDS_LAST }, { signal }), this.showChoices(signal)]);
		this.answer = answer;
		this.of = selection;
		this.seconds = this.scaled = new Seconds(answer);
		this.fillSeconds();
	}

	async showChoices(signal) {
		const { from, to, type, sample, service, rows } = this.app.selection;
		const [{ labels }, { services }] = await Promise.all([
			askJson('labels', { from, to, type, sample, limit: 1 }, { signal }),
			askJson('services', { from, to, type, sample, points: 1, small: 'list' }, { signal }),
		]);
		const names = labels.slice(0, LABELS_SHOWN).map((label) => label.name).filter((name) => name !== 'host' && name !== SECONDS_ROWS);
		if (!['host', 'service', SECONDS_ROWS, ...names].includes(rows)) names.unshift(rows);
		byId('heat-rows').replaceChildren(new Option('hosts', 'host'), new Option('services', 'service'), new Option('time in the second', SECONDS_ROWS), ...names.map((name) => new Option('label ' + shownName(name, 60), name)));
		byId('heat-rows').value = rows;
		const known = services.map((s) => s.service);
		if (service && !known.includes(service)) known.unshift(service);
		byId('heat-service').replaceChildren(new Option('All services', ''), ...known.map((name) => new Option(shownName(name, 80), name)));
		byId('heat-service').value = service;
		byId('heat-service').disabled = rows === 'service';
	}

	async more() {
		this.level = Math.min(this.level + 1, ROWS.length - 1);
		this.app.again();
	}

	amount(value, first, last) {
		const { blocks } = this;
		return blocks.isTime ? cpusText(blocks.rate(value, first, last)) + ' CPUs' : this.plain(value);
	}

	plain(value) {
		return formatValue(value, { unit: this.answer.unit, scale: 1, nanoseconds: 0 });
	}

	/** Of the whole range. */
	whole(value) {
		const { blocks } = this;
		return blocks.isTime ? (value / 1e6 / Math.max(1, blocks.to - blocks.from)).toFixed(2) : this.amount(value);
	}

	nameOf(row) {
		if (row < 0) return 'All rows';
		const { value, other } = this.blocks.rows[row];
		if (other) return `${formatCount(this.answer.folded)} more`;
		return value ? shownName(value, 200) : `(no ${shownName(this.of.rows, 60)})`;
	}

	describe(row, first, last = first) {
		const [from, to] = this.blocks.span(first, last);
		return [this.nameOf(row), spanText(from, to), this.amount(this.blocks.sum(row, first, last), first, last)];
	}

	/**
	 * The selection of a block, or null where no selector can name it; of what is shown, even while something else is asked for.
	 * first null: the whole range
	 */
	selectionOf(row, first, last) {
		const { labels, rows, service } = this.of;
		const at = row < 0 ? null : this.blocks.rows[row];
		if (at && (at.other || !at.value)) return null;
		const others = withoutLabel(labels, rows);
		const { from_ms: from, to_ms: to } = this.answer;
		return {
			...this.of, page: 'profile', within: null,
			...(first === null ? { part: null } : { from: new Date(from).toISOString(), to: new Date(to).toISOString(), part: this.blocks.span(first, last) }),
			service: rows !== 'service' ? service : at?.value ?? '', labels: at && rows !== 'service' ? [...others, [rows, at.value]] : others,
		};
	}

	open(row, first, last) {
		const selection = this.selectionOf(row, first, last);
		if (selection) this.app.go(selection);
		else if (this.blocks.rows[row].other) this.more();
		else byId('heat-place').textContent = 'These profiles lack the label: nothing can name them.';
	}

	fill() {
		const { blocks } = this;
		const isEmpty = !blocks.rows.length;
		byId('heat-empty').hidden = !isEmpty;
		byId('heat-work').hidden = isEmpty;
		byId('heat-place').textContent = '';
		if (isEmpty) return;
		const what = byId('heat-rows').selectedOptions[0]?.text ?? '';
		byId('heat-map').setAttribute('aria-label', `Cost of ${what} over time: arrow keys move, Shift and arrows make a block longer, Enter opens its flame graph`);
		this.map.show(blocks);
		byId('heat-names').style.paddingTop = this.map.rowTop(0) + 'px';
		byId('heat-names').replaceChildren(...blocks.rows.map((_, row) => {
			const name = makeElement('li', this.map.rowHeight < 20 ? 'low' : '', this.nameOf(row));
			name.title = name.textContent;
			name.style.height = this.map.rowHeight + 'px';
			return name;
		}));
		const { folded } = this.answer;
		byId('heat-more').hidden = !folded || this.level === ROWS.length - 1;
		byId('heat-more').textContent = `Show more of the ${formatCount(folded)} others`;
		byId('heat-step').textContent = `One block: ${stepText(blocks.step)}`;
		this.drawLegend();
		this.fillTable();
	}

	/* Time in the second */

	/** What a stretch costs: CPUs, with the time that this took. */
	stretchAmount(first, last) {
		const { seconds } = this;
		const value = seconds.sum(first, last);
		return seconds.isTime ? `${cpusText(seconds.rate(value, last - first + 1))} CPUs` : this.plain(value);
	}

	describeStretch(first, last) {
		return [exactSpan(...this.seconds.span(first, last)), this.stretchAmount(first, last)];
	}

	/** @returns {Partial<PageSelection>} */
	stretchSelection(first, last) {
		const { from_ms: from, to_ms: to } = this.answer;
		return { ...this.of, page: 'profile', from: new Date(from).toISOString(), to: new Date(to).toISOString(), part: null, within: this.seconds.span(first, last) };
	}

	fillSeconds() {
		const { total, untimed, profiles } = this.answer;
		byId('heat-work').hidden = true;
		byId('heat-place').textContent = '';
		byId('heat-empty').hidden = total + untimed > 0 || profiles > 0;
		byId('seconds-none').hidden = total > 0 || !byId('heat-empty').hidden;
		byId('seconds-work').hidden = !total;
		byId('heat-step').textContent = '';
		if (!total) {
			byId('seconds-none').querySelector('span').textContent = this.noneText();
			this.scaled = null;
			return;
		}
		byId('heat-step').textContent = `One block: ${this.seconds.step} ms`;
		byId('seconds-map').setAttribute('aria-label', `Cost by second and time in the second, ${this.seconds.step} ms a block: up and down move in the second, left and right to another second, `
			+ 'Shift and arrows make the stretch longer, Enter opens its flame graph');
		byId('seconds-note').textContent = this.secondsNote();
		byId('seconds-note').hidden = !byId('seconds-note').textContent;
		this.secondsMap.show(this.seconds);
		this.drawLegend();
		this.fillSecondsTable();
	}

	/** Why nothing is drawn. */
	noneText() {
		const { last, profiles_timed: timed } = this.answer;
		const where = last ? 'the last 5 minutes of the range' : 'this range';
		return timed ? `No sample of ${where} has a time in it. ` : `The samples of ${where} have no times of their own. `;
	}

	/** What is missing in the picture. */
	secondsNote() {
		const { last, partial, total, untimed } = this.answer;
		return [last && 'The last 5 minutes of the range: of 10 minutes or less, all is shown.', untimed > 0 && `${formatShare(untimed, total + untimed)} of the samples have no time and are left out.`,
			partial && 'Some profiles are left out: they measure something else, or last longer than 10 minutes.'].filter(Boolean).join(' ');
	}

	/** A row for each second; made when somebody looks. */
	fillSecondsTable() {
		const { seconds } = this;
		if (!byId('seconds-table').open || !seconds?.columns || this.of.rows !== SECONDS_ROWS) return;
		const table = byId('seconds-table').querySelector('table');
		const { rows, step } = seconds;
		const unit = seconds.isTime ? 'CPUs' : this.answer.sample;
		const plain = (text) => text.replace(/ CPUs$/, '');
		const pieces = Array.from({ length: Math.ceil(rows / SECONDS_PIECE) }, (_, i) => [i * SECONDS_PIECE, Math.min(rows, (i + 1) * SECONDS_PIECE) - 1]);
		table.tHead.replaceChildren(headRow([['Second'], [unit, 'number'], ['Share', 'number'], [`Dearest ${step} ms`], ...pieces.map(([first]) => [`from ${first * step} ms`, 'number'])]));
		table.tBodies[0].replaceChildren(...Array.from({ length: seconds.columns }, (_, column) => {
			const [first, last] = [column * rows, (column + 1) * rows - 1];
			const peak = seconds.peak(first, last);
			return makeElement('tr', '', makeElement('td', '', this.linked(exactSpan(...seconds.span(first, last)).replace(/\.000/g, ''), this.stretchSelection(first, last))),
				makeElement('td', 'number', plain(this.stretchAmount(first, last))), makeElement('td', 'number', formatShare(seconds.sum(first, last), this.answer.total)),
				makeElement('td', '', this.linked(`${(peak - first) * step} ms: ${this.stretchAmount(peak, peak)}`, this.stretchSelection(peak, peak))),
				...pieces.map(([from, to]) => makeElement('td', 'number', plain(this.stretchAmount(first + from, first + to)))));
		}));
	}

	drawLegend() {
		const { scaled } = this;
		const canvas = byId('heat-legend').querySelector('canvas');
		if (!scaled?.columns || !canvas.clientWidth) return;
		const style = getComputedStyle(canvas);
		const ramp = rampOf(Array.from({ length: STOPS }, (_, i) => style.getPropertyValue(`--heat-${i}`)));
		canvas.width = ramp.length;
		canvas.height = 1;
		const context = canvas.getContext('2d');
		for (const [i, colour] of ramp.entries()) {
			context.fillStyle = colour;
			context.fillRect(i, 0, 1, 1);
		}
		const { full, most } = scaled.scale;
		const text = (value) => (scaled.isTime ? cpusText(value) : this.plain(value));
		const unit = scaled.isTime ? ' CPUs' : '';
		const ends = byId('heat-legend').querySelectorAll('span');
		ends[0].textContent = '0';
		ends[1].textContent = text(full / 4);
		ends[2].textContent = text(full) + unit;
		byId('heat-most').textContent = most > full * 1.005 ? `up to ${text(most)}` : '';
	}

	/** The same as numbers; made when somebody looks. */
	fillTable() {
		const { blocks } = this;
		if (!byId('heat-table').open || !blocks?.rows.length) return;
		const table = byId('heat-table').querySelector('table');
		const pieces = blocks.pieces(PIECES);
		const unit = blocks.isTime ? 'CPUs' : this.answer.sample;
		const all = blocks.sums.reduce((sum, value) => sum + value, 0);
		const plain = (text) => text.replace(/ CPUs$/, '');
		table.tHead.replaceChildren(headRow([['Row'], [unit, 'number'], ['Share', 'number'], ['Dearest block'],
			...pieces.map(([first], i) => [shortTime(blocks.span(first)[0], blocks.step, i ? blocks.span(pieces[i - 1][0])[0] : undefined), 'number'])]));
		table.tBodies[0].replaceChildren(...blocks.rows.slice(0, TABLE_ROWS).map((data, row) => {
			const peak = blocks.peak(row);
			const cells = [
				makeElement('td', '', this.linked(this.nameOf(row), this.selectionOf(row, null))),
				makeElement('td', 'number', plain(this.whole(data.total))), makeElement('td', 'number', formatShare(data.total, all)),
				makeElement('td', '', this.linked(this.describe(row, peak).slice(1).join(': '), this.selectionOf(row, peak, peak))),
				...pieces.map(([first, end]) => makeElement('td', 'number', plain(this.amount(blocks.sum(row, first, end), first, end)))),
			];
			return makeElement('tr', '', ...cells);
		}));
	}

	linked(text, selection) {
		if (!selection) return text;
		const link = makeElement('a', '', text);
		link.href = this.app.link(selection);
		return link;
	}
}

function stepText(ms) {
	/** @type {[number, string][]} */
	const units = [[86400000, 'd'], [3600000, 'h'], [60000, 'min'], [1000, 's']];
	const [size, unit] = units.find(([size]) => ms % size === 0) ?? [1, 'ms'];
	return `${ms / size} ${unit}`;
}
