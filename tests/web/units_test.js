// SPDX-License-Identifier: Apache-2.0
// The viewer's modules without a browser. HTML_FOLDED names the program that makes pages (tests/bench/html_folded).
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { Script } from 'node:vm';
import { join } from 'node:path';
import { FrameTable, decodeProfile, profileOfJson, readProfile } from '../../web/data.js';
import { TreeGrower, packNames } from '../../web/build.js';
import { boxesAt } from '../../web/flame.js';
import { gallopTo, layoutTree, nodeChildren } from '../../web/layout.js';
import { Matcher, Workbench } from '../../web/aside.js';
import { STEP_KINDS, applySteps, formatStep, resolveSteps } from '../../web/transforms.js';
import { compileQuery, countHits, matchFrames, matchNodes } from '../../web/search.js';
import { collapsedTree, functionTotals, invertedTree, sandwichTrees } from '../../web/views.js';
import { COLOURS, KINDS as KIND_ROWS, LABEL_COLOUR, classColour, classText } from '../../web/colour.js';
import { cpusText, formatAmount, formatShare, formatValue, lastPart, negativeText, visibleText, withoutArguments } from '../../web/format.js';
import { DEFAULT_STATE, formatHash, parseHash } from '../../web/state.js';
import {
	collapsedPaths, countFunctions, foldedText, invertedPaths, knownStacks, pathsOfTree, plainTree, sandwichPaths,
	randomOf, shareMatching, totalOf,
} from './known.js';

const KINDS = ['native', 'kernel', 'jit', 'python', 'python-native', 'python-error', 'java', 'java-inlined'];

async function load(stacks) {
	const folder = mkdtempSync(join(tmpdir(), 'viewer-'));
	try {
		writeFileSync(join(folder, 'in'), foldedText(stacks));
		execFileSync(process.env.HTML_FOLDED, [join(folder, 'in'), join(folder, 'out')], { stdio: 'pipe' });
		const html = readFileSync(join(folder, 'out'), 'utf8');
		const raw = await readProfile(/ id="data">([^<]*)</.exec(html)[1]);
		return { frames: new FrameTable(raw.frames, KINDS), tree: raw.tree, html };
	} finally {
		rmSync(folder, { recursive: true });
	}
}

const entries = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
const skip = process.env.HTML_FOLDED ? false : 'HTML_FOLDED is not set';

for (const seed of [11, 12, 13, 14]) {
	test(`decoded and counted, seed ${seed}`, { skip }, async () => {
		const stacks = knownStacks(seed, 300, 24);
		const { frames, tree } = await load(stacks);
		const nameOf = (f) => frames.name(f);
		const same = (got, want) => assert.deepEqual(entries(pathsOfTree(got, nameOf)), entries(want));
		assert.equal(tree.total[0], totalOf(stacks));
		same(tree, plainTree(stacks));
		same(invertedTree(tree, frames.count), invertedPaths(stacks));
		same(collapsedTree(tree, frames.count), collapsedPaths(stacks));
		const { self, total } = functionTotals(tree, frames.count);
		for (const [name, want] of countFunctions(stacks)) {
			const frame = frames.raw.ends.findIndex((_, f) => frames.name(f) === name);
			assert.deepEqual({ self: self[frame], total: total[frame] }, want, name);
			const halves = sandwichTrees(tree, frames.count, frame, { share: 0 });
			const paths = sandwichPaths(stacks, name);
			same(halves.callers, paths.callers);
			same(halves.callees, paths.callees);
		}
		const hits = matchFrames(frames, compileQuery('fn_1', false).test);
		const share = matchNodes(tree, hits).sum / tree.total[0];
		assert.ok(Math.abs(share - shareMatching(stacks, (n) => n.includes('fn_1'))) < 1e-12);
		const before = countHits(tree, hits);
		assert.equal(before[tree.count], tree.frame.filter((f) => hits[f]).length);
	});
}

// ---- two profiles as one

