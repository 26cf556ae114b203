// SPDX-License-Identifier: Apache-2.0
// The selection column of the profile page in a real browser against the real collector: what is offered, what it costs, what is chosen.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertSilent, axePath, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
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
/** Values that an address has to escape, each with its ticks. */
const ODD = [['1.2+b7', 5], ['1.2 b7', 3], [' at the ends ', 2], ['100 %,a=b', 1]];
/** Names of labels that no page may take for anything but text; the collector keeps 256 bytes of a name at most. */
const KEY_BYTES = 256;
const KEYS = [MARKUP, '</script><script>window.__hit=1</script>', '\u202eyek<b>', "a' onmouseover='window.__hit=1", '{x="y"}', 'a,b=c|"+ %', '__proto__', 'k'.repeat(KEY_BYTES), '\u5bbd'.repeat(KEY_BYTES / 3)];
const WORST_KEYS = [KEYS[0], KEYS[2], 'k'.repeat(KEY_BYTES)];
const KEY_VALUES = [[MARKUP, 5], ['plain', 3]];
/** A name as a page shows its first characters. */
const shownKey = (key, most) => key.slice(0, most).replaceAll('\u202e', '\\u{202e}').slice(0, most);

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
		for (let i = 0; i < 80; i++) await collector.upload('many values', 'cpu', pprofOf([['cpu', 'nanoseconds']], [[['main'], [TICK * (i === 77 ? 1 : 2)]]]), NOW - 60000, { pod: 'web-' + i });
		for (const [value, ticks] of ODD) await collector.upload('odd values', 'cpu', pprofOf([['cpu', 'nanoseconds']], [[['main'], [ticks * TICK]]]), NOW - 60000, { version: value });
		for (const [value, ticks] of KEY_VALUES) {
			await collector.upload('odd keys', 'cpu', pprofOf([['cpu', 'nanoseconds']], [[['main'], [ticks * TICK]]]), NOW - 60000, Object.fromEntries(KEYS.map((key) => [key, value])));
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

	test('a value with + or with blanks at its ends is found, and only that one', async () => {
		for (const [value, ticks] of ODD) {
			const opened = await open(`#/profile?service=odd+values&${RANGE}`);
			const { page } = opened;
			await page.locator(`#facets .choice[title^=${JSON.stringify(value)}]`).click();
			await shows(page, ticks * TICK);
			await page.reload(); // what first.js asks for, too
			await shows(page, ticks * TICK);
			await assertSilent(opened);
		}
	});

	/** Foreign text has stayed text, all of it in the window. */
	async function assertHarmless(page, what) {
		assert.ok(!(await page.locator('body').innerText()).includes('\u202e') && !(await page.title()).includes('\u202e'), what);
		assert.equal(await page.evaluate(() => window.__hit), undefined, what);
		assert.equal(await page.locator('img').count(), 0, what);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what}: something is wider than the window`);
	}

	test('names of labels are text, whatever they are: chosen, grouped by, in the address', async () => {
		const wanted = KEY_VALUES[1][1] * TICK;
		for (const width of [1400, 400]) {
			const opened = await open(`#/profile?service=odd+keys&${RANGE}`, { viewport: { width, height: 900 } });
			const { page } = opened;
			await page.evaluate(() => (document.getElementById('selection').open = true));
			const heads = await page.locator('#facets h3').allTextContents();
			assert.deepEqual([...heads].sort(), KEYS.map((key) => shownKey(key, 100)).sort());
			await assertHarmless(page, `${width} pixels`);
			for (const key of width === 1400 ? KEYS : WORST_KEYS) {
				const list = page.locator('#facets h3').nth(heads.indexOf(shownKey(key, 100))).locator('xpath=following-sibling::ul[1]');
				await list.locator('.choice', { hasText: 'plain' }).click();
				await shows(page, wanted);
				await page.reload();
				await shows(page, wanted);
				await page.evaluate(() => (document.getElementById('selection').open = true));
				assert.equal(await page.locator('#whose button').innerText(), `${shownKey(key, 60)}: plain ×`);
				await assertHarmless(page, `chosen: ${key}`);
				await page.locator('#whose button').click();
				await shows(page, KEY_VALUES.reduce((sum, [, ticks]) => sum + ticks, 0) * TICK);
				await page.evaluate(() => (document.getElementById('selection').open = true));
			}
			await assertSilent(opened);
		}
		const short = KEYS.filter((key) => key.length < KEY_BYTES);
		const opened = await open(`#/profile?service=odd+keys&${RANGE}`);
		await opened.page.locator('#menu').click();
		const offered = await opened.page.locator('#step-menu [role=menuitem]').allTextContents();
		for (const key of short) assert.ok(offered.includes('Group by ' + shownKey('label ' + key, 60)), `${key}: ${offered.join(' | ')}`);
		await assertHarmless(opened.page, 'the menu');
		await assertSilent(opened);
		for (const key of short) {
			const grouped = await open(`#/profile?service=odd+keys&${RANGE}&t=${encodeURIComponent('group:label:' + key)}`);
			const parts = () => grouped.page.evaluate(() => {
				const { tree, frames } = window.__viewer;
				return [...tree.level.keys()].filter((i) => tree.level[i] === 1).map((i) => [frames.name(tree.frame[i]), tree.total[i]]);
			});
			assert.deepEqual(await parts(), KEY_VALUES.map(([value, ticks]) => [`${key}=${value}`, ticks * TICK]));
			await assertHarmless(grouped.page, `grouped by ${key}`);
			await assertSilent(grouped);
		}
	});

	test('names of labels are text: the heat map, the comparison, live', async () => {
		for (const key of WORST_KEYS) {
			const plain = encodeURIComponent(`${encodeURIComponent(key)}=plain`);
			const other = encodeURIComponent(`${encodeURIComponent(key)}=${encodeURIComponent(MARKUP)}`);
			for (const [name, hash] of [['heat', `heat?rows=${encodeURIComponent(key)}&service=odd+keys&${RANGE}`], ['compare', `compare?service=odd+keys&${RANGE}&labels=${plain}&base=own&base-labels=${other}`],
				['live', `live?service=odd+keys&window=5m&labels=${plain}`]]) {
				const opened = await open('#/' + hash);
				const { page } = opened;
				await pageShown(page, name);
				if (name === 'heat') {
					assert.deepEqual(await page.evaluate(() => window.__app.heat.blocks.rows.map(({ value, total: sum }) => [value, sum])), KEY_VALUES.map(([value, ticks]) => [value, ticks * TICK]));
					assert.equal(await page.locator('#heat-rows option:checked').textContent(), 'label ' + shownKey(key, 60));
				}
				if (name === 'compare') assert.deepEqual(await page.evaluate(() => [window.__viewer.tree.base[0], window.__viewer.tree.total[0]]), [5 * TICK, 8 * TICK]);
				await assertHarmless(page, `${name}: ${key}`);
				await assertSilent(opened);
			}
		}
	});

	test('a name of a label that is too long: the collector refuses it, a page cuts it', async () => {
		const body = pprofOf([['cpu', 'nanoseconds']], [[['main'], [TICK]]]);
		const push = (key) => fetch(`${collector.url}api/0/profiles?${new URLSearchParams({ service: 'long key', type: 'cpu', created_at: String(NOW - 60000), labels: encodeURIComponent(key) + '=x' })}`, { method: 'POST', body });
		for (const key of ['k'.repeat(KEY_BYTES + 1), '\u5bbd'.repeat(KEY_BYTES / 3 + 1), 'k'.repeat(5000)]) {
			const answer = await push(key);
			assert.ok([400, 413].includes(answer.status), `${key.length} characters: ${answer.status}`);
			assert.match(await answer.text(), /label/);
		}
		assert.deepEqual((await collector.askJson('labels', { service: 'long key', from: FROM, to: TO }).catch(() => ({ labels: [] }))).labels, []);
		const long = '\u202e<b>'.padEnd(1 << 20, 'k');
		for (const width of [1400, 400]) {
			const opened = await open('#/services', { viewport: { width, height: 900 } });
			const { page } = opened;
			await page.route(/\/api\/v1\/labels/, (route) => route.fulfill({ json: { sample: 'cpu', unit: 'nanoseconds', count: 1,
				labels: [{ name: long, count: 2, values: KEY_VALUES.map(([value, ticks]) => ({ value: value + long, profiles: 1, total: ticks * TICK })) }] } }));
			await page.goto(`${collector.url}#/profile?service=odd+keys&${RANGE}`);
			await pageShown(page, 'profile');
			await page.evaluate(() => (document.getElementById('selection').open = true));
			assert.ok((await page.locator('#facets h3').textContent()).startsWith('\\u{202e}<b>kkk'));
			assert.ok((await page.locator('#facets').innerText()).length < 2000, 'of each name and value there is a beginning');
			await assertHarmless(page, `${width} pixels`);
			await page.locator('#menu').click();
			assert.ok(!(await page.locator('#step-menu').innerText()).includes('kkk'), 'no step can carry it');
			await assertHarmless(page, `the menu, ${width} pixels`);
			await assertSilent(opened);
		}
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

	test('several values, all but one, by click, button and key; chips lead back', async () => {
		const opened = await open(`#/profile?service=api&${RANGE}`);
		const { page } = opened;
		await choice(page, 'node-b').click();
		await shows(page, sumOf((l) => l.host === 'node-b'));
		await choice(page, 'node,c=1|"').click({ modifiers: ['Control'] });
		await shows(page, sumOf((l) => ['node-b', 'node,c=1|"'].includes(l.host)));
		assert.equal(await page.locator('#whose button').innerText(), 'host: node-b or node,c=1|" ×');
		assert.deepEqual((await valuesOf(page, 'host')).filter(([, pressed]) => pressed).map(([value]) => value), ['node-b', 'node,c=1|"']);
		await page.getByRole('button', { name: 'Also node-c', exact: true }).focus();
		await page.keyboard.press('Enter');
		await shows(page, sumOf((l) => l.host !== 'node-a'));
		await choice(page, 'node-a').click({ modifiers: ['Alt'] });
		await shows(page, sumOf((l) => l.host !== 'node-a'));
		assert.equal(await page.locator('#whose button').innerText(), 'host: not node-a ×');
		const not = (value) => page.getByRole('button', { name: 'All but ' + value, exact: true });
		assert.equal(await not('node-a').getAttribute('aria-pressed'), 'true');
		await choice(page, 'node-b').focus();
		await page.keyboard.press('Tab'); // "Also" is there only beside a value that is chosen
		assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), 'All but node-b');
		await page.keyboard.press('Enter');
		await shows(page, sumOf((l) => !['node-a', 'node-b'].includes(l.host)));
		assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), 'All but node-b', 'who goes by keys stays where he was');
		await page.locator('#whose button').click();
		await shows(page, sumOf(() => true));
		await choice(page, 'us').hover(); // the button is there at the pointer
		await not('us').click();
		await shows(page, sumOf((l) => l.region !== 'us'));
		assert.equal(await page.locator('#whose button').innerText(), 'region: not us ×');
		await page.locator('#whose button').click();
		await shows(page, sumOf(() => true));
		await page.goBack();
		await shows(page, sumOf((l) => l.region !== 'us'));
		await assertSilent(opened);
	});

	test('what is chosen is in the address, on the other pages and in exports', async () => {
		const labels = encodeURIComponent('{host=~"node-a|node-b",version!="1"}');
		const wanted = sumOf((l) => ['node-a', 'node-b'].includes(l.host) && l.version !== '1');
		const opened = await open(`#/profile?service=api&${RANGE}&labels=${labels}`);
		const { page } = opened;
		assert.equal(await total(page), wanted);
		assert.deepEqual(await page.locator('#whose button').allInnerTexts(), ['host: node-a or node-b ×', 'version: not 1 ×']);
		const body = await (await fetch(new URL(await page.locator('#exports a', { hasText: 'pprof' }).first().getAttribute('href'), collector.url))).arrayBuffer();
		assert.ok(body.byteLength > 0);
		const saved = await collector.save('chosen.pb.gz', (await page.locator('#exports a', { hasText: 'pprof' }).first().getAttribute('href')).slice(1));
		assert.equal(collector.foldedTotal(saved) * TICK, wanted);
		await page.locator('nav a[data-page=compare]').click();
		await page.waitForFunction(() => document.body.dataset.shown === 'failed'); // a day ago there was nothing
		assert.deepEqual(await page.locator('#whose button').allInnerTexts(), ['host: node-a or node-b ×', 'version: not 1 ×'], await page.locator('#trouble').innerText());
		opened.noise = opened.noise.filter((line) => !/404/.test(line));
		await page.locator('nav a[data-page=heat]').click();
		await pageShown(page, 'heat');
		assert.deepEqual(await page.locator('#heat-chosen button').allInnerTexts(), ['version: not 1 ×'], 'rows are hosts: nothing is said of them');
		assert.equal(await page.evaluate(() => window.__app.heat.blocks.rows.reduce((sum, row) => sum + row.total, 0)), sumOf((l) => l.version !== '1'));
		await page.locator('nav a[data-page=live]').click();
		await pageShown(page, 'live');
		assert.deepEqual(await page.locator('#live-chosen button').allInnerTexts(), ['host: node-a or node-b ×', 'version: not 1 ×']);
		await page.locator('#live-chosen button').first().click();
		await page.waitForFunction(() => document.querySelectorAll('#live-chosen button').length === 1);
		assert.match(decodeURIComponent(await page.evaluate(() => location.hash)), /labels={version!="1"}/);
		await assertSilent(opened);
	});

	test('labels and values are found by a text, also those that are not listed', async () => {
		const opened = await open(`#/profile?service=many+values&${RANGE}`);
		const { page } = opened;
		const heads = () => page.locator('#facets h3').allInnerTexts();
		assert.deepEqual(await valuesOf(page, 'pod').then((values) => values.length), 6);
		await page.fill('#facet-filter', 'WEB-77');
		await page.waitForFunction(() => document.querySelectorAll('#facets .choice').length === 1);
		assert.deepEqual([await heads(), await valuesOf(page, 'pod')], [['pod'], [['web-77', false]]]);
		await choice(page, 'web-77').click();
		await shows(page, TICK);
		assert.equal(await page.locator('#whose button').innerText(), 'pod: web-77 ×');
		assert.deepEqual(await valuesOf(page, 'pod'), [['web-77', true]], 'what is looked for stays');
		await page.fill('#facet-filter', 'no such text');
		await page.waitForFunction(() => /No label and no value/.test(document.getElementById('facets').innerText));
		await page.fill('#facet-filter', '');
		await page.waitForFunction(() => document.querySelectorAll('#facets .choice').length === 7);
		assert.deepEqual((await valuesOf(page, 'pod')).at(-1), ['web-77', true], 'what is chosen is there');
		await page.fill('#facet-filter', 'po');
		await page.waitForFunction(() => document.querySelectorAll('#facets .choice').length === 7);
		await assertSilent(opened);
	});

	for (const [width, colorScheme] of [[1400, 'light'], [1400, 'dark'], [400, 'light'], [400, 'dark']]) {
		test(`the column, ${width} pixels wide, ${colorScheme}: axe-core finds nothing`, async () => {
			const labels = encodeURIComponent('{host!="node-a",version=~"1|2"}');
			const opened = await open(`#/profile?service=api&${RANGE}&labels=${labels}`, { viewport: { width, height: 900 }, colorScheme });
			const { page } = opened;
			await page.evaluate(() => (document.getElementById('selection').open = true));
			assert.ok(await page.locator('#facets .facet').count() > 4);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the window');
			await page.evaluate(readFileSync(axePath(), 'utf8'));
			assert.deepEqual(await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | '))), []);
			await opened.context.close();
		});
	}

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
