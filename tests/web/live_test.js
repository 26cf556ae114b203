// SPDX-License-Identifier: Apache-2.0
// What live mode is made of: events in pieces, streams that are shared, and siblings that keep their places.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { FrameTable } from '../../web/data.js';
import { readFolded } from '../../web/file.js';
import { EventReader, LiveFeeds } from '../../web/live_feed.js';
import { SiblingOrder, heaviestFirst } from '../../web/order.js';
import { liveStacksOf, startCollector } from './fake_collector.mjs';
import { foldedText, knownStacks, pathsOfTree, plainTree, totalOf } from './known.js';

test('events come in pieces that end anywhere', () => {
	const text = 'retry: 3000\n\nevent: hello\ndata: {"a": ": b"}\n\n:\n\nevent: flame\nid: 7\ndata: \u00e4\n\nevent: odd\n\n';
	const wanted = [{ event: 'hello', data: '{"a": ": b"}' }, { event: 'flame', data: '\u00e4' }, { event: 'odd', data: '' }];
	for (let size = 1; size < text.length; size++) {
		const reader = new EventReader();
		const found = [];
		for (let at = 0; at < text.length; at += size) found.push(...reader.push(text.slice(at, at + size)));
		assert.deepEqual(found, wanted, `pieces of ${size}`);
	}
	const endless = new EventReader();
	assert.throws(() => {
		for (let i = 0; i < 9; i++) endless.push('x'.repeat(1 << 23));
	}, /too large/);
});

function profileOf(stacks) {
	const read = readFolded(foldedText(stacks));
	return { profile: read.profiles[0], frames: new FrameTable(read.profiles[0].frames, read.kinds) };
}

const pathsInOrder = ({ tree }, frames) => [...pathsOfTree(tree, (f) => frames.name(f)).keys()];

test('siblings keep the order in which they came up, whatever they cost', () => {
	const order = new SiblingOrder();
	const stacks = knownStacks(71);
	const one = profileOf(stacks);
	const first = order.arrange(one.profile, one.frames);
	const paths = pathsInOrder(first, one.frames);
	assert.deepEqual(paths, pathsInOrder(one.profile, one.frames), 'the first tree is taken as it comes');
	const changed = [...stacks.map(([frames, count], i) => [frames, i % 3 ? count * 40 : count]), [['a_new_one'], 999999]];
	const two = profileOf(changed);
	const second = order.arrange(two.profile, two.frames);
	assert.deepEqual(pathsInOrder(second, two.frames), [...paths, 'a_new_one']);
	const sums = pathsOfTree(second.tree, (f) => two.frames.name(f));
	for (const [path, total] of plainTree(changed)) assert.equal(sums.get(path), total);
	const three = profileOf(stacks.slice(0, 1));
	order.arrange(three.profile, three.frames);
	const four = order.arrange(two.profile, two.frames);
	assert.deepEqual(pathsInOrder(four, two.frames), [...paths, 'a_new_one'], 'what was away for a while comes back to its place');
	assert.deepEqual(heaviestFirst(second.tree).total.slice(0, 2), Uint32Array.of(totalOf(changed), 999999));
	order.forget();
	assert.deepEqual(pathsInOrder(order.arrange(two.profile, two.frames), two.frames), pathsInOrder(two.profile, two.frames));
});

