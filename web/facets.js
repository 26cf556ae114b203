// SPDX-License-Identifier: Apache-2.0
// The labels of a selection, each value with what it costs: one click chooses it, or another one in its place. A value can
// also be chosen beside others, or be left out.
import { byId, makeElement, shownName } from './around.js';
import { askJson } from './api.js';
import { choiceButton, totalText } from './choices.js';
import { choose, formatLabels, labelNames, opOf, withoutLabel } from './labels.js';
import { partParams } from './selection.js';
import { coveredMs } from './services_page.js';

const VALUES_SHOWN = 6;
const VALUES_ASKED = 50;
const VALUES_MAX = 1000;
const LABELS_SHOWN = 12;
const LABELS_MAX = 500;
const FIND_MS = 200; // after the last key
const HINT = 'Ctrl and a click: this one, too; Alt and a click: all but this one';

/** The values that are shown of a label: the first ones, and what is chosen of it; what is chosen and costs nothing, too. */
export function shownValues({ values }, chosen, most, isWhole = true) {
	const known = new Set(values.map(({ value }) => value));
	const shown = values.filter(({ value }, i) => i < most || chosen.includes(value));
	return [...shown, ...(isWhole ? chosen : []).filter((value) => !known.has(value)).map((value) => ({ value, total: 0 }))];
}

export class Facets {
	/**
	 * @param {PageApp} app
	 * @param {(labels: { name: string, count: number }[]) => void} known is told the labels of the selection
	 */
	constructor(app, known) {
		this.app = app;
		this.known = known;
		this.opened = new Set(); // labels of which all values are listed
		this.labelsMost = LABELS_SHOWN;
		this.round = 0;
		byId('facet-filter').addEventListener('input', () => {
			clearTimeout(this.timer);
			this.timer = setTimeout(() => this.again(), FIND_MS);
		});
	}

	/** What is looked for, by the collector: it knows more values than are shown. */
	get query() {
		return byId('facet-filter').value.trim();
	}

	/** measured: a promise of an answer that says of how much time there are profiles */
	async show(measured, signal) {
		this.measured = measured;
		await this.fill(signal);
	}

	/** Labels alone are asked once more. */
	again() {
		const { signal } = this.app;
		if (this.measured) this.fill(signal).catch((problem) => signal.aborted || this.app.trouble(problem));
	}

	/** All labels; those of which something is chosen as if nothing of them were. */
	async ask(find, signal) {
		const { labels: chosen } = this.app.selection;
		const params = { ...partParams(this.app.selection), find, limit: this.opened.size ? VALUES_MAX : VALUES_ASKED };
		const names = labelNames(chosen);
		const [answer, ...alone] = await Promise.all([askJson('labels', params, { signal }),
			...names.map((name) => askJson('labels', { ...params, labels: formatLabels(withoutLabel(chosen, name)), name }, { signal }))]);
		if (!find) this.known(answer.labels);
		const own = names.map((name, i) => alone[i].labels[0] ?? { name, count: 0, values: [] }).filter(({ count }) => count || !find);
		const found = new Map([...answer.labels, ...own].map((label) => [label.name, label]));
		return { labels: [...found.values()], unit: answer.unit, unlisted: answer.count - answer.labels.length };
	}

	async fill(signal) {
		const { query } = this;
		const round = ++this.round;
		const [{ labels, unit, unlisted }, measured] = await Promise.all([this.ask(query, signal), this.measured]);
		if (round !== this.round) return;
		this.found = Boolean(query);
		const chosen = labelNames(this.app.selection.labels);
		const amount = (total) => totalText(total, unit, coveredMs(measured) / 1000);
		const offered = labels.filter(({ name, count }) => query || count > 1 || chosen.includes(name));
		const shown = offered.filter(({ name }, i) => i < this.labelsMost || chosen.includes(name));
		const parts = shown.flatMap((label) => [makeElement('h3', '', shownName(label.name, 100)), this.valueList(label, amount)]);
		const more = this.moreLabels(offered.length - shown.length, unlisted);
		byId('facet-filter').hidden = !query && !offered.length;
		this.replace([...parts, ...more, ...(query && !shown.length ? [makeElement('p', 'quiet', 'No label and no value has this text.')] : [])]);
	}

	/** Who came here by keys stays at the same button. */
	replace(content) {
		const focused = document.activeElement instanceof HTMLElement && byId('facets').contains(document.activeElement) ? document.activeElement.dataset.facet : undefined;
		byId('facets').replaceChildren(...content);
		if (focused === undefined) return;
		[...byId('facets').querySelectorAll('button')].find((button) => button.dataset.facet === focused)?.focus();
	}

	valueList(label, amount) {
		const of = this.app.selection.labels.filter(([name]) => name === label.name);
		const marked = of.filter((entry) => ['=', '!='].includes(opOf(entry))).map(([, value]) => value);
		const values = shownValues(label, marked, this.opened.has(label.name) ? VALUES_MAX : VALUES_SHOWN, !this.found);
		const items = values.map(({ value, total }) => this.valueRow(label.name, value, amount(total), of));
		const more = label.count - items.length;
		if (more > 0) items.push(makeElement('li', 'quiet', this.moreValues(label.name, more)));
		return makeElement('ul', '', ...items);
	}

	/** of: what is chosen of the label */
	valueRow(name, value, amount, of) {
		const has = (op) => of.some((entry) => entry[1] === value && opOf(entry) === op);
		const [isIt, isNot] = [has('='), has('!=')];
		const go = (how) => this.app.go({ labels: choose(this.app.selection.labels, name, value, how) });
		const button = choiceButton(value, amount, isIt, (event) => go(event.altKey ? 'not' : event.ctrlKey || event.metaKey || event.shiftKey ? 'also' : 'only'));
		button.title += '\n' + HINT;
		button.dataset.facet = JSON.stringify([name, value]);
		const row = makeElement('li', isNot ? 'facet without' : 'facet', button);
		const small = (how, text, spoken, pressed) => {
			const other = makeElement('button', 'small', text);
			other.type = 'button';
			other.title = `${spoken} ${shownName(value, 100)}`;
			other.setAttribute('aria-label', other.title);
			if (pressed !== undefined) other.setAttribute('aria-pressed', String(pressed));
			other.dataset.facet = JSON.stringify([name, value, how]);
			other.addEventListener('click', () => go(how));
			row.append(other);
		};
		if (!isIt && of.some((entry) => opOf(entry) === '=')) small('also', '+', 'Also');
		small('not', '≠', 'All but', isNot);
		return row;
	}

	/** What comes behind the first values. */
	moreValues(label, count) {
		if (this.opened.has(label)) return makeElement('span', '', `${count} more`);
		return this.moreButton(`${count} more`, `${count} more values of ${shownName(label, 100)}`, () => this.opened.add(label));
	}

	/** What comes behind the first labels. unlisted: what the collector has not listed */
	moreLabels(count, unlisted) {
		if (count + unlisted <= 0) return [];
		const text = `${count + unlisted} more label${count + unlisted > 1 ? 's' : ''}`;
		if (this.labelsMost === LABELS_MAX || count <= 0) return [makeElement('p', 'quiet', text)];
		return [makeElement('p', 'quiet', this.moreButton(text, text, () => (this.labelsMost = LABELS_MAX)))];
	}

	moreButton(text, spoken, open) {
		const button = makeElement('button', 'more', text);
		button.type = 'button';
		button.setAttribute('aria-label', spoken);
		button.addEventListener('click', () => {
			open();
			this.again();
		});
		return button;
	}
}
