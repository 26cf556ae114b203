// SPDX-License-Identifier: Apache-2.0
// Whole walks by keys alone: Tab, Enter, arrows and letters; nothing is clicked and no focus is set by the test.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { assertSilent, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { startCollector, stacksOf } from './fake_collector.mjs';
import { foldedText, knownStacks, totalOf } from './known.js';

const reason = missingBrowser();
const TABS_MAX = 150;

/** Presses Tab until what has the focus fits the selector and, if given, begins with the text. */
async function tabTo(page, selector, text = '', key = 'Tab') {
	const seen = [];
	for (let i = 0; i < TABS_MAX; i++) {
		await page.keyboard.press(key);
		const [fits, name] = await page.evaluate(([wanted, words]) => {
			const { activeElement: e } = document;
			return [e.matches(wanted) && e.textContent.startsWith(words), e.id || e.textContent.slice(0, 20)];
		}, [selector, text]);
		if (fits) return;
		seen.push(name);
	}
	assert.fail(`Tab does not come to ${selector} ${text}: ${seen.join(' | ')}`);
}

describe('walks by keys', { skip: reason || false }, () => {
	let browser;
	let collector;
	const own = [];

	before(async () => {
		collector = await startCollector();
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		for (const one of [collector, ...own]) await one?.close();
	});

	const total = (page) => page.evaluate(() => window.__viewer.tree.total[0]);
	const zoomed = (page) => page.evaluate(() => window.__viewer.graph.zoomed);
	const hashHas = (page, text) => page.waitForFunction((wanted) => location.hash.includes(wanted), text);

	async function goTo(page, name) {
		await tabTo(page, `[data-page=${name}]`);
		await page.keyboard.press('Enter');
		await pageShown(page, name);
	}

	/** The focus comes to the graph's tree, one frame is chosen and zoomed to, and Backspace goes back. */
	async function zoomByKeys(page) {
		await tabTo(page, '#mirror');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => window.__viewer.graph.zoomed > 0);
		await page.keyboard.press('Backspace');
		await page.keyboard.press('Backspace');
		assert.equal(await zoomed(page), 0);
	}

	test('profile: a part of the time, a label, another service, an export, and out', async () => {
		const opened = await openSite(browser, collector.url, '#/services');
		const { page } = opened;
		await tabTo(page, '#services a', 'checkout-api');
		await page.keyboard.press('Enter');
		await pageShown(page, 'profile');
		await tabTo(page, '#timeline input');
		await page.keyboard.press('ArrowRight');
		await hashHas(page, 'part=');
		await pageShown(page, 'profile');
		await zoomByKeys(page);
		await tabTo(page, '#facets button');
		await page.keyboard.press('Enter');
		await hashHas(page, 'labels=');
		await pageShown(page, 'profile');
		await tabTo(page, '#service', '', 'Shift+Tab');
		await page.keyboard.press('ArrowDown');
		await page.waitForFunction(() => !location.hash.includes('service=checkout-api'));
		await pageShown(page, 'profile');
		await tabTo(page, '#exports a');
		const download = page.waitForEvent('download');
		await page.keyboard.press('Enter');
		assert.ok((await download).suggestedFilename());
		await tabTo(page, '#home');
		await assertSilent(opened);
	});

	test('compare: another base, amounts, side by side, both graphs, the changes, and out', async () => {
		const opened = await openSite(browser, collector.url, '#/profile?service=checkout-api');
		const { page } = opened;
		await goTo(page, 'compare');
		await tabTo(page, '#base');
		await page.keyboard.press('ArrowDown');
		await hashHas(page, 'base=');
		await pageShown(page, 'compare');
		await tabTo(page, '#diff');
		await page.keyboard.press('ArrowDown');
		await hashHas(page, 'diff=value');
		await tabTo(page, '#sides');
		await page.keyboard.press('ArrowDown');
		await page.locator('.sides').waitFor();
		const zooms = () => page.evaluate(() => window.__viewer.sides.parts.map(({ flame, tree }) => tree.origin[flame.zoomed]));
		for (const side of ['base', 'now']) {
			const before = await zooms();
			await tabTo(page, `#side-${side}-mirror`);
			await page.keyboard.press('Home');
			await page.keyboard.press('ArrowDown');
			if (side === 'now') await page.keyboard.press('ArrowDown');
			await page.keyboard.press('Enter');
			assert.notDeepEqual(await zooms(), before, side);
			await page.keyboard.press('Backspace');
		}
		await tabTo(page, '#changes');
		const scrolls = await page.evaluate(() => {
			const { scrollHeight, clientHeight } = document.getElementById('changes');
			return scrollHeight > clientHeight;
		});
		if (scrolls) {
			await page.keyboard.press('End');
			await page.waitForFunction(() => document.getElementById('changes').scrollTop > 0);
		}
		await tabTo(page, '#home'); // around the end of the page and in again: nothing holds the focus
		await goTo(page, 'profile');
		await assertSilent(opened);
	});

	test('compare: a base of its own, the sides swapped, and a preset again', async () => {
		const opened = await openSite(browser, collector.url, '#/compare?service=checkout-api&base=7d');
		const { page } = opened;
		await tabTo(page, '#base');
		await page.keyboard.press('ArrowDown');
		await page.locator('#base-form').waitFor();
		await tabTo(page, '#base-service');
		await page.keyboard.press('Home');
		await tabTo(page, '#base-labels');
		await page.keyboard.type('host=node-b');
		await tabTo(page, '#base-to');
		await page.keyboard.press('Enter');
		await hashHas(page, 'base-service=&');
		await pageShown(page, 'compare');
		assert.match(await page.locator('#change').innerText(), /Base .* all services, host=node-b, 15 Nov /);
		await tabTo(page, '#swap');
		await page.keyboard.press('Enter');
		await hashHas(page, 'swap=1');
		await pageShown(page, 'compare');
		await tabTo(page, '#base', '', 'Shift+Tab');
		await page.keyboard.press('ArrowUp');
		await page.waitForFunction(() => !location.hash.includes('base-') && !location.hash.includes('swap'));
		await pageShown(page, 'compare');
		await tabTo(page, '#home');
		await assertSilent(opened);
	});

	test('live: a service, the length of time, pause, zoom, order, and away', async () => {
		const moving = await startCollector();
		own.push(moving);
		const opened = await openSite(browser, moving.url, '#/services');
		const { page } = opened;
		await goTo(page, 'live');
		await tabTo(page, '#live-services button', 'search');
		await page.keyboard.press('Enter');
		await hashHas(page, 'service=search');
		await tabTo(page, '[data-window="5m"]');
		await page.keyboard.press(' ');
		await hashHas(page, 'window=5m');
		await page.waitForFunction(() => window.__viewer.tree?.count > 1);
		await tabTo(page, '#live-pause');
		await page.keyboard.press('Enter');
		moving.nextRound();
		await page.waitForFunction(() => /Paused; there is/.test(document.getElementById('live-state').textContent));
		const before = await total(page);
		await page.keyboard.press('Enter');
		await page.waitForFunction((was) => window.__viewer.tree.total[0] !== was, before);
		await tabTo(page, '#live-sort');
		await page.keyboard.press('Enter');
		await zoomByKeys(page);
		moving.nextRound();
		await page.waitForFunction(() => /Live/.test(document.getElementById('live-state').textContent));
		assert.equal(await page.evaluate(() => document.activeElement.id), 'mirror', 'the next picture leaves the focus where it is');
		await goTo(page, 'services');
		for (let i = 0; i < 50 && moving.streams.size; i++) await page.waitForTimeout(100);
		assert.equal(moving.streams.size, 0);
		await assertSilent(opened);
	});

	test('files: choose one, look at it in every view, save it', async () => {
		const stacks = knownStacks(61);
		const opened = await openSite(browser, collector.url, '#/services');
		const { page } = opened;
		await goTo(page, 'files');
		await tabTo(page, '#file');
		const chooser = page.waitForEvent('filechooser');
		await page.keyboard.press(' '); // what opens it in this browser
		await (await chooser).setFiles({ name: 'x.folded', mimeType: 'text/plain', buffer: Buffer.from(foldedText(stacks)) });
		await pageShown(page, 'files');
		await page.waitForFunction((sum) => window.__viewer.tree?.total[0] === sum, totalOf(stacks));
		await zoomByKeys(page);
		await page.keyboard.press('4');
		await tabTo(page, '#table .grid-body');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => window.__viewer.state.view === 'sandwich');
		await page.keyboard.press('5');
		await tabTo(page, '#calls .grid-body');
		await page.keyboard.press('ArrowRight');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => window.__viewer.state.view === 'graph' && window.__viewer.state.zoom > 0);
		await tabTo(page, '#menu');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.activeElement.closest('#step-menu'));
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.querySelectorAll('#chips button').length === 1);
		await tabTo(page, '#undo');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => !document.querySelector('#chips button'));
		await tabTo(page, '#export');
		const download = page.waitForEvent('download');
		await page.keyboard.press('ArrowDown');
		assert.match((await download).suggestedFilename(), /\.pb\.gz$/);
		await tabTo(page, '#home');
		await assertSilent(opened);
	});

	test('a snapshot: kept, its link followed, looked at, deleted', async () => {
		const opened = await openSite(browser, collector.url, '#/profile?service=search');
		const { page } = opened;
		await tabTo(page, '#keep');
		await page.keyboard.press('Enter');
		await page.keyboard.type('by keys');
		await page.keyboard.press('Enter');
		await page.locator('#keep-link').waitFor();
		await tabTo(page, '#keep-link');
		await page.keyboard.press('Enter');
		await pageShown(page, 'snapshot');
		assert.ok(!(await page.locator('#keep-sheet').isVisible()), 'the sheet has gone');
		assert.equal(await total(page), totalOf(stacksOf('search')));
		await zoomByKeys(page);
		await tabTo(page, '#snapshot-delete');
		await page.keyboard.press('Enter');
		assert.equal(await page.locator('#snapshot-delete').innerText(), 'Delete for good?');
		assert.equal(await page.evaluate(() => document.activeElement.id), 'snapshot-delete');
		await page.keyboard.press('Enter');
		await pageShown(page, 'services');
		await tabTo(page, '#services a', 'search');
		await assertSilent(opened);
	});

	test('signing in: the field has the focus, Tab stays in the dialog, what is wrong is said', async () => {
		const locked = await startCollector({ token: 'secret-token' });
		own.push(locked);
		const opened = await openSite(browser, locked.url, '#/services');
		const { page } = opened;
		await page.waitForFunction(() => document.activeElement.id === 'token');
		await page.keyboard.type('wrong');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => /no such token/.test(document.getElementById('sign-trouble').textContent));
		assert.equal(await page.evaluate(() => document.activeElement.id), 'token', 'to be typed once more');
		for (let i = 0; i < 6; i++) {
			await page.keyboard.press('Tab');
			assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('#sign-in')), 'what is behind cannot be reached');
		}
		await tabTo(page, '#token');
		await page.keyboard.press('Control+a');
		await page.keyboard.type('secret-token');
		await tabTo(page, '#sign-in button');
		await page.keyboard.press(' ');
		await pageShown(page, 'services');
		assert.ok(!(await page.locator('#sign-in').isVisible()));
		await tabTo(page, '#services a', 'search');
		await page.keyboard.press('Enter');
		await pageShown(page, 'profile');
		opened.noise = opened.noise.filter((line) => !/Failed to load resource/.test(line));
		await assertSilent(opened);
	});

	test('signing in, put off with Escape: the page says what is missing, and asks again', async () => {
		const locked = await startCollector({ token: 'secret-token' });
		own.push(locked);
		const opened = await openSite(browser, locked.url, '#/services');
		const { page } = opened;
		await page.waitForFunction(() => document.activeElement.id === 'token');
		await page.keyboard.press('Escape');
		assert.ok(!(await page.locator('#sign-in').isVisible()));
		assert.match(await page.locator('#trouble').innerText(), /token|Sign in/i);
		await tabTo(page, '#refresh');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.activeElement.id === 'token');
		opened.noise = opened.noise.filter((line) => !/Failed to load resource/.test(line));
		await assertSilent(opened);
	});
});