test('what a collector says of a round, of a question and of the end is passed on in its words', async () => {
	const { fetch } = globalThis;
	const said = [];
	let turn = 0;
	const events = ['problem', 'bye'].map((event, i) => `event: ${event}\ndata: ${JSON.stringify([{ code: 413, error: 'too large' }, { why: 'it was open for 12 hours' }][i])}\n\n`);
	globalThis.fetch = async () => (turn++ ? new Response(JSON.stringify({ code: 400, error: 'no such window' }), { status: 400 }) : new Response(events.join('')));
	const feeds = new LiveFeeds();
	const { setTimeout: later } = globalThis;
	globalThis.setTimeout = /** @type {any} */ ((run, ms) => later(run, ms === 3000 ? 0 : ms));
	try {
		await new Promise((done) => feeds.watch('window=1m', ({ query, ...message }) => said.push(message) && message.event === 'refused' && done(null)));
		globalThis.fetch = async () => new Response('event: empty\ndata: {}\n\n');
		const { event } = await new Promise((done) => feeds.watch('window=1m', done));
		assert.equal(event, 'empty', 'a refusal is not kept for who asks later');
	} finally {
		for (const feed of feeds.feeds.values()) feed.cancel.abort();
		Object.assign(globalThis, { fetch, setTimeout: later });
	}
	assert.deepEqual(said, [{ event: 'problem', json: { code: 413, error: 'too large' } }, { event: 'ended', why: 'it was open for 12 hours' },
		{ event: 'refused', status: 400, words: 'no such window' }]);
});

test('a tree of 5,000 levels does not overflow anything', () => {
	const deep = profileOf([[Array.from({ length: 5000 }, (_, i) => 'f' + (i % 7)), 3]]);
	assert.equal(new SiblingOrder().arrange(deep.profile, deep.frames).tree.deepest, 5000);
});

test('equal questions share a stream; beyond three a question is asked again and again', async () => {
	const collector = await startCollector();
	const { fetch } = globalThis;
	globalThis.fetch = (path, options) => fetch(new URL(path, collector.url), options);
	const feeds = new LiveFeeds();
	const heard = Array.from({ length: 6 }, () => []);
	const tells = heard.map((list) => (message) => list.push(message));
	const leaveAll = () => [...feeds.feeds.values()].forEach((feed) => [...feed.listeners].forEach((tell) => feeds.leave(tell)));
	const services = ['search', 'search', 'true', 'rm', 'php-fpm', 'nothing'];
	try {
		for (const [i, service] of services.entries()) feeds.watch(`service=${service}&window=10s`, tells[i]);
		const kinds = (list) => list.map(({ event }) => event);
		const until = async (check) => {
			for (let i = 0; i < 200 && !check(); i++) await new Promise((done) => setTimeout(done, 25));
			assert.ok(check(), JSON.stringify(heard.map(kinds)));
		};
		await until(() => heard.every((list) => list.some(({ event }) => event === 'flame' || event === 'empty')));
		assert.equal(collector.streams.size, 3);
		assert.deepEqual(kinds(heard[0]).filter((e) => e !== 'hello'), ['totals', 'flame']);
		assert.equal(heard[0].find(({ event }) => event === 'flame').meta.total, totalOf(liveStacksOf('search', 0)));
		const live = (r) => r.startsWith('/api/v1/live?');
		assert.ok(collector.requests.every(live), 'the range of a picture is the collector\'s affair');
		const once = (service) => collector.requests.filter((r) => r === `/api/v1/live?service=${service}&window=10s&once=1`).length;
		assert.deepEqual(['search', 'true', 'rm', 'php-fpm', 'nothing'].map(once), [0, 0, 0, 1, 1]);
		assert.deepEqual(kinds(heard[4]), ['hello', 'totals', 'flame'], 'a picture alone ends without a word');
		assert.deepEqual(kinds(heard[5]), ['hello', 'empty']);
		const late = [];
		feeds.watch('service=search&window=10s', (message) => late.push(message));
		assert.deepEqual(kinds(late), ['totals', 'flame'], 'who comes late is told what was last');
		feeds.leave(tells[2]);
		await until(() => [...collector.streams].some(({ query }) => query.get('service') === 'php-fpm'));
		collector.nextRound();
		await until(() => heard[4].at(-1).meta?.total === totalOf(liveStacksOf('php-fpm', 1)));
		assert.equal(collector.streams.size, 3, 'a place that is free is taken by one that was asked again');
		for (const tell of tells) feeds.leave(tell);
		await until(() => collector.streams.size === 1);
		leaveAll();
		await until(() => collector.streams.size === 0);
	} finally {
		leaveAll();
		globalThis.fetch = fetch;
		await collector.close();
	}
});
