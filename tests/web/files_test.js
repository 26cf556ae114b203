// SPDX-License-Identifier: Apache-2.0
// Exports and the reading of dropped files: what is written reads back equal; hostile files end in words.
import { after, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { FrameTable, profileOfJson } from '../../web/data.js';
import { FileSource, StackReader, readFile, readFolded } from '../../web/file.js';
import { csvParts, fileTitle, foldedParts, pprofBlob, speedscopeParts, svgParts, tableText } from '../../web/exports.js';
import { Colours, KINDS } from '../../web/colour.js';
import { DiffColours, diffFunctions, largestChanges } from '../../web/diff.js';
import { nodeOfSide, sideTree } from '../../web/sides.js';
import { functionTotals, invertedTree } from '../../web/views.js';
import { countHits, matchFrames } from '../../web/search.js';
import { applySteps, resolveSteps } from '../../web/transforms.js';
import { sourceLink } from '../../web/lines.js';
import { formatLabels, labelText, oneValue, parseLabels, valuesOf } from '../../web/labels.js';
import { DEFAULT_SELECTION, formatSelection, parseSelection, viewPart } from '../../web/selection.js';
import { missingGo } from './collector.js';
import { countFunctions, foldedText, knownStacks, pathsOfTree, plainTree, pprofOf, shownName, totalOf } from './known.js';

const META = { title: 'a <b> "title"', name: 'cpu', unit: 'nanoseconds', scale: 10 };
const COUNTS = { unit: 'samples', scale: 1, nanoseconds: 0 };
const HOSTILE = [[['main', '<img src=x onerror=1>', 'a;b', ''], 3], [['main', '\u202egnp', 'x\u0000y\n', '=1+1'], 4], [['m'.repeat(3000)], 2]];
const bytesOf = (text) => new TextEncoder().encode(text);
const entries = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

async function load(stacks) {
	const { kinds, profiles } = await readFile(bytesOf(foldedText(stacks)));
	return { frames: new FrameTable(profiles[0].frames, kinds), tree: profiles[0].tree };
}

function assertPaths({ frames, tree }, stacks) {
	assert.deepEqual(entries(pathsOfTree(tree, (f) => frames.name(f))), entries(plainTree(stacks)));
}

test('folded stacks read and write back equal, with their kinds', async () => {
	const stacks = knownStacks(51, 500, 40);
	const one = await load(stacks);
	assertPaths(one, stacks);
	const text = foldedParts(one.tree, one.frames, COUNTS).join('');
	assert.deepEqual(text.split('\n').sort(), foldedText(stacks).split('\n').sort());
});

test('speedscope writes and reads back equal', async () => {
	const stacks = knownStacks(52, 300, 30);
	const { frames, tree } = await load(stacks);
	const text = speedscopeParts(tree, frames, META).join('');
	const json = JSON.parse(text);
	assert.equal(json.name, META.title);
	assert.equal(json.profiles[0].name, META.name);
	assert.equal(json.profiles[0].weights.reduce((a, b) => a + b, 0), totalOf(stacks) * META.scale);
	const { profiles, kinds, types } = await readFile(bytesOf(text));
	const back = { tree: profiles[0].tree, frames: new FrameTable(profiles[0].frames, kinds) };
	assertPaths(back, stacks.map(([f, n]) => [f, n * META.scale]));
	assert.equal(types[0].name, META.name);
	const kindsOf = (table) => new Set(Array.from({ length: table.count }, (_, f) => `${table.name(f)} ${table.kind(f)}`));
	assert.deepEqual(kindsOf(back.frames), kindsOf(frames));
});

test('speedscope: frames that open and close', async () => {
	const at = (type, frame, time) => ({ type, frame, at: time });
	const profile = (events) => bytesOf(JSON.stringify({ shared: { frames: [{ name: 'a' }, { name: 'b', kind: 'kernel' }, { name: 'web', kind: 'process' }] },
		profiles: [{ type: 'evented', name: 'x', unit: 'milliseconds', startValue: 10, endValue: 30, events }] }));
	const { profiles, kinds } = await readFile(profile([at('O', 2, 10), at('O', 0, 10), at('O', 1, 12), at('C', 1, 15), at('C', 0, 15), at('C', 2, 15), at('O', 0, 20)]));
	const frames = new FrameTable(profiles[0].frames, kinds);
	assert.deepEqual(entries(pathsOfTree(profiles[0].tree, (f) => frames.name(f))), entries(plainTree([[['web', 'a'], 2], [['web', 'a', 'b'], 3], [['a'], 10]])));
	assert.deepEqual(['a', 'b', 'web'].map((name) => frames.kind(frames.named(name)[0])), ['native', 'kernel', 'process']);
	await assert.rejects(readFile(profile([at('O', 0, 10), at('C', 1, 12)])), /innermost/);
});

test('pprof, packed or not: the sums of each sample type', async () => {
	const stacks = knownStacks(53, 200, 30).map(([frames, count]) => [frames.map((f) => f.replace(/_\[[pji]\]$/, '')), count]);
	const file = pprofOf([['samples', 'count'], ['cpu', 'nanoseconds']], stacks.map(([f, n]) => [f, [n, n * 1e7]]));
	for (const bytes of [new Uint8Array(file), new Uint8Array(gzipSync(file))]) {
		const source = await FileSource.open({ name: 'x', arrayBuffer: async () => bytes }, () => null);
		assert.deepEqual(source.meta.types.map((t) => t.name), ['cpu', 'samples']);
		for (const [i, scale] of [[0, 1e7], [1, 1]]) {
			const { frames, tree } = await source.open(i);
			assertPaths({ tree, frames: new FrameTable(frames, source.meta.kinds) }, stacks.map(([f, n]) => [f, n * scale]));
		}
	}
});

test('sums saturate: the largest values are cut, small ones stay', async () => {
	const most = 2n ** 63n - 1n;
	const bytes = new Uint8Array(pprofOf([['cpu', 'nanoseconds']], [[['main', 'a'], [most]], [['main', 'b'], [most]], [['main', 'c'], [7]]]));
	const { kinds, profiles: [{ frames, tree }] } = await readFile(bytes);
	const table = new FrameTable(frames, kinds);
	const paths = pathsOfTree(tree, (f) => table.name(f));
	assert.equal(tree.total[0], 2 ** 63);
	assert.equal(paths.get('main;a'), paths.get('main;b'));
	assert.equal(Math.round(paths.get('main;a') / 2 ** 52), 2 ** 10);
	assert.equal(paths.get('main;c'), 7);
	assert.equal(readFolded(`a 1e9\nb 9223372036854775807\nb 9223372036854775807\n`).profiles[0].tree.total[0], 2 ** 63);
});

test('values below zero are left out and counted, also the smallest and the largest', async () => {
	const file = pprofOf([['samples', 'count'], ['cpu', 'nanoseconds']], [[['main', 'a'], [-5, -5e7]], [['main', 'b'], [8, 8e7]], [['main', 'c'], [-1, -(2n ** 63n)]]]);
	const { types, profiles } = await readFile(new Uint8Array(file));
	assert.deepEqual(types.map((t) => [t.name, t.negative]), [['cpu', { samples: 2, value: 2 ** 63 }], ['samples', { samples: 2, value: 6 }]]);
	assert.deepEqual(profiles.map(({ tree }) => tree.total[0]), [8e7, 8]);
	const profile = { type: 'sampled', name: 'x', unit: 'none', samples: [[0], [1]], weights: [-2, 3] };
	const read = await readFile(bytesOf(JSON.stringify({ shared: { frames: [{ name: 'a' }, { name: 'b' }] }, profiles: [profile] })));
	assert.deepEqual([read.types[0].negative, read.profiles[0].tree.total[0]], [{ samples: 1, value: 2 }, 3]);
});

test('the type that a pprof file wants to be shown comes first, else cpu, else the last', async () => {
	const stacks = [[['main', 'f'], [1, 20, 300]]];
	for (const [wanted, names, first] of [['b', ['a', 'b', 'c'], 'b'], ['gone', ['a', 'b', 'c'], 'c'], ['', ['a', 'cpu', 'c'], 'cpu'], ['', ['a', 'b', 'c'], 'c']]) {
		const bytes = new Uint8Array(pprofOf(names.map((name) => [name, 'count']), stacks, wanted));
		const source = await FileSource.open({ name: 'x', arrayBuffer: async () => bytes }, () => null);
		assert.equal(source.meta.types[0].name, first);
		const { tree } = await source.open(0);
		assert.equal(tree.total[0], stacks[0][1][names.indexOf(first)]);
	}
});

test('the suffixes of all kinds are read, by the same list that writes them', () => {
	for (const [name, { suffix }] of Object.entries(KINDS)) {
		const { kinds, profiles } = readFolded(`main;f${suffix} 1\n`);
		const read = new FrameTable(profiles[0].frames, kinds);
		assert.equal(read.kind(0), suffix ? name : 'native');
		assert.equal(read.name(0), 'f');
	}
	assert.equal(readFolded('f_[later] 1\n').profiles[0].frames.count, 1);
});

test('files that are none end in words', async () => {
	const bad = ['', 'hello', '{}', '{"shared":{"frames":[]},"profiles":[]}', '<!doctype html><p>', '\u001f\u008b', '\n\u00ff\u00ff\u00ff\u00ff\u0001'];
	for (const text of bad) await assert.rejects(readFile(Uint8Array.from(text, (c) => c.charCodeAt(0))), JSON.stringify(text));
	const cut = pprofOf([['a', 'b']], [[['x'], [1]]]);
	for (let size = 1; size < cut.length; size++) {
		try {
			await readFile(new Uint8Array(cut.subarray(0, size)));
		} catch (problem) {
			assert.ok(problem instanceof Error);
		}
	}
	assert.throws(() => readFolded('# only a comment\n'), /formats/);
});

test('packed files are read to a bound, in layers, and pages without a parser of pages', async () => {
	const text = foldedText(knownStacks(57));
	const packed = (of, times) => new Uint8Array(Array.from({ length: times }).reduce((bytes) => gzipSync(bytes), Buffer.from(of)));
	for (const times of [0, 1, 2]) assert.equal((await readFile(packed(text, times))).profiles[0].tree.total[0], totalOf(knownStacks(57)));
	await assert.rejects(readFile(packed(text, 3)), /none of the formats/);
	await assert.rejects(readFile(packed(text, 1), text.length - 1), /larger than 1 GiB; hearth convert/);
	assert.equal((await readFile(packed(text, 1), text.length)).profiles[0].tree.total[0], totalOf(knownStacks(57)));
	const folder = mkdtempSync(join(tmpdir(), 'hearth-page-'));
	try {
		writeFileSync(join(folder, 'in'), text);
		assert.equal(spawnSync(process.env.HTML_FOLDED, [join(folder, 'in'), join(folder, 'out'), 'a </script><script id="meta">{}</script>']).status, 0);
		const page = readFileSync(join(folder, 'out'));
		for (const bytes of [new Uint8Array(page), packed(page, 1)]) {
			const { kinds, profiles } = await readFile(bytes);
			assertPaths({ tree: profiles[0].tree, frames: new FrameTable(profiles[0].frames, kinds) }, knownStacks(57));
		}
		const html = page.toString('latin1');
		const data = html.indexOf(' id="data"');
		await assert.rejects(readFile(bytesOf(html.slice(0, data))), /no page that hearth wrote, or a part of one/);
		await assert.rejects(readFile(bytesOf(html.replace('id="meta">', 'id="meta">{"types":7}</script><x>'))), /no page that hearth wrote/);
		await assert.rejects(readFile(packed(page, 1), page.length + 10), /larger than 1 GiB/, 'what is in the page counts, too');
		const bomb = deflateRawSync(Buffer.from([1, 0, 0, 0, 255, 255, 255, 127, 1, 1, ...Array.from({ length: 13 }, () => 0)])).toString('base64');
		await assert.rejects(readFile(bytesOf(html.replace(/( id="data">)[^<]*/, '$1' + bomb))), /ends early/, 'no room for nodes that are not there');
	} finally {
		rmSync(folder, { recursive: true });
	}
});

test('a table and a picture of hostile names', async () => {
	const stacks = knownStacks(54);
	const one = await load(stacks);
	const totals = functionTotals(one.tree, one.frames.count);
	const rows = csvParts(totals, one.frames, one.tree, COUNTS).join('').trim().split('\r\n').slice(1);
	assert.equal(rows.length, countFunctions(stacks).size);
	const { kinds, profiles } = hostileProfile();
	const frames = new FrameTable(profiles[0].frames, kinds);
	const { tree } = profiles[0];
	const csv = csvParts(functionTotals(tree, frames.count), frames, tree, COUNTS).join('');
	assert.ok(csv.includes('"\'=1+1"') && !csv.includes('\u202e'));
	const svg = svgOf({ tree, frames });
	// eslint-disable-next-line no-control-regex
	assert.ok(!/<img|\u202e|[\u0000-\u0008]/.test(svg));
	assert.equal(svg.match(/<g>/g).length, svg.match(/<\/g>/g).length);
	assert.ok(foldedParts(tree, frames, COUNTS).join('').includes('a|b;[unknown] 3'));
	assert.doesNotThrow(() => JSON.parse(speedscopeParts(tree, frames, META).join('')));
	assert.equal(fileTitle('../../etc/pass wd\u202e'), '_.._etc_pass_wd_u_202e_');
	assert.deepEqual(['..', '', '.x', 'a b'].map(fileTitle), ['profile', 'profile', 'x', 'a_b']);
});

/** The columns function, self and total of a table. */
const csvSums = (text) => text.trimEnd().split('\r\n').slice(1).map((line) => /^"(.*?)",".*?",".*?",(.+?),.+?,(.+?),.+?$/.exec(line).slice(1).map((part, i) => (i ? Number(part) : part)));

test('what lies on the root itself is in every file, called as hearth convert calls it', async () => {
	const samples = [[[], [7]], [['main', 'f'], [10]]];
	const { types, kinds, profiles } = await readFile(new Uint8Array(pprofOf([['samples', 'count']], samples)));
	const before = { frames: new FrameTable(profiles[0].frames, kinds), tree: profiles[0].tree };
	const hidden = resolveSteps([{ op: 'hide', text: 'main' }, { op: 'hide', text: 'f' }], before.frames);
	const after = { frames: new FrameTable(profiles[0].frames, kinds, hidden.added), tree: applySteps(before.tree, hidden.steps, before.frames.count) };
	const meta = { ...types[0], title: 'p' };
	for (const [{ frames, tree }, own, rows] of [[before, 7, [['f', 10, 10], ['[unknown]', 7, 7], ['main', 0, 10]]], [after, 17, [['[unknown]', 17, 17]]]]) {
		assert.deepEqual([tree.total[0], tree.self[0]], [17, own]);
		const folded = foldedParts(tree, frames, meta).join('');
		assert.ok(folded.startsWith(`[unknown] ${own}\n`), folded);
		assert.equal(readFolded(folded).profiles[0].tree.total[0], 17);
		for (const bytes of [bytesOf(speedscopeParts(tree, frames, meta).join('')), new Uint8Array(await (await pprofBlob(tree, frames, meta)).arrayBuffer())]) {
			const [back] = (await readFile(bytes)).profiles;
			assert.deepEqual([back.tree.total[0], back.tree.self[0]], [17, own]);
		}
		assert.deepEqual(csvSums(csvParts(functionTotals(tree, frames.count), frames, tree, meta).join('')), rows);
	}
});

test('values that are kept divided are written as they are', async () => {
	const { frames, tree } = await load([[['main', 'a'], 1], [['main', 'b'], 3]]);
	const meta = { ...COUNTS, scale: 500 };
	assert.equal(foldedParts(tree, frames, meta).join(''), 'main;b 1500\nmain;a 500\n');
	assert.equal(foldedParts(tree, frames, { ...COUNTS, nanoseconds: 1e7 }).join(''), 'main;b 3\nmain;a 1\n', 'samples stay samples');
	assert.deepEqual(csvSums(csvParts(functionTotals(tree, frames.count), frames, tree, meta).join('')), [['b', 1500, 1500], ['a', 500, 500], ['main', 0, 2000]]);
	assert.deepEqual(svgBoxes(svgOf({ tree, frames }, meta)).map(({ title }) => title), ['all (2000, 100.00 %)', 'main (2000, 100.00 %)', 'b (1500, 75.00 %)', 'a (500, 25.00 %)']);
});

const viewOf = ({ tree, frames }, from = 0, to = tree.total[0]) => ({ tree, from, to, flip: false, hooks: { colours: new Colours(frames, 'kind') } });
const svgOf = (one, meta = COUNTS, from = 0, to = one.tree.total[0]) => svgParts([{ flame: viewOf(one, from, to), title: '' }], one.frames, meta).join('');
const svgBoxes = (svg) => [...svg.matchAll(/<g><title>(.*?)<\/title><rect x="(.*?)" y="(.*?)" width="(.*?)"/g)].map(([, title, ...place]) => ({ title, place: place.map(Number) }));

test('a picture of boxes that are too narrow has them as one', async () => {
	const many = Array.from({ length: 10000 }, (_, i) => [['main', `leaf_${i}`], 1]);
	const boxes = svgBoxes(svgOf(await load(many)));
	assert.deepEqual(boxes.map(({ title }) => title), ['all (10000, 100.00 %)', 'main (10000, 100.00 %)', '10,000 functions (10000, 100.00 %)']);
	const [, main, run] = boxes;
	assert.deepEqual([run.place[0], run.place[2]], [main.place[0], main.place[2]], 'as wide as what calls them');
	const few = svgBoxes(svgOf(await load([[['main', 'wide'], 9998], [['main', 'one'], 1], [['main', 'other'], 1]]), { ...COUNTS, scale: 10 }));
	assert.deepEqual(few.slice(2).map(({ title }) => title), ['wide (99980, 99.98 %)', '2 functions (20, 0.02 %)']);
	assert.equal(svgBoxes(svgOf(await load([[['main', 'wide'], 9999], [['main', 'one'], 1]]))).at(-1).title, 'one (1, 0.01 %)', 'one alone has its name');
	const zoomed = svgBoxes(svgOf(await load(many), COUNTS, 100, 200));
	assert.equal(zoomed.length, 102);
	assert.ok(!svgOf(await load([[['a'], 0]])).includes('NaN'), 'of nothing');
});

test('two graphs as one picture, each with its own total as its width', async () => {
	const [base, now] = [await load([[['main', 'a'], 4]]), await load([[['main', 'a'], 1], [['main', 'b<'], 1]])];
	const svg = svgParts([{ flame: viewOf(base), title: 'base <1>' }, { flame: viewOf(now), title: 'now' }], now.frames, COUNTS).join('');
	assert.match(svg, /^<svg [^>]* width="2820" height="80"[^]*>base &#60;1&#62;<[^]*>now</);
	const [left, right] = [0, 1].map((side) => svgBoxes(svg).filter(({ place: [x] }) => (x >= 1400) === Boolean(side)));
	assert.deepEqual(left.map(({ place }) => place), [[0, 21, 1399], [0, 40, 1399], [0, 59, 1399]]);
	assert.deepEqual(right.map(({ place }) => place), [[1420, 21, 1399], [1420, 40, 1399], [1420, 59, 699], [2120, 59, 699]]);
});

function hostileProfile() {
	const names = [...new Set(HOSTILE.flatMap(([f]) => f))];
	const json = { meta: { total: 9 }, names, kind: names.map(() => 0), module: names.map(() => 0), modules: [''], level: [0], frame: [names.length], total: [9], self: [0] };
	for (const [frames, count] of HOSTILE) {
		for (const [i, name] of frames.entries()) {
			json.level.push(i + 1);
			json.frame.push(names.indexOf(name));
			json.total.push(count);
			json.self.push(i === frames.length - 1 ? count : 0);
		}
	}
	return { kinds: ['native'], profiles: [profileOfJson(json)] };
}

// root 100: a 60 (self 10, b 30, 20 hidden), 40 hidden at the root
const CUT = { meta: { total: 100 }, names: ['a', 'b'], kind: [0, 0], module: [0, 0], modules: [''], frame: [2, 0, 1], level: [0, 1, 2], total: [100, 60, 30],
	self: [0, 10, 30], hidden: [40, 20, 0] };

test('what an answer left out is a box of its own, in every view', () => {
	const { frames, tree } = profileOfJson(CUT);
	const table = new FrameTable(frames, ['native']);
	const hidden = '(too narrow to show)';
	assert.deepEqual(entries(pathsOfTree(tree, (f) => table.name(f))),
		entries(new Map([['a', 60], ['a;b', 30], [`a;${hidden}`, 20], [hidden, 40]])));
	const inverted = invertedTree(tree, table.count);
	assert.equal(inverted.total[0], 100);
	assert.equal(countHits(tree, matchFrames(table, (name) => name === 'a'))[tree.count], 1);
	assert.deepEqual(csvSums(csvParts(functionTotals(tree, 2), table, tree, COUNTS).join('')), [[hidden, 60, 60], ['b', 30, 30], ['a', 10, 60]]);
	const { steps, added } = resolveSteps([{ op: 'group', text: 'runtime' }, { op: 'hide', text: 'b' }], table);
	const after = new FrameTable(frames, ['native'], added);
	const stepped = applySteps(tree, steps, after.count);
	assert.equal(stepped.total[0], 100);
	assert.equal(entries(pathsOfTree(stepped, (f) => after.name(f))).find(([path]) => path === `native;a;${hidden}`)[1], 20);
});

test('two profiles as one: what is new, gone, more and less', () => {
	const json = { ...CUT, hidden: [0, 0, 0, 0], names: ['a', 'b', 'c'], kind: [0, 0, 0], module: [0, 0, 0], frame: [3, 0, 1, 2], level: [0, 1, 1, 1],
		total: [100, 60, 30, 10], self: [0, 60, 30, 10], base_self: [0, 20, 30, 0], base_hidden: [0, 0, 0, 0] };
	const { frames, tree } = profileOfJson(json);
	const table = new FrameTable(frames, ['native']);
	assert.deepEqual([...tree.base], [50, 20, 30, 0]);
	const colours = new DiffColours(table, tree, 'kind', true);
	const marks = [1, 2, 3].map((node) => colours.mark(tree.frame[node], node, tree));
	assert.deepEqual(marks, ['+ ', 'gone ', 'new ']);
	const inverted = invertedTree(tree, 3);
	assert.deepEqual([1, 2, 3].map((node) => [inverted.frame[node], colours.mark(inverted.frame[node], node, inverted)]), [[0, '+ '], [1, 'gone '], [2, 'new ']]);
	const rows = largestChanges(diffFunctions(tree, 3), 50, 50, 10);
	assert.deepEqual(rows.map(({ frame, was, now }) => [frame, was, now]), [[1, 0.6, 0], [0, 0.4, 0.8], [2, 0, 0.2]]);
	const doubled = { ...tree, total: tree.total.map((t, i) => t + tree.base[i]), self: tree.self.map((t, i) => t + tree.baseSelf[i]), base: tree.base.map((t) => 2 * t), baseSelf: tree.baseSelf.map((t) => 2 * t) };
	const marksOf = (byShare) => [0, 1].map((node) => new DiffColours(table, doubled, 'kind', byShare).mark(tree.frame[node], node, doubled));
	assert.deepEqual([marksOf(true), marksOf(false)], [['', '+ '], ['− ', '']]); // the same part of a half, and the same amount
	assert.deepEqual(largestChanges(diffFunctions(tree, 3), 1, 1, 10).map(({ frame, was, now }) => [frame, was, now]), [[1, 30, 0], [0, 20, 40], [2, 0, 10]]);
});

test('two profiles of one tree, each with what it has', () => {
	const json = { ...CUT, hidden: [0, 0, 0, 0, 0], names: ['a', 'b', 'c'], kind: [0, 0, 0], module: [0, 0, 0], frame: [3, 0, 1, 2, 1], level: [0, 1, 2, 2, 1],
		total: [100, 80, 50, 30, 20], self: [0, 0, 50, 30, 20], base_self: [0, 0, 50, 10, 0], base_hidden: [0, 0, 0, 0, 0] };
	const { frames, tree } = profileOfJson(json);
	const [base, now] = [true, false].map((isBase) => sideTree(tree, isBase));
	assert.deepEqual([[...base.origin], [...base.total], [...base.self]], [[0, 1, 2, 3], [60, 60, 50, 10], [0, 0, 50, 10]]);
	assert.deepEqual([[...now.origin], [...now.total], [...now.self]], [[0, 1, 3, 4], [40, 20, 20, 20], [0, 0, 20, 20]]);
	assert.deepEqual([0, 1, 2, 3, 4].map((node) => nodeOfSide(base, node)), [0, 1, 2, 3, 0]);
	assert.deepEqual([0, 1, 2, 3, 4].map((node) => nodeOfSide(now, node)), [0, 1, 1, 2, 3]);
	const colours = new DiffColours(new FrameTable(frames, ['native']), tree, 'kind', true);
	assert.deepEqual([1, 2].map((node) => colours.mark(base.frame[node], node, base)), ['− ', 'gone ']);
});

/** Pairs as the collector reads them (src/query/params.c): blanks at a piece's ends go, then it is decoded with + as a blank. */
function pairsOfServer(text) {
	const piece = (part) => decodeURIComponent(part.replace(/^[\0- ]+|[\0- ]+$/g, '').replaceAll('+', ' '));
	return text.split(',').map((pair) => [piece(pair.slice(0, pair.indexOf('='))), piece(pair.slice(pair.indexOf('=') + 1))]);
}

test('what is asked for, in an address', () => {
	const labels = [['a,b', 'c=d%2C'], ['host', 'x&y#z']];
	assert.deepEqual(parseLabels(formatLabels(labels)), labels);
	const odd = [['version', '1.2+b7'], [' a + b\t', '\n+=,% '], ['\u0001c', 'd\u0001'], ['empty', ''], ['blank', ' ']];
	assert.deepEqual(parseLabels(formatLabels(odd)), odd);
	assert.deepEqual(pairsOfServer(formatLabels(odd)), odd);
	assert.equal(formatLabels([['host', 'a']]), 'host=a', 'as ever where pairs say it');
	const selection = { ...DEFAULT_SELECTION, page: 'compare', service: 'a&b=c#<i>', labels, from: 'now-3h', part: [1795000000000, 1795000060000], base: '7d', diff: 'value', sides: 'two', window: '10s' };
	const hash = formatSelection(selection, '#view=table&q=a%26b&t=hide%3Ax');
	assert.deepEqual(parseSelection(hash), selection);
	assert.ok(viewPart(hash).includes('q=a%26b'));
	for (const odd of ['', '#', '#/', '#/__proto__', '#/profile?part=9-1', '#/profile?part=1e400-2', '#/x?labels=%E0%A4%A', '#/profile?from=' + 'x'.repeat(5000)]) {
		const parsed = parseSelection(odd);
		assert.ok(parsed.part === null && parsed.from === 'now-1h');
	}
	assert.equal(shownName('f_[k]'), 'f');
});

describe('pprof of what is shown', () => {
	const OF = { name: 'samples', unit: 'samples', scale: 1, nanoseconds: 1e7, title: 'p' };
	const folder = mkdtempSync(join(tmpdir(), 'hearth-pprof-'));
	const file = join(folder, 'p.pb.gz');
	after(() => rmSync(folder, { recursive: true }));

	async function written({ tree, frames }, meta = OF) {
		const bytes = new Uint8Array(await (await pprofBlob(tree, frames, meta)).arrayBuffer());
		writeFileSync(file, bytes);
		return bytes;
	}

	const run = (program, ...args) => {
		const done = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
		assert.equal(done.status, 0, done.stderr);
		return done.stdout;
	};

	test('it reads back equal, with its kinds and modules', async () => {
		const stacks = knownStacks(54, 300, 30);
		const { types, kinds, profiles } = await readFile(await written(await load(stacks)));
		assert.deepEqual(types.map(({ name, unit }) => [name, unit]), [['samples', 'count'], ['cpu', 'nanoseconds']]);
		for (const [i, scale] of [1, 1e7].entries()) {
			assertPaths({ tree: profiles[i].tree, frames: new FrameTable(profiles[i].frames, kinds) }, stacks.map(([f, n]) => [f, n * scale]));
		}
		const reader = new StackReader();
		const odd = [['a', 'native', 'libc.so.6'], ['b', 'native', ''], ['c', 'kernel', '[kernel.kallsyms]'], ['d', 'kernel', 'nf_tables.ko'], ['e', 'native', '[python]'], ['f', 'kernel', 'odd'],
			['g', 'python', 'requests==2.31.0'], ['h', 'python', ''], ['i', 'java-c1', ''], ['j', 'javascript', ''], ['<b>\u202e\n;', 'perl', ''], ['k', 'jit', '']];
		reader.add(odd.map((row) => reader.frame(...row)), 2 ** 40);
		const profile = reader.finish();
		const table = new FrameTable(profile.frames, readFolded('x 1\n').kinds);
		const back = await readFile(await written({ tree: profile.tree, frames: table }, { ...OF, nanoseconds: 0, name: 'wall', unit: 'nanoseconds', scale: 3 }));
		assert.deepEqual(back.types.map(({ name, unit }) => [name, unit]), [['wall', 'nanoseconds']]);
		const again = new FrameTable(back.profiles[0].frames, back.kinds);
		assert.equal(back.profiles[0].tree.total[0], 3 * 2 ** 40);
		assert.deepEqual([...back.profiles[0].tree.frame.slice(1)].map((f) => [again.name(f), again.kind(f), again.moduleName(f)]), odd);
	});

	test('hearth reads it', { skip: process.env.HEARTH ? false : 'HEARTH is not set' }, async () => {
		const stacks = knownStacks(55, 300, 30);
		await written(await load(stacks));
		const folded = run(process.env.HEARTH, 'convert', '-q', file, '--value', 'samples', '--format', 'folded', '-o', '-').trim().split('\n');
		assert.deepEqual(folded.sort(), foldedText(stacks).trim().split('\n').sort());
		const rows = [...run(process.env.HEARTH, 'report', file).matchAll(/^ +(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+% {2}(\S+)$/gm)];
		assert.ok(rows.length > 20);
		const functions = countFunctions(stacks);
		for (const [, self, total, name] of rows) assert.deepEqual({ self: Number(self), total: Number(total) }, functions.get(shownName(name)), name);
		const { profiles, kinds } = await readFile(new Uint8Array(pprofOf([['samples', 'count']], [[[], [7]], [['main'], [10]]])));
		await written({ tree: profiles[0].tree, frames: new FrameTable(profiles[0].frames, kinds) });
		assert.equal(run(process.env.HEARTH, 'convert', '-q', file, '--value', 'samples', '--format', 'folded', '-o', '-'), '[unknown] 7\nmain 10\n');
	});

	test('go tool pprof reads it', { skip: missingGo() || false }, async () => {
		const stacks = knownStacks(56, 200, 20);
		await written(await load(stacks));
		const raw = run('go', 'tool', 'pprof', '-raw', file);
		assert.match(raw, /PeriodType: cpu nanoseconds\nPeriod: 10000000\n/);
		assert.match(raw, /^Samples:\nsamples\/count\[dflt\] cpu\/nanoseconds$/m);
		const named = new Map([...raw.matchAll(/^ +(\d+): 0x0 (?:M=\d+ )?(.*?)(?: :0:0.*| s=.*)?$/gm)].map(([, id, name]) => [Number(id), name]));
		const rows = [...raw.matchAll(/^ +(\d+) +(\d+): ([\d ]+)$/gm)].map(([, count, time, ids]) => {
			assert.equal(Number(time), Number(count) * 1e7);
			return `${ids.trim().split(' ').map((id) => named.get(Number(id))).reverse().join(';')} ${count}`;
		});
		assert.deepEqual(rows.sort(), foldedText(stacks.map(([frames, count]) => [frames.map(shownName), count])).trim().split('\n').sort());
		const { profiles, kinds } = await readFile(new Uint8Array(pprofOf([['samples', 'count']], [[[], [7]], [['main'], [10]]])));
		await written({ tree: profiles[0].tree, frames: new FrameTable(profiles[0].frames, kinds) });
		assert.match(run('go', 'tool', 'pprof', '-top', '-sample_index=samples', file), /Showing nodes accounting for 10, 58\.82% of 17 total/);
	});
});

test('the table as text', async () => {
	const { frames, tree } = await load([[['main', 'f\tx'], 3], [['main'], 1]]);
	const totals = functionTotals(tree, frames.count);
	const rows = [frames.named('main')[0], frames.named('f\tx')[0]];
	assert.equal(tableText(rows, totals, frames, 4, COUNTS),
		'self\tself %\ttotal\ttotal %\tfunction\tmodule\n1\t25.00 %\t4\t100 %\tmain\t\n3\t75.00 %\t3\t75.00 %\tf\\u{9}x\t\n');
});

test('no name is a formula to a spreadsheet, neither in the table as text nor as CSV', () => {
	const names = ['=1+1', '+1', '-1', '@SUM(1)', '\t=1', '\r=1', '\n=1', '\uff1d1', 'plain=1'];
	const wanted = ["'=1+1", "'+1", "'-1", "'@SUM(1)", '\\u{9}=1', '\\u{d}=1', '\\u{a}=1', "'\uff1d1", 'plain=1'];
	const frames = { count: names.length, name: (f) => names[f], moduleName: (f) => names[f], kind: () => 'native' };
	const totals = { self: names.map(() => 1), total: names.map(() => 1) };
	const copied = tableText([...names.keys()], totals, frames, names.length, { unit: 'samples', scale: 1, nanoseconds: 0 }).trimEnd().split('\n').slice(1);
	assert.deepEqual(copied.map((line) => line.split('\t').slice(4)), wanted.map((name) => [name, name]));
	const tree = { count: 1, total: [names.length], self: [0], hidden: [0] };
	const saved = csvParts(totals, frames, tree, COUNTS).join('').trimEnd().split('\r\n').slice(1);
	assert.deepEqual(saved.map((line) => line.split(',').slice(0, 2)), wanted.map((name) => [`"${name}"`, `"${name}"`]));
});

test('a file name does not choose where a source link leads', () => {
	const [joined, apart, editor] = ['https://git.example{file}#L{line}', 'https://git.example/{file}#L{line}', 'vscode://file{file}:{line}'];
	const links = [[joined, '/a/b.c', 'https://git.example/a/b.c#L7'], [apart, 'a/b.c', 'https://git.example/a/b.c#L7'], [apart, '.evil.example/x', 'https://git.example/.evil.example/x#L7'],
		[editor, '/a/b.c', 'vscode://file/a/b.c:7'], ['emacs:{file}', '/a', 'emacs:/a'],
		...['.evil.example/x', ':p@evil.example/x', '@evil.example/x', ':99/x', 'x', '\\evil'].flatMap((file) => [[joined, file, ''], [editor, file, '']]),
		['https://{file}', 'evil.example/x', ''], ['{file}', 'https://evil.example/x', ''], ['emacs:{file}', '//evil.example/x', ''], ['http{file}', 's://evil.example', '']];
	for (const [template, file, wanted] of links) assert.equal(sourceLink(template, file, 7), wanted, `${template} ${file}`);
});

test('labels: one of several values, none of some, expressions', () => {
	const cases = [
		[[['host', 'a'], ['host', 'b|c'], ['zone', 'eu', '!=']], '{host=~"a|b\\\\|c",zone!="eu"}'],
		[[['host', 'a', '!='], ['host', 'b', '!=']], '{host!="a",host!="b"}'],
		[[['odd "name"', '.*+?()[]{}^$\\|'], ['odd "name"', '']], null],
		[[['{odd', 'x']], '{"{odd"="x"}'],
		[[['pod', 'web-.*', '=~'], ['pod', 'a|(b', '!~']], '{pod=~"web-.*",pod!~"a|(b"}'],
		[[['a', 'line\nbreak\u0001\u202e'], ['a', 'x,y=z}'], ['b', '%2C', '!=']], null],
	];
	for (const [labels, text] of cases) {
		if (text) assert.equal(formatLabels(labels), text);
		assert.deepEqual(parseLabels(formatLabels(labels)), labels, formatLabels(labels));
		const selection = { ...DEFAULT_SELECTION, page: 'profile', labels };
		assert.deepEqual(parseSelection(formatSelection(selection)), selection);
	}
	assert.deepEqual(parseLabels(' { host = "a" , zone != "b" } '), [['host', 'a'], ['zone', 'b', '!=']], 'as a person writes it');
	assert.deepEqual([valuesOf('a|b\\.c|'), valuesOf('a.b'), valuesOf('\\d'), valuesOf('a\\')], [['a', 'b.c', ''], null, null, null]);
	for (const odd of ['{', '{}', '{a}', '{a=b}', '{a="b', '{a="\\q"}', '{="x"}', '{"a"="b"', '{a="b" c="d"}', '{' + 'a="b",'.repeat(100000)]) {
		const parsed = parseLabels(odd);
		assert.ok(parsed.length <= 32 && parsed.every(([name, value]) => name === 'a' && value === 'b'), odd.slice(0, 30));
	}
	assert.ok(parseLabels('{a=~"' + 'x|'.repeat(50000) + '"}').length <= 32);
	assert.deepEqual([oneValue([['host', 'a']], 'host'), oneValue([['host', 'a', '!=']], 'host'), oneValue([['host', 'a'], ['host', 'b']], 'host'), oneValue([], 'host')], ['a', undefined, undefined, undefined]);
	assert.equal(labelText([['h', 'a'], ['h', 'b'], ['h', 'c', '!='], ['h', 'd.*', '=~'], ['x', 'y']], 'h', (text) => text), 'a or b, not c, like d.*');
});
