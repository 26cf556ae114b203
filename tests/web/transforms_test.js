// SPDX-License-Identifier: Apache-2.0
// The steps of the view against changing each stack by hand; trees built from columns that are built here, without a browser.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { FrameTable } from '../../web/data.js';
import { TreeGrower, packNames } from '../../web/build.js';
import { applySteps, formatStep, groupText, groupsOf, groupsToAsk, parseSteps, resolveSteps, stepText } from '../../web/transforms.js';
import { layoutTree, withBase } from '../../web/layout.js';
import { formatHash, parseHash } from '../../web/state.js';
import { knownStacks, pathsOfTree, plainTree, shownName, steppedStacks, totalOf } from './known.js';

const KINDS = ['native', 'kernel', 'jit', 'python', 'python-native', 'java', 'java-inlined', 'process', 'thread', 'label', 'container'];
const SUFFIX = { '_[k]': 1, '_[p]': 3, '_[j]': 5, '_[i]': 6 };

function kindNumber(frame) {
	if (frame.startsWith('proc_')) return 7;
	if (frame.startsWith('thread_')) return 8;
	if (frame.startsWith('container_')) return 10;
	if (frame.includes('=') || frame.startsWith('(no ')) return 9;
	return SUFFIX[/_\[\w\]$/.exec(frame)?.[0]] ?? 0;
}
const kindOf = (frame) => KINDS[kindNumber(frame)];

/** moduleOf(frame) => number of the module, 0: none */
function profileOf(stacks, modules = [''], moduleOf = () => 0) {
	const frames = [...new Set(stacks.flatMap(([list]) => list))].sort();
	const number = new Map(frames.map((f, i) => [f, i]));
	const grower = new TreeGrower(frames.length, 8);
	for (const [list, count] of stacks) {
		let at = 0;
		for (const f of list) at = grower.child(at, number.get(f));
		grower.self[at] += count;
	}
	const raw = {
		count: frames.length, names: packNames(frames.map(shownName)), kinds: Uint8Array.from(frames, kindNumber),
		module: Uint32Array.from(frames, moduleOf), modules, origin: null,
	};
	return { raw, frames: new FrameTable(raw, KINDS), tree: grower.finish() };
}

const entries = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

function stepped(profile, steps) {
	const resolved = resolveSteps(steps, profile.frames);
	const frames = new FrameTable(profile.raw, KINDS, resolved.added);
	const tree = applySteps(profile.tree, resolved.steps, frames.count);
	assert.equal(tree.frame[0], frames.count);
	return { frames, tree };
}

function checkTree(profile, steps, want) {
	const { frames, tree } = stepped(profile, steps);
	assert.deepEqual(entries(pathsOfTree(tree, (f) => frames.name(f))), entries(plainTree(want)));
	assert.equal(tree.total[0], totalOf(want));
	for (let p = 1; p < tree.count; p++) {
		const [a, b] = [tree.order[p - 1], tree.order[p]];
		if (tree.level[a] === tree.level[b] && tree.parent[a] === tree.parent[b]) assert.ok(tree.total[a] >= tree.total[b]);
	}
}

test('a tree built from paths has what they have', () => {
	const stacks = knownStacks(31, 3000, 200);
	const { frames, tree } = profileOf(stacks);
	assert.deepEqual(entries(pathsOfTree(tree, (f) => frames.name(f))), entries(plainTree(stacks)));
	for (let i = 1; i < tree.count; i++) assert.ok(tree.parent[i] < i && tree.x[i] >= tree.x[tree.parent[i]]);
});

for (const seed of [41, 42, 43]) {
	test(`each step equals changing the stacks, seed ${seed}`, () => {
		const stacks = knownStacks(seed, 300, 24);
		const profile = profileOf(stacks);
		for (const name of new Set(stacks.flatMap(([frames]) => frames.map(shownName)))) {
			for (const op of ['focus', 'only', 'drop', 'hide', 'merge', 'recursion']) {
				const want = steppedStacks(stacks, op, name);
				// Stacks that lost all their frames count for the whole still.
				checkTree(profile, [{ op, text: name }], want);
			}
		}
	});

	test(`grouped by runtime and process, seed ${seed}`, () => {
		const plain = knownStacks(seed, 300, 24);
		checkTree(profileOf(plain), [{ op: 'group', text: 'runtime' }], steppedStacks(plain, 'group', '', kindOf));
		const stacks = plain.map(([frames, count], i) => [i % 7 ? ['pod', `proc_${i % 3}`, ...frames] : frames, count]);
		checkTree(profileOf(stacks), [{ op: 'group', text: 'process' }], steppedStacks(stacks, 'process', '', kindOf));
		assert.deepEqual(groupsOf(profileOf(stacks).frames), ['process', 'runtime']);
		assert.deepEqual(groupsOf(profileOf(plain).frames), ['runtime']);
	});
}

