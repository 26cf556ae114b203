// SPDX-License-Identifier: Apache-2.0
// The pages in a real browser against the real collector: totals are those that were sent, the server's, and go tool pprof's.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assertSilent, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { Collector, missingCollector, missingGo, sumOfFolded } from './collector.js';
import { countFunctions, knownStacks, pprofOf, shownName, totalOf } from './known.js';
import { graphAtRest } from './overview.js';
import { Speedscope, assertRows, missingSpeedscope, timeText } from './speedscope.js';

const reason = missingBrowser() || missingCollector();
const HOUR = 3600000;
const DAY = 24 * HOUR;
const NOW = Math.floor(Date.now() / 1000) * 1000 - 60000;
const [FROM, TO] = [NOW - HOUR, NOW];
const RANGE = `from=${FROM}&to=${TO}`;
const TICK = 1e7;
const TYPES = [['samples', 'count'], ['cpu', 'nanoseconds']];
const MARKUP = '<img src=x onerror=window.__hit=1>';
const NAME_KEPT = 16384; // docs/collector.md: bytes of a function's name
const EVIL = [MARKUP, '\u202egpj.exe', 'x'.repeat(100000), '</script><script>window.__hit=1</script>', '=1+1', "a' onmouseover='window.__hit=1"];

/** Stacks of a service, all below main. Of the kinds only the kernel is left, which pprofOf() puts into another mapping. */
const stacksOf = (seed, lines) => knownStacks(seed, lines).map(([frames, count]) => [['main', ...frames.map((f) => (f.endsWith('_[k]') ? f : shownName(f)))], count]);
const profileOf = (stacks) => pprofOf(TYPES, stacks.map(([frames, count, owner]) => [frames, [count, count * TICK], owner]));

/** Who runs on the host node-p: [program, process, thread, name of the thread]. */
const OWNERS = [['nginx', 1204, 1204, 'nginx'], ['nginx', 1204, 1210, 'worker 1'], ['nginx', 1205, 1205, 'nginx'], ['java', 77, 80, 'GC'], ['java', 77, 81, 'http,a=b%2C'],
	['<img src=y onerror=window.__hit=1>', 5, 5, MARKUP], ['\u202esys.txe', 6, 7, "a' onmouseover='window.__hit=1"]]; // none is called as a function is
const ownedStacks = (seed) => stacksOf(seed, 60).map(([frames, count], i) => {
	const [comm, pid, tid, thread] = OWNERS[(i + seed) % OWNERS.length];
	return [frames, count, { pid, tid, comm, thread }];
});

/** What was sent: { service, at, labels, stacks }. */
function sentProfiles() {
	const sent = [];
	const add = (service, at, labels, stacks) => sent.push({ service, at, labels, stacks });
	for (let i = 0; i < 10; i++) {
		add('api', FROM + 120000 + i * 300000, { host: i % 2 ? 'node-b' : 'node-a', version: i < 5 ? '1' : '2' }, stacksOf(100 + i, 120));
		if (i < 4) add('api', FROM - DAY + 120000 + i * 300000, { host: 'node-a' }, stacksOf(105 + i, 80));
	}
	for (let i = 0; i < 6; i++) add(i % 3 ? 'owned' : 'owned too', FROM + 300000 + i * 400000, { host: 'node-p' }, ownedStacks(200 + i));
	add('web', FROM + 600000, { host: 'node-a' }, stacksOf(7, 60));
	add('doomed', FROM + 600000, { host: 'node-a' }, stacksOf(8, 10));
	for (const service of ['evil', MARKUP]) add(service, FROM + 900000, { host: '\u202eetad<b>', note: MARKUP }, EVIL.map((name) => [['main', name], 5]));
	return sent;
}

const noGo = missingGo() || false;