/** Trees of two profiles with the same frames: each alone, and both as one. A file has no kinds and modules to group by: here frames do. */
function compared(stacks, other) {
	const names = [...new Set([...stacks, ...other].flatMap(([frames]) => frames))].sort();
	const number = new Map(names.map((name, i) => [name, i]));
	const kinds = names.map((name) => (name.startsWith('proc ') ? 8 : name.startsWith('lane=') ? 9 : number.get(name) % 8));
	const raw = { count: names.length, names: packNames(names), kinds: Uint8Array.from(kinds), module: Uint32Array.from(names, (_, i) => i % 3), modules: ['', 'one.so', 'two.so'], origin: null };
	const treeOf = (base, now, isCompared) => {
		const grower = new TreeGrower(names.length, 8, isCompared);
		for (const [list, isBase] of [[base, true], [now, false]]) {
			for (const [frames, count] of list) {
				const at = frames.reduce((node, name) => grower.child(node, number.get(name)), 0);
				grower.self[at] += count;
				if (isBase && isCompared) grower.baseSelf[at] += count;
			}
		}
		return grower.finish();
	};
	return { raw, kindNames: [...KINDS, 'process', 'label'], base: treeOf(stacks, [], false), now: treeOf([], other, false), both: treeOf(stacks, other, true) };
}

/** Path -> [total, self] of one side; paths that only the other one has are left out. */
function sideOfPaths(tree, nameOf, total, self) {
	const out = new Map([['', [total(0), self(0)]]]);
	const open = [];
	for (let i = 1; i < tree.count; i++) {
		open.length = tree.level[i] - 1;
		open.push(nameOf(tree.frame[i]));
		if (total(i)) out.set(open.join(';'), [total(i), self(i)]);
	}
	return out;
}

/** What was made of both as one is, side by side, what was made of each alone. */
function assertSides(made, base, now, nameOf, what) {
	const alone = (tree) => entries(sideOfPaths(tree, nameOf, (i) => tree.total[i], (i) => tree.self[i]));
	assert.deepEqual(entries(sideOfPaths(made, nameOf, (i) => made.base[i], (i) => made.baseSelf[i])), alone(base), what + ', base');
	assert.deepEqual(entries(sideOfPaths(made, nameOf, (i) => made.total[i] - made.base[i], (i) => made.self[i] - made.baseSelf[i])), alone(now), what + ', now');
}

for (const seed of [61, 62, 63, 64]) {
	test(`a step of two profiles as one is the step of each, seed ${seed}`, () => {
		const random = randomOf(seed);
		const above = (stacks) => stacks.map(([frames, count]) => [[...(random() < 0.8 ? [`proc ${Math.floor(random() * 3)}`] : []), ...(random() < 0.6 ? [`lane=${Math.floor(random() * 2)}`] : []), ...frames], count]);
		const stacks = above(knownStacks(seed, 120, 16));
		const other = above([...knownStacks(seed, 120, 16).filter(() => random() < 0.6), ...knownStacks(seed + 100, 40, 20)]);
		const { raw, kindNames, base, now, both } = compared(stacks, other);
		const plain = new FrameTable(raw, kindNames);
		const check = (steps) => {
			const resolved = resolveSteps(steps, plain);
			const frames = new FrameTable(raw, kindNames, resolved.added);
			const [made, one, two] = [both, base, now].map((tree) => applySteps(tree, resolved.steps, frames.count));
			const what = steps.map(formatStep).join(', ');
			assertSides(made, one, two, (f) => frames.name(f), what);
			return { made, one, two, frames, what };
		};
		const names = Array.from({ length: raw.count }, (_, f) => plain.name(f));
		const ways = [...names.flatMap((text) => ['focus', 'only', 'drop', 'hide', 'merge', 'recursion'].map((op) => ({ op, text }))),
			...['one.so', 'two.so', 'none.so'].flatMap((text) => [{ op: 'module', text }, { op: 'hidemodule', text }]),
			...['process', 'runtime', 'label:lane', 'thread'].map((text) => ({ op: 'group', text })), { op: 'order', text: 'name' }];
		assert.deepEqual(new Set(ways.map(({ op }) => op)), new Set(Object.keys(STEP_KINDS)), 'no step is left out');
		for (const step of ways) check([step]);
		for (let i = 0; i < 60; i++) {
			const steps = Array.from({ length: 2 + Math.floor(random() * 3) }, () => ways[Math.floor(random() * ways.length)]);
			const { made, one, two, frames, what } = check(steps);
			if (i % 6 || !one.total[0] || !two.total[0]) continue;
			const nameOf = (f) => frames.name(f);
			const views = { inverted: (tree) => invertedTree(tree, frames.count), collapsed: (tree) => collapsedTree(tree, frames.count) };
			for (const [view, make] of Object.entries(views)) assertSides(make(made), make(one), make(two), nameOf, `${what}, ${view}`);
			for (const focus of made.frame.slice(1, 8)) {
				const halves = [made, one, two].map((tree) => sandwichTrees(tree, frames.count, focus, { share: 0 }));
				for (const half of ['callers', 'callees']) assertSides(...halves.map((trees) => trees[half]), nameOf, `${what}, ${half} of ${nameOf(focus)}`);
			}
		}
	});
}