test('grouped by thread and by each of two labels', () => {
	const stacks = [[['thread_1', 'env=prod', 'zone=env=1', 'main', 'a'], 5], [['thread_1', '(no env)', 'zone=x', 'main'], 2], [['thread_2', 'env=prod', 'zone=x', 'b'], 1]];
	const profile = profileOf(stacks);
	const by = (...names) => names.map((text) => ({ op: 'group', text }));
	checkTree(profile, by('thread'), stacks);
	checkTree(profile, by('label:env'), stacks.map(([[thread, env, ...rest], count]) => [[env, thread, ...rest], count]));
	checkTree(profile, by('label:env', 'label:zone'), stacks.map(([[thread, env, zone, ...rest], count]) => [[zone, env, thread, ...rest], count]));
	checkTree(profile, [...by('thread'), { op: 'hide', text: 'env=prod' }], stacks.map(([frames, count]) => [frames.filter((f) => f !== 'env=prod'), count]));
	assert.deepEqual(groupsOf(profile.frames), ['thread', 'runtime']);
	assert.deepEqual(groupsOf(profile.frames, ['thread', 'host', 'label:a=b']), ['thread', 'host', 'runtime', 'label:a=b']);
	assert.deepEqual(groupsToAsk(by('thread', 'process', 'host', 'thread', 'label:x', 'runtime')), ['thread', 'host', 'label:x']);
	assert.deepEqual(parseSteps(['group:label:', 'group:label:x', 'group:threads', 'group:host']), by('label:x', 'host'));
	assert.deepEqual(parseSteps(['group:label:' + 'x'.repeat(195)]), []);
	assert.equal(groupText('label:a:b'), 'label a:b');
});

test('grouped by container: whatever stood above it comes below, and what has none is one part', () => {
	const stacks = [
		[['container_web', 'proc_1', 'main', 'a'], 5], [['container_web', 'proc_2', 'main', 'a'], 3], [['proc_1', 'container_db', 'main', 'b'], 2],
		[['proc_3', 'main', 'a'], 7], [['swapper_[k]'], 1], [['container_web'], 4],
	];
	const profile = profileOf(stacks);
	const by = (...names) => names.map((text) => ({ op: 'group', text }));
	const grouped = [
		[['container_web', 'proc_1', 'main', 'a'], 5], [['container_web', 'proc_2', 'main', 'a'], 3], [['container_db', 'proc_1', 'main', 'b'], 2],
		[['(no container)', 'proc_3', 'main', 'a'], 7], [['(no container)', 'swapper_[k]'], 1], [['container_web'], 4],
	];
	checkTree(profile, by('container'), grouped);
	// Not by what else starts a stack; and once more it is the same.
	checkTree(profile, by('process', 'container'), [
		[['container_web', 'proc_1', 'main', 'a'], 5], [['container_web', 'proc_2', 'main', 'a'], 3], [['container_db', 'proc_1', 'main', 'b'], 2],
		[['(no container)', 'proc_3', 'main', 'a'], 7], [['(no container)', '(no process)', 'swapper_[k]'], 1], [['container_web', '(no process)'], 4],
	]);
	checkTree(profile, by('container', 'container'), grouped);
	checkTree(profile, [...by('container'), { op: 'only', text: 'container_web' }], grouped.filter(([[first]]) => first === 'container_web'));
	checkTree(profile, [...by('container'), { op: 'drop', text: '(no container)' }], grouped.filter(([[first]]) => first !== '(no container)'));
	assert.deepEqual(groupsOf(profile.frames), ['process', 'container', 'runtime']);
	assert.deepEqual(groupsToAsk(by('container')), [], 'its frames are in the profile');
	assert.deepEqual(parseSteps(['group:container', 'group:containers']), by('container'));
});

test('a module collapses where its functions call each other', () => {
	const stacks = [[['main', 'l1', 'l2', 'x', 'l1'], 5], [['main', 'l2'], 2], [['l1', 'main'], 1]];
	const profile = profileOf(stacks, ['', 'libl.so', 'prog'], (f) => (f.startsWith('l') ? 1 : 2));
	checkTree(profile, [{ op: 'module', text: 'libl.so' }],
		[[['main', '[libl.so]', 'x', '[libl.so]'], 5], [['main', '[libl.so]'], 2], [['[libl.so]', 'main'], 1]]);
	checkTree(profile, [{ op: 'hidemodule', text: 'libl.so' }], [[['main', 'x'], 5], [['main'], 2], [['main'], 1]]);
});

