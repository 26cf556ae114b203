// SPDX-License-Identifier: Apache-2.0
// The page of hosts in a real browser, against a collector with known profiles (fake_collector.mjs).
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertSilent, axePath, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { startCollector } from './fake_collector.mjs';

const reason = missingBrowser();
const PAGES = ['#/hosts', '#/hosts?by=thread', '#/hosts?by=program&labels=host%3Dnode-b', '#/profile?labels=host%3Dnode-a&process=77-7799&program=java'];

describe('hosts', { skip: reason || false }, () => {
	let browser;
	let collector;

	before(async () => {
		collector = await startCollector();
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		await collector?.close();
	});

	const open = (hash, options) => openSite(browser, collector.url, hash, options);
	const asked = (path) => new URL(collector.requests.findLast((r) => r.startsWith('/api/v1/' + path + '?')), 'http://x').searchParams;

	test('the processes of a host, their threads, and their flame graphs', async () => {
		const opened = await open('#/hosts');
		const { page } = opened;
		assert.equal(asked('processes').get('labels'), 'host=node-a', 'the dearest host');
		assert.match(await page.locator('#host-list button').first().innerText(), /node-a\s*3\.9\d of 8/);
		const rows = await page.locator('#owners tbody tr').allInnerTexts();
		assert.equal(rows.length, 23);
		assert.match(rows[0], /^nginx1204\s+checkout-api\s+1\.9\d\s+[\d.]+ %\s+3$/);
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		const drawn = await page.evaluate(() => {
			const canvas = document.querySelector('#owners canvas');
			return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v > 0);
		});
		assert.ok(drawn, 'a sparkline');
		await page.fill('#owner-filter', 'JAVA');
		await page.waitForFunction(() => document.querySelectorAll('#owners tbody tr').length === 1);
		await page.locator('#owners a', { hasText: '40' }).click();
		await page.waitForFunction(() => location.hash.includes('by=thread'));
		await pageShown(page, 'hosts');
		assert.deepEqual([asked('processes').get('process'), asked('processes').get('by')], ['77-7799', 'thread']);
		assert.match(await page.locator('#owner-of').innerText(), /Only of java 77/);
		await page.fill('#owner-filter', '');
		await page.waitForFunction(() => document.querySelectorAll('#owners tbody tr').length === 40);
		await page.locator('#owners tbody a').nth(3).click();
		await pageShown(page, 'profile');
		const flame = asked('flame');
		assert.deepEqual(['labels', 'process', 'program', 'thread', 'thread-name', 'service'].map((name) => flame.get(name)), ['host=node-a', '77-7799', 'java', '80', 'java-3', null]);
		assert.equal(asked('timeline').get('thread'), '80', 'the timeline is of it, too');
		assert.match(await page.locator('#whose').innerText(), /Only java 77, thread java-3 80/);
		await page.locator('#whose button', { hasText: 'Only' }).click(); // the host is a chip of its own
		await page.waitForFunction(() => !location.hash.includes('process='));
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('process'), null);
		await page.goBack();
		await pageShown(page, 'profile');
		await page.locator('[data-page=services]').click();
		await pageShown(page, 'services');
		assert.ok(!(await page.evaluate(() => location.hash)).includes('process='), 'other pages are of everybody');
		await assertSilent(opened);
	});

	test('another host, programs, nothing at all', async () => {
		const opened = await open('#/hosts');
		const { page } = opened;
		await page.locator('#host-list button', { hasText: 'node-b' }).click();
		await page.waitForFunction(() => location.hash.includes('node-b'));
		await pageShown(page, 'hosts');
		assert.equal(asked('processes').get('labels'), 'host=node-b');
		assert.equal(await page.locator('#host-list button[aria-pressed=true]').innerText().then((t) => t.split('\n')[0]), 'node-b');
		assert.ok(await page.locator('#host-list button', { hasText: '(no host)' }).isDisabled());
		await page.locator('#owner-by button', { hasText: 'Programs' }).click();
		await page.waitForFunction(() => location.hash.includes('by=program'));
		await pageShown(page, 'hosts');
		await page.locator('#owners tbody a').first().click();
		await pageShown(page, 'profile');
		assert.deepEqual([asked('flame').get('program'), asked('flame').get('process')], ['nginx', null]);
		await assertSilent(opened);
	});

	test('by keys alone: another host, its threads, a graph', async () => {
		const opened = await open('#/hosts');
		const { page } = opened;
		/** Tab until what has the focus matches. */
		const reach = async (selector, text) => {
			for (let i = 0; i < 120; i++) {
				await page.keyboard.press('Tab');
				if (await page.evaluate(([s, t]) => document.activeElement.matches(s) && document.activeElement.textContent.startsWith(t), [selector, text])) return;
			}
			assert.fail(`${selector} ${text} is not reached`);
		};
		await reach('#host-list button', 'node-b');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => location.hash.includes('node-b'));
		await pageShown(page, 'hosts');
		await reach('#owner-by button', 'Threads');
		await page.keyboard.press('Space');
		await page.waitForFunction(() => location.hash.includes('by=thread'));
		await pageShown(page, 'hosts');
		await reach('#owners a', 'java-0');
		await page.keyboard.press('Enter');
		await pageShown(page, 'profile');
		assert.deepEqual([asked('flame').get('labels'), asked('flame').get('thread')], ['host=node-b', '77']);
		await assertSilent(opened);
	});

	test('400 pixels wide: whose graph it is is said though the selection is folded', async () => {
		const opened = await open('#/profile?labels=host%3Dnode-a&process=77-7799&program=java', { viewport: { width: 400, height: 800 } });
		assert.match(await opened.page.locator('#selection summary').innerText(), /All services, host: node-a, only java 77/);
		await assertSilent(opened);
	});

	test('a late answer is not drawn, and rows stay those of their host while another one is asked for', async () => {
		const opened = await open('#/hosts');
		const { page } = opened;
		const held = new Map(); // by label
		await page.route(/\/processes\?/, (route) => held.set(new URL(route.request().url()).searchParams.get('labels'), route));
		const choose = async (host) => {
			await page.locator('#host-list button', { hasText: host }).first().click();
			for (const end = Date.now() + 10000; !held.has('host=' + host) && Date.now() < end;) await page.waitForTimeout(10);
		};
		await choose('node-b');
		await page.fill('#owner-filter', 'java');
		await page.waitForFunction(() => document.querySelectorAll('#owners tbody tr').length === 1);
		assert.match(await page.locator('#owners tbody a').first().getAttribute('href'), /labels=host%3Dnode-a&|labels=host%3Dnode-a$/);
		await choose('small-0');
		await held.get('host=small-0').continue();
		await pageShown(page, 'hosts');
		await held.get('host=node-b').continue().catch(() => null); // may be gone
		await page.waitForTimeout(300);
		assert.equal(await page.locator('#host-name').innerText(), 'small-0');
		assert.match(await page.locator('#owners tbody a').first().getAttribute('href'), /small-0/);
		await assertSilent(opened);
	});

	for (const colorScheme of ['light', 'dark']) {
		test(`axe-core finds nothing, ${colorScheme}; 400 pixels wide`, async () => {
			for (const hash of PAGES) {
				for (const viewport of [{ width: 1400, height: 800 }, { width: 400, height: 800 }]) {
					const { page, context } = await open(hash, { colorScheme, bypassCSP: true, viewport });
					await page.evaluate(readFileSync(axePath(), 'utf8'));
					const found = await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')));
					assert.deepEqual(found, [], hash);
					assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash);
					await context.close();
				}
			}
		});
	}
});