test('what is too narrow to show has both sides, too', () => {
	const { base, now, both } = compared(knownStacks(71, 300, 24), knownStacks(72, 300, 24));
	const made = invertedTree(both, 24, { share: 0.02 });
	const narrow = [...made.frame.keys()].filter((i) => made.frame[i] === 25);
	assert.ok(narrow.length > 1 && narrow.some((i) => made.base[i] > 0 && made.base[i] < made.total[i]));
	assert.deepEqual([made.base[0], made.total[0]], [base.total[0], base.total[0] + now.total[0]]);
	const below = nodeChildren(made, 0);
	assert.equal(below.reduce((sum, i) => sum + made.base[i], 0), base.total[0]);
});

test('a worker gets both sides', async () => {
	const { both } = compared(knownStacks(73, 300, 24), knownStacks(74, 300, 24));
	const sent = {};
	const worker = { terminate() {}, onmessage: null, postMessage({ begin, types, column, at, values, job, number }) {
		if (begin) Object.assign(sent, begin, Object.fromEntries(Object.entries(types).map(([name, type]) => [name, new globalThis[type](begin.count)])));
		else if (column) sent[column].set(values, at);
		else this.onmessage({ data: { number, result: invertedTree(sent, job.frameCount) } });
	} };
	const bench = new Workbench(/** @type {any} */ (() => worker));
	bench.setTree(both);
	assert.deepEqual(await bench.run({ kind: 'inverted', on: '', frameCount: 24, options: {} }, null), invertedTree(both, 24));
	assert.ok(sent.base[0] > 0);
});

test('every node is found at its own place', { skip }, async () => {
	const { tree } = await load(knownStacks(21));
	const at = (row, x) => {
		const { first, last } = boxesAt(tree, row, x, 0, 1);
		return last - first === 1 ? tree.order[first] : -1;
	};
	for (let i = 0; i < tree.count; i++) {
		assert.equal(at(tree.level[i], tree.x[i]), i);
		assert.equal(at(tree.level[i], tree.x[i] + tree.total[i] - 1), i);
	}
	assert.equal(at(tree.deepest + 1, 0), -1);
	assert.equal(at(1, tree.total[0]), -1);
});

test('boxes that are drawn as one are found together, and never one of them alone', () => {
	let seed = 5;
	const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
	for (let round = 0; round < 20; round++) {
		const totals = Array.from({ length: 400 }, () => (random(round % 4 + 1) ? 1 + random(40) : 1 + random(900)));
		const sum = totals.reduce((a, b) => a + b);
		// Half of them are called by functions that take more themselves: gaps.
		const rows = totals.flatMap((t, i) => (i % 2 ? [[1, i, t]] : [[1, i, t], [2, 400 + i, Math.ceil(t / 2)]]));
		const tree = layoutTree(Uint16Array.from([0, ...rows.map((r) => r[0])]), Uint32Array.from([900, ...rows.map((r) => r[1])]), Uint32Array.from([sum, ...rows.map((r) => r[2])]), new Uint32Array(rows.length + 1), 2);
		const width = 60 + 40 * round;
		const scale = width / sum;
		for (const row of [1, 2]) {
			const boxes = Array.from({ length: tree.rowStart[row + 1] - tree.rowStart[row] }, (_, i) => {
				const p = tree.rowStart[row] + i;
				const [left, right] = [tree.rowX[p] * scale, (tree.rowX[p] + tree.rowTotal[p]) * scale];
				return { p, left, right, isNarrow: tree.rowTotal[p] * scale < 1 };
			});
			for (let pixel = 0; pixel < width; pixel++) {
				const { first, last } = boxesAt(tree, row, pixel, 0, scale);
				const found = boxes.filter(({ p }) => p >= first && p < last);
				const narrow = boxes.filter((b) => b.isNarrow && Math.floor(b.left) === pixel);
				const wide = boxes.filter((b) => !b.isNarrow && Math.round(b.left) <= pixel && Math.round(b.right) > pixel);
				if (found.length > 1) assert.ok(found.every((b) => b.isNarrow && Math.abs(b.left - pixel) <= 14));
				if (!wide.length) assert.ok(narrow.every((b) => found.includes(b)));
				if (!narrow.length && wide.length) assert.deepEqual(found, wide);
				if (found.length === 1 && found[0].isNarrow) assert.ok(narrow.length <= 1, 'a name where several are drawn');
				assert.ok(found.length || (!narrow.length && !wide.length), `something is drawn at ${pixel}`);
			}
		}
	}
});