describe('pages of the real collector', { skip: reason || false }, () => {
	let browser;
	let collector;
	const sent = sentProfiles();
	const sumOf = (test) => sent.filter(test).reduce((sum, p) => sum + totalOf(p.stacks), 0) * TICK;
	const isNow = (p) => p.at >= FROM;

	before(async () => {
		collector = await Collector.start('--no-access-log');
		for (const { service, at, labels, stacks } of sent) await collector.upload(service, 'cpu', profileOf(stacks), at, labels);
		await collector.stop(); // what the pages see was read from the disk
		await collector.run();
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		await collector?.close();
	});

	const open = (hash, options) => openSite(browser, collector.url, hash, options);
	const total = (page) => page.evaluate(() => window.__viewer.tree.total[0]);
	/** [name, self, total] of every function on the page. */
	const functionsOf = async (page) => new Map((await page.evaluate(async () => {
		const v = window.__viewer;
		const { self, total: all } = await v.whenTotals();
		return Array.from({ length: v.frames.count }, (_, f) => [v.frames.name(f), { self: self[f], total: all[f] }]);
	})));
	/** A selection as a pprof file. */
	const savedSelection = (params) => collector.save('selection.pb.gz', 'api/v1/export?' + new URLSearchParams({ from: FROM, to: TO, ...params, as: 'pprof' }));
	/** Without what a browser itself says of an answer that is an error. */
	const withoutStatus = (opened) => (opened.noise = opened.noise.filter((line) => !/Failed to load resource|ERR_/.test(line)));

	test('services: what they cost is what was sent, and a click leads to the same', async () => {
		const opened = await open(`#/services?${RANGE}`);
		const { page } = opened;
		const rows = await page.locator('#services tbody tr').allInnerTexts();
		for (const service of ['api', 'web']) {
			const cpus = (sumOf((p) => isNow(p) && p.service === service) / 1e9 / ((TO - FROM) / 1000)).toFixed(2);
			assert.ok(rows.some((row) => new RegExp(`^${service}\\s[^]*\\b${cpus.replace('.', '\\.')}\\b`).test(row)), `${service} ${cpus}: ${rows.join(' | ')}`);
		}
		const answer = await collector.askJson('services', { from: FROM, to: TO });
		assert.equal(answer.total, sumOf(isNow));
		await page.locator('#services a', { hasText: 'api' }).first().click();
		await pageShown(page, 'profile');
		assert.equal(await total(page), sumOf((p) => isNow(p) && p.service === 'api'));
		await assertSilent(opened);
	});

	const selections = [
		['a service', `service=api&${RANGE}`, { service: 'api' }, (p) => p.service === 'api'],
		['a host of it', `service=api&${RANGE}&labels=host%3Dnode-a`, { service: 'api', labels: 'host=node-a' }, (p) => p.service === 'api' && p.labels.host === 'node-a'],
		['two labels', `service=api&${RANGE}&labels=host%3Dnode-b,version%3D1`, { service: 'api', labels: 'host=node-b,version=1' },
			(p) => p.service === 'api' && p.labels.host === 'node-b' && p.labels.version === '1'],
		['all services', RANGE, {}, () => true],
		['a part of the time', `service=api&${RANGE}&part=${FROM}-${FROM + HOUR / 2}`, { service: 'api', from: FROM, to: FROM + HOUR / 2 },
			(p) => p.service === 'api' && p.at < FROM + HOUR / 2],
	];
	for (const [title, hash, params, isPicked] of selections) {
		test(`${title}: page and server agree`, async () => {
			const wanted = sent.filter((p) => isNow(p) && isPicked(p));
			const stacks = wanted.flatMap((p) => p.stacks);
			const opened = await open(`#/profile?${hash}`);
			const { page } = opened;
			assert.equal(await total(page), totalOf(stacks) * TICK);
			const flame = await collector.askJson('flame', { from: FROM, to: TO, ...params });
			assert.equal(flame.total[0], totalOf(stacks) * TICK);
			const functions = await functionsOf(page);
			for (const [name, { self, total: all }] of countFunctions(stacks)) {
				if (name.length < 1000) assert.deepEqual(functions.get(name), { self: self * TICK, total: all * TICK }, name);
			}
			assert.equal(collector.foldedTotal(await savedSelection(params)), totalOf(stacks), 'hearth convert');
			await assertSilent(opened);
		});

		test(`${title}: page and go tool pprof agree`, { skip: noGo }, async () => {
			const opened = await open(`#/profile?${hash}`);
			const go = collector.goTop(await savedSelection(params), 'cpu');
			assert.equal(go.total, await total(opened.page));
			let compared = 0;
			for (const [name, values] of await functionsOf(opened.page)) {
				if (!/^(ns\d|main)/.test(name)) continue;
				assert.deepEqual(go.functions.get(name), values, name);
				compared++;
			}
			assert.ok(compared > 1);
			await assertSilent(opened);
		});
	}

	test('the heat map: each row has what was sent, a block its flame graph', async () => {
		const opened = await open(`#/heat?${RANGE}`);
		const { page } = opened;
		const rows = await page.evaluate(() => window.__app.heat.blocks.rows.map(({ value, points }) => [value, points]));
		const hosts = new Set(sent.filter(isNow).map((p) => p.labels.host));
		assert.deepEqual(new Set(rows.map(([value]) => value)), hosts);
		for (const [value, points] of rows) assert.equal(points.reduce((a, b) => a + b, 0), sumOf((p) => isNow(p) && p.labels.host === value), value);
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		const at = rows.findIndex(([value]) => value === 'node-b');
		const column = rows[at][1].findIndex((value) => value > 0);
		await page.evaluate(([row, block]) => window.__app.heat.open(row, block, block), [at, column]);
		await pageShown(page, 'profile');
		assert.equal(await total(page), rows[at][1][column]);
		await assertSilent(opened);
	});

	for (const [by, keys] of [['process', ['pid', 'comm']], ['thread', ['pid', 'comm', 'tid', 'thread']], ['program', ['comm']]]) {
		test(`a host by ${by}: each row is what was sent, the server's, and its graph's`, async () => {
			const wanted = new Map();
			for (const [, count, owner] of sent.filter((p) => p.labels.host === 'node-p').flatMap((p) => p.stacks)) {
				const key = JSON.stringify(keys.map((name) => owner[name]));
				wanted.set(key, (wanted.get(key) ?? 0) + count * TICK);
			}
			const all = sumOf((p) => p.labels.host === 'node-p');
			const hash = `#/hosts?${RANGE}&labels=host%3Dnode-p&by=${by}`;
			const opened = await open(hash);
			const { page } = opened;
			const answer = await collector.askJson('processes', { from: FROM, to: TO, labels: 'host=node-p', by });
			const stored = (await collector.askJson('services', { from: FROM, to: TO, labels: 'host=node-p' })).total;
			assert.deepEqual([answer.total, stored, answer.folded.total], [all, all, 0]);
			const seen = await page.evaluate(() => window.__app.hosts.answer.rows);
			assert.deepEqual(seen.map((row) => [row.total, row.points.reduce((a, b) => a + b, 0)]), answer.rows.map((row) => [row.total, row.total]));
			const keyOf = (row) => JSON.stringify(keys.map((name) => ({ pid: row.pid, comm: row.program, tid: row.thread, thread: row.thread_name }[name])));
			assert.deepEqual(new Map(seen.map((row) => [keyOf(row), row.total])), wanted);
			const cpus = (value) => (value / 1e9 / ((TO - FROM) / 1000)).toFixed(2);
			const cells = await page.locator('#owners tbody td:nth-child(4)').allInnerTexts();
			assert.deepEqual(cells, seen.map((row) => cpus(row.total)));
			assert.ok((await page.locator('#host-facts').innerText()).includes(cpus(all)));
			assert.ok(!(await page.locator('body').innerText()).includes('\u202e'));
			const evil = await open(`#/hosts?${RANGE}&labels=host%3D${encodeURIComponent('\u202eetad<b>')}&by=${by}`);
			assert.match(await evil.page.title(), /etad<b>/);
			assert.ok(!(await evil.page.title()).includes('\u202e') && !(await evil.page.locator('body').innerText()).includes('\u202e'));
			await assertSilent(evil);
			for (let i = 0; i < seen.length; i++) {
				await page.locator('#owners tbody td:first-child a').nth(i).click();
				await pageShown(page, 'profile');
				assert.equal(await total(page), seen[i].total, keyOf(seen[i]));
				assert.ok(!(await page.locator('body').innerText()).includes('\u202e'));
				await page.goBack();
				await pageShown(page, 'hosts');
			}
			assert.equal(await page.evaluate(() => window.__hit), undefined);
			assert.equal(await page.locator('img').count(), 0);
			await assertSilent(opened);
		});
	}

	test('the heat map and hosts: absurd ranges and whoever is not there', async () => {
		const odd = [['heat?from=1970-01-02T00:00:00Z&to=2100-01-01T00:00:00Z', /CPUs/], ['heat?from=now&to=0', /did not understand/], ['heat?from=2001-01-01T00:00:00Z&to=2001-01-01T00:00:01Z', /Nothing was stored/],
			['heat?rows=nobody&from=-1h', /\(no nobody\)|Nothing was stored/], [`heat?rows=${encodeURIComponent(MARKUP)}&${RANGE}`, /CPUs/], [`heat?service=gone&${RANGE}`, /Nothing was stored/],
			[`heat?${RANGE}&profile=nope`, /did not understand/], ['hosts?from=1970-01-02T00:00:00Z&to=2100-01-01T00:00:00Z', /node-p/], ['hosts?from=now&to=0', /did not understand/],
			[`hosts?${RANGE}&labels=host%3Dgone`, /Nothing was stored of this host/], [`hosts?${RANGE}&labels=host%3Dnode-p&process=9-9&by=thread`, /Nothing was stored of this host/],
			[`hosts?${RANGE}&labels=host%3Dnode-p&process=x`, /did not understand/], [`hosts?${RANGE}&by=${encodeURIComponent(MARKUP)}`, /CPUs/],
			['hosts?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z', /No profile of this range says its host/],
			[`profile?${RANGE}&process=1204-0&program=java`, /Nothing is stored/], [`profile?${RANGE}&process=99999999999`, /did not understand/]];
		for (const [hash, words] of odd) {
			const opened = await open('#/' + hash);
			const { page } = opened;
			await page.waitForFunction((source) => new RegExp(source).test(document.getElementById('pages').innerText), words.source, { timeout: 15000 }).catch(async () => {
				assert.fail(`${hash}: ${await page.locator('#pages').innerText()}`);
			});
			assert.equal(await page.evaluate(() => window.__hit), undefined, hash);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash);
			withoutStatus(opened);
			await assertSilent(opened);
		}
	});

	test('services, a profile and a comparison: from 1970 to 2100, and other absurd ranges', async () => {
		const [first, last] = ['1970-01-01T00:00:00Z', '2100-01-01T00:00:00Z'];
		const ever = `from=${first}&to=${last}`;
		const services = await open(`#/services?${ever}`);
		const named = await services.page.locator('#services tbody tr').allInnerTexts();
		for (const service of ['api', 'web', 'owned']) assert.ok(named.some((row) => row.startsWith(service)), `${service}: ${named.join(' | ')}`);
		assert.equal((await collector.askJson('services', { from: first, to: last })).total, sumOf(() => true));
		await services.page.locator('#services a', { hasText: 'api' }).first().click();
		await pageShown(services.page, 'profile');
		assert.equal(await total(services.page), sumOf((p) => p.service === 'api'), 'the link has the range');
		await assertSilent(services);
		for (const hash of [`profile?service=api&${ever}`, 'profile?service=api&from=0&to=9007199254740991', 'profile?service=api&from=0002-01-01T00:00:00Z&to=9999-12-31T00:00:00Z',
			`profile?service=api&from=${'9'.repeat(3)}&to=${'9'.repeat(19)}`]) {
			const opened = await open('#/' + hash);
			const { page } = opened;
			await pageShown(page, 'profile').catch(async () => assert.fail(`${hash}: ${await page.locator('#pages').innerText()}`));
			assert.equal(await total(page), sumOf((p) => p.service === 'api'), hash);
			const drawn = await page.evaluate(() => {
				const { canvas } = window.__viewer.graph;
				const { data } = canvas.getContext('2d', { willReadFrequently: true }).getImageData(0, 0, canvas.width, canvas.height);
				return new Set(new Uint32Array(data.buffer)).size;
			});
			assert.ok(drawn > 3, `${hash}: ${drawn} colours`);
			assert.match(await page.locator('#timeline output').innerText(), /\d/, hash);
			assert.doesNotMatch(await page.locator('#pages').innerText(), /NaN|Infinity|undefined|Invalid Date/, hash);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash);
			opened.noise = opened.noise.filter((line) => !/willReadFrequently/.test(line));
			await assertSilent(opened);
		}
		const odd = [[`services?from=${last}&to=2100-01-02T00:00:00Z`, /Nothing was stored/], [`services?from=${first}&to=1970-01-02T00:00:00Z`, /Nothing was stored/], ['services?from=now&to=0', /did not understand/],
			['services?from=1e9&to=now', /did not understand/], [`profile?service=api&from=${last}&to=2100-01-02T00:00:00Z`, /Nothing is stored/], [`profile?service=api&from=${first}&to=1970-01-02T00:00:00Z`, /Nothing is stored/],
			[`profile?service=api&from=0&to=${'9'.repeat(30)}`, /did not understand/], ['profile?service=api&from=10000-01-01T00:00:00Z&to=now', /did not understand/], [`compare?service=api&${ever}`, /The base has nothing|→/], [`compare?service=api&base=7d&from=${first}&to=now`, /The base has nothing|→/]];
		for (const [hash, words] of odd) {
			const opened = await open('#/' + hash);
			const { page } = opened;
			await page.waitForFunction((source) => new RegExp(source).test(document.getElementById('pages').innerText), words.source, { timeout: 15000 }).catch(async () => {
				assert.fail(`${hash}: ${await page.locator('#pages').innerText()}`);
			});
			assert.doesNotMatch(await page.locator('#pages').innerText(), /NaN|Infinity|undefined|Invalid Date/, hash);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash);
			withoutStatus(opened);
			await assertSilent(opened);
		}
	});

	for (const [name, words, row] of [['heat', 'Nothing was stored', '#heat-names li'], ['hosts', 'No profile of this range says its host', '#owners tbody tr']]) {
		test(`${name}: an empty store, and a server that goes and comes back`, async () => {
			const other = await Collector.start('--no-access-log');
			try {
				const opened = await openSite(browser, other.url, `#/${name}?${RANGE}`);
				const { page } = opened;
				assert.ok((await page.locator('#pages').innerText()).includes(words));
				await other.upload('owned', 'cpu', profileOf(ownedStacks(3)), FROM + 1000, { host: 'node-p' });
				await page.locator('#refresh').click();
				await page.locator(row).first().waitFor();
				const before = await page.locator(row).allInnerTexts();
				await other.stop('SIGKILL');
				await page.locator('#refresh').click();
				await page.waitForFunction(() => /does not answer/.test(document.getElementById('trouble').textContent));
				assert.deepEqual(await page.locator(row).allInnerTexts(), before, 'the last picture stays');
				await other.run();
				await page.locator('#refresh').click();
				await pageShown(page, name);
				assert.ok(await page.locator('#trouble').isHidden());
				assert.deepEqual(await page.locator(row).allInnerTexts(), before);
				withoutStatus(opened);
				await assertSilent(opened);
			} finally {
				await other.close();
			}
		});
	}

	test('a host: what its samples say of no process is there, too', async () => {
		const opened = await open(`#/hosts?${RANGE}&labels=host%3Dnode-b`);
		const { page } = opened;
		await page.locator('#owners tbody a').first().click();
		await pageShown(page, 'profile');
		assert.equal(await total(page), sumOf((p) => isNow(p) && p.labels.host === 'node-b'));
		await assertSilent(opened);
	});

	test('another sample type: counts', async () => {
		const opened = await open(`#/profile?service=api&${RANGE}&sample=samples`);
		assert.equal(await total(opened.page), sumOf((p) => isNow(p) && p.service === 'api') / TICK);
		await assertSilent(opened);
	});

	test('compare: both sides are what was sent, and go tool pprof has the same', async () => {
		const opened = await open(`#/compare?service=api&${RANGE}&base=1d`);
		const { page } = opened;
		const [now, was] = [isNow, (p) => !isNow(p)].map((when) => sumOf((p) => p.service === 'api' && when(p)));
		assert.equal(await total(page), now + was);
		assert.equal(await page.evaluate(() => window.__viewer.tree.base[0]), was);
		const json = await collector.askJson('compare', { service: 'api', from: FROM, to: TO, 'base-from': FROM - DAY, 'base-to': TO - DAY });
		assert.deepEqual([json.total[0], json.base_total[0]], [now + was, was]);
		const cpus = (value) => (value / 1e9 / ((TO - FROM) / 1000)).toFixed(2);
		assert.match(await page.locator('#change').innerText(), new RegExp(`^Base ${cpus(was)} CPUs api, .*\\s+→\\s+Now ${cpus(now)} CPUs .*api, `));
		await page.selectOption('#sides', 'two');
		await page.locator('.sides').waitFor();
		const sides = await page.evaluate(() => window.__viewer.sides.parts.map(({ tree }) => ({ total: tree.total[0], self: tree.self.reduce((a, b) => a + b, 0) })));
		assert.deepEqual(sides, [{ total: was, self: was }, { total: now, self: now }]);
		const svg = (await exported(page, 'svg')).toString();
		assert.deepEqual([...svg.matchAll(/<title>all \((\d+), 100\.00 %\)<\/title><rect x="([\d.]+)"/g)].map((found) => found.slice(1).map(Number)), [[was, 0], [now, 1420]]);
		const png = await exported(page, 'png');
		const [size, row] = await page.evaluate(async (text) => {
			const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], { type: 'image/png' }));
			const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d', { willReadFrequently: true });
			context.drawImage(bitmap, 0, 0);
			const dots = (y, ...all) => all.map((x) => context.getImageData(x, y, 1, 1).data.join());
			return [bitmap.width, dots(2 * 19 + 6, 500, 1500, 2100, 2620, 3620)]; // the root of each, and what is between them
		}, png.toString('base64'));
		assert.equal(size, 2 * 2080 + 40);
		assert.equal(new Set(row.toSpliced(2, 1)).size, 1, row.join(' '));
		assert.notEqual(row[2], row[0]);
		assert.equal(await page.locator('.sides').isVisible(), true);
		await assertSilent(opened);
	});

	test('compare: a base of its own, by another service, labels, times or a snapshot, and the sides swapped', async () => {
		const sides = (page) => page.evaluate(() => [window.__viewer.tree.base[0], window.__viewer.tree.total[0] - window.__viewer.tree.base[0]]);
		const api = (test) => sumOf((p) => p.service === 'api' && test(p));
		const query = new URLSearchParams({ service: 'web', from: FROM, to: TO });
		const kept = await (await fetch(`${collector.url}api/v1/snapshots?${query}`, { method: 'POST', body: JSON.stringify({ title: MARKUP }) })).json();
		const web = sumOf((p) => p.service === 'web');
		const cases = [
			['labels=version%3D2&base-labels=version%3D1', api((p) => isNow(p) && p.labels.version === '1'), api((p) => p.labels.version === '2'), /^Base [^→]*api, version=1, [^→]*→\s+Now [^→]*api, version=2, /],
			['labels=version%3D2&base-labels=', api(isNow), api((p) => p.labels.version === '2'), /^Base [^→,]*api, \d/],
			['base-service=web', web, api(isNow), /^Base [^→]*web, /],
			['base-service=web&swap=1', api(isNow), web, /^Base [^→]*api, [^→]*→\s+Now [^→]*web, /],
			[`labels=host%3Dnode-a&base-from=${FROM - DAY}&base-to=${TO - DAY}`, api((p) => !isNow(p)), api((p) => isNow(p) && p.labels.host === 'node-a'), /^Base [^→]*api, host=node-a, /],
			[`base-snapshot=${kept.id}`, web, api(isNow), /^Base [^→]*snapshot “<img src=x onerror=window.__hit=1>”, /],
			[`base-snapshot=${kept.id}&swap=1`, api(isNow), web, /^Base [^→]*api, [^→]*→\s+Now [^→]*snapshot “/],
		];
		for (const [more, was, now, words] of cases) {
			const opened = await open(`#/compare?service=api&${RANGE}&base=own&${more}`);
			assert.deepEqual(await sides(opened.page), [was, now], more);
			assert.match(await opened.page.locator('#change').innerText(), words);
			assert.equal(await opened.page.evaluate(() => window.__hit), undefined);
			await assertSilent(opened);
		}
		await fetch(`${collector.url}api/v1/snapshots/${kept.id}`, { method: 'DELETE' });
	});

	test('the totals of both sides are what go tool pprof says', { skip: noGo }, async () => {
		const opened = await open(`#/compare?service=api&${RANGE}&base=1d`);
		const [was, both] = await opened.page.evaluate(() => [window.__viewer.tree.base[0], window.__viewer.tree.total[0]]);
		for (const [from, value] of [[FROM, both - was], [FROM - DAY, was]]) {
			const file = await collector.save('side.pb.gz', `api/0/profiles/merge?service=api&type=cpu&from=${from}&to=${from + HOUR}`);
			assert.equal(collector.goTop(file, 'cpu').total, value);
		}
		await assertSilent(opened);
	});

	/** Opens a file on the page of files and shows its column of CPU time. */
	async function reopen(page, file) {
		await page.goto(collector.url + '#/files');
		await page.evaluate(() => (window.treeBefore = window.__viewer.tree)); // the page may still draw it
		await page.setInputFiles('#file', file);
		await page.waitForFunction(() => window.__viewer.tree !== window.treeBefore || !document.getElementById('trouble').hidden);
		assert.ok(await page.locator('#trouble').isHidden(), await page.locator('#trouble').innerText());
		const index = await page.evaluate(() => window.__viewer.types.findIndex((type) => type.name === 'cpu'));
		if (index > 0) {
			await page.selectOption('#type', String(index));
			await page.waitForFunction((at) => window.__viewer.shownType === at, index);
		}
		return page.evaluate(() => {
			const { tree, meta: { unit, scale } } = window.__viewer; // a reader may divide by what all values are multiples of
			return { total: tree.total[0] * scale, unit, self: tree.self.reduce((a, b) => a + b, 0) * scale };
		});
	}

	test('exports, read back, have the same total', async () => {
		const opened = await open(`#/profile?service=api&${RANGE}`);
		const { page } = opened;
		const wanted = sumOf((p) => isNow(p) && p.service === 'api');
		const files = [];
		for (const link of await page.locator('#exports a').all()) {
			const download = page.waitForEvent('download');
			await link.click();
			const saved = await download;
			files.push(collector.path(saved.suggestedFilename()));
			await saved.saveAs(files.at(-1));
		}
		for (const format of ['folded', 'speedscope']) {
			const download = page.waitForEvent('download');
			await page.selectOption('#export', format);
			files.push(collector.path((await download).suggestedFilename()));
			await (await download).saveAs(files.at(-1));
		}
		assert.ok(files.length >= 5, files.join());
		for (const file of files) {
			const { total: sum, self, unit } = await reopen(page, file);
			const scale = unit === 'samples' && sum !== wanted ? TICK : 1; // .col has counts
			assert.equal(sum * scale, wanted, file);
			assert.equal(self, sum, file);
			if (/\.folded$/.test(file)) assert.equal(sumOfFolded(readFileSync(file, 'utf8')), wanted);
			if (/\.pb\.gz$/.test(file)) assert.equal(collector.foldedTotal(file) * TICK, wanted);
		}
		await assertSilent(opened);
	});

	/** Saves what the page shows. Return: the file's bytes. */
	async function exported(page, format) {
		const download = page.waitForEvent('download');
		await page.selectOption('#export', format);
		return readFileSync(await (await download).path());
	}

	test('the table and both pictures, read back, say what the graph says', async () => {
		const opened = await open(`#/profile?service=api&${RANGE}`);
		const { page } = opened;
		const stacks = sent.filter((p) => isNow(p) && p.service === 'api').flatMap((p) => p.stacks);
		const rows = (await exported(page, 'csv')).toString().trimEnd().split('\r\n').slice(1).map((line) => /^"(.*?)",".*?",".*?",(\d+),([\d.]+),(\d+),([\d.]+)$/.exec(line));
		const wanted = countFunctions(stacks);
		assert.deepEqual(new Map(rows.map(([, name, self, , all]) => [name, { self: self / TICK, total: all / TICK }])), wanted);
		const sum = totalOf(stacks);
		for (const [, name, , selfShare, , allShare] of rows) {
			const { self, total: all } = wanted.get(name);
			assert.ok(Math.abs(selfShare - (100 * self) / sum) < 1e-4 && Math.abs(allShare - (100 * all) / sum) < 1e-4, name);
		}
		const boxes = await page.evaluate((text) => {
			const picture = new DOMParser().parseFromString(text, 'image/svg+xml');
			const whole = Number(picture.documentElement.getAttribute('width'));
			return [...picture.querySelectorAll('g')].map((g) => {
				const [, name, value] = /^(.*) \((\d+), [\d.]+ %\)$/s.exec(g.querySelector('title').textContent);
				const rect = g.querySelector('rect');
				return [name, Number(value), Number(rect.getAttribute('width')) / whole, Number(rect.getAttribute('y'))];
			});
		}, (await exported(page, 'svg')).toString());
		assert.equal(boxes[0][1], sum * TICK);
		const drawn = new Map();
		for (const [name, value, wide] of boxes) {
			if (/^([\d,]+ functions|One function)\b/.test(name)) continue; // too narrow, as one
			assert.ok(Math.abs(wide - value / (sum * TICK)) < 0.002, `${name}: ${wide} of the width`);
			drawn.set(name, (drawn.get(name) ?? 0) + 1);
		}
		assert.ok(drawn.size > 20 && [...drawn.keys()].slice(1).every((name) => wanted.has(name)), `${drawn.size} names`);
		const picture = await exported(page, 'png');
		const [seen, wrong] = await page.evaluate(async (text) => {
			const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], { type: 'image/png' }));
			const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
			context.drawImage(bitmap, 0, 0);
			const dots = new Uint32Array(context.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
			const { graph: view } = window.__viewer;
			view.layOutForPrint(); // tells where the picture has what
			const ratio = bitmap.width / view.width;
			const scale = view.width / view.tree.total[0];
			const at = (x, y) => dots[Math.floor(y * ratio) * bitmap.width + Math.floor(x * ratio)];
			const out = [];
			let count = 0;
			for (let node = 1; node < view.tree.count; node++) {
				const [left, wide, y] = [view.tree.x[node] * scale, view.tree.total[node] * scale, view.rowTop(view.tree.level[node]) + 2];
				if (wide < 12) continue;
				count++;
				for (let x = left + 2; x < left + wide - 2; x++) if (at(x, y) !== at(left + 2, y)) out.push(`${node} at ${x}`);
			}
			view.resize();
			return [count, out.slice(0, 5)];
		}, picture.toString('base64'));
		assert.deepEqual(wrong, []);
		assert.ok(seen > 20, `${seen} boxes`);
		await assertSilent(opened);
	});

	test('5,000 frames deep: the collector keeps 1,024 and says so, the page of files shows them all', async () => {
		const frames = Array.from({ length: 5000 }, (_, i) => 'level_' + (i % 700));
		await collector.upload('deep', 'cpu', profileOf([[frames, 3], [frames.slice(0, 1500), 1]]), FROM + 600000, { host: 'node-a' });
		await collector.upload('deep', 'cpu', profileOf([[frames, 2]]), FROM - DAY + 600000, { host: 'node-a' });
		const walk = async (page, deepest) => {
			assert.equal(await page.evaluate(() => window.__viewer.tree.deepest), deepest);
			await page.evaluate(() => window.__viewer.zoomNode(window.__viewer.tree.level.indexOf(window.__viewer.tree.deepest)));
			assert.equal(await page.evaluate(() => window.__viewer.tree.level[window.__viewer.graph.zoomed]), deepest);
			for (const key of ['2', '3', '4', '5', '1', 'r']) await page.keyboard.press(key);
		};
		for (const name of ['profile', 'compare']) {
			const opened = await open(`#/${name}?service=deep&${RANGE}`);
			const { page } = opened;
			await pageShown(page, name);
			assert.equal(await total(page), (name === 'profile' ? 4 : 4 + 2) * TICK);
			await walk(page, 1024);
			if (name === 'profile') assert.match(await page.locator('#quality').innerText(), /cut stacks\s+100 %/);
			await assertSilent(opened);
		}
		const opened = await open('#/files');
		await opened.page.setInputFiles('#file', { name: 'deep.folded', mimeType: 'text/plain', buffer: Buffer.from(frames.join(';') + ' 3\n') });
		await opened.page.waitForFunction(() => window.__viewer.tree?.total[0] === 3);
		await walk(opened.page, 5000);
		await assertSilent(opened);
	});

	test('what a cut hides is opened by a click, and nothing is lost', async () => {
		const opened = await open('#/services');
		const { page } = opened;
		await page.route(/\/api\/v1\/flame/, (route) => route.continue({ url: route.request().url().replace('max-nodes=100000', 'max-nodes=60') }), { times: 1 });
		await page.goto(`${collector.url}#/profile?service=api&${RANGE}`);
		await pageShown(page, 'profile');
		const hidden = () => page.evaluate(() => {
			const { tree, frames } = window.__viewer;
			return tree.frame.slice(1).reduce((sum, frame, i) => sum + (frame > frames.count ? tree.total[i + 1] : 0), 0);
		});
		const wanted = sumOf((p) => isNow(p) && p.service === 'api');
		const before = await hidden();
		assert.equal(await total(page), wanted);
		assert.ok(before > 0, 'something is hidden');
		await page.waitForFunction(() => /in smaller paths \d/.test(document.getElementById('legend').innerText));
		const shares = (await page.locator('#legend').innerText()).match(/[\d.]+(?= %)/g).map(Number);
		assert.ok(Math.abs(shares.reduce((a, b) => a + b) - 100) < 0.1, 'the legend adds up');
		await page.evaluate(() => {
			const { tree, frames } = window.__viewer;
			const boxes = [...tree.frame.keys()].filter((node) => node && tree.frame[node] > frames.count);
			window.__viewer.zoomNode(boxes.sort((a, b) => tree.total[b] - tree.total[a])[0]);
		});
		await page.waitForFunction((was) => {
			const { tree, frames } = window.__viewer;
			return tree.frame.slice(1).reduce((sum, frame, i) => sum + (frame > frames.count ? tree.total[i + 1] : 0), 0) < was;
		}, before);
		assert.equal(await total(page), wanted);
		await assertSilent(opened);
	});

	test('live: what comes is shown, also when the collector was away', async () => {
		const stacks = stacksOf(31, 50);
		const live = await Collector.start('--no-access-log');
		const opened = await openSite(browser, live.url, '#/live?service=moving&window=5m');
		const { page } = opened;
		const until = (rounds) => page.waitForFunction((sum) => window.__viewer.tree?.total[0] === sum, rounds * totalOf(stacks) * TICK);
		const state = (wanted) => page.waitForFunction((words) => document.getElementById('live-state').textContent.includes(words), wanted);
		try {
			await page.locator('#live-empty:not([hidden])').waitFor();
			await live.upload('moving', 'cpu', profileOf(stacks), Date.now());
			await until(1);
			const order = () => page.evaluate(() => {
				const { tree, frames } = window.__viewer;
				return [...tree.frame.slice(0, 30)].map((frame) => frames.name(frame));
			});
			const first = await order();
			let rounds = 1;
			for (const signal of ['SIGTERM', 'SIGKILL']) {
				await live.stop(signal);
				await state('does not answer');
				assert.deepEqual(await order(), first, 'the last picture stays');
				await live.run();
				await live.upload('moving', 'cpu', profileOf(stacks), Date.now());
				await until(++rounds);
				await state('Live');
				assert.ok(await page.locator('#trouble').isHidden());
			}
			assert.deepEqual(await order(), first, 'siblings keep their places');
			withoutStatus(opened);
			await assertSilent(opened);
		} finally {
			await live.close();
		}
	});

	test('seven live tabs leave room for the rest', async () => {
		const opened = await open('#/live?service=api');
		const { context } = opened;
		for (let i = 0; i < 6; i++) await (await context.newPage()).goto(`${collector.url}#/live?service=web&labels=n%3D${i}`);
		const page = await context.newPage();
		await page.goto(`${collector.url}#/profile?service=api&${RANGE}`);
		await pageShown(page, 'profile');
		assert.equal(await total(page), sumOf((p) => isNow(p) && p.service === 'api'));
		await assertSilent(opened);
	});

	const gone = [
		['profile?service=gone', /Nothing is stored/],
		['profile?service=api&labels=host%3Dgone', /Nothing is stored/],
		['profile?service=api&profile=heap', /Nothing is stored/],
		['profile?service=api&profile=nope', /did not understand/],
		['profile?service=api&sample=nope', /Nothing is stored/],
		['profile?service=api&from=2001-01-01T00:00:00&to=2001-01-02T00:00:00', /Nothing is stored/],
		['profile?service=api&from=now&to=0', /did not understand/],
		['profile?service=api&from=yesterday', /did not understand/],
		['compare?service=web&base=7d', /The base has nothing: web, /],
		['compare?service=gone', /What is compared with the base has nothing: gone, /],
		['compare?service=api&base=own&base-service=gone', /The base has nothing: gone, /],
		['compare?service=api&base=own&base-labels=host%3Dgone&base-from=now-2h', /The base has nothing: api, host=gone, now-2h/],
		['compare?service=api&base=own&base-from=yesterday', /did not understand: bad request: the base: bad "from"/],
		[`compare?service=api&base=own&base-snapshot=${'0'.repeat(32)}`, /The base is a snapshot that is not there/],
		['compare?service=api&base=own&base-snapshot=x%2F..%2F&swap=1', /What is compared with the base is a snapshot that is not there/],
		[`snapshot?id=${'0'.repeat(32)}`, /it was deleted, or the link is not complete/],
		['live?service=gone', /Nothing was stored/],
		['live?service=api&profile=nope', /did not understand|Refused/],
	];
	test('links to what is gone say so', async () => {
		for (const [hash, words] of gone) {
			const range = hash.includes('from=') || hash.startsWith('live') ? '' : '&' + RANGE;
			const opened = await open(`#/${hash}${range}`);
			await opened.page.waitForFunction((source) => new RegExp(source).test(document.getElementById('pages').innerText), words.source).catch(async () => {
				assert.fail(`${hash}: ${await opened.page.locator('#pages').innerText()}`);
			});
			withoutStatus(opened);
			await assertSilent(opened);
		}
	});

	test('a view that names what is not there falls back to what is', async () => {
		const wanted = sumOf((p) => isNow(p) && p.service === 'api');
		for (const view of ['z=99999999&view=nope&colour=nope', 'p=1.2.3.99999&w=5-1e300', 'view=sandwich&f=999999', 'view=inverted&p=7.8.9&q=(&re=1', 'sort=x&view=table&part=1-x',
			'view=calls&z=123456&t=nope:x', 't=hide:nobody&z=-1&flame=1&collapse=1']) {
			const opened = await open(`#/profile?service=api&${RANGE}&${view}`);
			assert.equal(await total(opened.page), wanted, view);
			assert.ok((await opened.page.locator('#viewer').innerText()).trim(), view);
			await assertSilent(opened);
		}
		const opened = await open(`#/profile?service=api&${RANGE}&t=focus:nobody`);
		assert.equal(await total(opened.page), 0);
		assert.match(await opened.page.locator('#chips').innerText(), /nobody/);
		await assertSilent(opened);
		const odd = await open('#/nonsense?%zz');
		assert.equal(await odd.page.evaluate(() => document.body.dataset.shown), 'services');
		await assertSilent(odd);
	});

	for (const [group, labels] of [['host', (p) => p.labels.host], ['label:version', (p) => 'version=' + p.labels.version]]) {
		test(`grouped by ${group}: each part is what was sent`, async () => {
			const opened = await open(`#/profile?service=api&${RANGE}&t=group:${encodeURIComponent(group)}`);
			await opened.page.waitForFunction((key) => window.__viewer.stepsKey === key, 'group:' + group);
			const found = await opened.page.evaluate(() => {
				const { tree, frames } = window.__viewer;
				return [...tree.level.keys()].filter((i) => tree.level[i] === 1).map((i) => [frames.name(tree.frame[i]), tree.total[i]]).sort();
			});
			const wanted = new Map();
			for (const p of sent) if (isNow(p) && p.service === 'api') wanted.set(labels(p), (wanted.get(labels(p)) ?? 0) + totalOf(p.stacks) * TICK);
			assert.deepEqual(found, [...wanted].sort());
			await assertSilent(opened);
		});
	}

	test('grouped by container, chosen in the menu: each part is what was sent', async () => {
		const owners = [{ pid: 21, comm: 'nginx', container: 'web-1' }, { pid: 22, comm: 'nginx', container: 'web-1' }, { pid: 23, comm: 'postgres', container: MARKUP }, { pid: 24, comm: 'sshd' }];
		const stacks = stacksOf(51, 80).map(([frames, count], i) => [frames, count, owners[i % owners.length]]);
		await collector.upload('contained', 'cpu', profileOf(stacks), NOW - 60000);
		const sums = (nameOf) => {
			const out = {};
			for (const [, count, owner] of stacks) out[nameOf(owner)] = (out[nameOf(owner)] ?? 0) + count * TICK;
			return out;
		};
		const opened = await open(`#/profile?service=contained&${RANGE}`);
		const { page } = opened;
		const below = (parent) => page.evaluate((name) => {
			const { tree, frames } = window.__viewer;
			const top = name === '' ? 0 : [...tree.frame.keys()].find((i) => tree.level[i] === 1 && frames.name(tree.frame[i]) === name);
			return Object.fromEntries([...tree.frame.keys()].filter((i) => i && tree.parent[i] === top).map((i) => [frames.name(tree.frame[i]), tree.total[i]]));
		}, parent);
		const groupBy = async (text, key) => {
			await page.locator('#menu').click();
			await page.locator('#step-menu [role=menuitem]', { hasText: new RegExp(`^Group by ${text}$`) }).click();
			await page.waitForFunction((wanted) => window.__viewer.stepsKey.endsWith(wanted), key);
		};
		const isIn = (owner) => owner.container ?? '(no container)';
		await groupBy('process', 'group:process');
		assert.deepEqual(await below(''), sums(({ comm }) => comm), 'processes stand above their containers');
		await groupBy('container', 'group:container');
		assert.deepEqual(await below(''), sums(isIn));
		assert.deepEqual(await below('web-1'), { nginx: sums(isIn)['web-1'] });
		assert.deepEqual(await page.locator('#chips button').allTextContents(), ['by process', 'by container']);
		assert.equal(await total(page), totalOf(stacks) * TICK);
		await page.reload();
		await page.waitForFunction(() => window.__viewer.stepsKey?.endsWith('group:container'));
		assert.deepEqual(await below(''), sums(isIn));
		await page.keyboard.press('z');
		await page.waitForFunction(() => window.__viewer.stepsKey === 'group:process');
		assert.deepEqual(await below(''), sums(({ comm }) => comm));
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		assert.equal(await page.locator('img').count(), 0);
		await assertSilent(opened);
		const without = await open(`#/profile?service=web&${RANGE}`);
		await without.page.locator('#menu').click();
		assert.ok(!(await without.page.locator('#step-menu').innerText()).includes('container'), 'where no profile says a container it is not offered');
		await assertSilent(without);
	});

	test('a snapshot stays when its service is deleted, and after a restart', async () => {
		const opened = await open(`#/profile?service=doomed&${RANGE}`);
		const { page } = opened;
		await page.locator('#keep').click();
		await page.keyboard.type(MARKUP);
		await page.keyboard.press('Enter');
		await page.locator('#keep-link').waitFor();
		const link = await page.locator('#keep-link').evaluate((a) => a.href);
		await assertSilent(opened);
		const answer = await fetch(`${collector.url}api/0/profiles?service=doomed&from=${FROM - DAY}&to=${TO}`, { method: 'DELETE' });
		assert.equal(answer.status, 200);
		await collector.stop('SIGKILL');
		await collector.run();
		const again = await open(link.slice(collector.url.length));
		assert.equal(await total(again.page), sumOf((p) => p.service === 'doomed'));
		const note = await again.page.locator('#snapshot-note').innerText();
		assert.ok(note.includes(MARKUP) && note.includes('cpu{service="doomed"}'), note);
		assert.equal(await again.page.locator('img').count(), 0);
		assert.equal(await again.page.evaluate(() => window.__hit), undefined);
		const download = again.page.waitForEvent('download');
		await again.page.locator('#exports a').first().click();
		await (await download).saveAs(collector.path('kept.pb.gz'));
		assert.equal(collector.foldedTotal(collector.path('kept.pb.gz')), totalOf(sent.find((p) => p.service === 'doomed').stacks));
		await again.page.locator('#snapshot-delete').click();
		await again.page.locator('#snapshot-delete').click();
		await pageShown(again.page, 'services');
		await assertSilent(again);
		const gone = await open(link.slice(collector.url.length));
		assert.match(await gone.page.locator('#trouble').innerText(), /it was deleted/);
		withoutStatus(gone);
		await assertSilent(gone);
		// For the test that deletes it while somebody looks.
		for (const { service, at, labels, stacks } of sent) if (service === 'doomed') await collector.upload(service, 'cpu', profileOf(stacks), at, labels);
	});

	test('a service that is deleted while somebody looks', async () => {
		const opened = await open(`#/profile?service=doomed&${RANGE}`);
		const { page } = opened;
		assert.equal(await total(page), sumOf((p) => p.service === 'doomed'));
		const answer = await fetch(`${collector.url}api/0/profiles?service=doomed&from=${FROM - DAY}&to=${TO}`, { method: 'DELETE' });
		assert.equal(answer.status, 200);
		await page.locator('#refresh').click();
		await page.waitForFunction(() => /Nothing is stored/.test(document.getElementById('trouble').textContent));
		await page.locator('[data-page=services]').click();
		await pageShown(page, 'services');
		withoutStatus(opened);
		await assertSilent(opened);
	});

	test('hostile names stay text', async () => {
		for (const service of ['evil', MARKUP]) {
			for (const where of ['services?', 'profile?', 'compare?base=before&', 'live?window=5m&']) {
				const opened = await open(`#/${where}service=${encodeURIComponent(service)}&${RANGE}`);
				const { page } = opened;
				if (where === 'profile?') {
					assert.equal(await total(page), EVIL.length * 5 * TICK);
					const names = await page.evaluate(() => Array.from({ length: window.__viewer.frames.count }, (_, f) => window.__viewer.frames.name(f)));
					for (const name of EVIL) assert.ok(names.includes(name) || names.some((n) => n.length > 1000 && name.startsWith(n)), name.slice(0, 60));
					for (const key of ['2', '4', '5', '1']) {
						await page.keyboard.press(key);
						await page.waitForTimeout(50);
					}
					for (const box of [0.1, 0.3, 0.5, 0.7, 0.9]) {
						const { x, y, width } = await page.locator('#graph canvas').boundingBox();
						await page.mouse.move(x + box * width, y + 45);
						assert.ok(!(await page.locator('#tip').innerText()).includes('\u202e'));
					}
					const text = await page.locator('body').innerText();
					assert.ok(text.includes(MARKUP), 'a label, as text');
				}
				assert.ok(!(await page.locator('body').innerText()).includes('\u202e'), where);
				assert.ok(!/\u202e/.test(await page.title()), where);
				assert.equal(await page.evaluate(() => window.__hit), undefined, where);
				assert.equal(await page.locator('img').count(), 0, where);
				assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), where);
				withoutStatus(opened);
				await assertSilent(opened);
			}
		}
	});

	test('names of a megabyte: every page and view has words or a picture, and nothing is wider than the window', async () => {
		const size = 1 << 20;
		const names = ['x'.repeat(size), MARKUP.repeat(size / MARKUP.length), '\u202e' + '\u5bbd'.repeat(size / 3)];
		const stacks = [...names.map((name) => [['main', name], 5]), [['main', names[0], 'leaf'], 3], [['main', 'leaf'], 2]];
		for (const at of [NOW - 60000, NOW - 60000 - DAY]) await collector.upload('mega', 'cpu', profileOf(stacks), at);
		const whole = totalOf(stacks) * TICK;
		/** In each view, and with each of the long names in its middle. */
		async function look(page, assertFits, longest) {
			const found = await page.evaluate(() => Array.from({ length: window.__viewer.frames.count }, (_, f) => window.__viewer.frames.name(f)));
			const long = [...found.keys()].filter((f) => found[f].length > 1000);
			assert.deepEqual(long.map((f) => names.findIndex((name) => name.startsWith(found[f]))).sort(), [0, 1, 2]);
			assert.equal(Math.max(...found.map((name) => name.length)), longest);
			for (const key of ['2', '4', '5', '3', '1']) {
				await page.keyboard.press(key);
				await graphAtRest(page);
				await assertFits('view ' + key);
			}
			for (const frame of long) {
				await page.evaluate((focus) => window.__viewer.go({ view: 'sandwich', focus }), frame);
				await assertFits('the sandwich');
				await page.evaluate((wanted) => {
					const v = window.__viewer;
					v.go({ view: 'graph' });
					v.zoomNode(v.tree.frame.indexOf(wanted));
				}, frame);
				await assertFits('a zoom');
				await page.keyboard.press('m');
				await page.locator('#step-menu').waitFor();
				await assertFits('the menu');
				await page.locator('#step-menu [role=menuitem]', { hasText: 'Drop its stacks' }).click();
				await page.locator('#chips', { hasText: '(a long name)' }).waitFor();
				await assertFits('a step');
				await page.keyboard.press('z');
				await page.locator('#chips', { hasText: '(a long name)' }).waitFor({ state: 'hidden' });
			}
			assert.ok(await page.evaluate(() => location.hash.length) < 1000, 'the address stays short');
		}
		// The collector keeps the beginning of such a name; of another one the page would get all of it.
		const kept = await collector.askJson('flame', { service: 'mega', from: FROM, to: TO });
		const answer = { ...kept, names: kept.names.map((name) => (name.length > 1000 ? names.find((one) => one.startsWith(name)) : name)) };
		for (const [where, width, isWhole] of [['services', 1400], ['profile', 1400], ['profile', 1400, true], ['profile', 400, true], ['compare', 1400], ['live', 1400]]) {
			const what = `${where}, ${width} pixels${isWhole ? ', all of each name' : ''}`;
			const opened = await open('#/services', { viewport: { width, height: 800 } });
			const { page } = opened;
			if (isWhole) await page.route(/\/api\/v1\/flame/, (route) => route.fulfill({ json: answer }));
			await page.goto(`${collector.url}#/${where}?service=mega&${RANGE}`);
			await pageShown(page, where);
			const assertFits = async (how) => {
				assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what}, ${how}: something is wider than the window`);
				assert.ok((await page.locator('#pages').innerText()).trim().length > 20, `${what}, ${how}: a blank page`);
				assert.ok(await page.locator('#trouble').isHidden(), `${what}, ${how}`);
			};
			await assertFits('at first');
			if (where === 'profile' || where === 'compare') {
				assert.equal(await total(page), where === 'profile' ? whole : 2 * whole);
				await look(page, assertFits, isWhole ? size : NAME_KEPT);
			}
			assert.ok(!(await page.locator('body').innerText()).includes('\u202e'), what);
			assert.equal(await page.evaluate(() => window.__hit), undefined, what);
			assert.equal(await page.locator('img').count(), 0, what);
			await assertSilent(opened);
		}
	});

	/** The function that is zoomed into, and the one in the middle of the sandwich. */
	const placeOf = (page) => page.evaluate(() => {
		const v = window.__viewer;
		return [v.tree.frame[v.state.zoom], v.state.focus].map((f) => (f >= 0 && f < v.frames.count ? v.frames.name(f) : '')).join();
	});

	test('live begins also when the collector was away at the first click', async () => {
		const own = await Collector.start('--no-access-log');
		try {
			const opened = await openSite(browser, own.url, '#/services');
			const { page } = opened;
			await own.stop();
			await page.click('nav a[data-page=live]');
			await page.waitForFunction(() => /does not answer|Waiting/.test(document.getElementById('live-state').textContent));
			await own.run();
			await own.upload('late', 'cpu', profileOf([[['main', 'late'], 7]]), Date.now());
			await page.waitForFunction((wanted) => window.__viewer.tree?.total[0] === wanted, 7 * TICK, { timeout: 60000 });
			assert.equal(await page.locator('#live-state').innerText(), 'Live.');
		} finally {
			await own.close();
		}
	});

	test('a place is found again by its names in newer data, and with more nodes of it', async () => {
		const stacks = [['main;alpha;x', 50], ['main;beta;y', 30], ['main;gamma;z', 20]].map(([path, count]) => [String(path).split(';'), count]);
		await collector.upload('place', 'cpu', profileOf(stacks), NOW - 60000);
		const opened = await open(`#/profile?service=place&${RANGE}`);
		const { page } = opened;
		await page.evaluate(() => {
			const v = window.__viewer;
			const nodeOf = (name) => [...v.tree.frame].findIndex((f, i) => i > 0 && v.frames.name(f) === name);
			v.zoomNode(nodeOf('beta'));
			v.go({ focus: v.tree.frame[nodeOf('gamma')] });
		});
		const hash = await page.evaluate(() => location.hash);
		assert.match(hash, /[?&]zn=\w+\.\w+&fn=\w+/);
		await collector.upload('place', 'cpu', profileOf([[['main', 'aaa', 'q'], 90], [['aab'], 200]]), NOW - 50000);
		await page.click('#refresh');
		await page.waitForFunction(() => window.__viewer.tree.count > 9);
		assert.equal(await placeOf(page), 'beta,gamma');
		await assertSilent(opened);
		const linked = await open(hash);
		assert.equal(await placeOf(linked.page), 'beta,gamma');
		await linked.page.evaluate(() => window.__viewer.go({ zoom: 0, view: 'inverted' }));
		await linked.page.evaluate(() => {
			const v = window.__viewer;
			const { tree } = v.graph;
			v.zoomNode([...tree.frame].findIndex((f, i) => i > 0 && v.frames.name(f) === 'y'));
		});
		const inverted = await linked.page.evaluate(() => location.hash);
		assert.match(inverted, /[?&]pn=\w+/);
		const again = await open(inverted);
		await again.page.waitForFunction(() => window.__viewer.graph.tree && window.__viewer.graph.zoomed > 0);
		assert.equal(await again.page.evaluate(() => window.__viewer.frames.name(window.__viewer.graph.tree.frame[window.__viewer.graph.zoomed])), 'y');
		await assertSilent(linked);
		await assertSilent(again);
	});

	test('the part that is chosen is said, stays when the range is pinned, and is shown on another day', async () => {
		const part = [FROM, FROM + HOUR / 2];
		const opened = await open(`#/profile?service=api&${RANGE}&part=${part.join('-')}`);
		const { page } = opened;
		const total = await page.evaluate(() => window.__viewer.tree.total[0]);
		assert.match(await page.locator('#whose').innerText(), /\d+:\d\d.*–.*\d+:\d\d.*×/);
		assert.match(await page.locator('#timeline output').innerText(), /\d+:\d\d.*–/);
		await page.evaluate(() => window.__viewer.zoomNode(2));
		await page.click('#pin');
		await page.waitForFunction(() => /from=20\d\d-/.test(location.hash) && document.body.dataset.shown === 'profile');
		assert.match(await page.evaluate(() => location.hash), new RegExp('part=' + part.join('-')));
		assert.equal(await page.evaluate(() => window.__viewer.graph.zoomed), 2);
		assert.equal(await page.evaluate(() => window.__viewer.tree.total[0]), total);
		await page.locator('#whose button').click();
		await page.waitForFunction(() => !location.hash.includes('part=') && document.body.dataset.shown === 'profile');
		await assertSilent(opened);
		const elsewhere = [NOW + 40 * HOUR, NOW + 41 * HOUR];
		const other = await open(`#/profile?service=api&from=${elsewhere[0]}&to=${elsewhere[1]}&part=${part.join('-')}`);
		await other.page.waitForFunction(([from]) => window.__app.profile.timeline.from < from, part);
		assert.equal(await other.page.evaluate(() => window.__viewer.tree.total[0]), total);
		await assertSilent(other);
	});

	test('all values of a label are listed when somebody asks, and nothing else is asked anew', async () => {
		for (let host = 0; host < 9; host++) await collector.upload('many hosts', 'cpu', profileOf([[['main'], host + 1]]), NOW - 60000, { host: 'h' + host });
		const opened = await open(`#/profile?service=many+hosts&${RANGE}`);
		const { page } = opened;
		const asked = [];
		page.on('request', (request) => asked.push(new URL(request.url()).pathname));
		assert.equal(await page.locator('#facets li').count(), 7);
		await page.locator('#facets button.more').click();
		await page.waitForFunction(() => document.querySelectorAll('#facets li').length === 9);
		assert.deepEqual(asked, ['/api/v1/labels']);
		await page.locator('#facets button', { hasText: 'h0' }).click();
		await page.waitForFunction((wanted) => window.__viewer.tree.total[0] === wanted && document.body.dataset.shown === 'profile', TICK);
		await assertSilent(opened);
	});

	test('an expression that takes for ever ends in words', async () => {
		await collector.upload('slow', 'cpu', profileOf([[['main', 'a'.repeat(40) + '!'], 9]]), NOW - 60000);
		const opened = await open(`#/profile?service=slow&${RANGE}&re=1&q=(a%2B)%2B%24`);
		const { page } = opened;
		await page.waitForFunction(() => document.getElementById('matched').textContent === 'this expression takes too long', null, { timeout: 15000 });
		await page.fill('#query', 'a!$');
		await page.waitForFunction(() => document.getElementById('matched').textContent === '100 % matched');
		await assertSilent(opened);
	});

	test('more that cannot be had is said', async () => {
		const opened = await open(`#/profile?service=api&${RANGE}`);
		const { page } = opened;
		await page.route(/max-nodes=50\b/, (route) => route.fulfill({ status: 503, body: '{"error": "busy"}' }));
		await page.evaluate(async () => {
			const v = window.__viewer;
			const { source } = v;
			v.openMore = () => source.more({ nodes: 5 });
			source.nodes = 5;
			await v.showMore();
		});
		assert.match(await page.locator('#toast').innerText(), /More could not be shown: The collector is busy/);
		withoutStatus(opened);
		await assertSilent(opened);
	});

	test('every page and file has a strict policy', async () => {
		const listed = readdirSync(new URL('../../web/', import.meta.url)).filter((name) => /\.(js|css)$/.test(name));
		const served = [];
		for (const path of ['', ...listed.map((name) => 'ui/' + name)]) {
			const answer = await fetch(collector.url + path);
			if (answer.status === 404) continue; // of the offline page only
			served.push(path);
			const policy = answer.headers.get('content-security-policy') ?? '';
			assert.match(policy, /default-src 'none'/, path);
			// What compiles the readers' WebAssembly may do that, and no more.
			const isReader = path === 'ui/file_worker.js';
			assert.doesNotMatch(isReader ? policy.replace(" 'wasm-unsafe-eval'", '') : policy, /unsafe|\*/, path);
			assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', path);
		}
		for (const path of ['', 'ui/app.js', 'ui/pages.css', 'ui/live_worker.js', 'ui/worker.js']) assert.ok(served.includes(path), path);
	});
});

