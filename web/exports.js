// SPDX-License-Identifier: Apache-2.0
// What is shown as a file: made here, from the columns, without asking anybody.
import { runText } from './around.js';
import { BUCKETS, COLOURS, KINDS, LABEL_COLOUR } from './colour.js';
import { ROW_HEIGHT, describeRun, eachBox } from './flame.js';
import { formatAmount, formatShare, lastPart, visibleText, withoutArguments } from './format.js';
import { PprofWriter } from './pprof_out.js';

const PART_CHARS = 1 << 16;
const SVG_WIDTH = 1400;
const SVG_GAP = 20; // between two graphs
const SVG_ROWS_MAX = 2000;
const SVG_LABEL_PIXELS = 7;
const SVG_BOX_MIN = 0.4; // pixels; a picture can be enlarged
const SVG_NAME_CHARS_MAX = 1000;
const UNKNOWN = '[unknown]'; // as hearth's own folded text calls what has no name, and a stack without frames

/** Collects text without one string of everything. */
class Parts {
	constructor() {
		this.done = [];
		this.text = '';
	}

	add(text) {
		this.text += text;
		if (this.text.length > PART_CHARS) {
			this.done.push(this.text);
			this.text = '';
		}
	}

	end() {
		return [...this.done, this.text];
	}
}

/**
 * The stacks that have self value: their frames, root first, and the value. The list of frames is one, it changes. What lies on the root
 * itself is a stack without frames.
 * @param {Tree} tree
 * @returns {Generator<[number[], number]>}
 */
function* stacksOf(tree) {
	const path = [];
	for (let i = 0; i < tree.count; i++) {
		path.length = Math.max(0, tree.level[i] - 1);
		if (i > 0) path.push(tree.frame[i]);
		if (tree.self[i] > 0) yield [path, tree.self[i]];
	}
}

/** @param {import('./data.js').FrameTable} frames */
function foldedName(frames, frame) {
	const plain = frames.name(frame).replace(/;/g, '|').replace(/[\u0000-\u001f\u007f]/g, '?').trimEnd();
	const name = plain.replace(/ (\d+)$/, '_$1') || UNKNOWN;
	return name + (KINDS[frames.kind(frame)]?.suffix ?? '');
}

/**
 * Folded stacks in the unit of the type: samples where the values are kept as such, as hearth's own folded text counts them.
 * @param {Tree} tree
 * @param {import('./data.js').FrameTable} frames
 * @param {ShownMeta} meta
 */
export function foldedParts(tree, frames, { scale }) {
	const out = new Parts();
	const names = new Map();
	const nameOf = (f) => names.get(f) ?? names.set(f, foldedName(frames, f)).get(f);
	for (const [path, value] of stacksOf(tree)) out.add(`${path.map(nameOf).join(';') || UNKNOWN} ${value * scale}\n`);
	return out.end();
}

const SPEEDSCOPE_UNITS = { nanoseconds: 'nanoseconds', bytes: 'bytes' };

/**
 * One sampled profile of what is shown, in the form that docs/formats/speedscope.md describes.
 * @param {Tree} tree
 * @param {import('./data.js').FrameTable} frames
 * @param {ShownMeta} meta
 */
export function speedscopeParts(tree, frames, meta) {
	const out = new Parts();
	const numbers = new Map();
	const used = [];
	const numberOf = (f) => {
		if (!numbers.has(f)) {
			numbers.set(f, used.length);
			used.push(f);
		}
		return numbers.get(f);
	};
	const samples = new Parts();
	const weights = new Parts();
	let sum = 0;
	for (const [path, value] of stacksOf(tree)) {
		samples.add((sum ? ',[' : '[') + path.map(numberOf).join(',') + ']');
		weights.add((sum ? ',' : '') + value * meta.scale);
		sum += value * meta.scale;
	}
	const title = JSON.stringify(meta.title || 'profile');
	out.add(`{"$schema":"https://www.speedscope.app/file-format-schema.json","name":${title},"activeProfileIndex":0,"exporter":"hearth","shared":{"frames":[`);
	for (const [i, f] of used.entries()) {
		const file = JSON.stringify(frames.moduleName(f));
		const kind = frames.kind(f);
		out.add(`${i ? ',' : ''}{"name":${JSON.stringify(frames.name(f))}${file.length > 2 ? `,"file":${file},"module":${file}` : ''}` +
			`${kind && kind !== 'native' ? `,"kind":${JSON.stringify(kind)}` : ''}}`);
	}
	out.add(`]},"profiles":[{"type":"sampled","name":${JSON.stringify(meta.name ?? 'samples')},"unit":"${SPEEDSCOPE_UNITS[meta.unit] ?? 'none'}","startValue":0,"endValue":${sum},"samples":[`);
	return [...out.end(), ...samples.end(), '],"weights":[', ...weights.end(), ']}]}\n'];
}

