// SPDX-License-Identifier: Apache-2.0
// What is shown, as the part of the address behind the #: so a view can be linked to, and Back undoes a zoom.
import { formatStep, parseSteps } from './transforms.js';

export const VIEWS = ['graph', 'inverted', 'sandwich', 'table', 'calls'];
export const COLOUR_MODES = ['kind', 'module', 'value'];
export const PATH_LENGTH_MAX = 256;
const NAMES = /^[0-9a-z.]{1,2048}$/; // of frames, as hashes (frameKey() of viewer.js)
const QUERY_CHARS_MAX = 1000;

/** @type {Readonly<ViewState>} */
export const DEFAULT_STATE = Object.freeze({
	view: 'graph', zoom: 0, range: null, path: Object.freeze([]), focus: -1, query: '', regex: false, flip: false, collapse: false,
	type: '', colour: 'kind', sort: 'self', ascending: false, steps: Object.freeze([]), zoomNames: '', pathNames: '', focusName: '',
});

/** The same without a place in it. */
export function withoutPlace(state) {
	return { ...state, zoom: 0, path: [], range: null, zoomNames: '', pathNames: '' };
}

/** What names a place; '' for what is no such text. */
function namesOf(text) {
	return NAMES.test(text ?? '') ? text : '';
}

function numberList(text) {
	return text.split('.').slice(0, PATH_LENGTH_MAX).map(Number).filter((n) => Number.isSafeInteger(n) && n >= 0);
}

/**
 * The part of the width that Ctrl and the wheel chose: [from, to] in values, or null.
 * @param {string} text
 */
function parseRange(text) {
	const [from, to, more] = text.split('-').map(Number);
	return more === undefined && from >= 0 && to > from && to <= Number.MAX_SAFE_INTEGER ? [from, to] : null;
}

/**
 * Anything may stand in an address: what does not parse falls back to the default.
 * @param {string} hash
 * @returns {ViewState}
 */
export function parseHash(hash) {
	const given = new URLSearchParams(hash.replace(/^#/, ''));
	const state = { ...DEFAULT_STATE };
	const view = given.get('view');
	if (VIEWS.includes(view)) state.view = view;
	state.zoom = numberList(given.get('z') ?? '0')[0] ?? 0;
	state.range = parseRange(given.get('w') ?? '');
	state.path = given.has('p') ? numberList(given.get('p')) : [];
	state.focus = given.has('f') ? numberList(given.get('f'))[0] ?? -1 : -1;
	[state.zoomNames, state.pathNames, state.focusName] = ['zn', 'pn', 'fn'].map((key) => namesOf(given.get(key)));
	state.query = (given.get('q') ?? '').slice(0, QUERY_CHARS_MAX);
	state.regex = given.get('re') === '1';
	state.flip = given.get('flame') === '1';
	state.collapse = given.get('collapse') === '1';
	state.type = given.get('type') ?? '';
	if (COLOUR_MODES.includes(given.get('colour'))) state.colour = given.get('colour');
	if (['self', 'total', 'name'].includes(given.get('sort'))) state.sort = given.get('sort');
	state.ascending = given.get('asc') === '1';
	state.steps = parseSteps(given.getAll('t'));
	return state;
}

/** @param {ViewState} state */
export function formatHash(state) {
	const out = new URLSearchParams();
	if (state.view !== 'graph') out.set('view', state.view);
	// Numbers of nodes and frames mean nothing in another answer to the same question; where there are names, these are the place.
	if (state.zoomNames) out.set('zn', state.zoomNames);
	else if (state.zoom) out.set('z', String(state.zoom));
	if (state.range) out.set('w', state.range.join('-'));
	if (state.pathNames) out.set('pn', state.pathNames);
	else if (state.path.length) out.set('p', state.path.slice(0, PATH_LENGTH_MAX).join('.'));
	if (state.focusName) out.set('fn', state.focusName);
	else if (state.focus >= 0) out.set('f', String(state.focus));
	if (state.query) out.set('q', state.query);
	if (state.regex) out.set('re', '1');
	if (state.flip) out.set('flame', '1');
	if (state.collapse) out.set('collapse', '1');
	if (state.type) out.set('type', state.type);
	if (state.colour !== 'kind') out.set('colour', state.colour);
	if (state.sort !== 'self') out.set('sort', state.sort);
	if (state.ascending) out.set('asc', '1');
	for (const step of state.steps) out.append('t', formatStep(step));
	const text = out.toString();
	return text ? '#' + text : '#';
}