describe('--web-dir', { skip: reason || false }, () => {
	const WEB = new URL('../../web/', import.meta.url);
	let browser;
	let collector;
	let parent;
	let folder;

	before(async () => {
		parent = mkdtempSync(join(tmpdir(), 'hearth-web-dir-'));
		folder = join(parent, 'web');
		cpSync(WEB, folder, { recursive: true });
		for (const name of [parent, folder]) chmodSync(name, 0o755); // the collector may be another user
		writeFileSync(join(parent, 'secret.js'), 'secret');
		collector = await Collector.start('--no-access-log', '--web-dir', folder);
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		await collector?.close();
		if (parent) rmSync(parent, { recursive: true, force: true });
	});

	/** A path as it is: fetch() would take dots out of it. Return: [status, body, headers] */
	const ask = (path) => new Promise((resolve, reject) => {
		get({ host: '127.0.0.1', port: collector.port, path, timeout: 10000 }, (answer) => {
			let body = '';
			answer.on('data', (part) => (body += part)).on('end', () => resolve([answer.statusCode, body, answer.headers]));
		}).on('timeout', () => reject(new Error(`${path}: no answer`))).on('error', reject);
	});

	test('a page of files of a folder; a file that has changed is there at the next request', async () => {
		const [, index, headers] = await ask('/');
		assert.equal(index, readFileSync(join(folder, 'index.html'), 'utf8'));
		assert.equal(headers['cache-control'], 'no-cache');
		assert.match(headers['content-security-policy'], /default-src 'none'/);
		assert.equal(headers.etag, undefined, 'nothing lets a browser keep what was there before');
		for (const [name, type] of [['app.js', /javascript/], ['pages.css', /css/]]) {
			const [status, body, { 'content-type': said }] = await ask('/ui/' + name);
			assert.deepEqual([status, body], [200, readFileSync(join(folder, name), 'utf8')], name);
			assert.match(said, type);
		}
		const opened = await openSite(browser, collector.url, '#/services');
		const { page } = opened;
		await pageShown(page, 'services');
		assert.equal(await page.evaluate(() => window.__changed), undefined);
		for (const round of [1, 2]) {
			writeFileSync(join(folder, 'app.js'), `${readFileSync(new URL('app.js', WEB), 'utf8')}\nwindow.__changed = ${round};\n`);
			assert.match((await ask('/ui/app.js'))[1], new RegExp(`__changed = ${round};`));
			await page.reload();
			await pageShown(page, 'services');
			assert.equal(await page.evaluate(() => window.__changed), round);
		}
		writeFileSync(join(folder, 'new_one.js'), 'export const one = 1;\n');
		assert.deepEqual((await ask('/ui/new_one.js')).slice(0, 2), [200, 'export const one = 1;\n']);
		rmSync(join(folder, 'new_one.js'));
		assert.equal((await ask('/ui/new_one.js'))[0], 404);
		await assertSilent(opened);
	});

	test('nothing outside of the folder is served, and nothing in it that is no file of a page', async () => {
		writeFileSync(join(folder, '.hidden.js'), 'secret');
		writeFileSync(join(folder, 'notes.txt'), 'secret');
		mkdirSync(join(folder, 'inner'));
		writeFileSync(join(folder, 'inner', 'in.js'), 'secret');
		mkdirSync(join(folder, 'folder.js'));
		symlinkSync(join(parent, 'secret.js'), join(folder, 'link.js'));
		symlinkSync('/etc/passwd', join(folder, 'passwd.css'));
		assert.equal(spawnSync('mkfifo', [join(folder, 'pipe.js')]).status, 0);
		const paths = ['../secret.js', '..%2fsecret.js', '%2e%2e/secret.js', '%2e%2e%2fsecret.js', '..%5csecret.js', '....//secret.js', 'inner/in.js', 'inner%2fin.js', 'inner/../../secret.js',
			'/etc/passwd', '%2fetc%2fpasswd', `%2f${join(parent, 'secret.js').slice(1).replaceAll('/', '%2f')}`, '.hidden.js', 'notes.txt', 'folder.js', 'folder.js/', 'link.js', 'passwd.css', 'pipe.js',
			'secret.js', 'app.js%00.css', 'app.js%00', 'app.js/', '%', 'inner', 'a'.repeat(300) + '.js', '../../../../../../../../etc/passwd'];
		for (const path of paths) {
			let [status, body, { location }] = await ask('/ui/' + path);
			if (status === 301) [status, body] = await ask(location); // dots and empty parts that are written plainly are taken out of a path first
			assert.ok([400, 404, 414].includes(status), `${path}, ${location}: ${status}`);
			assert.doesNotMatch(body, /secret|root:/, path);
			assert.ok(JSON.parse(body).error, path);
		}
		assert.equal((await ask('/ui/app.js'))[0], 200);
	});

	test('a folder that is not there: each file is missing in words, the API answers, and the page is there with the folder', async () => {
		const before = await ask('/ui/app.css');
		renameSync(folder, folder + '.away');
		for (const path of ['/', '/ui/app.js']) {
			const [status, body] = await ask(path);
			assert.deepEqual([status, JSON.parse(body)], [404, { code: 404, error: 'nothing found' }], path);
		}
		assert.deepEqual((await collector.askJson('services', { from: FROM, to: TO })).services, []);
		renameSync(folder + '.away', folder);
		assert.deepEqual((await ask('/ui/app.css')).slice(0, 2), before.slice(0, 2));
		assert.equal((await ask('/'))[0], 200);
	});
});

