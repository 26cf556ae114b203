// SPDX-License-Identifier: Apache-2.0
// Our answer to Grafana in the code that draws it: what Grafana's server part makes of the levels of a flame graph (a table of nodes in
// preorder, "nested set") is given to npm's @grafana/flamegraph, whose boxes have to be those of the stacks counted by hand.
// Of the package only the modules without a user interface are used. What they import of others (a theme, names of types, groupBy) is written here:
// all that the package depends on are some hundred megabytes.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { moduleFolder } from './browser.js';
import { Collector, missingCollector } from './collector.js';
import { knownStacks, plainTree, pprofOf, sandwichPaths, shownName, totalOf } from './known.js';

const PACKAGE = '@grafana/flamegraph';
const folder = moduleFolder(PACKAGE);
const reason = missingCollector() || (folder ? '' : `${PACKAGE} is not installed (scripts/setup-web)`);
const NOW = Math.floor(Date.now() / 1000) * 1000 - 60000;
const TICK = 1e7;
const STAND_INS = {
	'@grafana/data': "export const FieldType = { string: 'string', number: 'number', enum: 'enum' };\nexport const createTheme = () => ({});\nexport const getDisplayProcessor = () => (value) => ({ text: String(value), numeric: value });\n",
	lodash: 'export function groupBy(list, keyOf) {\n\tconst out = {};\n\tfor (const one of list) (out[keyOf(one)] ??= []).push(one);\n\treturn out;\n}\n',
};

/** The package's modules beside the stand-ins. Return: what dataTransform.mjs exports */
async function loadTransforms(scratch) {
	for (const [name, text] of Object.entries(STAND_INS)) {
		const to = join(scratch, 'node_modules', name);
		mkdirSync(to, { recursive: true });
		writeFileSync(join(to, 'package.json'), JSON.stringify({ name, type: 'module', exports: './index.js' }));
		writeFileSync(join(to, 'index.js'), text);
	}
	for (const name of ['types.mjs', 'FlameGraph/dataTransform.mjs', 'FlameGraph/treeTransforms.mjs']) {
		mkdirSync(dirname(join(scratch, name)), { recursive: true });
		copyFileSync(join(folder, 'dist', 'esm', name), join(scratch, name));
	}
	return import(pathToFileURL(join(scratch, 'FlameGraph/dataTransform.mjs')).href);
}

/** The boxes of an answer: { name, level, value, self, start, end } in preorder. Of each four numbers the first is the gap to the box before it. */
function boxesOf({ names, levels }) {
	const boxes = levels.flatMap(({ values }, level) => {
		let at = 0;
		return Array.from({ length: values.length / 4 }, (_, i) => {
			const [gap, value, self, name] = values.slice(i * 4, i * 4 + 4).map(Number);
			const start = at + gap;
			at = start + value;
			return { name: names[name], level, value, self, start, end: at };
		});
	});
	return boxes.sort((a, b) => a.start - b.start || a.level - b.level);
}

/** The table that Grafana's page gets. */
function frameOf(boxes) {
	const field = (name, type, key) => ({ name, type, config: {}, values: boxes.map((box) => box[key]) });
	return { length: boxes.length, fields: [field('level', 'number', 'level'), field('value', 'number', 'value'), field('self', 'number', 'self'), field('label', 'string', 'name')] };
}

const sorted = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

