// SPDX-License-Identifier: Apache-2.0
// The form for a base of its own: another selection, or a kept result.
import { byId, shownName } from './around.js';
import { askJson } from './api.js';
import { spanText } from './blocks.js';
import { BASE_MS, baseAndNow, earlier, readLabels, readSnapshot, typedLabels } from './compare.js';
import { NO_BASE } from './selection.js';

const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class BaseForm {
	/** @param {PageApp} app */
	constructor(app) {
		this.app = app;
		this.form = byId('base-form');
		this.form.addEventListener('submit', (event) => {
			event.preventDefault();
			this.choose();
		});
		this.form.addEventListener('keydown', (event) => event.stopPropagation()); // they are none of the graph's
		byId('base-snapshot').addEventListener('focus', () => this.fillKept(), { once: true });
		byId('base-snapshot').addEventListener('input', () => this.applySnapshot());
	}

	/** names: of the range's services */
	fillServices(names) {
		const wanted = this.form.hidden ? '' : byId('base-service').value;
		this.names = names;
		this.fillNames(wanted);
	}

	fillNames(wanted) {
		const names = this.names ?? [];
		const all = wanted && !names.includes(wanted) ? [wanted, ...names] : names;
		byId('base-service').replaceChildren(new Option('All services', ''), ...all.map((name) => new Option(shownName(name, 100), name)));
		byId('base-service').value = wanted;
	}

	/** There, with what the base is; or away. */
	show(isShown, range) {
		this.form.hidden = !isShown;
		byId('base-trouble').textContent = '';
		if (!isShown) return;
		const { selection } = this.app;
		const side = baseAndNow({ ...selection, isSwapped: false }, range).base;
		const [from, to] = this.times(selection, side.span);
		this.fillNames(side.service ?? selection.service);
		byId('base-labels').value = typedLabels(side.labels ?? selection.labels);
		byId('base-from').value = from;
		byId('base-to').value = to;
		byId('base-snapshot').value = side.snapshot ?? '';
		this.applySnapshot();
	}

	/**
	 * The base's times, relative ones as such.
	 * @param {PageSelection} selection
	 * @param {readonly number[]} span
	 */
	times({ from, to, base, part, within, baseFrom, baseTo }, span) {
		const iso = (ms) => new Date(ms).toISOString();
		if (base === 'own') return [baseFrom ?? from, baseTo ?? to];
		if (part || within) return span.map(iso);
		const back = BASE_MS[base] ?? span[1] - span[0];
		return [earlier(from, back) ?? iso(span[0]), earlier(to, back) ?? iso(span[1])];
	}

	/** Beside a snapshot nothing else counts. */
	applySnapshot() {
		const isSnapshot = byId('base-snapshot').value.trim() !== '';
		for (const field of this.form.querySelectorAll('select, input:not([list])')) field.toggleAttribute('disabled', isSnapshot);
	}

	/** Kept results, for those who may list them. */
	async fillKept() {
		try {
			const { needs_token: needsToken, scopes = [] } = await askJson('session');
			if (needsToken && !scopes.includes('admin')) return;
			const { snapshots } = await askJson('snapshots');
			byId('base-kept').replaceChildren(...snapshots.map(({ id, title, selection, from_ms: from, to_ms: to }) =>
				new Option(`${shownName(title || selection, 100)}, ${spanText(from, to)}`, id)));
		} catch {
			// A link can be put in still.
		}
	}

	choose() {
		const { app } = this;
		const { service, labels, from, to } = app.selection;
		const text = (id) => byId(id).value.trim();
		const trouble = (words, id) => {
			byId('base-trouble').textContent = words;
			byId(id).focus();
		};
		if (text('base-snapshot')) {
			const id = readSnapshot(text('base-snapshot'));
			if (id) app.go({ base: 'own', ...NO_BASE, baseSnapshot: id });
			else trouble('This is no link to a snapshot.', 'base-snapshot');
			return;
		}
		const baseLabels = readLabels(text('base-labels'));
		if (!baseLabels) {
			trouble('Labels are name=value, with commas between them.', 'base-labels');
			return;
		}
		const [baseFrom, baseTo] = [text('base-from') || from, text('base-to') || to];
		const isTimed = baseFrom !== from || baseTo !== to;
		app.go({ base: 'own', baseService: byId('base-service').value === service ? null : byId('base-service').value, baseLabels: isSame(baseLabels, labels) ? null : baseLabels,
			baseFrom: isTimed ? baseFrom : null, baseTo: isTimed ? baseTo : null, baseSnapshot: '' });
	}
}
