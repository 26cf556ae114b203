// SPDX-License-Identifier: Apache-2.0
// The selection column of the profile page in a real browser against the real collector: what is offered, what it costs, what is chosen.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { assertSilent, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { Collector, missingCollector } from './collector.js';
import { pprofOf } from './known.js';

const reason = missingBrowser() || missingCollector();
const HOUR = 3600000;
const NOW = Math.floor(Date.now() / 1000) * 1000 - 60000;
const [FROM, TO] = [NOW - HOUR, NOW];
const RANGE = `from=${FROM}&to=${TO}`;
const TICK = 1e7;
const MARKUP = '<img src=x onerror=window.__hit=1>';

/** What was sent: [labels, ticks], one profile each; the first half of them in the first half of the range. */
const SENT = [
	[{ host: 'node-a', region: 'eu', version: '1' }, 100], [{ host: 'node-a', region: 'eu', version: '2' }, 20],
	[{ host: 'node-b', region: 'eu', version: '2' }, 40], [{ host: 'node-b', region: 'us', version: '1' }, 7],
	[{ host: 'node-c', region: 'us', version: '2' }, 3], [{ host: 'node,c=1|"', region: 'us', version: '2' }, 1],
];
const COUNT = SENT.length;

describe('the selection column', { skip: reason || false }, () => {
	let browser;
	let collector;

	before(async () => {
		collector = await Collector.start('--no-access-log');
		for (const [i, [labels, ticks]] of SENT.entries()) {
			const body = pprofOf([['samples', 'count'], ['cpu', 'nanoseconds']], [[['main'], [ticks, ticks * TICK]]]);
			await collector.upload('api', 'cpu', body, FROM + ((i + 0.5) / COUNT) * HOUR, labels);
		}
		const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`label-${String(i).padStart(2, '0')}`, 'x']));
		for (const value of [MARKUP, 'plain']) {
			const labels = Object.fromEntries(Object.keys(many).map((name) => [name, value]));
			await collector.upload('many labels', 'cpu', pprofOf([['cpu', 'nanoseconds']], [[['main'], [TICK]]]), NOW - 60000, labels);
		}
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		await collector?.close();
	});

	const open = (hash, options) => openSite(browser, collector.url, hash, options);
	const total = (page) => page.evaluate(() => window.__viewer.tree.total[0]);
	const sumOf = (fits) => SENT.reduce((sum, [labels, ticks]) => sum + (fits(labels) ? ticks : 0), 0) * TICK;
	/** [value, pressed] of the values of a label. */
	const valuesOf = (page, label) => page.evaluate((wanted) => {
		const head = [...document.querySelectorAll('#facets h3')].find((h) => h.textContent === wanted);
		return [...(head?.nextElementSibling.querySelectorAll('.choice') ?? [])].map((c) => [c.firstChild.textContent, c.ariaPressed === 'true']);
	}, label);
	/** The button of a value. */
	const choice = (page, value) => page.locator('#facets .choice').filter({ has: page.getByText(value, { exact: true }) });
	const shows = (page, wanted) => page.waitForFunction((sum) => document.body.dataset.shown === 'profile' && document.getElementById('pages').ariaBusy === 'false' &&
		window.__viewer.tree.total[0] === sum, wanted);

	test('what is chosen of a label leaves its other values there, with what they cost', async () => {
		const opened = await open(`#/profile?service=api&${RANGE}`);
		const { page } = opened;
		const hosts = await valuesOf(page, 'host');
		assert.deepEqual(hosts.map(([value]) => value), ['node-a', 'node-b', 'node-c', 'node,c=1|"']);
		const amounts = () => page.locator('#facets li', { hasText: 'node-' }).locator('.choice span:last-child').allTextContents();
		const before = await amounts();
		await choice(page, 'node-b').click();
		await shows(page, sumOf((l) => l.host === 'node-b'));
		assert.deepEqual(await valuesOf(page, 'host'), hosts.map(([value]) => [value, value === 'node-b']));
		assert.deepEqual(await amounts(), before, 'their amounts are those of before');
		assert.deepEqual((await valuesOf(page, 'region')).map(([value]) => value), ['eu', 'us']);
		await choice(page, 'us').click();
		await shows(page, sumOf((l) => l.host === 'node-b' && l.region === 'us'));
		assert.deepEqual((await valuesOf(page, 'host')).map(([value]) => value), ['node-b', 'node-c', 'node,c=1|"'], 'those of the other label that is chosen');
		await choice(page, 'node-c').click();
		await shows(page, sumOf((l) => l.host === 'node-c'));
		assert.match(await page.evaluate(() => location.hash), /labels=/);
		await choice(page, 'node-c').click();
		await shows(page, sumOf((l) => l.region === 'us'));
		await assertSilent(opened);
	});

	test('labels beyond the first ones', async () => {
		const opened = await open(`#/profile?service=many+labels&${RANGE}`);
		const { page } = opened;
		assert.equal(await page.locator('#facets h3').count(), 12);
		const more = page.locator('#facets > p button');
		assert.equal(await more.innerText(), '8 more labels');
		await more.click();
		await page.waitForFunction(() => document.querySelectorAll('#facets h3').length === 20);
		assert.equal(await page.locator('#facets > p').count(), 0);
		const other = await open(`#/profile?service=many+labels&${RANGE}&labels=label-19%3Dplain`);
		assert.deepEqual(await valuesOf(other.page, 'label-19'), [[MARKUP, false], ['plain', true]], 'a label that something is chosen of is there');
		await assertSilent(other);
		await assertSilent(opened);
	});

	test('amounts are those of the part that is chosen', async () => {
		const part = [FROM, FROM + HOUR / 2];
		const first = SENT.slice(0, COUNT / 2).reduce((sum, [, ticks]) => sum + ticks, 0);
		const opened = await open(`#/profile?service=api&${RANGE}&sample=samples&part=${part.join('-')}`);
		const { page } = opened;
		const samples = () => page.locator('#samples .choice').allInnerTexts();
		assert.ok((await samples()).some((text) => new RegExp(`samples\\s+${first}$`).test(text)), String(await samples()));
		assert.equal(await total(page), first);
		assert.equal(await page.locator('#facets .choice', { hasText: 'node-a' }).locator('span').last().innerText(), '120');
		await page.locator('#samples .choice', { hasText: 'cpu: cpu' }).click();
		await shows(page, first * TICK);
		const seconds = (await collector.askJson('services', { from: part[0], to: `${part[1] - 1}999999` })).covered_ms / 1000 || HOUR / 2000;
		assert.ok((await samples()).some((text) => text.includes(`${(first * TICK / 1e9 / seconds).toFixed(2)} s/s`)), String(await samples()));
		await page.locator('#whose button').click();
		await shows(page, sumOf(() => true));
		await page.locator('#samples .choice', { hasText: 'samples' }).click();
		await page.waitForFunction((sum) => document.getElementById('samples').innerText.includes(sum), String(sumOf(() => true) / TICK));
		await pageShown(page, 'profile');
		await assertSilent(opened);
	});
});