describe("npm's @grafana/flamegraph", { skip: reason || false }, () => {
	let collector;
	let scratch;
	let grafana;
	const stacks = knownStacks(81, 300, 25).map(([frames, count]) => [['main', ...frames.map(shownName)], count]);

	before(async () => {
		scratch = mkdtempSync(join(tmpdir(), 'hearth-grafana-'));
		grafana = await loadTransforms(scratch);
		collector = await Collector.start('--no-access-log');
		const types = [['samples', 'count'], ['cpu', 'nanoseconds']];
		const half = (part) => stacks.filter((_, i) => i % 2 === part).map(([frames, count]) => [frames, [count, count * TICK]]);
		for (const part of [0, 1]) await collector.upload('drawn', 'cpu', pprofOf(types, half(part)), NOW - 60000 * (part + 1));
	});
	after(async () => {
		await collector?.close();
		if (scratch) rmSync(scratch, { recursive: true, force: true });
	});

	/** A flame graph as Grafana asks for it. */
	async function answerOf(sample, more = {}) {
		const unit = sample === 'cpu' ? 'nanoseconds' : 'count';
		const body = { profileTypeID: `process_cpu:${sample}:${unit}:cpu:nanoseconds`, labelSelector: '{service_name="drawn"}', start: String(NOW - 3600000), end: String(NOW + 60000), maxNodes: '16384', ...more };
		const answer = await fetch(`${collector.url}querier.v1.QuerierService/SelectMergeStacktraces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
		assert.equal(answer.status, 200);
		return (await answer.json()).flamegraph;
	}

	for (const [sample, scale] of [['samples', 1], ['cpu', TICK]]) {
		test(`${sample}: each box is what was sent, and lies where our answer has it`, async () => {
			const boxes = boxesOf(await answerOf(sample));
			const container = new grafana.FlameGraphDataContainer(frameOf(boxes), { collapsing: true });
			const items = container.getLevels().flat();
			const pathOf = (item) => [...(item.parents?.length ? pathOf(item.parents[0]) : []), container.getLabel(item.itemIndexes[0])];
			const wanted = plainTree(stacks.map(([frames, count]) => [['total', ...frames], count * scale]));
			assert.deepEqual(sorted(new Map(items.map((item) => [pathOf(item).join(';'), item.value]))), sorted(wanted));
			assert.equal(items.length, wanted.size, 'no path twice');
			for (const item of items) {
				const box = boxes[item.itemIndexes[0]];
				assert.deepEqual([item.start, item.start + item.value, item.level], [box.start, box.end, box.level], pathOf(item).join(';'));
			}
			const self = new Map();
			for (const [frames, count] of stacks) self.set(frames.at(-1), (self.get(frames.at(-1)) ?? 0) + count * scale);
			const drawn = new Map();
			for (const i of boxes.keys()) if (container.getSelf(i)) drawn.set(container.getLabel(i), (drawn.get(container.getLabel(i)) ?? 0) + container.getSelf(i));
			assert.deepEqual(sorted(drawn), sorted(self));
		});
	}

	test('its sandwich of a function: callers and callees add up to what was sent', async () => {
		const container = new grafana.FlameGraphDataContainer(frameOf(boxesOf(await answerOf('samples'))), {});
		// Of a function that calls itself it counts each call, so one that does not is taken.
		const names = [...new Set(stacks.flatMap(([frames]) => frames))].filter((name) => stacks.every(([frames]) => frames.indexOf(name) === frames.lastIndexOf(name)));
		assert.ok(names.length > 1, 'there are some');
		for (const name of names) {
			const [callers, callees] = container.getSandwichLevels(name);
			const whole = totalOf(stacks.filter(([frames]) => frames.includes(name)));
			assert.deepEqual([callers.at(-1)[0].value, callees[0][0].value], [whole, whole], name);
			const below = sandwichPaths(stacks, name).callees;
			const pathOf = (item) => [...(item.parents?.length ? pathOf(item.parents[0]) : []), container.getLabel(item.itemIndexes[0])];
			assert.deepEqual(sorted(new Map(callees.flat().map((item) => [pathOf(item).join(';'), item.value]))), sorted(below), name);
		}
	});

	test('an answer that is cut: what is left out is in a box of its own, and the whole stays', async () => {
		const boxes = boxesOf(await answerOf('samples', { maxNodes: '40' }));
		const container = new grafana.FlameGraphDataContainer(frameOf(boxes), {});
		const items = container.getLevels().flat();
		assert.ok(items.length < 100, `${items.length} boxes`);
		assert.equal(container.getLevels()[0][0].value, totalOf(stacks));
		assert.equal(boxes.reduce((sum, box) => sum + box.self, 0), totalOf(stacks));
		for (const item of items) assert.deepEqual([item.start, item.value], [boxes[item.itemIndexes[0]].start, boxes[item.itemIndexes[0]].value]);
		assert.ok(container.getUniqueLabels().includes('other'));
	});
});
