// SPDX-License-Identifier: Apache-2.0
// What is chosen of labels, as the parameter `labels` of a request (docs/api.yaml), which is also what the address has.
// An entry is [name, value]: it is that; several of one name: it is one of them. [name, value, op] with != : it is not that;
// with =~ and !~ : an expression that somebody has written.

const OPS = ['=~', '!~', '!=', '='];
const ENTRIES_MAX = 32; // matchers of a request; a page shows no more
const PLAIN_NAME = /^[A-Za-z_][\w.:]*/;

/**
 * How an entry means its value.
 * @param {readonly string[]} entry
 */
export const opOf = (entry) => entry[2] ?? '=';

/** What the labels are without what is chosen of one. */
export function withoutLabel(labels, name) {
	return labels.filter(([of]) => of !== name);
}

/**
 * The labels after somebody has pointed at a value.
 * @param {'only' | 'also' | 'not'} how it in place of what is chosen of the label, it beside that, or anything but it; what is so already is taken back
 */
export function choose(labels, name, value, how) {
	const op = how === 'not' ? '!=' : '=';
	const isSo = (entry) => entry[0] === name && entry[1] === value && opOf(entry) === op;
	if (labels.some(isSo)) return labels.filter((entry) => !isSo(entry));
	const kept = how === 'only' ? withoutLabel(labels, name) : labels.filter((entry) => entry[0] !== name || opOf(entry) === op);
	return [...kept, op === '=' ? [name, value] : [name, value, op]].slice(-ENTRIES_MAX);
}

/** The one value that is chosen of a label, or undefined. */
export function oneValue(labels, name) {
	const of = labels.filter(([label]) => label === name);
	return of.length === 1 && opOf(of[0]) === '=' ? of[0][1] : undefined;
}

/** Every name once. */
export function labelNames(labels) {
	return [...new Set(labels.map(([name]) => name))];
}

const quoted = (text) => JSON.stringify(text);
const literally = (text) => text.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');

function formatMatchers(labels) {
	const parts = labelNames(labels).flatMap((name) => {
		const shown = PLAIN_NAME.exec(name)?.[0] === name ? name : quoted(name);
		const of = labels.filter(([label]) => label === name);
		const values = of.filter((entry) => opOf(entry) === '=').map(([, value]) => value);
		const is = values.length > 1 ? [`${shown}=~${quoted(values.map(literally).join('|'))}`] : values.map((value) => `${shown}=${quoted(value)}`);
		return [...is, ...of.filter((entry) => opOf(entry) !== '=').map(([, value, op]) => `${shown}${op}${quoted(value)}`)];
	});
	return `{${parts.join(',')}}`;
}

/**
 * Pairs where these say it, k=v,k=v, each piece encoded once more; else a selector in braces. The collector reads + as a blank and drops blanks at the
 * ends of a piece, so both are encoded.
 */
export function formatLabels(labels) {
	const piece = (text) => text.replace(/[%,=+]|^[\s\u0000-\u001f]+|[\s\u0000-\u001f]+$/g, encodeURIComponent);
	const isPlain = labels.every((entry) => opOf(entry) === '=') && labelNames(labels).length === labels.length && !labels[0]?.[0].startsWith('{');
	return isPlain ? labels.map(([name, value]) => piece(name) + '=' + piece(value)).join(',') : formatMatchers(labels);
}

/** The values that an expression of literals and bars names, or null. */
export function valuesOf(pattern) {
	const values = [''];
	for (let i = 0; i < pattern.length; i++) {
		if (pattern[i] === '|') values.push('');
		else if (pattern[i] === '\\' && /^[^\w\s]$/.test(pattern[i + 1] ?? '')) values[values.length - 1] += pattern[++i];
		else if (/[\\^$.?*+()[\]{}]/.test(pattern[i])) return null;
		else values[values.length - 1] += pattern[i];
	}
	return values;
}

/** A text in quotes at the beginning: [what it says, what follows], or null. */
function takeQuoted(text) {
	const found = /^"(?:[^"\\]|\\.)*"/s.exec(text)?.[0];
	if (!found) return null;
	try {
		return [JSON.parse(found), text.slice(found.length)];
	} catch {
		return null; // an escape that this page does not write
	}
}

function takeMatcher(text) {
	const name = text.startsWith('"') ? takeQuoted(text) : [PLAIN_NAME.exec(text)?.[0] ?? '', text.slice(PLAIN_NAME.exec(text)?.[0].length ?? 0)];
	const op = OPS.find((o) => name?.[1].trimStart().startsWith(o));
	const value = op && takeQuoted(name[1].trimStart().slice(op.length).trimStart());
	return value && name[0] ? { name: name[0], op, value: value[0], rest: value[1].trimStart() } : null;
}

/** What cannot be read is left out, with what follows it. */
function parseMatchers(text) {
	const labels = [];
	let rest = text.replace(/\}\s*$/, '');
	while (rest && labels.length < ENTRIES_MAX) {
		const found = takeMatcher(rest.trimStart());
		if (!found) break;
		const { name, op, value } = found;
		const values = op === '=~' ? valuesOf(value) : null;
		if (values) labels.push(...values.map((one) => [name, one]));
		else labels.push(op === '=' ? [name, value] : [name, value, op]);
		if (found.rest && !found.rest.startsWith(',')) break;
		rest = found.rest.slice(1);
	}
	return labels.slice(0, ENTRIES_MAX);
}

function parsePairs(text) {
	const piece = (part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	};
	return text.split(',').filter((pair) => pair.includes('=')).slice(0, ENTRIES_MAX).map((pair) => {
		const at = pair.indexOf('=');
		return [piece(pair.slice(0, at)), piece(pair.slice(at + 1))];
	});
}

/** Anything may stand in an address. */
export function parseLabels(text) {
	const all = text.trim();
	return all.startsWith('{') ? parseMatchers(all.slice(1)) : parsePairs(all);
}

/** What is chosen of one label, for people; name: as it is shown. */
export function labelText(labels, name, shown) {
	const of = labels.filter(([label]) => label === name);
	const values = (op) => of.filter((entry) => opOf(entry) === op).map(([, value]) => shown(value));
	const [is, not, fits, fitsNot] = ['=', '!=', '=~', '!~'].map(values);
	return [...(is.length ? [is.join(' or ')] : []), ...(not.length ? ['not ' + not.join(', not ')] : []),
		...fits.map((text) => `like ${text}`), ...fitsNot.map((text) => `not like ${text}`)].join(', ');
}
