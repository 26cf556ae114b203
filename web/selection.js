// SPDX-License-Identifier: Apache-2.0
// What the collector is asked for, as the first part of the address behind the #; state.js has the rest of it.
import { formatLabels, parseLabels } from './labels.js';

export const PAGES = ['services', 'profile', 'compare', 'heat', 'hosts', 'live', 'files', 'snapshot', 'admin'];
export const WINDOWS = Object.freeze({ '10s': '10 s', '1m': '1 min', '5m': '5 min' });
/** Of the page of `hearth profile -T`, which shows nothing else. */
export const SINCE_START = 'start';
const TEXT_MAX = 4096;
const ID_MAX = 64;
const LABELS_MAX = 32;
const DATE_MAX_MS = 8.64e15;
/** What a range can be compared with: presets, and what somebody chooses. */
const BASE_NAMES = ['before', '1d', '7d', 'own'];
const DIFF_NAMES = ['share', 'value'];
const BY_NAMES = ['process', 'thread', 'program'];

/** The heat map's rows that are no label, no host and no service. */
export const SECONDS_ROWS = 'subsecond';

/** A selection of everybody's samples. */
export const NOBODY = Object.freeze({ process: '', program: '', thread: '', threadName: '' });

/** A base of its own that is the selection itself. */
export const NO_BASE = Object.freeze({ baseService: null, baseLabels: null, baseFrom: null, baseTo: null, baseSnapshot: '' });

/** @type {Readonly<PageSelection>} */
export const DEFAULT_SELECTION = Object.freeze({
	page: 'services', service: '', ...NO_BASE, isSwapped: false, type: 'cpu', sample: '', labels: Object.freeze([]), from: 'now-1h', to: 'now', part: null, within: null, base: '1d', diff: 'share', sides: 'one', window: '1m', snapshot: '',
	...NOBODY, rows: 'host', by: 'process',
});
const TEXT_KEYS = { service: 'service', baseService: 'base-service', baseFrom: 'base-from', baseTo: 'base-to', type: 'profile', sample: 'sample', from: 'from', to: 'to',
	process: 'process', program: 'program', thread: 'thread', threadName: 'threadname', rows: 'rows' };

/**
 * What is shown of files (docs/api.yaml, session), as the selection that an address without parameters means.
 * @param {ShownFiles} shown
 * @returns {Readonly<PageSelection>}
 */
export function selectionOfFiles({ service, base = '', type, at_ms: at }) {
	return Object.freeze({ ...DEFAULT_SELECTION, page: base ? 'compare' : 'profile', service, baseService: base, type, from: String(at), to: String(at) });
}

/** "FROM-TO" in ms, or null: also where they are more than a Date can be. */
function parseTimes(text) {
	const [from, to, more] = (text ?? '').split('-').map(Number);
	return more === undefined && Number.isSafeInteger(from) && Number.isSafeInteger(to) && from > 0 && to > from && to <= DATE_MAX_MS ? [from, to] : null;
}

/**
 * Anything may stand in an address: what does not parse falls back to the default.
 * @param {string} hash
 * @returns {PageSelection}
 */
export function parseSelection(hash, defaults = DEFAULT_SELECTION) {
	const [path, query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
	const given = new URLSearchParams(query);
	const selection = { ...defaults };
	if (PAGES.includes(path)) selection.page = path;
	for (const [key, name] of Object.entries(TEXT_KEYS)) {
		const text = given.get(name);
		if (text !== null && text.length <= TEXT_MAX) selection[key] = text;
	}
	selection.labels = parseLabels(given.get('labels') ?? '').slice(0, LABELS_MAX);
	if (given.has('base-labels')) selection.baseLabels = parseLabels(given.get('base-labels')).slice(0, LABELS_MAX);
	selection.baseSnapshot = (given.get('base-snapshot') ?? '').slice(0, ID_MAX);
	selection.isSwapped = given.get('swap') === '1';
	selection.part = parseTimes(given.get('part'));
	selection.within = parseTimes(given.get('within'));
	if (BY_NAMES.includes(given.get('by'))) selection.by = given.get('by');
	if (!selection.rows) selection.rows = DEFAULT_SELECTION.rows;
	if (BASE_NAMES.includes(given.get('base'))) selection.base = given.get('base');
	if (DIFF_NAMES.includes(given.get('diff'))) selection.diff = given.get('diff');
	if (given.get('sides') === 'two') selection.sides = 'two';
	if (selection.page === 'snapshot') selection.snapshot = (given.get('id') ?? '').slice(0, ID_MAX);
	if (Object.hasOwn(WINDOWS, given.get('window') ?? '') || (given.get('window') === SINCE_START && defaults.window === SINCE_START)) selection.window = given.get('window');
	return selection;
}

/**
 * viewHash: what formatHash() of state.js gives, or ''.
 * @param {PageSelection} selection
 */
export function formatSelection(selection, viewHash = '', defaults = DEFAULT_SELECTION) {
	const out = new URLSearchParams();
	for (const [key, name] of Object.entries(TEXT_KEYS)) {
		if (selection[key] !== defaults[key]) out.set(name, selection[key]);
	}
	if (selection.labels.length) out.set('labels', formatLabels(selection.labels));
	if (selection.baseLabels) out.set('base-labels', formatLabels(selection.baseLabels));
	if (selection.baseSnapshot) out.set('base-snapshot', selection.baseSnapshot);
	if (selection.isSwapped) out.set('swap', '1');
	if (selection.part) out.set('part', selection.part.join('-'));
	if (selection.within) out.set('within', selection.within.join('-'));
	if (selection.by !== DEFAULT_SELECTION.by) out.set('by', selection.by);
	if (selection.base !== DEFAULT_SELECTION.base) out.set('base', selection.base);
	if (selection.diff !== DEFAULT_SELECTION.diff) out.set('diff', selection.diff);
	if (selection.sides !== DEFAULT_SELECTION.sides) out.set('sides', selection.sides);
	if (selection.window !== defaults.window) out.set('window', selection.window);
	if (selection.page === 'snapshot') out.set('id', selection.snapshot);
	const text = [out.toString(), viewHash.replace(/^#/, '')].filter(Boolean).join('&');
	return `#/${selection.page}${text ? '?' + text : ''}`;
}

/** Whose samples, as parameters of a request. */
export function whoseParams({ process, program, thread, threadName }) {
	return { process, program, thread, 'thread-name': threadName };
}

/** The same for people; '' for everybody. */
export function whoseText({ process, program, thread, threadName }) {
	const of = [program, process.split('-')[0]].filter(Boolean).join(' ');
	const part = [threadName, thread].filter(Boolean).join(' ');
	return [of, part && `thread ${part}`].filter(Boolean).join(', ');
}

/**
 * The parameters of a part of time, whose end is not in it.
 * @param {readonly number[]} part
 */
export function partTimes([from, to]) {
	return { from, to: `${to - 1}999999` };
}

/** A selection as parameters of a request, all of its time. */
export function rangeParams(selection) {
	const { service, type, sample, labels, from, to } = selection;
	return { service, type, sample, labels: formatLabels(labels), from, to, ...whoseParams(selection) };
}

/** The same, of the part that is chosen. */
export function partParams(selection) {
	const { part, within } = selection;
	if (within) return { ...rangeParams(selection), within: within.join('-') };
	return part ? { ...rangeParams(selection), ...partTimes(part) } : rangeParams(selection);
}

/** The part of an address that state.js reads. */
export function viewPart(hash) {
	return '#' + (hash.split(/\?(.*)/s)[1] ?? '');
}