test('siblings lie heaviest first', { skip }, async () => {
	const { tree } = await load(knownStacks(22));
	for (let p = 1; p < tree.count; p++) {
		const [a, b] = [tree.order[p - 1], tree.order[p]];
		if (tree.level[a] === tree.level[b] && tree.parent[a] === tree.parent[b]) assert.ok(tree.total[a] >= tree.total[b]);
	}
});

test('the modules of a page of one file, joined, are a script: no two have one name', { skip }, async () => {
	const { html } = await load([[['a'], 1]]);
	const [, text] = /<script>([^]*?)<\/script>/.exec(html);
	assert.ok(text.length > 50000);
	assert.doesNotThrow(() => new Script(text));
});

test('the order of the lines leaves no trace', { skip }, async () => {
	const stacks = knownStacks(23);
	assert.equal((await load(stacks)).html, (await load([...stacks].reverse())).html);
});

test('values above 32 bits', { skip }, async () => {
	const big = 3_000_000_000_000;
	const { tree } = await load([[['a', 'b'], big], [['a'], 7], [['c'], 2 ** 32]]);
	assert.deepEqual([...tree.total], [big + 7 + 2 ** 32, big + 7, big, 2 ** 32]);
	assert.deepEqual([...tree.self], [0, 7, big, 2 ** 32]);
});

test('data that ends early is refused', () => {
	for (const bytes of [[], [1], [2, 0, 0], [1, 0, 1, 0, 2, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]) {
		assert.throws(() => decodeProfile(Uint8Array.from(bytes)), RangeError);
	}
});

test('a node that lies outside of the tree is refused', () => {
	// frame a below the root; the node's column says how many levels its place is above a child's
	const data = (pops, deepest = 1) => Uint8Array.from([1, 0, 1, 0, 2, deepest, 1, ...[0, 0, 2, 1, 1, 1, 2, 1, pops.length, 1, 1, 0, 0], 0, 1, 97, 0, 0, 0, 1, 0, ...pops, 0, 1]);
	assert.deepEqual([...decodeProfile(data([0])).tree.level], [0, 1]);
	for (const [pops, deepest] of [[[1]], [[2]], [[255, 255, 255, 255, 15]], [[0], 0]]) assert.throws(() => decodeProfile(data(pops, deepest)), RangeError, String(pops));
});

test('gallop equals a linear search', () => {
	const xs = Float64Array.from({ length: 200 }, (_, i) => Math.floor(i / 3) * 2);
	for (let from = 0; from < 200; from += 7) {
		for (let value = -1; value < 140; value++) {
			let want = from;
			while (want < 200 && xs[want] < value) want++;
			const got = gallopTo(xs, from, 200, value);
			assert.ok(got === want || (got <= from + 1 && xs[from] >= value), `${from} ${value}`);
		}
	}
});

test('labels keep 4.5:1 on every colour', () => {
	const channel = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	const luminance = (r, g, b) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
	const parse = (text) => {
		if (text[0] === '#') return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16) / 255);
		const [h, s, l] = /hsl\((\S+) (\S+)% (\S+)%\)/.exec(text).slice(1).map(Number);
		const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
		return [0, 8, 4].map((n) => {
			const k = (n + h / 30) % 12;
			return l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
		});
	};
	const label = luminance(...parse(LABEL_COLOUR));
	for (const colour of COLOURS) {
		const ratio = (luminance(...parse(colour)) + 0.05) / (label + 0.05);
		assert.ok(ratio >= 4.5, `${colour}: ${ratio.toFixed(2)}`);
	}
});

