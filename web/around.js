// SPDX-License-Identifier: Apache-2.0
// What is drawn around a graph: the box at the pointer, the way from the root, the legend, light and dark.
import { formatCount, formatShare, formatValue, shortened, visibleText } from './format.js';
import { nodePath, sidesOf } from './layout.js';

export const TOOLTIP_CHARS_MAX = 1200;
export const WIDE = '(min-width: 721px)'; // pages.css: two columns
const CRUMB_CHARS_MAX = 60;
const CRUMBS_MAX = 12;
const LEGEND_MAX = 8;
const LEAST_SHARE = 0.00005; // what formatShare() rounds to nothing
const THEME_KEY = 'hearth-theme';

/**
 * An element that the pages have.
 * @template {string} Id
 * @param {Id} id
 * @returns {Id extends keyof Elements ? Elements[Id] : string extends Id ? HTMLElement : never}
 */
export function byId(id) {
	return /** @type {any} */ (document.getElementById(id));
}

/**
 * A new element with a class, text and children; foreign text only ever comes in as text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {(Node | string)[]} content
 */
export function makeElement(tag, className = '', ...content) {
	const element = document.createElement(tag);
	if (className) element.className = className;
	element.append(...content);
	return element;
}

/** Runs @job when the picture that is being made is on the screen. */
export function afterPainting(job) {
	requestAnimationFrame(() => requestAnimationFrame(job));
}

export function shownName(name, max = TOOLTIP_CHARS_MAX) {
	return visibleText(name.slice(0, max)).slice(0, max) || '(empty name)';
}

/** Puts a box beside the pointer, inside the window. */
export function placeBeside(box, event) {
	const [w, h] = [box.offsetWidth, box.offsetHeight];
	const x = Math.min(event.clientX + 14, innerWidth - w - 6);
	const below = event.clientY + 18 + h < innerHeight;
	box.style.left = Math.max(4, x) + 'px';
	box.style.top = Math.max(4, below ? event.clientY + 18 : event.clientY - h - 12) + 'px';
}

/**
 * A frame's kind and module, as far as they are known.
 * @param {import('./data.js').FrameTable} frames
 */
export function kindText(frames, frame) {
	return [frames.kind(frame), visibleText(frames.moduleName(frame))].filter(Boolean).join(' · ');
}

/** The two lines of numbers: of one profile what a frame has with and without what it calls; of two what it has in each. */
export function tipLines(tree, node, whole, meta) {
	const amount = (value, of) => formatValue(value, meta) + ' · ' + formatShare(value, of);
	const sides = sidesOf(tree, node);
	if (!sides) return [['Total', amount(tree.total[node], whole)], ['Self', amount(tree.self[node], whole)]];
	const side = ({ total, self, whole: all }) => amount(total, all) + ', self ' + amount(self, all);
	return [['Base', side(sides.base)], ['Now', side(sides.now)]];
}

/**
 * How many functions are drawn as one.
 * @param {NarrowRun} run
 */
export function runText({ functions, first, last }) {
	const boxes = last - first;
	if (functions === 1) return `One function, ${formatCount(boxes)} times`;
	return `${formatCount(functions)} functions${functions < boxes ? `, ${formatCount(boxes)} times` : ''}`;
}

/**
 * What the pointer is on. `whole`: the total that shares are of.
 * @param {import('./flame.js').FlameView} view
 * @param {{ frames: import('./data.js').FrameTable, whole: number, meta: ShownMeta, provisional: boolean }} facts
 * @param {NarrowRun | null} [run] of which it names none: any of them would be the wrong one
 */
export function showTip(node, event, view, facts, run = null) {
	const { frames, whole, meta, provisional } = facts;
	const tip = byId('tip');
	const { tree } = view;
	if ((node < 0 && !run) || !tree) {
		tip.hidden = true;
		return;
	}
	const lines = run ? [['Together', formatValue(run.total, meta) + ' · ' + formatShare(run.total, whole)], ['', '']] : tipLines(tree, node, whole, meta);
	const frame = tree.frame[node] ?? 0;
	byId('tip-name').textContent = run ? runText(run) : shownName(frames.name(frame));
	byId('tip-kind').textContent = run ? 'Each is narrower than a pixel: a click zooms to them' : kindText(frames, frame);
	[byId('tip-total-of').textContent, byId('tip-total').textContent] = lines[0];
	[byId('tip-self-of').textContent, byId('tip-self').textContent] = lines[1];
	byId('tip-self').parentElement.hidden = Boolean(run);
	byId('tip-zoom-row').hidden = !view.zoomed;
	if (view.zoomed) byId('tip-zoom').textContent = formatShare(run ? run.total : tree.total[node], tree.total[view.zoomed]) + ' of the zoomed frame';
	byId('tip-note').hidden = !provisional;
	tip.hidden = false;
	placeBeside(tip, event);
}

