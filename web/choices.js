// SPDX-License-Identifier: Apache-2.0
// What can be chosen, with what it costs: sample types, values of labels.
import { makeElement, shownName } from './around.js';
import { formatCount, formatValue } from './format.js';
import { labelNames, labelText, withoutLabel } from './labels.js';

/** A total as its unit has it: CPUs, a count, a value. seconds: what time is a share of; 0: it is shown itself */
export function totalText(total, unit, seconds) {
	if (unit === 'nanoseconds' && seconds) return (total / 1e9 / Math.max(0.001, seconds)).toFixed(2);
	if (unit === 'count') return formatCount(total);
	return formatValue(total, { unit, scale: 1, nanoseconds: 0 });
}

/**
 * Sample types with what `sample` of a request has to be for each: its name, and its unit where several have the name; and with the words of a button.
 * What has name and unit of one before it is left out: nothing asks for it.
 * @param {{ sample: string, unit: string, total: number }[]} samples
 */
export function sampleChoices(samples) {
	const isAgain = (s, i) => samples.findIndex((other) => other.sample === s.sample && other.unit === s.unit) < i;
	const own = samples.filter((s, i) => !isAgain(s, i));
	return own.map((s) => {
		const isShared = own.some((other) => other !== s && other.sample === s.sample);
		return { ...s, text: isShared ? `${s.sample}/${s.unit}` : s.sample, name: isShared ? `${s.sample} (${s.unit})` : s.sample };
	});
}

export function choiceButton(name, amount, pressed, choose) {
	const button = makeElement('button', 'choice', makeElement('span', '', shownName(name, 200)), makeElement('span', '', amount));
	button.type = 'button';
	button.title = button.firstChild.textContent;
	button.setAttribute('aria-pressed', String(pressed));
	button.addEventListener('click', choose);
	return button;
}

/** Something that narrows what is shown, said; a click takes it back. */
export function chip(words, title, undo) {
	const button = makeElement('button', 'chip', `${words} ×`);
	button.type = 'button';
	button.title = title;
	button.addEventListener('click', undo);
	return button;
}

/**
 * What is chosen of labels. but: a label of which nothing is said
 * @param {PageApp} app
 */
export function labelChips(app, but = '') {
	const { labels } = app.selection;
	return labelNames(labels).filter((name) => name !== but).map((name) => {
		const words = `${shownName(name, 60)}: ${labelText(labels, name, (value) => shownName(value, 60)).slice(0, 300)}`;
		return chip(words, `${words}\nShow all of them`, () => app.go({ labels: withoutLabel(app.selection.labels, name) }));
	});
}

/** Puts chips into an element that is there only with some. */
export function showChips(box, chips) {
	box.hidden = !chips.length;
	box.replaceChildren(...chips);
}
