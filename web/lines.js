// SPDX-License-Identifier: Apache-2.0
// The source lines of the function in the middle of the sandwich, and links to where its source is.
import { byId, makeElement, shownName } from './around.js';
import { askJson } from './api.js';
import { formatShare, formatValue } from './format.js';

const TEMPLATE_KEY = 'hearth-source-link';
const TEMPLATE_MAX = 1000;
const ROWS_MAX = 200;
// What opens a page or an editor and runs nothing.
const SCHEMES = new Set(['http:', 'https:', 'vscode:', 'vscode-insiders:', 'vscodium:', 'cursor:', 'windsurf:', 'zed:', 'idea:', 'jetbrains:', 'subl:', 'txmt:', 'mvim:', 'emacs:', 'editor:']);

/** A template's address with its words put in; throws where that is no address. */
function filledIn(template, file, line) {
	const encoded = encodeURI(file.replace(/[\ud800-\udfff]/gu, '\ufffd')).replace(/[#?]/g, encodeURIComponent);
	return new URL(template.replaceAll('{file}', () => encoded).replaceAll('{line}', () => String(line > 0 ? line : 1)));
}

/** Scheme, host and what stands beside the host. From the text: older browsers know no host where they do not know the scheme. */
const placeOf = (url) => /^[^:]+:(?:\/\/[^/?#]*)?/.exec(url.href)?.[0];

/**
 * The address of a line by a template with {file} and {line}, or '' when there is none or it is none to follow: file names are foreign, and none of
 * them leads to a place that is not the template's own.
 */
export function sourceLink(template, file, line) {
	if (!template || !file || !template.includes('{file}')) return '';
	try {
		const url = filledIn(template, file, line);
		return SCHEMES.has(url.protocol) && placeOf(url) === placeOf(filledIn(template, '/a', line)) ? url.href : '';
	} catch {
		return '';
	}
}

function keptTemplate() {
	try {
		return (localStorage.getItem(TEMPLATE_KEY) ?? '').slice(0, TEMPLATE_MAX);
	} catch {
		return '';
	}
}

export class SourceLines {
	/**
	 * @param {import('./viewer.js').Viewer} viewer
	 * @param {() => object | null} ask the parameters of a request about the function, or null where there are no lines to ask for
	 */
	constructor(viewer, ask) {
		this.viewer = viewer;
		this.ask = ask;
		this.template = keptTemplate();
		this.button = makeElement('button', '', 'Lines');
		this.button.type = 'button';
		this.button.setAttribute('aria-expanded', 'false');
		this.button.setAttribute('aria-controls', 'lines');
		byId('copy-focus').after(this.button);
		this.table = makeElement('table', '', makeElement('thead'), makeElement('tbody'));
		this.note = makeElement('p', 'quiet');
		this.note.setAttribute('role', 'status');
		this.field = makeElement('input');
		Object.assign(this.field, { id: 'source-link', type: 'text', maxLength: TEMPLATE_MAX, spellcheck: false, autocomplete: 'off', value: this.template,
			placeholder: 'https://git.example/{file}#L{line}, vscode://file{file}:{line}' });
		this.panel = makeElement('section', '', this.note, this.table, makeElement('label', 'field', 'Links to the source', this.field));
		this.panel.id = 'lines';
		this.panel.hidden = true;
		this.panel.tabIndex = 0;
		this.panel.setAttribute('aria-label', 'Source lines');
		this.button.closest('.focus').after(this.panel);
		this.button.addEventListener('click', () => this.toggle());
		this.field.addEventListener('change', () => this.setTemplate(this.field.value.trim()));
	}

	toggle() {
		this.panel.hidden = !this.panel.hidden;
		this.button.setAttribute('aria-expanded', String(!this.panel.hidden));
		this.key = '';
		this.show(this.viewer.state.focus);
	}

	setTemplate(template) {
		this.template = template;
		const isOdd = template && !sourceLink(template, '/a', 1);
		this.field.setAttribute('aria-invalid', String(Boolean(isOdd)));
		try {
			if (template) localStorage.setItem(TEMPLATE_KEY, template);
			else localStorage.removeItem(TEMPLATE_KEY);
		} catch {
			// It holds as long as the page does.
		}
		if (this.answer) this.fill();
	}

	/** The function that the sandwich is about. */
	async show(frame) {
		const { frames } = this.viewer;
		const isKnown = frames && frame >= 0 && frame < frames.own;
		const params = isKnown ? this.ask() : null;
		this.button.hidden = !params;
		if (!params || this.panel.hidden) {
			if (!params) this.panel.hidden = true;
			return;
		}
		const path = [{ name: frames.name(frame), kind: frames.kind(frame), module: frames.moduleName(frame) }];
		const key = JSON.stringify([params, path]);
		if (key === this.key) return;
		this.key = key;
		this.answer = null;
		this.table.tBodies[0].replaceChildren();
		this.note.textContent = 'Asking for the lines.';
		try {
			const answer = await askJson('lines', params, { method: 'POST', body: { path } });
			if (this.key !== key) return;
			this.answer = answer;
			this.fill();
		} catch (problem) {
			if (this.key === key) this.note.textContent = problem.status === 404 ? 'There are no lines for this function.' : problem.message;
		}
	}

	fill() {
		const { lines, total, unit, count } = this.answer;
		const meta = { unit, scale: 1, nanoseconds: 0 };
		const shown = lines.slice(0, ROWS_MAX);
		const isKnown = shown.some((line) => line.line > 0);
		this.note.textContent = !isKnown ? 'The profiles do not say which lines these are: hearth record --lines, or debug information, would.'
			: count > shown.length ? `The ${shown.length} most costly of ${count} lines.` : '';
		this.note.hidden = !this.note.textContent;
		const head = makeElement('tr', '', ...['Line', 'Self', 'Total', '%'].map((text, i) => {
			const cell = makeElement('th', i ? 'number' : '', text);
			cell.scope = 'col';
			return cell;
		}));
		this.table.tHead.replaceChildren(head);
		this.table.tBodies[0].replaceChildren(...shown.map((line) => makeElement('tr', '', makeElement('td', '', this.place(line)),
			makeElement('td', 'number', formatValue(line.self, meta)), makeElement('td', 'number', formatValue(line.total, meta)),
			makeElement('td', 'number', formatShare(line.total, total)))));
	}

	place({ file, line }) {
		const where = (name) => (line > 0 ? `${name}:${line}` : name);
		const text = file ? where(shownName(file.slice(file.lastIndexOf('/') + 1) || file, 200)) : 'not known';
		const href = sourceLink(this.template, file, line);
		const made = makeElement(href ? 'a' : 'bdi', '', text);
		made.title = file ? where(shownName(file, 1000)) : '';
		if (href) Object.assign(made, { href, target: '_blank', rel: 'noopener noreferrer' });
		return made;
	}
}
