// SPDX-License-Identifier: Apache-2.0
// What a selection is compared with: a time before it, another selection, or a kept result; as parameters of a request and in words.
import { shownName } from './around.js';
import { spanText } from './blocks.js';
import { formatLabels, labelNames, labelText, oneValue, parseLabels } from './labels.js';
import { partTimes, rangeParams, whoseParams } from './selection.js';

export const BASES = { before: 'the range just before', '1d': 'a day before', '7d': 'a week before', own: 'one of its own' };
export const BASE_MS = { '1d': 86400000, '7d': 604800000 };
const UNIT_MS = { s: 1000, m: 60000, h: 3600000, d: 86400000 };
const NAMES_SHOWN = 8;
/** A selector of labels with one quote for each text in quotes. */
const MATCHERS = /^\{(?:(?:[A-Za-z_][\w.:]*|")(?:=~|!~|!=|=)"(?:,|(?=\})))*\}$/;
const SNAPSHOT_ID = /^[0-9a-f]{32}$/;

/** How far before now a time is, in ms; NaN: it is none before now. */
function agoOf(text) {
	const found = /^(?:now)?(?:-(\d{1,9})([smhd]))?$/.exec(text.trim());
	return found && text.trim() ? Number(found[1] ?? 0) * UNIT_MS[found[2] ?? 's'] : NaN;
}

/** So long before now, in the largest unit that divides it. */
function agoText(ms) {
	const [unit, size] = Object.entries(UNIT_MS).reverse().find(([name, size]) => name !== 'd' && ms % size === 0) ?? ['s', UNIT_MS.s];
	return ms > 0 ? `now-${Math.round(ms / size)}${unit}` : 'now';
}

/** A time that is so much earlier: relative ones stay relative. Null: this is no time that a page knows. */
export function earlier(text, ms) {
	const ago = agoOf(text);
	if (!Number.isNaN(ago)) return agoText(ago + ms);
	const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : text + 'Z') : NaN;
	return Number.isNaN(at) ? null : new Date(at - ms).toISOString();
}

/**
 * What is asked for on one side: another selection, whose times are in `span` where they are known, or a snapshot.
 * @typedef {{ service?: string, labels?: readonly string[][], from?: string | number, to?: string | number, within?: string, span?: readonly number[] | null, snapshot?: string }} Side
 */

/**
 * The selection, and what it is compared with. range: of the selection, in ms
 * @param {PageSelection} selection
 * @param {readonly number[]} range
 * @returns {Side[]}
 */
function selectedAndOther(selection, range) {
	const { service, labels, from, to, part, within, base } = selection;
	const own = { service, labels, from, to, span: within ?? part ?? range, ...(part && partTimes(part)), ...(within && { within: within.join('-') }) };
	if (base !== 'own') {
		const [first, last] = own.span;
		const back = BASE_MS[base] ?? last - first;
		const span = [first - back, last - back];
		const times = within ? { from, to, within: span.join('-') } : { from: span[0], to: part ? partTimes(span).to : span[1] };
		return [{ ...own, ...(!part && !within && { from: first, to: last }) }, { service, labels, span, ...times }];
	}
	const { baseService, baseLabels, baseFrom, baseTo, baseSnapshot } = selection;
	if (baseSnapshot) return [own, { snapshot: baseSnapshot }];
	const times = baseFrom === null && baseTo === null ? {} : { from: baseFrom ?? from, to: baseTo ?? to, within: undefined, span: null };
	return [own, { ...own, service: baseService ?? service, labels: baseLabels ?? labels, ...times }];
}

/**
 * The two sides by what they are.
 * @param {PageSelection} selection
 * @param {readonly number[]} range
 * @returns {{ base: Side, now: Side }}
 */
export function baseAndNow(selection, range) {
	const [own, other] = selectedAndOther(selection, range);
	return selection.isSwapped ? { base: own, now: other } : { base: other, now: own };
}

