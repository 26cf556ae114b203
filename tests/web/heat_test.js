// SPDX-License-Identifier: Apache-2.0
// The heat map in a real browser, against a collector with known profiles (fake_collector.mjs).
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertSilent, axePath, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { startCollector } from './fake_collector.mjs';

const reason = missingBrowser();
const PAGES = ['#/heat', '#/heat?rows=service', '#/heat?rows=subsecond&from=now-2m', '#/heat?rows=subsecond&from=now-2m&service=php-fpm'];

describe('heat map', { skip: reason || false }, () => {
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
	/** The middle of a cell of the map. */
	const cellAt = (page, row, at) => page.evaluate(([r, a]) => {
		const { map } = window.__app.heat;
		const box = map.box.getBoundingClientRect();
		return [box.left + ((a + 0.5) / map.blocks.columns) * box.width, box.top + map.rowTop(r) + map.rowHeight / 2];
	}, [row, at]);
	const spanOf = (page, first, last) => page.evaluate(([f, l]) => window.__app.heat.blocks.span(f, l), [first, last]);
	/** The colours of rows in one column. */
	const coloursAt = (page, rows, at) => page.evaluate(([all, a]) => {
		const { map } = window.__app.heat;
		const { canvas } = map;
		const x = Math.floor(((a + 0.5) / map.blocks.columns) * canvas.width);
		const { data } = canvas.getContext('2d').getImageData(x, 0, 1, canvas.height);
		return all.map((row) => data.slice(4 * Math.floor(((map.rowTop(row) + map.rowHeight / 2) / map.box.clientHeight) * canvas.height)).slice(0, 3).join());
	}, [rows, at]);

	test('the legend of what costs little has other words than 0.00', async () => {
		const opened = await open('#/heat');
		const ends = await opened.page.evaluate(() => {
			const { heat } = window.__app;
			for (const { points } of heat.blocks.rows) points.forEach((value, at) => (points[at] = value / 1e5));
			heat.scaled = heat.blocks = new heat.blocks.constructor(heat.answer);
			heat.drawLegend();
			return Array.from(document.querySelectorAll('#heat-legend span'), (span) => parseFloat(span.textContent));
		});
		assert.ok(ends[0] === 0 && ends[1] > 0 && ends[2] > 3 * ends[1] && ends[2] < 0.01, ends.join());
		await assertSilent(opened);
	});

	test('a block chosen with the mouse opens its flame graph', async () => {
		const opened = await open('#/heat');
		const { page } = opened;
		assert.deepEqual([asked('timeline').get('group'), asked('timeline').get('steps')], ['host', 'round']);
		const names = await page.locator('#heat-names li').allInnerTexts();
		assert.deepEqual(names.slice(0, 2), ['node-a', 'node-b']);
		assert.equal(names[3], '(no host)');
		assert.equal(names.at(-1), '14 more');
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		assert.ok(!(await page.locator('body').innerText()).includes('\u202e'));
		assert.equal(new Set(await coloursAt(page, [0, 1, 5], 20)).size, 3, 'what costs more has another colour');
		await page.mouse.move(...await cellAt(page, 1, 30));
		assert.match(await page.locator('#heat-tip').innerText(), /node-b[^]*\d – [^]*CPUs/);
		const wanted = await spanOf(page, 30, 33);
		await page.mouse.down();
		await page.mouse.move(...await cellAt(page, 3, 33), { steps: 4 });
		await page.mouse.up();
		await pageShown(page, 'profile');
		const flame = asked('flame');
		assert.deepEqual([flame.get('labels'), flame.get('from'), flame.get('to')], ['host=node-b', String(wanted[0]), `${wanted[1] - 1}999999`]);
		assert.match(await page.evaluate(() => location.hash), /from=2026-.*part=/);
		await page.goBack();
		await pageShown(page, 'heat');
		await page.mouse.move(...await cellAt(page, 0, 10));
		const [x, y] = await cellAt(page, 0, 10);
		await page.mouse.click(x, y - 20);
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('labels'), null, 'above the rows: all of them');
		await assertSilent(opened);
	});

	test('a block chosen by keys, which are said', async () => {
		const opened = await open('#/heat?rows=service&from=now-15m');
		const { page } = opened;
		for (let i = 0; i < 60; i++) {
			await page.keyboard.press('Tab');
			if (await page.evaluate(() => document.activeElement.id === 'heat-map')) break;
		}
		await page.keyboard.press('Home');
		for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowLeft']) await page.keyboard.press(key);
		const wanted = await spanOf(page, 2, 3);
		assert.match(await page.locator('#heat-place').innerText(), /^search, .* – .*, [\d.]+ CPUs$/);
		assert.deepEqual(await page.evaluate(() => [window.__app.heat.map.first, window.__app.heat.map.last]), [2, 3]);
		await page.keyboard.press('Enter');
		await pageShown(page, 'profile');
		assert.equal(await page.inputValue('#service'), 'search');
		assert.deepEqual([asked('flame').get('from'), asked('flame').get('to')], [String(wanted[0]), `${wanted[1] - 1}999999`]);
		await page.goBack();
		await pageShown(page, 'heat');
		await page.locator('#heat-map').focus();
		for (const key of ['Shift+ArrowLeft', 'Escape', 'PageUp']) await page.keyboard.press(key);
		assert.deepEqual(await page.evaluate(() => [window.__app.heat.map.row, window.__app.heat.map.first === window.__app.heat.map.last]), [-1, true]);
		assert.match(await page.locator('#heat-place').innerText(), /^All rows/);
		await page.keyboard.press('Tab');
		assert.notEqual(await page.evaluate(() => document.activeElement.id), 'heat-map', 'Tab leads out');
		await assertSilent(opened);
	});

	test('the same as a table; more rows; other rows', async () => {
		const opened = await open('#/heat');
		const { page } = opened;
		await page.locator('#heat-table summary').click();
		await page.locator('#heat-table tbody tr').first().waitFor();
		const rows = await page.locator('#heat-table tbody tr').count();
		assert.equal(rows, 21);
		assert.match(await page.locator('#heat-table tbody tr').first().innerText(), /^node-a\s+3\.\d\d\s/);
		const link = page.locator('#heat-table tbody tr').nth(1).locator('a').nth(1);
		const [from, to] = /part=(\d+)-(\d+)/.exec(await link.getAttribute('href')).slice(1).map(Number);
		await link.click();
		await pageShown(page, 'profile');
		assert.deepEqual([asked('flame').get('from'), asked('flame').get('to'), asked('flame').get('labels')], [String(from), `${to - 1}999999`, 'host=node-b']);
		await page.goBack();
		await pageShown(page, 'heat');
		await page.locator('#heat-more').click();
		await page.waitForFunction(() => document.querySelectorAll('#heat-names li').length === 34);
		assert.equal(asked('timeline').get('limit'), '200');
		await page.selectOption('#heat-service', 'search');
		await page.waitForFunction(() => location.hash.includes('service=search'));
		await pageShown(page, 'heat');
		await page.selectOption('#heat-rows', 'version');
		await page.waitForFunction(() => document.querySelectorAll('#heat-names li').length === 2);
		assert.deepEqual([asked('timeline').get('group'), asked('timeline').get('service')], ['version', 'search']);
		await page.goto(collector.url + '#/heat?labels=only%3D1');
		await page.locator('#heat-empty:not([hidden])').waitFor();
		await assertSilent(opened);
	});

	test('a late answer is not drawn, and what is shown stays what it is of while another one is asked for', async () => {
		const opened = await open('#/heat');
		const { page } = opened;
		const held = new Map(); // by what the rows are
		let isHeld = true;
		await page.route(/\/timeline\?.*group=/, (route) => {
			if (isHeld) held.set(new URL(route.request().url()).searchParams.get('group'), route);
			else route.continue();
		});
		const choose = async (rows) => {
			await page.selectOption('#heat-rows', rows);
			for (const end = Date.now() + 10000; !held.has(rows) && Date.now() < end;) await page.waitForTimeout(10);
		};
		await choose('service');
		await page.mouse.click(...await cellAt(page, 1, 30));
		await pageShown(page, 'profile');
		assert.deepEqual([asked('flame').get('labels'), asked('flame').get('service')], ['host=node-b', null]);
		await page.evaluate(() => (location.hash = '#/heat'));
		for (const end = Date.now() + 10000; !held.has('host') && Date.now() < end;) await page.waitForTimeout(10);
		await choose('version');
		await held.get('version').continue();
		await pageShown(page, 'heat');
		isHeld = false;
		for (const rows of ['host', 'service']) await held.get(rows).continue().catch(() => null); // may be gone
		await page.waitForTimeout(300);
		assert.deepEqual(await page.locator('#heat-names li').allInnerTexts(), ['2026.11.3', '2026.11.2']);
		assert.equal(await page.inputValue('#heat-rows'), 'version');
		await assertSilent(opened);
	});

	/** The middle of a cell of the map of seconds; row -1: above it. */
	const secondAt = (page, column, row) => page.evaluate(([c, r]) => {
		const { secondsMap: map } = window.__app.heat;
		const box = map.box.getBoundingClientRect();
		const [x, y] = map.placeOfCell(c * map.seconds.rows + Math.max(0, r));
		return [box.left + x + map.wide() / 2, r < 0 ? box.top + 4 : box.top + y + 3];
	}, [column, row]);
	/** What a stretch is, from the answer itself. */
	const stretchOf = (page, first, last) => page.evaluate(([f, l]) => {
		const { answer } = window.__app.heat;
		return { within: [answer.start_ms + f * 20, answer.start_ms + (l + 1) * 20], sum: answer.cells.slice(f, l + 1).reduce((a, b) => a + b, 0) };
	}, [first, last]);

	test('time in the second: a stretch chosen with the mouse opens its flame graph', async () => {
		const opened = await open('#/heat?rows=subsecond&from=now-2m');
		const { page } = opened;
		assert.deepEqual([asked('subseconds').get('from'), asked('subseconds').get('last')], ['now-2m', '5m']);
		assert.equal(await page.inputValue('#heat-rows'), 'subsecond');
		assert.equal(await page.locator('#heat-work').isVisible(), false);
		assert.match(await page.locator('#seconds-note').innerText(), /^4\.00 % of the samples have no time/);
		const bottom = await page.evaluate(() => document.querySelector('#seconds-map').getBoundingClientRect().bottom);
		assert.ok(bottom < await page.evaluate(() => innerHeight), 'the map is whole without scrolling');
		await page.mouse.move(...await secondAt(page, 42, 20));
		assert.match(await page.locator('#heat-tip').innerText(), /^[^]*\.400 – [^]*\.420\s+[\d.]+ CPUs$/);
		await page.mouse.down();
		await page.mouse.move(...await secondAt(page, 44, 5), { steps: 4 });
		const wanted = await stretchOf(page, 42 * 50 + 20, 44 * 50 + 5);
		assert.ok((await page.locator('#heat-tip').innerText()).endsWith((wanted.sum / 1e6 / (wanted.within[1] - wanted.within[0])).toFixed(2) + ' CPUs'));
		await page.mouse.up();
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('within'), wanted.within.join('-'));
		assert.match(await page.evaluate(() => location.hash), new RegExp(`within=${wanted.within.join('-')}`));
		assert.match(await page.locator('#whose').innerText(), /^[\d:]+\.400 – [\d:]+\.120 ×$/);
		assert.match(await page.locator('#untimed').innerText(), /^5\.00 % of the samples/);
		assert.ok((await page.locator('#exports a').first().getAttribute('href')).includes('within=' + wanted.within.join('-')));
		await page.locator('#whose button').click();
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('within'), null);
		assert.deepEqual([await page.locator('#whose').isVisible(), await page.locator('#untimed').isVisible()], [false, false]);
		await page.goBack();
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('within'), wanted.within.join('-'), 'Back brings it back');
		await page.locator('a[data-page=compare]').first().click();
		await pageShown(page, 'compare');
		assert.deepEqual([asked('compare').get('within'), asked('compare').get('base-within')], [wanted.within.join('-'), wanted.within.map((ms) => ms - 86400000).join('-')]);
		await page.goBack();
		await pageShown(page, 'profile');
		await page.goBack();
		await pageShown(page, 'heat');
		await page.mouse.move(...await secondAt(page, 9, -1));
		await page.mouse.down();
		await page.mouse.move(...await secondAt(page, 7, 30), { steps: 3 });
		await page.mouse.up();
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('within'), (await stretchOfRange(page, 7, 9)).join('-'), 'above the columns: whole seconds');
		await assertSilent(opened);
	});

	/** Whole seconds of the answer that the heat page still has. */
	const stretchOfRange = (page, first, last) => page.evaluate(([f, l]) => {
		const { start_ms: start } = window.__app.heat.answer;
		return [start + f * 1000, start + (l + 1) * 1000];
	}, [first, last]);

	test('time in the second: keys, which are said', async () => {
		const opened = await open('#/heat?rows=subsecond&from=now-1m&service=search');
		const { page } = opened;
		await page.locator('#seconds-map').focus();
		for (const key of ['Home', 'ArrowRight', 'PageUp', 'ArrowUp', 'ArrowDown', 'Shift+ArrowUp', 'Shift+ArrowRight']) await page.keyboard.press(key);
		assert.deepEqual(await page.evaluate(() => [window.__app.heat.secondsMap.first, window.__app.heat.secondsMap.last]), [60, 111]);
		const wanted = await stretchOf(page, 60, 111);
		assert.match(await page.locator('#heat-place').innerText(), /\.200 – .*\.240, [\d.]+ CPUs$/);
		await page.keyboard.press('Enter');
		await pageShown(page, 'profile');
		assert.deepEqual([asked('flame').get('within'), asked('flame').get('service')], [wanted.within.join('-'), 'search']);
		await page.goBack();
		await pageShown(page, 'heat');
		await page.locator('#seconds-map').focus();
		for (const key of ['End', 'ArrowRight', 'Shift+ArrowDown', 'Escape']) await page.keyboard.press(key);
		assert.deepEqual(await page.evaluate(() => [window.__app.heat.secondsMap.first, window.__app.heat.secondsMap.last]), [2998, 2998]);
		await page.keyboard.press('Tab');
		assert.notEqual(await page.evaluate(() => document.activeElement.id), 'seconds-map', 'Tab leads out');
		await assertSilent(opened);
	});

	test('time in the second: the table, a long range, samples without times, other rows', async () => {
		const opened = await open('#/heat?rows=subsecond');
		const { page } = opened;
		assert.match(await page.locator('#seconds-note').innerText(), /^The last 5 minutes of the range/);
		await page.locator('#seconds-table summary').click();
		await page.locator('#seconds-table tbody tr').first().waitFor();
		assert.equal(await page.locator('#seconds-table tbody tr').count(), 300);
		const sums = await page.locator('#seconds-table tbody td:nth-child(2)').allInnerTexts();
		const total = await page.evaluate(() => window.__app.heat.answer.total);
		assert.ok(Math.abs(sums.reduce((sum, text) => sum + Number(text), 0) - total / 1e9) < 300 * 0.005 + 0.001, 'the rows add up to the total');
		const link = page.locator('#seconds-table tbody tr').nth(42).locator('a').nth(1);
		const [from, to] = /within=(\d+)-(\d+)/.exec(await link.getAttribute('href')).slice(1).map(Number);
		assert.equal(to - from, 20);
		await link.click();
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('within'), `${from}-${to}`);
		await page.goto(collector.url + '#/heat?rows=subsecond&service=php-fpm&from=now-2m');
		await page.locator('#seconds-none:not([hidden])').waitFor();
		assert.match(await page.locator('#seconds-none').innerText(), /^The samples of this range have no times of their own. Agents give them with --sample-times/);
		assert.deepEqual([await page.locator('#seconds-work').isVisible(), await page.locator('#heat-work').isVisible()], [false, false]);
		await page.selectOption('#heat-service', '');
		await page.locator('#seconds-map').waitFor();
		await page.selectOption('#heat-rows', 'service');
		await page.locator('#heat-map').waitFor();
		assert.deepEqual([await page.locator('#seconds-work').isVisible(), await page.locator('#seconds-none').isVisible()], [false, false]);
		await page.goto(collector.url + '#/profile?within=5-4');
		await pageShown(page, 'profile');
		assert.equal(asked('flame').get('within'), null, 'what is no stretch of time is none');
		await assertSilent(opened);
	});

	for (const colorScheme of ['light', 'dark']) {
		test(`axe-core finds nothing, ${colorScheme}; 400 pixels wide`, async () => {
			for (const hash of PAGES) {
				for (const viewport of [{ width: 1400, height: 800 }, { width: 400, height: 800 }]) {
					const { page, context } = await open(hash, { colorScheme, bypassCSP: true, viewport });
					for (const table of await page.locator('#heat-table summary, #seconds-table summary').all()) if (await table.isVisible()) await table.click();
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