describe("npm's speedscope", { skip: reason || missingSpeedscope() || false }, () => {
	let browser;
	let collector;
	let speedscope;

	before(async () => {
		collector = await Collector.start('--no-access-log');
		browser = await launchBrowser();
		speedscope = await Speedscope.start(browser);
	});
	after(async () => {
		speedscope?.close();
		await browser?.close();
		await collector?.close();
	});

	test('opens our folded text with equal totals', async () => {
		const stacks = stacksOf(4, 60);
		await collector.upload('s-folded', 'cpu', profileOf(stacks), NOW - 60000);
		const opened = await openSite(browser, collector.url, `#/profile?service=s-folded&${RANGE}&sample=samples`);
		const download = opened.page.waitForEvent('download');
		await opened.page.selectOption('#export', 'folded');
		const text = readFileSync(await (await download).path());
		await assertSilent(opened);
		const page = await speedscope.open(text, 'file');
		assertRows(await speedscope.rows(page), countFunctions(stacks), totalOf(stacks), (count) => count.toLocaleString('en-US'));
		await page.close();
	});

	for (const sample of ['samples', 'cpu']) {
		test(`opens our export with equal totals: ${sample}`, async () => {
			const stacks = stacksOf(3, 60);
			await collector.upload('s-' + sample, 'cpu', profileOf(stacks), NOW - 60000);
			const opened = await openSite(browser, collector.url, `#/profile?service=s-${sample}&${RANGE}&sample=${sample}`);
			const download = opened.page.waitForEvent('download');
			await opened.page.selectOption('#export', 'speedscope');
			const exported = readFileSync(await (await download).path());
			await assertSilent(opened);
			const page = await speedscope.open(exported, 's-' + sample);
			assertRows(await speedscope.rows(page), countFunctions(stacks), totalOf(stacks),
				(count) => (sample === 'samples' ? count.toLocaleString('en-US') : timeText(count * TICK / 1e9)));
			await page.close();
		});
	}
});