/** @param {Side} side */
function sideParams({ snapshot, service, labels, from, to, within }, prefix) {
	const params = snapshot === undefined ? { service, labels: formatLabels(labels), from, to, within } : { snapshot };
	return Object.fromEntries(Object.entries(params).map(([name, value]) => [prefix + name, value]));
}

/**
 * What /api/v1/compare is asked with.
 * @param {PageSelection} selection
 * @param {readonly number[]} range
 */
export function compareParams(selection, range) {
	const { base, now } = baseAndNow(selection, range);
	const { type, sample } = selection;
	return { ...sideParams(now, ''), type, sample, ...whoseParams(selection), ...sideParams(base, 'base-') };
}

/** Of two files. */
export function compareFiles(selection) {
	return { ...rangeParams(selection), 'base-service': selection.baseService };
}

/** A service and its labels as somebody reads them. */
export function whatText(service, labels) {
	const names = labelNames(labels);
	const texts = names.slice(0, NAMES_SHOWN).map((name) => {
		const is = labelText(labels, name, (value) => shownName(value, 60));
		return shownName(name, 60) + (oneValue(labels, name) === undefined ? ' ' : '=') + is;
	});
	return [service ? shownName(service, 100) : 'all services', ...texts, ...(names.length > NAMES_SHOWN ? ['…'] : [])].join(', ');
}

/**
 * One side in words: service X, label k=v, times.
 * @param {Side} side
 * @param {readonly number[] | null} span its times as the answer has them
 * @param {SnapshotFacts | null} facts of a snapshot
 */
export function sideText(side, span, facts) {
	const times = span ? [spanText(span[0], span[1])] : [];
	if (side.snapshot === undefined) return [whatText(side.service, side.labels), ...times].join(', ');
	const title = facts?.title ? `“${shownName(facts.title, 100)}”` : facts?.selection ? shownName(facts.selection, 200) : '';
	return ['snapshot', title].filter(Boolean).join(' ') + (times.length ? ', ' + times : '');
}

/** Labels to be typed over. */
export function typedLabels(labels) {
	const text = formatLabels(labels);
	return text.startsWith('{') ? text : text.replaceAll(',', ', ');
}

/** Labels that somebody has typed, as pairs or in braces; null: they cannot be read. */
export function readLabels(text) {
	const pieces = text.split(',').map((piece) => piece.trim()).filter(Boolean);
	if (pieces[0]?.startsWith('{')) {
		const frame = text.replace(/"(?:[^"\\]|\\.)*"/g, '"').replace(/\s+/g, '');
		const labels = parseLabels(text);
		return MATCHERS.test(frame) && (labels.length || frame === '{}') ? labels : null;
	}
	if (pieces.some((piece) => piece.indexOf('=') < 1)) return null;
	return parseLabels(pieces.map((piece) => piece.replace(/\s*=\s*/, '=')).join(','));
}

/** The id in a link to a snapshot, or in itself; '' where there is none. */
export function readSnapshot(text) {
	const id = /[?&]id=([^&\s]*)/.exec(text)?.[1] ?? text.trim();
	return SNAPSHOT_ID.test(id) ? id : '';
}

/**
 * What went wrong, with the side that it is about.
 * @param {import('./api.js').ApiError} problem
 * @param {{ base: Side, now: Side }} sides
 */
export function compareProblem(problem, { base, now }) {
	const { status, words } = problem;
	const isBase = words.startsWith('the base: ');
	const side = isBase ? base : now;
	const who = isBase ? 'The base' : 'What is compared with the base';
	if (status !== 404 || words.includes('--sample-times')) return problem.message;
	if (side.snapshot !== undefined && words.includes('no such snapshot')) return `${who} is a snapshot that is not there: it was deleted, or its link is not complete.`;
	const text = sideText(side, side.span, null) + (side.span || side.from === undefined ? '' : `, ${side.from} – ${side.to}`);
	return `${who} has nothing${words.includes('no sample type') ? ' of this sample type' : ''}: ${text}.`;
}