/**
 * A text as a cell of a spreadsheet, which takes one that begins with = + - or @ (or their wide forms) for a formula: it gets an apostrophe.
 * A tab or a line break at the beginning would do the same; visibleText() leaves none.
 */
function cellText(text) {
	const plain = visibleText(text);
	return (/^[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(plain) ? "'" : '') + plain;
}

function csvText(text) {
	return '"' + cellText(text).replace(/"/g, '""') + '"';
}

/**
 * The rows of a table of functions, the dearest first. What belongs to no function has a row, too: all selfs are the total.
 * @param {Totals} totals
 * @param {import('./data.js').FrameTable} frames
 * @param {Tree} tree
 */
function csvRows(totals, frames, tree) {
	const rows = [];
	for (let f = 0; f < frames.count; f++) {
		if (totals.total[f] > 0) rows.push({ name: frames.name(f), module: frames.moduleName(f), kind: frames.kind(f), self: totals.self[f], total: totals.total[f] });
	}
	let narrow = 0;
	for (let i = 1; i < tree.count; i++) if (tree.frame[i] >= frames.count) narrow += tree.self[i];
	const add = (name, value) => value > 0 && rows.push({ name, module: '', kind: '', self: value, total: value });
	add(UNKNOWN, tree.self[0]);
	add(frames.name(frames.count + 1), narrow);
	return rows.sort((a, b) => b.self - a.self);
}

/**
 * @param {Totals} totals
 * @param {import('./data.js').FrameTable} frames
 * @param {Tree} tree
 * @param {ShownMeta} meta
 */
export function csvParts(totals, frames, tree, { scale }) {
	const out = new Parts();
	out.add('function,module,kind,self,self_percent,total,total_percent\r\n');
	const percent = (value) => ((100 * value) / tree.total[0]).toFixed(4);
	for (const { name, module, kind, self, total } of csvRows(totals, frames, tree)) {
		out.add([csvText(name), csvText(module), csvText(kind), self * scale, percent(self), total * scale, percent(total)].join(',') + '\r\n');
	}
	return out.end();
}

/** Text of a picture: markup escaped, and without the characters that XML has no place for. */
function xmlText(text) {
	return visibleText(text).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\ufffe\uffff]/g, '\ufffd')
		.replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/**
 * The boxes of one graph: what its view shows in its width, all rows of it. Boxes that are too narrow are drawn as one, as on the page.
 * @param {Parts} out
 * @param {import('./flame.js').FlameView} view
 * @param {{ frames: import('./data.js').FrameTable, meta: ShownMeta, rows: number, x: number, y: number }} picture where it lies in the picture, and what it is of
 */
function addGraph(out, view, { frames, meta, rows, x, y }) {
	const { tree, from, to } = view;
	const { colours } = view.hooks;
	const scale = SVG_WIDTH / (to - from || 1);
	const about = (name, value) => `${xmlText(name)} (${value * meta.scale}, ${((100 * value) / tree.total[0]).toFixed(2)} %)`;
	const add = (title, bucket, row, begin, end, label = '') => {
		const left = Math.max(0, begin * SVG_BOX_MIN);
		const wide = Math.min(SVG_WIDTH, end * SVG_BOX_MIN) - left;
		const top = y + (view.flip ? rows - 1 - row : row) * ROW_HEIGHT;
		out.add(`<g><title>${title}</title><rect x="${(x + left).toFixed(2)}" y="${top}" ` +
			`width="${Math.max(0.3, wide - (wide > 3 ? 1 : 0)).toFixed(2)}" height="${ROW_HEIGHT - 1}" fill="${COLOURS[bucket]}"/>`);
		const room = Math.floor((wide - 6) / SVG_LABEL_PIXELS);
		if (label && room > 2) {
			const plain = [label, withoutArguments(label), lastPart(label)].find((form) => form.length <= room) ?? lastPart(label).slice(0, room - 1) + '…';
			out.add(`<text x="${(x + left + 3).toFixed(2)}" y="${top + 13}">${xmlText(plain)}</text>`);
		}
		out.add('</g>\n');
	};
	for (let row = 0; row < Math.min(rows, tree.deepest + 1); row++) {
		const box = (node, left, right) => {
			const name = frames.name(tree.frame[node]).slice(0, SVG_NAME_CHARS_MAX);
			add(about(name, tree.total[node]), colours.of(tree.frame[node], node, tree), row, left, right, name);
		};
		eachBox(tree, row, from, to, scale / SVG_BOX_MIN, box, (left, right, first, last) => {
			if (last - first === 1) return box(tree.order[first], left, right);
			const run = describeRun(tree, { first, last });
			return add(about(runText(run), run.total), BUCKETS.run, row, left, right);
		});
	}
}

/**
 * Graphs as a picture, beside each other.
 * @param {{ flame: import('./flame.js').FlameView, title: string }[]} graphs with a title above each, or without
 * @param {import('./data.js').FrameTable} frames
 * @param {ShownMeta} meta
 */
export function svgParts(graphs, frames, meta) {
	const out = new Parts();
	const rows = Math.min(SVG_ROWS_MAX, Math.max(...graphs.map(({ flame }) => flame.tree.deepest + 1)));
	const y = graphs.some(({ title }) => title) ? ROW_HEIGHT + 2 : 2;
	const width = graphs.length * (SVG_WIDTH + SVG_GAP) - SVG_GAP;
	const height = y + rows * ROW_HEIGHT + 2;
	out.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
		`font-family="system-ui, sans-serif" font-size="11" fill="${LABEL_COLOUR}"><rect width="100%" height="100%" fill="#fffdf9"/>\n`);
	for (const [i, { flame, title }] of graphs.entries()) {
		const x = i * (SVG_WIDTH + SVG_GAP);
		if (title) out.add(`<text x="${x + 3}" y="14" font-weight="bold">${xmlText(title)}</text>\n`);
		addGraph(out, flame, { frames, meta, rows, x, y });
	}
	out.add('</svg>\n');
	return out.end();
}

