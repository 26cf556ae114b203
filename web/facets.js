// SPDX-License-Identifier: Apache-2.0
// The labels of a selection, each value with what it costs: one click chooses it, or another one in its place.
import { byId, makeElement, shownName } from './around.js';
import { askJson, formatLabels } from './api.js';
import { amountText, choiceButton } from './choices.js';
import { partParams } from './selection.js';
import { coveredMs } from './services_page.js';

const VALUES_SHOWN = 6;
const VALUES_ASKED = 50;
const VALUES_MAX = 1000;
const LABELS_SHOWN = 12;
const LABELS_MAX = 500;

/** What the labels are without what is chosen of one: its other values are there to be chosen in its place. */
export function withoutLabel(labels, name) {
	return labels.filter(([of]) => of !== name);
}

/** The values that are shown of a label: the first ones, and what is chosen of it, also what costs nothing. */
export function shownValues({ values }, chosen, most) {
	const known = new Set(values.map(({ value }) => value));
	const shown = values.filter(({ value }, i) => i < most || chosen.includes(value));
	return [...shown, ...chosen.filter((value) => !known.has(value)).map((value) => ({ value, total: 0 }))];
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
	}

	/** measured: a promise of an answer that says of how much time there are profiles */
	async show(measured, signal) {
		this.measured = measured;
		await this.fill(signal);
	}

	/** All labels; those of which something is chosen as if nothing of them were. */
	async ask(signal) {
		const { labels: chosen } = this.app.selection;
		const params = { ...partParams(this.app.selection), limit: this.opened.size ? VALUES_MAX : VALUES_ASKED };
		const names = [...new Set(chosen.map(([name]) => name))];
		const [answer, ...alone] = await Promise.all([askJson('labels', params, { signal }),
			...names.map((name) => askJson('labels', { ...params, labels: formatLabels(withoutLabel(chosen, name)), name }, { signal }))]);
		this.known(answer.labels);
		const found = new Map([...answer.labels, ...names.map((name, i) => alone[i].labels[0] ?? { name, count: 0, values: [] })].map((label) => [label.name, label]));
		return { labels: [...found.values()], unit: answer.unit };
	}

	async fill(signal) {
		const [{ labels, unit }, measured] = await Promise.all([this.ask(signal), this.measured]);
		const chosen = this.app.selection.labels;
		const seconds = coveredMs(measured) / 1000;
		const isChosen = ({ name }) => chosen.some(([of]) => of === name);
		const offered = labels.filter((label) => label.count > 1 || isChosen(label));
		const shown = offered.filter((label, i) => i < this.labelsMost || isChosen(label));
		const parts = shown.map((label) => [makeElement('h3', '', shownName(label.name, 100)), this.valueList(label, unit, seconds)]);
		byId('facets').replaceChildren(...parts.flat(), ...this.moreLabels(offered.length - shown.length));
	}

	valueList(label, unit, seconds) {
		const { labels } = this.app.selection;
		const chosen = labels.filter(([name]) => name === label.name).map(([, value]) => value);
		const values = shownValues(label, chosen, this.opened.has(label.name) ? VALUES_MAX : VALUES_SHOWN);
		const items = values.map(({ value, total }) => {
			const pressed = chosen.includes(value);
			const others = withoutLabel(labels, label.name);
			return makeElement('li', '', choiceButton(value, amountText(total, unit, seconds), pressed,
				() => this.app.go({ labels: pressed ? others : [...others, [label.name, value]] })));
		});
		const more = label.count - items.length;
		if (more > 0) items.push(makeElement('li', 'quiet', this.moreValues(label.name, more)));
		return makeElement('ul', '', ...items);
	}

	/** What comes behind the first values. */
	moreValues(label, count) {
		if (this.opened.has(label)) return makeElement('span', '', `${count} more`);
		return this.moreButton(`${count} more`, `${count} more values of ${shownName(label, 100)}`, () => this.opened.add(label));
	}

	/** What comes behind the first labels. */
	moreLabels(count) {
		if (count <= 0) return [];
		const text = `${count} more label${count > 1 ? 's' : ''}`;
		if (this.labelsMost === LABELS_MAX) return [makeElement('p', 'quiet', text)];
		return [makeElement('p', 'quiet', this.moreButton(text, text, () => (this.labelsMost = LABELS_MAX)))];
	}

	moreButton(text, spoken, open) {
		const button = makeElement('button', 'more', text);
		button.type = 'button';
		button.setAttribute('aria-label', spoken);
		button.addEventListener('click', () => {
			const { signal } = this.app;
			open();
			this.fill(signal).catch((problem) => signal.aborted || this.app.trouble(problem));
		});
		return button;
	}
}