/**
 * The way from the root to what is zoomed into, each a button.
 * @param {Tree} tree
 * @param {import('./data.js').FrameTable} frames
 * @param {(node: number) => void} choose
 */
export function showCrumbs(list, tree, frames, zoom, choose) {
	const path = zoom ? [0, ...nodePath(tree, zoom)] : [];
	const skip = path.length > CRUMBS_MAX ? path.length - CRUMBS_MAX + 1 : 0;
	const items = [];
	for (const [i, node] of path.entries()) {
		if (i > 0 && i < skip) continue;
		const name = shownName(frames.name(tree.frame[node]));
		const short = name.length > CRUMB_CHARS_MAX ? shortened(name.slice(0, CRUMB_CHARS_MAX)) || name[0] + '…' : name;
		const button = makeElement('button', '', i === skip && skip ? '… ' + short : short);
		button.type = 'button';
		button.title = name;
		if (node === zoom) button.setAttribute('aria-current', 'true');
		button.addEventListener('click', () => choose(node));
		items.push(makeElement('li', '', button));
	}
	list.replaceChildren(...items);
}

/**
 * The colours with the most self value; what has no place here is listed as "others", what was cut away as "in smaller paths".
 * @param {import('./data.js').FrameTable} frames
 * @param {Totals} totals
 * @param {BoxColours} colours
 */
export function showLegend(list, frames, totals, colours, whole) {
	const entryOf = (text, colour) => {
		const swatch = makeElement('span', 'swatch');
		swatch.style.background = colour;
		return makeElement('li', '', swatch, text);
	};
	if (colours.ramp) {
		list.replaceChildren(...colours.ramp().map(([name, colour]) => entryOf(` ${name}`, colour)));
		return;
	}
	const share = new Map();
	for (let f = 0; f < frames.count; f++) {
		if (!totals.self[f]) continue;
		const { name, colour } = colours.legendOf(f);
		const entry = share.get(name) ?? { colour, self: 0 };
		entry.self += totals.self[f];
		share.set(name, entry);
	}
	const sorted = [...share].sort((a, b) => b[1].self - a[1].self);
	const items = sorted.slice(0, LEGEND_MAX).map(([name, { colour, self }]) => entryOf(` ${shownName(name, CRUMB_CHARS_MAX)} ${formatShare(self, whole)}`, colour));
	const sum = (entries) => entries.reduce((all, [, { self }]) => all + self, 0);
	const others = sum(sorted.slice(LEGEND_MAX));
	const cut = whole - sum(sorted);
	if (others > whole * LEAST_SHARE) items.push(makeElement('li', '', `others ${formatShare(others, whole)}`));
	if (cut > whole * LEAST_SHARE) items.push(makeElement('li', '', `in smaller paths ${formatShare(cut, whole)}`));
	list.replaceChildren(...items);
}

/** Light or dark: as the system has it until somebody chooses. `changed`: runs after each change. */
export class Theme {
	constructor(button, changed) {
		this.button = button;
		this.changed = changed;
		this.chosen = 'system';
		try {
			this.chosen = localStorage.getItem(THEME_KEY) ?? 'system';
		} catch {
			// A browser that keeps nothing for files has the system's.
		}
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.apply());
		this.apply();
	}

	apply() {
		const dark = this.chosen === 'dark' || (this.chosen === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
		document.documentElement.dataset.theme = dark ? 'dark' : 'light';
		this.button.setAttribute('aria-pressed', String(dark));
		this.changed();
	}

	toggle() {
		this.chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
		try {
			localStorage.setItem(THEME_KEY, this.chosen);
		} catch {
			// Still switches.
		}
		this.apply();
	}
}
