// SPDX-License-Identifier: Apache-2.0
// Numbers and foreign names as text for people.

const VISIBLE_ESCAPES = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * A name with control and direction-changing characters made visible, so that it cannot disguise itself.
 * @param {string} name
 */
export function visibleText(name) {
	return name.replace(VISIBLE_ESCAPES, (c) => '\\u{' + c.codePointAt(0).toString(16) + '}');
}

const groupedNumber = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export function formatCount(value) {
	return groupedNumber.format(value);
}

export function formatShare(part, whole) {
	const percent = whole > 0 ? (100 * part) / whole : 0;
	return (percent >= 99.995 ? '100' : percent.toFixed(2)) + ' %';
}

/** @type {[number, string][]} */
const TIME_UNITS = [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
/** @type {[number, string][]} */
const SIZE_UNITS = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];

/**
 * @param {number} value
 * @param {[number, string][]} units
 */
function formatScaled(value, units) {
	const [size, unit] = units.find(([s]) => value >= s) ?? units[units.length - 1];
	const scaled = value / size;
	return (scaled >= 100 || Number.isInteger(scaled) ? scaled.toFixed(0) : scaled.toPrecision(3)) + ' ' + unit;
}

/**
 * CPUs as a number with two places; a smaller one has its first two digits.
 * @param {number} cpus
 */
export function cpusText(cpus) {
	const places = cpus > 0 && cpus < 0.01 ? Math.min(9, 1 - Math.floor(Math.log10(cpus))) : 2;
	return cpus.toFixed(places);
}

/**
 * What a stored value stands for: "1,234 samples, 12.5 s".
 * @param {number} value
 * @param {ShownMeta} meta
 */
export function formatValue(value, meta) {
	const amount = value * meta.scale;
	if (meta.unit === 'nanoseconds') return formatScaled(amount, TIME_UNITS);
	if (meta.unit === 'bytes') return formatScaled(amount, SIZE_UNITS);
	const unit = amount === 1 && meta.unit === 'samples' ? 'sample' : meta.unit;
	const text = formatCount(amount) + ' ' + unit;
	return meta.nanoseconds > 0 ? text + ', ' + formatScaled(value * meta.nanoseconds, TIME_UNITS) : text;
}

/**
 * The same where there is little room: without the unit of what is counted, which stands elsewhere.
 * @param {number} value
 * @param {ShownMeta} meta
 */
export function formatAmount(value, meta) {
	const hasUnits = meta.unit === 'nanoseconds' || meta.unit === 'bytes';
	return hasUnits ? formatValue(value, meta) : formatCount(value * meta.scale);
}

/**
 * What a graph leaves out because it is below zero, or ''.
 * @param {Negative | undefined} negative
 * @param {ShownMeta} meta
 */
export function negativeText(negative, meta) {
	if (!negative?.samples) return '';
	const amount = '−' + formatValue(negative.value / meta.scale, meta).replace(', ', ', −');
	return negative.samples === 1 ? `1 sample with a value below zero is left out (${amount}).` : `${formatCount(negative.samples)} samples with values below zero are left out (${amount}).`;
}

/** C++: without what the compiler added, `const` behind the arguments, and the return type of a template. */
function bareName(text) {
	const plain = text.replace(/ \[clone [^\]]*\]/g, '').replace(/ const$/, '').trim();
	if (!plain.includes('::') || plain.startsWith('<') || plain.includes('operator')) return plain;
	return plain.replace(/^.* (?!namespace\))/, '');
}

// "function (/file.py:12 [package==1.0])": where a function of Python is.
const PYTHON_PLACE = / \([^()]*:\d+(?: \[[^\]]*\])?\)$/;

/**
 * The name without arguments and template parameters; nesting is followed, operators such as operator< are kept.
 * @param {string} name
 */
export function withoutArguments(name) {
	if (PYTHON_PLACE.test(name)) return name.replace(PYTHON_PLACE, '');
	let out = '';
	let depth = 0;
	for (let i = 0; i < name.length; i++) {
		const c = name[i];
		if (c === '(' && name.startsWith('(anonymous', i)) {
			const end = name.indexOf(')', i);
			if (end < 0) break;
			if (!depth) out += name.slice(i, end + 1);
			i = end;
		} else if (c === '(' && name[i + 1] === '*' && !depth && out.endsWith('.')) {
			// Go's receivers: main.(*Engine).Turn
			const end = name.indexOf(')', i);
			if (end < 0) break;
			out += name.slice(i, end + 1);
			i = end;
		} else if ((c === '<' || c === '(') && i > 0 && !out.endsWith('operator')) {
			depth++;
		} else if ((c === '>' || c === ')') && depth) {
			depth--;
		} else if (!depth) {
			out += c;
		}
	}
	return out === name ? name : bareName(out) || name;
}

const CLOSING = { '(': ')', '[': ']', '<': '>', '{': '}' };

/** The beginning of a name with dots behind it, never cut inside a bracket: the bracket goes, or is closed when it is all. */
export function shortened(beginning) {
	const open = [];
	for (let i = 0; i < beginning.length; i++) {
		const c = beginning[i];
		if (CLOSING[c]) open.push(i);
		else if (open.length && c === CLOSING[beginning[open.at(-1)]]) open.pop();
	}
	if (!open.length) return beginning + '…';
	const plain = beginning.slice(0, open[0]).trimEnd();
	if (plain.length > 1) return plain + '…';
	const inner = open.length > 1 ? beginning.slice(0, open[1]) : beginning; // only the outermost one is closed
	return inner.length > open[0] + 1 ? inner + '…' + CLOSING[beginning[open[0]]] : '';
}

// Behind the last part: "encode.isra.0", "f.constprop.0.cold", "read@@GLIBC_2.2.5", "runtime.goexit.abi0".
const ADDED = /(?:\.(?:isra|constprop|part|cold|lto_priv|localalias|llvm)(?:\.\d+)*)+$|@@?[A-Za-z][\w.]*$|\.abi(?:0|internal)$/;

// Go's functions without a name say nothing without the function around them: "serve.func1.2", "Walk.gowrap3".
const NAMELESS = /\.(?:(?:\d+|(?:func|gowrap|deferwrap)\d+(?:-range\d+)?)(?:\.|$))+$/;

const APPLICATION = 'appid: ';

/** "appid: gunicorn: shop.wsgi:app (/srv/shop/wsgi.py)": what runs, without what runs it and where it lies. */
function applicationPart(name) {
	const plain = withoutArguments(name.slice(APPLICATION.length)).trimEnd();
	const what = plain.slice(plain.lastIndexOf(': ') + 1).trim();
	return what.slice(what.lastIndexOf('/') + 1) || what || plain || name;
}

/**
 * The last part of a qualified name: what to show when little room is left.
 * @param {string} name
 */
export function lastPart(name) {
	if (name.startsWith('[')) return name;
	if (name.startsWith(APPLICATION)) return applicationPart(name);
	// "function /path/file.js:12" and "function file:///...": the function.
	const plain = withoutArguments(name).replace(/ (\/|[a-z]+:).*$/, '').trimEnd().replace(ADDED, '');
	const end = NAMELESS.exec(plain)?.index || plain.length;
	const around = plain.slice(0, end);
	const at = Math.max(around.lastIndexOf('::') + 1, around.lastIndexOf('.'), around.lastIndexOf('/'));
	return at > 0 && at + 1 < plain.length ? plain.slice(at + 1) : plain || name;
}