test('steps stack, in their order, and know the frames of those before', () => {
	const stacks = [[['a', 'b_[p]', 'c_[k]'], 4], [['a', 'c_[k]'], 3], [['d', 'b_[p]'], 2]];
	const profile = profileOf(stacks);
	checkTree(profile, [{ op: 'drop', text: 'd' }, { op: 'hide', text: 'b' }], [[['a', 'c'], 7]]);
	checkTree(profile, [{ op: 'group', text: 'runtime' }, { op: 'focus', text: 'python' }],
		[[['python', 'a', 'b', 'c'], 4], [['python', 'd', 'b'], 2]]);
	checkTree(profile, [{ op: 'focus', text: 'nobody' }], []);
});

test('by name: every path has what it had, siblings by their names, also of what other steps made', () => {
	const stacks = knownStacks(33, 400, 30);
	const profile = profileOf(stacks);
	for (const steps of [[{ op: 'order', text: 'name' }], [{ op: 'order', text: 'name' }, { op: 'hide', text: 'main' }, { op: 'group', text: 'runtime' }, { op: 'order', text: 'name' }]]) {
		const plain = stepped(profile, steps.filter(({ op }) => op !== 'order'));
		const { frames, tree } = stepped(profile, steps);
		const pathsOf = (made) => entries(pathsOfTree(made.tree, (f) => made.frames.name(f)));
		assert.deepEqual(pathsOf({ frames, tree }), pathsOf(plain));
		assert.equal(tree.total[0], plain.tree.total[0]);
		for (let p = 1; p < tree.count; p++) {
			const [a, b] = [tree.order[p - 1], tree.order[p]];
			if (tree.level[a] === tree.level[b] && tree.parent[a] === tree.parent[b]) assert.ok(frames.name(tree.frame[a]) <= frames.name(tree.frame[b]));
		}
	}
	// Of two profiles as one each keeps its part; what was too narrow is last.
	const base = profile.tree.self.map((value) => Math.floor(value / 3));
	const both = applySteps(withBase({ ...profile.tree }, base), resolveSteps([{ op: 'order', text: 'name' }], profile.frames).steps, profile.frames.count);
	assert.equal(both.base[0], base.reduce((sum, value) => sum + value, 0));
	for (let i = 0; i < both.count; i++) assert.equal(both.baseSelf[i], Math.floor(both.self[i] / 3));
	const cut = layoutTree(Uint16Array.of(0, 1, 1), Uint32Array.of(profile.frames.count, profile.frames.count + 1, 0), Uint32Array.of(9, 5, 4), Uint32Array.of(0, 5, 4), 1);
	assert.deepEqual([...applySteps(cut, resolveSteps([{ op: 'order', text: 'name' }], profile.frames).steps, profile.frames.count).total], [9, 4, 5]);
});

test('steps in an address, whatever stands there', () => {
	const long = 'x'.repeat(5000);
	const steps = [{ op: 'hide', text: 'a:b;c&d=e#\u202e' }, { op: 'focus', text: stepText(long) }, { op: 'drop', text: stepText('~1.2.3') }];
	const state = { ...parseHash(''), steps };
	assert.deepEqual(parseHash(formatHash(state)).steps, steps);
	assert.ok(formatHash(state).length < 300);
	assert.notEqual(stepText('~1.2.3'), '~1.2.3');
	assert.deepEqual(parseSteps(['', ':', 'constructor:x', 'group:__proto__', 'hide:' + long, 'nothing', 'drop:']), [{ op: 'drop', text: '' }]);
	assert.equal(parseHash('#' + 't=hide:a&'.repeat(100)).steps.length, 32);
	checkTree(profileOf([[[long, 'b'], 2], [['b'], 1]]), [{ op: 'focus', text: stepText(long) }], [[[long, 'b'], 2]]);
});

test('no number of a hostile tree leaves the tree', () => {
	const stacks = Array.from({ length: 4 }, (_, i) => [Array.from({ length: 5000 }, (_, d) => `f${(d * (i + 1)) % 7}`), 1]);
	const profile = profileOf(stacks);
	for (const op of ['focus', 'only', 'drop', 'hide', 'merge', 'recursion']) stepped(profile, [{ op, text: 'f3' }]);
	assert.equal(stepped(profile, [{ op: 'group', text: 'runtime' }]).tree.deepest, 5001);
});