const PIECE_MS = 20;

/**
 * What is shown as pprof, packed; the page does other things between its pieces.
 * @param {Tree} tree
 * @param {import('./data.js').FrameTable} frames
 * @param {ShownMeta} meta
 */
export async function pprofBlob(tree, frames, meta) {
	const writer = new PprofWriter(frames, meta);
	let begin = performance.now();
	const rest = async () => {
		await new Promise((done) => setTimeout(done, 0));
		begin = performance.now();
	};
	for (const [path, value] of stacksOf(tree)) {
		writer.sample(path, value);
		if (performance.now() - begin > PIECE_MS) await rest();
	}
	for (const [frame, id] of writer.ids) {
		writer.location(frame, id);
		if (performance.now() - begin > PIECE_MS) await rest();
	}
	return new Response(new Blob(writer.end()).stream().pipeThrough(new CompressionStream('gzip'))).blob();
}

/**
 * The table of functions as text for a spreadsheet: a line each, in the order of the table, columns with tabs between.
 * @param {ArrayLike<number>} rows frames
 * @param {Totals} totals
 * @param {import('./data.js').FrameTable} frames
 * @param {number} whole
 * @param {ShownMeta} meta
 */
export function tableText(rows, totals, frames, whole, meta) {
	const amount = (value) => `${formatAmount(value, meta)}\t${formatShare(value, whole)}`;
	const lines = Array.from(rows, (f) => `${amount(totals.self[f])}\t${amount(totals.total[f])}\t${cellText(frames.name(f))}\t${cellText(frames.moduleName(f))}\n`);
	return 'self\tself %\ttotal\ttotal %\tfunction\tmodule\n' + lines.join('');
}

function saveBlob(blob, name) {
	const link = document.createElement('a');
	link.href = URL.createObjectURL(blob);
	link.download = name;
	document.body.append(link);
	link.click();
	link.remove();
	setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** What a file of a profile is called: never nothing, and no dot comes first. */
export function fileTitle(title) {
	return visibleText(title).replace(/[^\w.-]+/g, '_').slice(0, 60).replace(/^\.+/, '') || 'profile';
}

/** The table as CSV. Its tree may be another one when the totals have come. */
async function saveTable(viewer, name) {
	const totals = await viewer.whenTotals();
	saveBlob(new Blob(csvParts(totals, viewer.frames, viewer.tree, viewer.meta), { type: 'text/csv' }), name);
}

/**
 * Saves what a viewer shows. format: pprof, folded, speedscope, csv, svg or png.
 * @param {import('./viewer.js').Viewer} viewer
 * @param {string} format
 */
export async function saveAs(viewer, format) {
	const { tree, frames, meta } = viewer;
	const name = fileTitle(meta.title ?? '');
	const two = viewer.sides?.graphs() ?? [];
	const text = (parts, type) => new Blob(parts, { type });
	if (format === 'pprof') saveBlob(await pprofBlob(tree, frames, meta), name + '.pb.gz');
	else if (format === 'folded') saveBlob(text(foldedParts(tree, frames, meta), 'text/plain'), name + '.folded');
	else if (format === 'speedscope') saveBlob(text(speedscopeParts(tree, frames, meta), 'application/json'), name + '.speedscope.json');
	else if (format === 'csv') await saveTable(viewer, name + '.csv');
	else if (format === 'svg') {
		const parts = (graphs) => svgParts(graphs, viewer.frames, viewer.meta);
		saveBlob(text(two.length ? parts(two) : await viewer.withGraph((flame) => parts([{ flame, title: '' }])), 'image/svg+xml'), name + '.svg');
	} else if (format === 'png') {
		saveBlob(two.length ? await viewer.sides.picture() : await viewer.withGraph((graph) => graph.picture()), name + '.png');
	}
}
