// SPDX-License-Identifier: Apache-2.0
// What can be chosen, with what it costs: sample types, values of labels.
import { makeElement, shownName } from './around.js';
import { formatCount, formatValue } from './format.js';

/** seconds: what time is a share of; 0: it is shown itself */
export function amountText(total, unit, seconds) {
	if (unit === 'nanoseconds' && seconds) return (total / 1e9 / Math.max(0.001, seconds)).toFixed(2);
	if (unit === 'count') return formatCount(total);
	return formatValue(total, { unit, scale: 1, nanoseconds: 0 });
}

export function choiceButton(name, amount, pressed, choose) {
	const button = makeElement('button', 'choice', makeElement('span', '', shownName(name, 200)), makeElement('span', '', amount));
	button.type = 'button';
	button.title = button.firstChild.textContent;
	button.setAttribute('aria-pressed', String(pressed));
	button.addEventListener('click', choose);
	return button;
}