test('names for people', () => {
	assert.equal(visibleText('a\u0000b\u202ec'), 'a\\u{0}b\\u{202e}c');
	assert.equal(withoutArguments('ns::f<std::vector<int>>(char const*)'), 'ns::f');
	assert.equal(withoutArguments('(anonymous namespace)::f(int)'), '(anonymous namespace)::f');
	assert.equal(withoutArguments('a::Maybe<a::Object> a::Parser<char>::value<false>(a::Handle<a::Object>) [clone .isra.0]'),
		'a::Parser::value');
	assert.equal(lastPart('a::Parser<char>::value(int) const [clone .cold]'), 'value');
	assert.equal(withoutArguments('a::(anonymous namespace)::f<int>(int)'), 'a::(anonymous namespace)::f');
	assert.equal(withoutArguments('<a::T as b::Trait>::run(u8)'), '<a::T as b::Trait>::run');
	assert.equal(withoutArguments('main.(*Engine).Turn(...)'), 'main.(*Engine).Turn');
	assert.equal(withoutArguments('operator new(unsigned long)'), 'operator new');
	assert.equal(lastPart('com/example/Foo.bar'), 'bar');
	assert.equal(lastPart('encoder_listencode_obj.isra.0'), 'encoder_listencode_obj');
	assert.equal(lastPart('pymain_run_python.constprop.0.cold'), 'pymain_run_python');
	assert.equal(lastPart('__libc_start_main@@GLIBC_2.34'), '__libc_start_main');
	assert.equal(lastPart('realpath@GLIBC_2.2.5'), 'realpath');
	assert.equal(lastPart('[libc.so.6+0x1234]'), '[libc.so.6+0x1234]');
	assert.equal(lastPart('JS:*render /srv/render.js:41'), 'JS:*render');
	assert.equal(withoutArguments('a.run.<locals>.<lambda> (/srv/a.py:7)'), 'a.run.<locals>.<lambda>');
	assert.equal(withoutArguments('json.loads (/l/json/__init__.py:299 [standard-library==3.11.2])'), 'json.loads');
	assert.equal(lastPart('a.run.<locals>.<lambda> (/srv/a.py:7)'), '<lambda>');
	assert.equal(lastPart('<module> (<frozen os>:1)'), '<module>');
	assert.equal(lastPart('appid: gunicorn: shop.wsgi:app (/srv/shop/wsgi.py)'), 'shop.wsgi:app');
	assert.equal(lastPart('appid: python: app.py (/srv/app.py)'), 'app.py');
	assert.equal(lastPart('appid: python: /srv/shop/client.py'), 'client.py');
	assert.equal(lastPart('appid: java: /srv/'), '/srv/');
	assert.equal(lastPart('appid: celery'), 'celery');
	assert.equal(lastPart('runtime.goexit.abi0'), 'goexit');
	assert.equal(lastPart('net/http.(*Server).Serve.gowrap3'), 'Serve.gowrap3');
	assert.equal(lastPart('main.serve.func1.2'), 'serve.func1.2');
	assert.equal(lastPart('func1'), 'func1');
	assert.equal(lastPart('f.1.2'), 'f.1.2');
	assert.equal(lastPart('appid: python: '), 'python:');
	assert.equal(lastPart('appid: '), 'appid: ');
	assert.equal(formatShare(1, 3), '33.33 %');
	assert.equal(formatValue(1, { unit: 'samples', scale: 1, nanoseconds: 0 }), '1 sample');
	assert.equal(formatValue(1, { unit: 'samples', scale: 5, nanoseconds: 0 }), '5 samples');
	assert.equal(formatValue(0.5, { unit: 'samples', scale: 2, nanoseconds: 0 }), '1 sample');
	assert.deepEqual([0, 0.0000123, 0.0005, 0.00196, 0.01, 0.126, 12].map(cpusText), ['0.00', '0.000012', '0.00050', '0.0020', '0.01', '0.13', '12.00']);
	assert.equal(formatValue(1500, { unit: 'samples', scale: 1, nanoseconds: 1e7 }), '1,500 samples, 15 s');
	assert.equal(formatValue(3, { unit: 'bytes', scale: 1024, nanoseconds: 0 }), '3 KiB');
	assert.equal(formatAmount(19929292929, { unit: 'nanoseconds', scale: 1, nanoseconds: 0 }), '19.9 s');
	assert.equal(formatAmount(3, { unit: 'bytes', scale: 1024, nanoseconds: 0 }), '3 KiB');
	assert.equal(negativeText({ samples: 1, value: 5e7 }, { unit: 'nanoseconds', scale: 8e7, nanoseconds: 0 }), '1 sample with a value below zero is left out (−50 ms).');
	assert.equal(negativeText({ samples: 1234, value: 5 }, { unit: 'samples', scale: 1, nanoseconds: 1e7 }), '1,234 samples with values below zero are left out (−5 samples, −50 ms).');
	assert.equal(negativeText({ samples: 0, value: 0 }, { unit: 'samples', scale: 1, nanoseconds: 0 }), '');
	assert.equal(negativeText(undefined, { unit: 'samples', scale: 1, nanoseconds: 0 }), '');
	assert.equal(formatAmount(1500, { unit: 'samples', scale: 1, nanoseconds: 1e7 }), '1,500');
});

