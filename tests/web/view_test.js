// SPDX-License-Identifier: Apache-2.0
// hearth view in a real browser: the totals of files beside go tool pprof -top, the comparison, and what has no place without a collector.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assertSilent, axePath, launchBrowser, missingBrowser, openPage, openSite, pageShown } from './browser.js';
import { goTop, missingCollector, missingGo } from './collector.js';
import { countFunctions, knownStacks, pprofOf, shownName, totalOf } from './known.js';

const reason = missingBrowser() || missingCollector();
const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), '../e2e/workloads/profiles/profiles.go');
const TYPES = [['samples', 'count'], ['cpu', 'nanoseconds']];
const TICK = 1e7;
const stacksOf = (seed) => knownStacks(seed, 200).map(([frames, count]) => [['main', ...frames.map(shownName)], count]);

/** hearth view that has printed its address. */
async function startView(...args) {
	const child = spawn(process.env.HEARTH, ['view', '--no-browser', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
	const [line] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(() => [''])]);
	const url = String(line).trim();
	assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
	return {
		url,
		async end() {
			const ended = once(child, 'exit');
			child.kill('SIGINT');
			assert.deepEqual(await ended, [0, null]);
		},
	};
}

describe('hearth view', { skip: reason || false }, () => {
	let browser;
	let folder;
	const [before_, after_] = [stacksOf(21), stacksOf(22)];
	const path = (name) => join(folder, name);

	before(async () => {
		folder = mkdtempSync(join(tmpdir(), 'hearth-view-'));
		for (const [name, stacks] of [['before.pb', before_], ['after.pb', after_]]) {
			writeFileSync(path(name), pprofOf(TYPES, stacks.map(([frames, count]) => [frames, [count, count * TICK]])));
		}
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		rmSync(folder, { recursive: true, force: true });
	});

	/** name -> { self, total } of what is shown. */
	const shownFunctions = (page) => page.evaluate(() => {
		const { frames, tree } = window.__viewer;
		const { self, total } = window.__viewer.functionTotals();
		const out = {};
		for (let f = 0; f < frames.count; f++) {
			const name = frames.name(f);
			if (total[f]) out[name] = { self: self[f] + (out[name]?.self ?? 0), total: total[f] + (out[name]?.total ?? 0) };
		}
		return { total: tree.total[0], functions: out };
	});
	const asObject = (functions) => Object.fromEntries([...functions].filter(([, { total }]) => total));

	async function withView(args, run) {
		const view = await startView(...args);
		try {
			await run(view);
		} finally {
			await view.end();
		}
	}

	test('a file: its totals in every sample type, and nothing of services', async () => {
		await withView([path('before.pb')], async ({ url }) => {
			const opened = await openSite(browser, url, '');
			const { page } = opened;
			await pageShown(page, 'profile');
			const counted = await shownFunctions(page);
			assert.equal(counted.total, totalOf(before_) * TICK);
			const byHand = [...countFunctions(before_)].map(([name, { self, total }]) => [name, { self: self * TICK, total: total * TICK }]);
			assert.deepEqual(counted.functions, Object.fromEntries(byHand));
			await page.locator('#samples button', { hasText: 'samples' }).click();
			await page.waitForFunction((wanted) => window.__viewer.tree.total[0] === wanted, totalOf(before_));
			await page.goBack();
			await page.waitForFunction((wanted) => window.__viewer.tree.total[0] === wanted, totalOf(before_) * TICK);
			assert.equal(await page.locator('#profile-title').innerText(), 'before.pb');
			assert.deepEqual(await page.locator('.top nav a:visible').allInnerTexts(), ['Profile', 'Files']);
			for (const id of ['timeline', 'refresh', 'pin', 'service', 'facets', 'keep']) assert.ok(!(await page.locator('#' + id).isVisible()), id);
			await page.reload();
			await pageShown(page, 'profile');
			for (const hash of ['#/services', '#/snapshot?id=' + '0'.repeat(32)]) {
				await page.evaluate((to) => (location.hash = to), hash);
				await page.waitForFunction(() => document.body.dataset.page === 'profile');
				assert.ok(!(await page.locator('#services-page').isVisible()) && !(await page.locator('#snapshot-note').isVisible()), hash);
			}
			for (const link of await page.locator('#exports a').all()) {
				const answer = await fetch(await link.evaluate((a) => a.href));
				assert.equal(answer.status, 200);
				assert.ok((await answer.arrayBuffer()).byteLength > 100);
			}
			await assertSilent(opened);
		});
	});

	const notes = (page) => page.locator('#negative:visible, #no-samples:visible').allInnerTexts();

	test('values below zero are left out, and that is said; so is that there are no samples', async () => {
		const [ONE, TWO] = ['1 sample with a value below zero is left out', '2 samples with values below zero are left out'];
		const cases = [
			['mixed', [[['main', 'b'], 8], [['main', 'a'], -5]], [ONE + ' (−50 ms).'], [ONE + ' (−5 samples, −50 ms).']],
			['below', [[['main', 'b'], -8], [['main', 'a'], -5]], [TWO + ' (−130 ms).', 'No samples: all that have a value are left out.']],
			['zero', [[['main', 'b'], 0]], ['No samples.']],
		];
		for (const [name, stacks, wanted, ofPage = wanted] of cases) {
			const bytes = pprofOf(TYPES, stacks.map(([frames, count]) => [frames, [count, count * TICK]]));
			writeFileSync(path(name + '.pb'), bytes);
			await withView([path(name + '.pb')], async ({ url }) => {
				const opened = await openSite(browser, url, '');
				const { page } = opened;
				await pageShown(page, 'profile');
				assert.deepEqual(await notes(page), wanted, name);
				await page.locator('[data-view=table]').click();
				assert.deepEqual(await notes(page), wanted, name);
				await page.goto(url + '#/files');
				await page.setInputFiles('#file', path(name + '.pb'));
				await page.waitForFunction(() => window.__app.file && window.__viewer.source === window.__app.file);
				await pageShown(page, 'files');
				assert.deepEqual(await notes(page), ofPage, 'Files: ' + name);
				await assertSilent(opened);
			});
			assert.equal(spawnSync(process.env.HEARTH, ['convert', '-q', path(name + '.pb'), '-o', path(name + '.html')]).status, 0);
			const opened = await openPage(browser, path(name + '.html'));
			assert.deepEqual(await notes(opened.page), ofPage, 'a page: ' + name);
			await assertSilent(opened);
		}
	});

	test('the largest values do not end a file', async () => {
		writeFileSync(path('huge.pb'), pprofOf(TYPES, [[['main', 'a'], [1, 2n ** 63n - 1n]], [['main', 'b'], [1, 2n ** 63n - 1n]]]));
		await withView([path('huge.pb')], async ({ url }) => {
			const opened = await openSite(browser, url, '');
			await pageShown(opened.page, 'profile');
			assert.equal((await shownFunctions(opened.page)).total, 2 ** 63);
			await assertSilent(opened);
		});
	});

	test('two files: what changed, and each alone', async () => {
		await withView([path('before.pb'), path('after.pb')], async ({ url }) => {
			const opened = await openSite(browser, url, '');
			const { page } = opened;
			await pageShown(page, 'compare');
			const [was, now] = [totalOf(before_), totalOf(after_)].map((n) => n * TICK);
			const totals = await page.evaluate(() => [window.__viewer.tree.base[0], window.__viewer.tree.total[0]]);
			assert.deepEqual(totals, [was, was + now]);
			assert.deepEqual([await page.locator('#base').inputValue(), await page.locator('#service').inputValue()], ['before.pb', 'after.pb']);
			assert.match(await page.locator('#change').innerText(), /→/);
			const [mine, theirs] = [countFunctions(before_), countFunctions(after_)];
			const rows = await page.locator('#changes tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
			assert.ok(rows.length > 10);
			for (const [name, base, shown] of rows) {
				const share = (of, whole) => (100 * (of.get(name)?.self ?? 0)) / whole;
				assert.ok(base === 'new' || Math.abs(Number(base) - share(mine, totalOf(before_))) < 0.06, `${name} ${base}`);
				assert.ok(shown === 'gone' || Math.abs(Number(shown) - share(theirs, totalOf(after_))) < 0.06, `${name} ${shown}`);
			}
			await page.locator('.top nav a', { hasText: 'Profile' }).click();
			await pageShown(page, 'profile');
			assert.equal((await shownFunctions(page)).total, now);
			await page.selectOption('#service', 'before.pb');
			await page.waitForFunction((wanted) => window.__viewer.tree.total[0] === wanted, was);
			await page.locator('.top nav a', { hasText: 'Compare' }).click();
			await pageShown(page, 'compare');
			await assertSilent(opened);
		});
	});

	test('three files are one', async () => {
		await withView([path('before.pb'), path('after.pb'), path('before.pb')], async ({ url }) => {
			const opened = await openSite(browser, url, '');
			await pageShown(opened.page, 'profile');
			assert.equal((await shownFunctions(opened.page)).total, (2 * totalOf(before_) + totalOf(after_)) * TICK);
			await assertSilent(opened);
		});
	});

	for (const names of [['before.pb'], ['before.pb', 'after.pb', 'before.pb']]) test(`${names.join(', ')}: as go tool pprof adds them up`, { skip: missingGo() || false }, async () => {
		const files = names.map(path);
		await withView(files, async ({ url }) => {
			const opened = await openSite(browser, url, '');
			await pageShown(opened.page, 'profile');
			const counted = await shownFunctions(opened.page);
			const theirs = goTop(files, 'cpu', folder);
			assert.deepEqual(counted, { total: theirs.total, functions: asObject(theirs.functions) });
			await assertSilent(opened);
		});
	});

	test('profiles of a real Go program', async (t) => {
		const program = path('profiles');
		if (spawnSync('go', ['build', '-o', program, PROGRAM], { env: { ...process.env, GO111MODULE: 'off', GOFLAGS: '-mod=mod' } }).status !== 0) {
			t.skip('needs go');
			return;
		}
		mkdirSync(path('go'));
		assert.equal(spawnSync(program, [path('go'), '1']).status, 0);
		for (const [name, column, unit] of [['cpu', 'cpu', 'nanoseconds'], ['heap', 'inuse_space', 'bytes'], ['mutex', 'delay', 'nanoseconds'], ['goroutine', 'goroutine', 'count']]) {
			const file = path(`go/${name}.pb.gz`);
			assert.ok(existsSync(file));
			await withView(['--value', column, file], async ({ url }) => {
				const opened = await openSite(browser, url, '');
				await pageShown(opened.page, 'profile');
				const { total } = await shownFunctions(opened.page);
				assert.equal(total, goTop([file], column, folder, unit).total, name);
				await assertSilent(opened);
			});
		}
	});

	for (const colorScheme of ['light', 'dark']) {
		test(`axe-core finds nothing, also 400 pixels wide, ${colorScheme}`, async () => {
			await withView([path('before.pb'), path('after.pb')], async ({ url }) => {
				for (const width of [1400, 400]) {
					for (const hash of ['#/compare', '#/profile', '#/files']) {
						const { page, context } = await openSite(browser, url, hash, { colorScheme, bypassCSP: true, viewport: { width, height: 800 } });
						await pageShown(page, hash.slice(2));
						assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash + width);
						await page.evaluate(readFileSync(axePath(), 'utf8'));
						assert.deepEqual(await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | '))), [], hash + width);
						await context.close();
					}
				}
			});
		});
	}

	test('a server that has ended is said in words', async () => {
		const view = await startView(path('before.pb'));
		const { page, context } = await openSite(browser, view.url, '');
		await pageShown(page, 'profile');
		await view.end();
		await page.locator('#samples button', { hasText: 'samples' }).click();
		await page.locator('#trouble').waitFor();
		assert.match(await page.locator('#trouble').innerText(), /does not answer/);
		await context.close();
	});
});