test('the address holds the state, and nothing else gets in', () => {
	const state = { ...DEFAULT_STATE, view: 'inverted', path: [3, 1], query: 'a&b #', range: [1.5, 20], regex: true, flip: true, focus: 4 };
	assert.deepEqual(parseHash(formatHash(state)), state);
	assert.deepEqual(['kind', 'module', 'value', 'red'].map((colour) => parseHash('#colour=' + colour).colour), ['kind', 'module', 'value', 'kind']);
	assert.equal(parseHash(formatHash({ ...DEFAULT_STATE, colour: 'value' })).colour, 'value');
	for (const bad of ['5-2', '1', '1-2-3', '-1-4', 'x-2', '1-Infinity']) assert.equal(parseHash('#w=' + bad).range, null);
	assert.deepEqual(parseHash('#view=evil&z=-1&p=x.1e99&f=&colour=red&sort=z'), { ...DEFAULT_STATE, path: [], focus: 0 });
	assert.equal(compileQuery('(', true).error !== undefined, true);
});

test('a worker that had its first answer while it started has the next ones, too', async () => {
	const asked = [];
	class SlowWorker extends EventTarget { // says that it has started after the first answer was given to it
		postMessage(packed) {
			asked.push(packed.length);
			for (const data of [...(asked.length === 1 ? [{ started: true }] : []), { profile: 'from the worker' }]) {
				setTimeout(() => {
					this.onmessage?.({ data });
					this.dispatchEvent(new Event('message'));
				}, 5);
			}
		}
		terminate() {}
	}
	const { fetch } = globalThis;
	try {
		globalThis.Worker = SlowWorker;
		const { ServerSource } = await import('../../web/server.js');
		const sizes = [2 << 20, 100000, 100000];
		for (const size of sizes) {
			globalThis.fetch = async () => new Response(Buffer.concat([Buffer.from([2, 0, 0, 0]), Buffer.from('{}'), Buffer.alloc(size)]));
			assert.equal((await ServerSource.open('flame', {})).profile, 'from the worker');
		}
		assert.deepEqual(asked, sizes);
	} finally {
		globalThis.fetch = fetch;
		delete globalThis.Worker;
	}
});

test('kinds are those of the model, and each runtime is called by its title', () => {
	const header = readFileSync(new URL('../../src/model/model.h', import.meta.url), 'utf8');
	const kinds = header.slice(header.indexOf('#define MODEL_KINDS'), header.indexOf('enum model_kind'));
	const rows = [...kinds.matchAll(/X\((\w+), "([^"]+)", "([^"]*)"\)/g)].map(([, id, name, suffix]) => ({ id, name, suffix }));
	assert.ok(rows.length > 10);
	assert.deepEqual(Object.keys(KIND_ROWS), rows.map((row) => row.name), 'in the order in which pprof files count them');
	for (const { name, suffix } of rows) {
		assert.equal(KIND_ROWS[name].suffix, suffix);
		assert.match(classColour(name), /^hsl/);
	}
	const runtimes = /#define MODEL_RUNTIMES\(X\)((?:.*\\\n)*.*)/.exec(header)[1];
	const titles = [...runtimes.matchAll(/X\("([^"]+)", "([^"]+)", (\w+), (\w+)\)/g)];
	assert.ok(titles.length > 0);
	for (const [, runtime, title, functions, errors] of titles) {
		const of = (id) => KIND_ROWS[rows.find((row) => row.id === id).name];
		assert.equal(of(functions).runtime, runtime);
		assert.equal(of(errors).runtime, runtime);
		assert.equal(of(functions).text, title);
	}
	assert.equal(classText('rust'), 'Rust');
	assert.equal(classText('later'), 'later');
});

test('what was too narrow is opened in one place, and lies where it lay', { skip }, async () => {
	const { frames, tree } = await load(knownStacks(23, 400, 40));
	const boxes = (of, [from, to]) => Array.from({ length: of.count }, (_, i) => i).filter((i) => of.x[i] < to && of.x[i] + of.total[i] > from && of.frame[i] <= frames.count)
		.map((i) => [of.level[i], of.frame[i], of.x[i], of.total[i]].join());
	const [whole, coarse] = [0, 0.02].map((share) => invertedTree(tree, frames.count, { share }));
	assert.equal(whole.rests.length, 0);
	assert.ok(coarse.rests.length > 5);
	for (const rest of coarse.rests) {
		assert.equal(frames.name(coarse.frame[rest]), '(too narrow to show)');
		const range = [coarse.x[rest], coarse.x[rest] + coarse.total[rest]];
		const opened = invertedTree(tree, frames.count, { share: 0.02, window: { from: range[0], to: range[1], least: 0 } });
		assert.deepEqual(boxes(opened, range), boxes(whole, range));
		assert.ok(opened.count < whole.count);
		const before = boxes(opened, [0, tree.total[0]]);
		assert.ok(boxes(coarse, [0, tree.total[0]]).every((box) => before.includes(box)), 'what was there stays');
	}
});

test('what was found is "at least" so much where something without a name lies beside it', () => {
	// root 10: a 6 (b 3, 2 hidden), c 4
	const profile = (hidden) => profileOfJson({ meta: { total: 10 }, names: ['a', 'b', 'c'], kind: [0, 0, 0], module: [0, 0, 0], modules: [''], frame: [3, 0, 1, 2],
		level: [0, 1, 2, 1], total: [10, 6, 3, 4], self: [0, 3 - hidden, 3, 4], hidden: [0, hidden, 0, 0] });
	const found = ({ tree, frames }, name, within = 0) => {
		const table = new FrameTable(frames, KINDS);
		const { sum, isLeast } = matchNodes(tree, matchFrames(table, (n) => n === name), within);
		return [sum, isLeast];
	};
	const cut = profile(2);
	assert.deepEqual([cut.tree.deepest, cut.tree.rowStart.length], [2, 4], 'no row below the deepest node');
	assert.deepEqual(found(cut, 'b'), [3, true]);
	assert.deepEqual(found(cut, 'a'), [6, false], 'what is hidden below it is counted with it');
	assert.deepEqual(found(cut, 'a', 4), [0, false]);
	assert.deepEqual(found(profile(0), 'b'), [3, false]);
	const narrow = invertedTree(cut.tree, 3, { share: 0.35 });
	assert.deepEqual(matchNodes({ ...narrow, isCut: true }, matchFrames({ count: 3, name: () => '' }, () => false)), { nodes: [], sum: 0, isLeast: true });
});

test('an expression that comes while another is looked for gets its own hits', async () => {
	const started = [];
	const startWorker = () => {
		const worker = { ended: false, onmessage: null, terminate: () => (worker.ended = true),
			postMessage: ({ match, names }) => {
				worker.names = names ?? worker.names;
				const hits = Uint8Array.from(worker.names, (name) => (new RegExp(match).test(name) ? 1 : 0));
				setTimeout(() => worker.ended || worker.onmessage({ data: { hits } }), 30);
			} };
		started.push(worker);
		return worker;
	};
	const names = ['alpha', 'beta', 'gamma'];
	const frames = /** @type {any} */ ({ count: 3, name: (f) => names[f] });
	const matcher = new Matcher(/** @type {any} */ (startWorker));
	const first = matcher.match(frames, 'alp');
	const second = matcher.match(frames, 'gam');
	assert.equal(await first, null);
	assert.deepEqual([...(await second)], [0, 0, 1]);
	assert.deepEqual([...(await matcher.match(frames, 'a$'))], [1, 1, 1]);
	assert.equal(started.length, 2);
	matcher.end();
});
