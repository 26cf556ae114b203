// SPDX-License-Identifier: Apache-2.0
// The pages of a collector in a real browser, against a collector with known profiles (fake_collector.mjs).
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { assertSilent, axePath, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { groupedStacks, liveStacksOf, startCollector, stacksOf } from './fake_collector.mjs';
import { countFunctions, foldedText, knownStacks, totalOf } from './known.js';

const reason = missingBrowser();
const PAGES = ['#/services', '#/profile?service=checkout-api', '#/compare?service=checkout-api', '#/compare?service=checkout-api&diff=value&sides=two', '#/live?service=search', '#/files', '#/admin'];

describe('pages', { skip: reason || false }, () => {
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

	/** A collector for one test, closed even when that fails. */
	async function startOwn(options) {
		own.push(await startCollector(options));
		return own.at(-1);
	}

	function open(hash, options = {}) {
		const { url = collector.url, ...rest } = options;
		return openSite(browser, url, hash, rest);
	}

	const shown = pageShown;
	const total = (page) => page.evaluate(() => window.__viewer.tree.total[0]);

	test('services by cost, agents, and a click to the profile', async () => {
		const opened = await open('');
		const { page } = opened;
		const rows = await page.locator('#services tbody tr').allInnerTexts();
		assert.equal(rows.length, 9);
		assert.match(rows[0], /^checkout-api\s*container/);
		assert.match(rows[0], /3\.90/);
		assert.match(rows[4], /\+41 %/);
		assert.match(rows.at(-1), /2 more below 0\.5 % each/);
		const machine = await page.locator('#machine').innerText();
		assert.match(machine, /2 of 3/);
		assert.match(machine, /11\.97 of 24/);
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		assert.ok(!(await page.locator('body').innerText()).includes('\u202e'));
		await page.fill('#service-filter', 'TRUE');
		await page.waitForFunction(() => document.querySelectorAll('#services tbody tr').length === 1);
		await page.fill('#service-filter', '');
		const trends = await page.locator('#services .trend').evaluateAll((cells) => cells.map((cell) => cell.title));
		const { services } = await (await fetch(`${collector.url}api/v1/services?from=now-1h`)).json();
		const { first_ms: first, last_ms: last } = services[1];
		assert.deepEqual([trends[2], trends[1] === trends[2]], [await page.evaluate(async ([from, to]) => `Profiles of ${(await import('/ui/blocks.js')).spanText(from, to)}`, [first, last]), false]);
		const small = page.locator('#services .open-small');
		assert.equal(await small.getAttribute('aria-expanded'), 'false');
		await small.click();
		await page.waitForFunction(() => document.querySelectorAll('#services tbody tr').length === 11);
		assert.match((await page.locator('#services tbody tr').allInnerTexts()).join(' '), /trueexecutable.*rmexecutable/s);
		await page.waitForFunction(() => document.activeElement.className === 'open-small quiet' && document.activeElement.ariaExpanded === 'true');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.querySelectorAll('#services tbody tr').length === 9);
		await page.locator('#services a').first().click();
		await shown(page, 'profile');
		assert.equal(await total(page), totalOf(stacksOf('checkout-api')));
		assert.equal(await page.inputValue('#service'), 'checkout-api');
		await page.goBack();
		await shown(page, 'services');
		await assertSilent(opened);
	});

	test('services that cost little and cannot be listed: that is said, and the next click asks again', async () => {
		let status = 0;
		const odd = await startOwn({ fail: (what) => (what === 'services' ? status : 0) });
		const opened = await open('', { url: odd.url });
		const { page } = opened;
		const asked = () => odd.requests.filter((r) => r.includes('small=list')).length;
		const small = page.locator('#services .open-small');
		status = 503;
		await small.click();
		await page.locator('#trouble', { hasText: 'busy' }).waitFor();
		assert.deepEqual([await small.innerText(), await small.getAttribute('aria-expanded'), asked()], ['2 more below 0.5 % each', 'false', 1]);
		status = 0;
		await small.click();
		await page.waitForFunction(() => document.querySelectorAll('#services tbody tr').length === 11);
		assert.ok(await page.locator('#trouble').isHidden());
		await page.fill('#service-filter', 'r');
		await page.fill('#service-filter', 'rm');
		assert.equal(asked(), 2, 'what is there is not asked for again');
		opened.noise = opened.noise.filter((line) => !/Failed to load resource/.test(line));
		await assertSilent(opened);
	});

	test('the graph of an address is asked for once, before the page has its own script', async () => {
		const own = await startOwn();
		const flames = () => own.requests.filter((r) => r.startsWith('/api/v1/flame'));
		let release;
		const isReleased = new Promise((resolve) => (release = resolve));
		const held = await browser.newPage();
		await held.route(/\/ui\/app\.js$/, async (route) => {
			await isReleased;
			await route.continue();
		});
		const asked = held.waitForRequest(/\/api\/v1\/flame/, { timeout: 20000 });
		await held.goto(own.url + '#/profile?service=search', { waitUntil: 'commit' });
		await asked;
		release();
		await shown(held, 'profile');
		assert.equal(await total(held), totalOf(stacksOf('search')));
		assert.equal(flames().length, 1, 'what came early is what is shown');
		assert.equal(await held.evaluate(() => window.hearthFirst), null);
		await held.close();
		for (const hash of ['#/profile?service=search&t=group:host', '#/profile?service=search&from=now-6h&labels=host%3Dnode-a']) {
			const before = flames().length;
			const opened = await open(hash, { url: own.url });
			assert.equal(flames().length, before + 1, hash);
			await assertSilent(opened);
		}
	});

	test('a file dropped on the live page that cannot be read: the words stay', async () => {
		const moving = await startOwn();
		const opened = await open('#/live?service=search&window=10s', { url: moving.url });
		const { page } = opened;
		await page.evaluate(() => {
			const data = new DataTransfer();
			data.items.add(new File([Uint8Array.of(1, 2, 3)], 'x.bin'));
			document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
		});
		await page.locator('#trouble', { hasText: 'x.bin could not be read' }).waitFor();
		moving.nextRound();
		await page.waitForTimeout(300);
		assert.ok(await page.locator('#trouble').isVisible() && await page.locator('#files-page').isVisible());
		assert.equal(await page.evaluate(() => window.__app.live.isOn), false);
		await assertSilent(opened);
	});

	test('in the first hour CPUs are the mean of the time that has profiles', async () => {
		const { url } = await startOwn({ covered: 1 / 6 });
		const opened = await open('', { url });
		const { page } = opened;
		assert.match(await page.locator('#services tbody tr').first().innerText(), /23\.40/);
		assert.match(await page.locator('#machine').innerText(), /71\.8\d of 24/);
		for (const place of ['#services th.number', '#machine div >> nth=1']) assert.match(await page.locator(place).first().getAttribute('title'), /Mean over the 10 min/);
		await page.locator('#services a').first().click();
		await shown(page, 'profile');
		assert.match(await page.locator('#samples button').first().innerText(), /23\.33 s\/s/);
		assert.match(await page.locator('#samples button').first().getAttribute('title'), /Mean over the 10 min/);
		for (const other of await page.locator('#samples button[aria-pressed=false]').allInnerTexts()) assert.doesNotMatch(other, /s\/s/);
		assert.match(await page.locator('#facets button').first().innerText(), /15\.00/);
		await page.goto(url + '#/hosts');
		await shown(page, 'hosts');
		assert.match(await page.locator('#host-list button').first().innerText(), / of 8/);
		await assertSilent(opened);
	});

	test('two sample types of one name: each button is its own', async () => {
		const own = await startOwn();
		const opened = await open('#/services', { url: own.url });
		const { page } = opened;
		await page.route(/\/api\/v1\/types/, (route) => route.fulfill({ json: { types: [{ type: 'cpu', profiles: 2, default: 'x/bytes',
			samples: [{ sample: 'x', unit: 'bytes', total: 7 }, { sample: 'x', unit: 'count', total: 4 }] }] } }));
		await page.goto(own.url + '#/profile?service=search');
		await shown(page, 'profile');
		const texts = (which) => page.locator(`#samples button${which}`).evaluateAll((all) => all.map((button) => button.firstChild.textContent));
		assert.deepEqual([await texts(''), await texts('[aria-pressed=true]')], [['cpu: x (bytes)', 'cpu: x (count)'], ['cpu: x (bytes)']]);
		for (const unit of ['count', 'bytes']) {
			await page.locator('#samples button', { hasText: `x (${unit})` }).click();
			await page.waitForFunction((text) => decodeURIComponent(location.hash).includes('sample=' + text), `x/${unit}`);
			await shown(page, 'profile');
			assert.equal(new URL(own.requests.findLast((r) => r.startsWith('/api/v1/flame')), 'http://x').searchParams.get('sample'), `x/${unit}`);
			assert.deepEqual(await texts('[aria-pressed=true]'), [`cpu: x (${unit})`]);
		}
		await assertSilent(opened);
	});

	test('a day before of which more time has profiles: CPUs are compared, not sums', async () => {
		const { url } = await startOwn({ covered: (from) => (from > Date.UTC(2026, 10, 22) ? 1 / 30 : 5 / 6) });
		const opened = await open('#/compare?service=checkout-api', { url });
		const { page } = opened;
		const change = await page.locator('#change').innerText();
		const [base, both] = await page.evaluate(() => [window.__viewer.tree.base[0], window.__viewer.tree.total[0]]);
		const cpus = [base / 3000e9, (both - base) / 120e9].map((value) => value.toFixed(2));
		assert.match(change, new RegExp(`Base ${cpus[0]} CPUs[^]*Now ${cpus[1]} CPUs \\+999 %`));
		assert.match(await page.locator('#change b').last().getAttribute('title'), /Mean over the 2 min/);
		await page.goto(url + '#/services');
		await shown(page, 'services');
		assert.deepEqual((await page.locator('#services tbody td.before').allInnerTexts()).slice(0, 2), ['+999 %', '+999 %']);
		await assertSilent(opened);
	});

	test('the graph is asked for beside the timeline, and a slow or failed timeline is waited for', async () => {
		const opened = await open('#/services');
		const { page } = opened;
		let askFlame;
		const flameAsked = new Promise((resolve) => (askFlame = resolve));
		await page.route(/\/api\/v1\/flame/, (route) => {
			askFlame();
			return route.continue();
		});
		await page.route(/\/api\/v1\/timeline/, async (route) => {
			await flameAsked; // for ever when one waits for the other
			await route.continue();
		}, { times: 1 });
		await page.goto(collector.url + '#/profile?service=search');
		await pageShown(page, 'profile');
		assert.ok(await page.evaluate(() => window.__app.profile.range[1] > 0 && window.__viewer.tree.count > 1));
		await page.route(/\/api\/v1\/timeline/, (route) => route.fulfill({ status: 504, json: { error: 'slow' } }), { times: 1 });
		await page.goto(collector.url + '#/profile?service=checkout-api');
		await page.waitForFunction(() => /took too long/.test(document.getElementById('trouble').textContent));
		opened.noise = opened.noise.filter((line) => !/Failed to load resource/.test(line));
		await assertSilent(opened);
	});

	test('a graph that is unpacked late is not drawn over a newer one', async () => {
		const opened = await open('#/profile?service=search');
		const { page } = opened;
		await page.evaluate(() => {
			const take = Response.prototype.arrayBuffer;
			window.__late = [];
			Response.prototype.arrayBuffer = async function () {
				const bytes = await take.call(this);
				if (window.__hold) await new Promise((go) => window.__late.push(go));
				return bytes;
			};
		});
		const questions = [() => (location.hash = '#/profile?service=checkout-api'), () => {
			window.__viewer.source.answer.whole_nodes = 1e9;
			window.__viewer.openMore();
		}];
		for (const [i, service] of ['server.js', 'php-fpm'].entries()) {
			await page.evaluate(() => (window.__hold = true));
			await page.evaluate(questions[i]);
			await page.waitForFunction(() => window.__late.length === 1);
			await page.evaluate((name) => {
				window.__hold = false;
				location.hash = '#/profile?service=' + name;
			}, service);
			await page.waitForFunction((name) => window.__viewer.source.params.service === name && document.body.dataset.shown === 'profile', service);
			await page.evaluate(() => window.__late.pop()());
			await page.waitForTimeout(300);
			assert.equal(await page.evaluate(() => window.__viewer.source.params.service), service);
		}
		await assertSilent(opened);
	});

	test('a comparison that was left before all of it came is not drawn', async () => {
		const opened = await open('#/services');
		const { page } = opened;
		const id = await page.evaluate(async () => (await (await fetch('/api/v1/snapshots?service=search', { method: 'POST', body: '{"title":"x"}' })).json()).id);
		await page.route(/\/api\/v1\/snapshots\//, () => {}); // never answered
		const compared = page.waitForResponse(/\/api\/v1\/compare/);
		await page.evaluate((base) => (location.hash = '#/compare?service=search&base=own&base-snapshot=' + base), id);
		await (await compared).finished();
		await page.waitForTimeout(300); // it is unpacked
		await page.evaluate(() => (location.hash = '#/services'));
		await shown(page, 'services');
		await page.waitForTimeout(300);
		assert.deepEqual(await page.evaluate(() => [Boolean(window.__viewer.source), Boolean(window.__viewer.tree)]), [false, false]);
		await assertSilent(opened);
	});

	test('what is asked beside a graph that fails ends in silence', async () => {
		const opened = await open('#/services');
		const { page } = opened;
		await page.route(/\/api\/v1\/labels/, () => {}); // never answered
		const labels = page.waitForRequest(/\/api\/v1\/labels/);
		await page.route(/\/api\/v1\/flame/, (route) => route.fulfill({ status: 504, json: { error: 'slow' } }), { times: 1 });
		await page.evaluate(() => (location.hash = '#/profile?service=search'));
		await page.waitForFunction(() => /took too long/.test(document.getElementById('trouble').textContent));
		await labels;
		await page.evaluate(() => (location.hash = '#/services'));
		await page.waitForFunction(() => document.body.dataset.shown === 'services');
		opened.noise = opened.noise.filter((line) => !/Failed to load resource/.test(line));
		await assertSilent(opened);
	});

	test('a profile: labels, a part of the time, steps, all in the address', async () => {
		const opened = await open('#/profile?service=search&t=hide:main');
		const { page } = opened;
		assert.deepEqual(await page.locator('#chips button').allTextContents(), ['hide main']);
		await page.locator('.choice', { hasText: 'node-b' }).click();
		await shown(page, 'profile');
		await page.waitForFunction(() => location.hash.includes('labels=host'));
		assert.match(await page.evaluate(() => location.hash), /t=hide/);
		assert.ok(collector.requests.some((r) => r.startsWith('/api/v1/flame') && new URL(r, 'http://x').searchParams.get('labels') === 'host=node-b'));
		const box = await page.locator('#timeline canvas').boundingBox();
		await page.mouse.move(box.x + 0.25 * box.width, box.y + 20);
		await page.mouse.down();
		await page.mouse.move(box.x + 0.5 * box.width, box.y + 20, { steps: 3 });
		await page.mouse.up();
		await page.waitForFunction(() => location.hash.includes('part='));
		await shown(page, 'profile');
		const [from, to] = await page.evaluate(() => window.__app.selection.part);
		assert.ok(Math.abs(to - from - 900000) < 60000, String(to - from));
		const asked = new URL(collector.requests.findLast((r) => r.startsWith('/api/v1/flame')), 'http://x').searchParams;
		assert.deepEqual([asked.get('from'), asked.get('to')], [String(from), `${to - 1}999999`]);
		const again = await open(await page.evaluate(() => location.hash));
		assert.deepEqual(await again.page.evaluate(() => window.__app.selection), await page.evaluate(() => window.__app.selection));
		assert.equal(await total(again.page), await total(page));
		await page.locator('#type').waitFor({ state: 'attached' });
		await page.keyboard.press('4');
		await page.waitForFunction(() => window.__viewer.grid.shownRows.length > 5);
		await page.locator('#pin').click();
		await page.waitForFunction(() => /from=2026-/.test(location.hash));
		await assertSilent(again);
		await assertSilent(opened);
	});

	for (const width of [1400, 400]) {
		test(`the table, ${width} pixels wide: no amount of time is cut`, async () => {
			const opened = await open('#/profile?service=checkout-api&view=table', { viewport: { width, height: 900 } });
			const { page } = opened;
			await page.waitForFunction(() => document.querySelectorAll('#table .cell.self').length > 5);
			const cells = await page.evaluate(() => [...document.querySelectorAll('#table .row:not([hidden]) :is(.self, .total, .total-share)')].map((cell) =>
				({ text: cell.textContent, isCut: cell.scrollWidth > cell.clientWidth })));
			assert.deepEqual(cells.filter((cell) => cell.isCut), []);
			assert.match(cells[0].text, /^[\d.]+ (?:h|min|s|ms|µs|ns)$/);
			await assertSilent(opened);
		});
	}

	test('two ranges as one tree', async () => {
		const opened = await open('#/compare?service=checkout-api');
		const { page } = opened;
		const rows = await page.locator('#changes tbody tr').allInnerTexts();
		assert.ok(rows.some((row) => /old_name\s+\S+\s+gone\s+−/.test(row)));
		assert.ok(rows.some((row) => /fn_1\s+new\s/.test(row)));
		assert.match(await page.locator('#change').innerText(), /Base [\d.]+ CPUs checkout-api, .*–.*\s→\s+Now [\d.]+ CPUs \+\d+ % checkout-api, .*–/s);
		await page.selectOption('#base', '7d');
		await page.waitForFunction(() => location.hash.includes('base=7d'));
		await shown(page, 'compare');
		const asked = new URL(collector.requests.findLast((r) => r.startsWith('/api/v1/compare')), 'http://x').searchParams;
		assert.equal(asked.get('from') - asked.get('base-from'), 604800000);
		for (const key of ['2', '4', '1']) await page.keyboard.press(key);
		await assertSilent(opened);
	});

	test('two ranges side by side, by shares or by amounts: nothing is asked anew, and the address has it', async () => {
		const opened = await open('#/compare?service=checkout-api');
		const { page } = opened;
		const asked = () => collector.requests.filter((r) => r.startsWith('/api/v1/compare')).length;
		const before = asked();
		const changes = () => page.locator('#changes tbody tr').allInnerTexts();
		const shares = await changes();
		await page.evaluate(() => window.__viewer.go({ zoom: 2 }));
		await page.selectOption('#diff', 'value');
		assert.match(await page.evaluate(() => location.hash), /zn=\w+/);
		assert.equal(await page.evaluate(() => window.__viewer.graph.zoomed), 2);
		await page.waitForFunction(() => /Base\s+Now/.test(document.querySelector('#changes thead').innerText));
		assert.notDeepEqual(await changes(), shares);
		assert.match(await page.locator('#change').innerText(), /orange costs more/);
		await page.selectOption('#sides', 'two');
		await page.locator('.sides').waitFor();
		assert.ok(await page.locator('#graph-pane').isHidden());
		assert.match(await page.locator('.side-part h2').first().innerText(), /^Base: .*\d/);
		assert.match(await page.locator('#change').innerText(), /each graph has its own total/);
		for (const flips of [0, 1]) {
			await page.keyboard.press('f');
			assert.deepEqual(await page.evaluate(() => window.__viewer.sides.parts.map(({ flame }) => {
				const top = flame.rowTop(0);
				return top >= 0 && top < flame.height;
			})), [true, true], `the roots are seen, ${flips}`);
		}
		const zooms = () => page.evaluate(() => window.__viewer.sides.parts.map(({ flame, tree }) => tree.origin[flame.zoomed]));
		const node = await page.evaluate(() => {
			const { parts: [base, now] } = window.__viewer.sides;
			const both = base.tree.origin.find((node, i) => base.tree.level[i] === 2 && now.tree.origin.includes(node));
			window.__viewer.sides.choose(base, base.tree.origin.indexOf(both));
			return both;
		});
		assert.ok(node > 0);
		assert.deepEqual(await zooms(), [node, node]);
		await page.locator('#side-now-mirror').focus();
		await page.keyboard.press('Home');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter');
		assert.deepEqual(new Set(await zooms()).size, 1);
		assert.notDeepEqual(await zooms(), [node, node]);
		await page.keyboard.press('u');
		await page.goBack();
		await page.locator('.sides').waitFor();
		assert.equal(asked(), before);
		assert.match(await page.evaluate(() => location.hash), /diff=value&sides=two/);
		await page.keyboard.press('2');
		await page.locator('.sides').waitFor({ state: 'hidden' });
		await page.keyboard.press('1');
		await page.locator('.sides').waitFor();
		await page.reload();
		await page.locator('.sides').waitFor();
		await page.locator('[data-page=profile]').click();
		await shown(page, 'profile');
		assert.ok(await page.locator('.sides').isHidden());
		await assertSilent(opened);
	});

	test('a base of its own: chosen in a form, said, swapped, in the address, and back to a preset', async () => {
		const opened = await open('#/compare?service=checkout-api&labels=host%3Dnode-a');
		const { page } = opened;
		const asked = () => new URL(collector.requests.findLast((r) => r.startsWith('/api/v1/compare')), 'http://x').searchParams;
		const count = () => collector.requests.filter((r) => r.startsWith('/api/v1/compare')).length;
		const before = count();
		assert.ok(await page.locator('#base-form').isHidden());
		await page.selectOption('#base', 'own');
		assert.equal(count(), before, 'a form asks for nothing');
		assert.deepEqual(await page.locator('#base-form input').evaluateAll((fields) => fields.map((field) => field.value)), ['host=node-a', 'now-25h', 'now-24h', ''], 'it has what the base was');
		await page.fill('#base-labels', 'version');
		await page.keyboard.press('Enter');
		assert.match(await page.locator('#base-trouble').innerText(), /name=value/);
		await page.selectOption('#base-service', 'search');
		await page.fill('#base-labels', 'version = 2026.11.2, a=b%2Cc');
		await page.fill('#base-from', 'now-2h');
		await page.fill('#base-to', 'now-1h');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => location.hash.includes('base-service=search'));
		await shown(page, 'compare');
		const parts = ['service', 'labels', 'from', 'to', 'base-service', 'base-labels', 'base-from', 'base-to'];
		assert.deepEqual(parts.map((name) => asked().get(name)), ['checkout-api', 'host=node-a', 'now-1h', 'now', 'search', 'version=2026.11.2,a=b%2Cc', 'now-2h', 'now-1h']);
		const line = () => page.locator('#change').innerText();
		assert.match(await line(), /Base [\d.]+ CPUs search, version=2026\.11\.2, a=b,c, .*10:00 – 11:00\s+→\s+Now [\d.]+ CPUs .* checkout-api, host=node-a, .*11:00 – 12:00/s);
		await page.click('#swap');
		await page.waitForFunction(() => location.hash.includes('swap=1'));
		await shown(page, 'compare');
		assert.deepEqual(parts.map((name) => asked().get(name)), ['search', 'version=2026.11.2,a=b%2Cc', 'now-2h', 'now-1h', 'checkout-api', 'host=node-a', 'now-1h', 'now']);
		assert.match(await line(), /Base .*checkout-api, .*→\s+Now .*search, /s);
		await page.reload();
		await shown(page, 'compare');
		assert.match(await line(), /Base .*checkout-api, .*→\s+Now .*search, /s);
		assert.equal(await page.inputValue('#base-labels'), 'version=2026.11.2, a=b%2Cc');
		await page.click('#swap');
		await shown(page, 'compare');
		await page.selectOption('#base', '7d');
		await page.waitForFunction(() => location.hash.includes('base=7d') && !location.hash.includes('base-') && !location.hash.includes('swap'));
		await shown(page, 'compare');
		assert.ok(await page.locator('#base-form').isHidden());
		assert.match(await line(), /Base .*checkout-api, .*15 Nov .*→\s+Now .*checkout-api, /s);
		await assertSilent(opened);
	});

	test('a snapshot as the base: by its link, said by its title, and in clear words when it is gone', async () => {
		const own = await startOwn();
		const made = await (await fetch(own.url + 'api/v1/snapshots?service=search&from=now-1h', { method: 'POST', body: JSON.stringify({ title: 'before <b>' }) })).json();
		const opened = await open('#/compare?service=checkout-api', { url: own.url });
		const { page } = opened;
		await page.selectOption('#base', 'own');
		await page.locator('#base-snapshot').focus();
		await page.waitForFunction(() => document.querySelector('#base-kept option')?.label.startsWith('before <b>, '));
		await page.fill('#base-snapshot', 'nonsense');
		assert.ok(await page.locator('#base-labels').isDisabled(), 'beside a snapshot nothing else counts');
		await page.keyboard.press('Enter');
		assert.match(await page.locator('#base-trouble').innerText(), /no link to a snapshot/);
		await page.fill('#base-snapshot', `${own.url}#/snapshot?id=${made.id}&view=table`);
		await page.keyboard.press('Enter');
		await page.waitForFunction((id) => location.hash.includes('base-snapshot=' + id), made.id);
		await shown(page, 'compare');
		assert.match(await page.locator('#change').innerText(), /^Base [\d.]+ CPUs snapshot “before <b>”, .*→/s);
		assert.deepEqual(await page.evaluate(() => window.__viewer.source.offered), ['thread'], 'it knows no hosts and labels');
		const hash = await page.evaluate(() => location.hash);
		await fetch(`${own.url}api/v1/snapshots/${made.id}`, { method: 'DELETE' });
		await assertSilent(opened);
		for (const [address, words] of [[hash, /^The base is a snapshot that is not there: it was deleted/], ['#/compare?service=checkout-api&base=own&base-service=nothing', /^The base has nothing: nothing, 22 Nov 11:00 – 12:00\.$/],
			['#/compare?service=checkout-api&base=own&base-labels=none%3D1&base-from=now-3h', /^The base has nothing: checkout-api, none=1, now-3h – now\.$/]]) {
			const failed = await open(address, { url: own.url });
			assert.match(await failed.page.locator('#trouble').innerText(), words);
			assert.ok(await failed.page.locator('#base-form').isVisible() && await failed.page.locator('.toolbar').isHidden(), 'another base can be chosen');
			await failed.page.selectOption('#base', 'before');
			await shown(failed.page, 'compare');
			await failed.context.close();
		}
	});

	for (const width of [1400, 1200, 400]) {
		test(`compare, ${width} pixels wide: nothing is cut, nothing lies over another`, async () => {
			const opened = await open('#/compare?service=checkout-api&base=own&base-service=search', { viewport: { width, height: 800 } });
			const found = await opened.page.evaluate(() => {
				const box = (selector) => document.querySelector(selector).getBoundingClientRect();
				const changes = document.getElementById('changes');
				const cut = [...changes.querySelectorAll('th, td.number')].filter((cell) => cell.scrollWidth > cell.clientWidth || cell.getBoundingClientRect().right > innerWidth);
				const [legend, list] = [box('#legend'), box('#changes')];
				return { cut: cut.map((cell) => cell.textContent), wide: [document.documentElement, changes].map((e) => e.scrollWidth > e.clientWidth), row: box('.toolbar').height,
					isApart: legend.bottom <= list.top + 1 || legend.right <= list.left + 1, graph: box('#graph').height };
			});
			assert.deepEqual([found.cut, found.wide, found.isApart], [[], [false, false], true]);
			assert.ok(width < 721 || found.row < 50, `one row of tools: ${found.row} pixels`);
			assert.ok(found.graph > 150, `${found.graph} pixels of graph`);
			await assertSilent(opened);
		});
	}

	/** What the page says of each side, and what the tree has. */
	const bothSides = (page) => page.evaluate(() => {
		const { tree, frames } = window.__viewer;
		const [was, now] = [tree.base[0], tree.total[0] - tree.base[0]];
		return { was, now, first: [...Array(tree.count).keys()].filter((i) => tree.level[i] === 1).map((i) => frames.name(tree.frame[i])), hasBoth: tree.baseSelf?.length === tree.count };
	});

	test('steps of a comparison keep both sides: groups that only the collector makes, too', async () => {
		const opened = await open('#/compare?service=checkout-api&diff=value');
		const { page } = opened;
		const whole = await bothSides(page);
		const line = () => page.locator('#change').innerText();
		const before = await line();
		await page.locator('#mirror').focus();
		for (const key of ['ArrowDown', 'm']) await page.keyboard.press(key);
		const items = await page.locator('#step-menu [role=menuitem]').allInnerTexts();
		for (const text of ['Only what it does', 'Group by thread', 'Group by host', 'Group by label version', 'Group by runtime']) assert.ok(items.some((item) => item.startsWith(text)), text);
		await page.locator('#step-menu [role=menuitem]', { hasText: 'Group by thread' }).click();
		await page.waitForFunction(() => window.__viewer.source.grouped.join() === 'thread' && window.__viewer.stepsKey);
		const grouped = await bothSides(page);
		assert.deepEqual([grouped.was + grouped.now > 0, grouped.hasBoth, grouped.first.sort()], [true, true, ['worker-0', 'worker-1', 'worker-2']]);
		assert.deepEqual([grouped.was, grouped.now], [whole.was, whole.now], 'no step takes from one side alone');
		await page.keyboard.press('z');
		await page.waitForFunction(() => !window.__viewer.stepsKey && window.__viewer.source.grouped.length === 0);
		assert.equal(await line(), before);
		await page.evaluate(() => window.__viewer.go({ steps: [{ op: 'focus', text: 'old_name' }] }));
		const gone = await bothSides(page);
		assert.deepEqual([gone.first, gone.was > 0, gone.now], [['old_name'], true, 0], 'what only the base has');
		assert.match(await line(), /Now 0\.00 CPUs −100 %/);
		assert.equal(await page.evaluate(() => window.__viewer.colours.mark(window.__viewer.tree.frame[1], 1, window.__viewer.tree)), 'gone ');
		assert.deepEqual((await page.locator('#changes tbody tr').allInnerTexts()).map((row) => row.split('\t')[0].trim()), ['old_name']);
		await page.evaluate(() => window.__viewer.go({ steps: [{ op: 'hide', text: 'main' }] }));
		await page.selectOption('#sides', 'two');
		await page.locator('.sides').waitFor();
		assert.deepEqual(await page.evaluate(() => window.__viewer.sides.parts.map(({ tree }) => tree.total[0])), [whole.was, whole.now]);
		const box = await page.locator('#side-now').boundingBox();
		await page.mouse.move(box.x + 30, box.y + 30);
		await page.locator('#tip').waitFor();
		assert.match(await page.locator('#tip dl').innerText(), /Base\s+\S+.*%, self .*\n?Now\s+\S+.*%, self/);
		assert.ok(await page.locator('#colour').isHidden(), 'colours say what has changed, not kind or module');
		await assertSilent(opened);
	});

	test('source lines of a function, with links by a template', async () => {
		const opened = await open('#/profile?service=checkout-api');
		const { page } = opened;
		await page.evaluate(() => {
			const { frames } = window.__viewer;
			window.__viewer.go({ view: 'sandwich', focus: frames.named('ns0::fn_0')[0] });
		});
		await page.locator('.focus button', { hasText: 'Lines' }).focus();
		await page.keyboard.press('Enter');
		await page.locator('#lines tbody tr').first().waitFor();
		assert.deepEqual(await page.locator('#lines tbody tr td:first-child').allInnerTexts(), ['a#b?.c:12', '<b>:3', 'not known']);
		assert.equal(await page.locator('#lines a').count(), 0, 'no template, no links');
		const type = async (text) => {
			await page.fill('#source-link', text);
			await page.keyboard.press('Enter');
		};
		await type('vscode://file{file}:{line}');
		const links = () => page.locator('#lines a').evaluateAll((all) => all.map((a) => a.href));
		assert.equal((await links())[0], 'vscode://file/src/odd%20dir/a%23b%3F.c:12');
		for (const bad of ['javascript:{file}', '{file}', 'data:text/html,{file}', 'nothing']) {
			await type(bad);
			assert.deepEqual(await links(), [], bad);
		}
		assert.equal(await page.getAttribute('#source-link', 'aria-invalid'), 'true');
		await type('https://git.example{file}#L{line}');
		await page.reload();
		await page.waitForFunction(() => document.body.dataset.shown === 'profile');
		await page.locator('.focus button', { hasText: 'Lines' }).click();
		await page.locator('#lines a').first().waitFor();
		assert.equal((await links())[0], 'https://git.example/src/odd%20dir/a%23b%3F.c#L12');
		await page.evaluate(() => window.__viewer.go({ focus: window.__viewer.frames.named('main')[0] }));
		await page.waitForFunction(() => /no lines/.test(document.querySelector('#lines p').textContent));
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		await page.goto(collector.url + '#/live?service=search&view=sandwich');
		await page.waitForFunction(() => document.body.dataset.shown === 'live');
		assert.ok(await page.locator('#lines').isHidden(), 'what moves has no lines to ask for');
		opened.noise = opened.noise.filter((line) => !/404/.test(line));
		await assertSilent(opened);
	});

	for (const colorScheme of ['light', 'dark']) {
		test(`source lines, 400 pixels wide, ${colorScheme}: axe-core finds nothing`, async () => {
			const { page, context } = await open('#/profile?service=checkout-api&view=sandwich&f=3', { colorScheme, bypassCSP: true, viewport: { width: 400, height: 900 } });
			await page.locator('.focus button', { hasText: 'Lines' }).click();
			await page.locator('#lines tbody tr').first().waitFor();
			await page.evaluate(readFileSync(axePath(), 'utf8'));
			assert.deepEqual(await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | '))), []);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
			await context.close();
		});
	}

	test('the halves of the sandwich and the lines scroll by keys, and Tab leads out of them', async () => {
		const opened = await open('#/profile?service=checkout-api&view=sandwich&f=3', { viewport: { width: 400, height: 600 } });
		const { page } = opened;
		await page.locator('.focus button', { hasText: 'Lines' }).click();
		await page.locator('#lines tbody tr').first().waitFor();
		// What the panel takes from the callers is far from the function, not the rows beside it.
		await page.waitForFunction(() => {
			const { scrollTop, scrollHeight, clientHeight } = document.getElementById('callers');
			return scrollHeight > clientHeight && scrollTop + clientHeight >= scrollHeight - 1;
		});
		const scrolling = await page.evaluate(() => ['callers', 'callees', 'lines'].filter((id) => {
			const { scrollHeight, clientHeight } = document.getElementById(id);
			return scrollHeight > clientHeight;
		}));
		assert.ok(scrolling.includes('lines') && scrolling.length > 1, scrolling.join());
		await page.locator('#callers-mirror').focus();
		const stops = [];
		for (let i = 0; i < 20 && !stops.includes('callees'); i++) {
			await page.keyboard.press('Tab');
			const id = await page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
			stops.push(id);
			if (!scrolling.includes(id)) continue;
			const before = await page.evaluate((wanted) => document.getElementById(wanted).scrollTop, id);
			await page.keyboard.press(before > 0 ? 'ArrowUp' : 'ArrowDown');
			await page.waitForFunction(([wanted, was]) => document.getElementById(wanted).scrollTop !== was, [id, before]);
		}
		assert.deepEqual(stops, ['callers', 'copy-focus', 'Lines', 'lines', 'source-link', 'callees-mirror', 'callees']);
		await page.keyboard.press('Tab');
		assert.ok(!(await page.evaluate(() => document.getElementById('sandwich').contains(document.activeElement))));
		await assertSilent(opened);
	});

	test('live: the graph moves, what is looked at stays', async () => {
		const moving = await startOwn();
		const opened = await open('#/live?service=search&window=10s', { url: moving.url });
		const { page } = opened;
		const roundIs = async (round) => {
			const wanted = totalOf(liveStacksOf('search', round));
			await page.waitForFunction((sum) => window.__viewer.tree.total[0] === sum, wanted);
		};
		await roundIs(0);
		const rows = () => page.evaluate(() => {
			const { tree, frames } = window.__viewer;
			return [...tree.order.slice(tree.rowStart[3], tree.rowStart[4])].map((node) => frames.name(tree.frame[node]));
		});
		const first = await rows();
		const zoomed = () => page.evaluate(() => {
			const { tree, frames, state } = window.__viewer;
			return frames.name(tree.frame[state.zoom]);
		});
		await page.locator('#mirror').focus();
		for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter');
		const name = await zoomed();
		moving.nextRound();
		await roundIs(1);
		assert.deepEqual(await rows(), first, 'siblings keep their places');
		assert.equal(await zoomed(), name);
		assert.ok(!(await page.evaluate(() => location.hash)).includes('z='), 'numbers of a tree that moves are in no link');
		const services = await page.locator('#live-services button').allInnerTexts();
		assert.match(services[1], /^checkout-api/);
		await page.locator('#live-sort').click();
		await page.waitForFunction(() => !document.querySelectorAll('#live-services button')[1].textContent.startsWith('checkout-api'));
		assert.notDeepEqual(await rows(), first, 'until they are sorted again');
		assert.equal(await zoomed(), name);
		await page.locator('#graph canvas').hover();
		moving.nextRound();
		await page.waitForFunction(() => /Held/.test(document.getElementById('live-state').textContent));
		await page.mouse.move(5, 5);
		await roundIs(2);
		await page.locator('#live-pause').click();
		moving.nextRound();
		await page.waitForFunction(() => /Paused; there is/.test(document.getElementById('live-state').textContent));
		await page.locator('#live-pause').click();
		await roundIs(3);
		for (const key of ['2', '3', '4', '1']) {
			await page.keyboard.press(key);
			moving.nextRound();
		}
		await roundIs(7);
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		await page.locator('#live-services button').first().click();
		await page.waitForFunction(() => !location.hash.includes('service='));
		assert.match(await page.evaluate(() => location.hash), /window=10s/);
		await page.goto(moving.url + '#/live?service=nothing');
		await page.locator('#live-empty:not([hidden])').waitFor();
		await page.locator('[data-page=services]').click();
		await shown(page, 'services');
		await page.waitForTimeout(100);
		for (let i = 0; i < 50 && moving.streams.size; i++) await page.waitForTimeout(100);
		assert.equal(moving.streams.size, 0, 'who leaves the page leaves the stream');
		await assertSilent(opened);
		await moving.close();
	});

	test('live: nobody watches, nothing is asked; seven tabs leave room for the rest', async () => {
		const moving = await startOwn();
		const opened = await open('#/live?service=search', { url: moving.url });
		const { page, context } = opened;
		const turn = (to) => page.evaluate((state) => {
			Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
			document.dispatchEvent(new Event('visibilitychange'));
		}, to);
		const until = async (check, what) => {
			for (let i = 0; i < 100 && !check(); i++) await page.waitForTimeout(100);
			assert.ok(check(), what);
		};
		await turn('hidden');
		await until(() => moving.streams.size === 0, 'hidden: no stream');
		const asked = moving.requests.length;
		moving.nextRound();
		await page.waitForTimeout(1500);
		assert.equal(moving.requests.length, asked);
		await turn('visible');
		await until(() => moving.streams.size === 1, 'seen again: a stream');
		await page.waitForFunction((sum) => window.__viewer.tree.total[0] === sum, totalOf(liveStacksOf('search', 1)));
		const tabs = [];
		for (const service of ['search', 'search', 'true', 'rm', 'checkout-api', 'php-fpm', 'server.js']) {
			const tab = await context.newPage();
			await tab.goto(`${moving.url}#/live?service=${service}`);
			tabs.push(tab);
		}
		for (const tab of tabs) await tab.waitForFunction(() => document.body.dataset.shown === 'live' && window.__viewer.tree);
		assert.equal(moving.streams.size, 3, 'equal questions share a stream, and there are never more than three');
		const other = await context.newPage();
		await other.goto(moving.url + '#/services');
		await shown(other, 'services');
		for (const tab of tabs) await tab.close();
		await page.goto('about:blank');
		await until(() => moving.streams.size === 0, 'all have gone');
		await context.close();
		await moving.close();
	});

	test('live: a picture that comes late covers neither another question nor a newer answer', async () => {
		const moving = await startOwn();
		const opened = await open('#/live', { url: moving.url });
		const { page, context } = opened;
		await page.evaluate(() => {
			const { live } = window.__app;
			const take = live.take.bind(live);
			window.__taken = [];
			live.take = (message) => {
				window.__taken.push(message);
				take(message);
			};
		});
		moving.nextRound();
		await page.waitForFunction(() => window.__taken.some(({ event }) => event === 'flame'));
		await page.evaluate(() => (location.hash = '#/live?service=nothing'));
		const empty = page.locator('#live-empty:not([hidden])');
		await empty.waitFor();
		for (const sameQuestion of [false, true]) {
			await page.evaluate((same) => {
				const last = (kind) => window.__taken.findLast(({ event }) => event === kind);
				const late = last('flame');
				window.__app.live.take(same ? { ...late, query: last('empty').query } : late);
				window.__app.live.take(last('empty'));
			}, sameQuestion);
			await page.waitForTimeout(300);
			assert.ok(await empty.isVisible(), `the same question: ${sameQuestion}`);
			assert.ok(await page.locator('#graph-row').isHidden());
		}
		await context.close();
		await moving.close();
	});

	test('an answer that breaks off in its middle is said, and asked again', async () => {
		let isWhole = true;
		const between = createServer(async (request, response) => {
			const answer = await fetch(collector.url + request.url.slice(1));
			const body = Buffer.from(await answer.arrayBuffer());
			const ends = isWhole || !/api\/v1\/(services|flame)/.test(request.url);
			response.writeHead(answer.status, { 'Content-Type': answer.headers.get('Content-Type') ?? '', 'Content-Length': body.length });
			if (ends) response.end(body);
			else response.write(body.subarray(0, body.length / 2), () => setTimeout(() => response.destroy(), 100));
		});
		await new Promise((done) => between.listen(0, '127.0.0.1', done));
		try {
			const { page, noise, context } = await open('#/services', { url: `http://127.0.0.1:${between.address().port}/` });
			for (const [at, next] of [['#/services', 'services'], ['#/profile?service=search', 'profile']]) {
				isWhole = false;
				await page.evaluate((hash) => { // not the hash that is there
					location.hash = hash + (hash.includes('?') ? '&' : '?') + 'from=now-2h';
				}, at);
				await page.waitForFunction(() => document.body.dataset.shown === 'failed');
				assert.equal(await page.locator('#trouble').innerText(), "The collector's answer broke off.", at);
				isWhole = true;
				await page.locator('#refresh').click();
				await shown(page, next);
				assert.equal(await page.locator('#trouble').isVisible(), false);
			}
			assert.deepEqual(noise.filter((line) => !line.includes('net::ERR_')), []);
			await context.close();
		} finally {
			between.closeAllConnections();
			between.close();
		}
	});

	test('a browser whose clock is wrong, or set while somebody watches', async () => {
		const moving = await startOwn();
		const plain = await open('#/services', { url: moving.url });
		await plain.page.locator('#agents summary').click();
		const ages = (page) => page.locator('#agents tbody tr').allInnerTexts();
		const wanted = await ages(plain.page);
		assert.match(wanted.join(' '), /6 s ago.*8 s ago.*32 min ago/s);
		for (const hours of [-1, 1, 24 * 365]) {
			const opened = await open('#/files', { url: moving.url });
			const { page } = opened;
			await page.addInitScript((shift) => {
				const now = Date.now.bind(Date);
				window.__shift = shift;
				Date.now = () => now() + window.__shift;
			}, hours * 3600000);
			await page.goto(moving.url + '#/services');
			await page.reload();
			await shown(page, 'services');
			await page.locator('#agents summary').click();
			assert.deepEqual(await ages(page), wanted, `${hours} h: ages are by the collector's clock`);
			await page.goto(moving.url + '#/live?service=search');
			await shown(page, 'live');
			const said = () => page.locator('#live-state').innerText();
			assert.equal(await said(), 'Live.');
			await page.evaluate(() => (window.__shift += 3600000));
			await page.waitForTimeout(1500); // it says it anew every second
			assert.equal(await said(), 'Live.', `${hours} h and one more`);
			await assertSilent(opened);
		}
		await assertSilent(plain);
	});

	test('live: a collector that goes and comes back', async () => {
		let status = 0;
		const odd = await startOwn({ fail: (what) => (what === 'live' ? status : 0) });
		const opened = await open('#/live?service=search', { url: odd.url });
		const { page, context } = opened;
		for (const { response } of odd.streams) response.destroy();
		await page.waitForFunction(() => /does not answer/.test(document.getElementById('live-state').textContent));
		status = 503;
		await page.waitForFunction(() => /busy/.test(document.getElementById('trouble').textContent));
		status = 0;
		odd.nextRound();
		await page.waitForFunction(() => document.getElementById('trouble').hidden && /Live/.test(document.getElementById('live-state').textContent));
		const say = (event, data, isLast) => odd.streams.forEach(({ response }) => response[isLast ? 'end' : 'write'](`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
		say('problem', { code: 413, error: 'the picture is too large for a live stream: choose fewer services' });
		await page.waitForFunction(() => document.getElementById('trouble').textContent === 'The picture is too large for a live stream: choose fewer services.');
		odd.nextRound();
		await page.waitForFunction(() => document.getElementById('trouble').hidden);
		say('bye', { why: 'it was open for 12 hours' }, true);
		await page.waitForFunction(() => document.getElementById('live-state').textContent === 'The collector ended the stream (it was open for 12 hours); asking again.');
		await page.waitForFunction(() => /Live/.test(document.getElementById('live-state').textContent));
		await context.close();
		await odd.close();
	});

	test('live: a tab that the shared worker has forgotten is shown on', async () => {
		const moving = await startOwn();
		const { page, context } = await open('#/files', { url: moving.url });
		await page.addInitScript(() => {
			const { postMessage } = MessagePort.prototype;
			MessagePort.prototype.postMessage = function (...message) {
				if (message[0]?.watch) window.__port = this;
				return postMessage.apply(this, message);
			};
		});
		await page.reload();
		await page.evaluate(() => (location.hash = '#/live?service=search'));
		await shown(page, 'live');
		const streamsAre = async (count) => {
			for (let i = 0; i < 100 && moving.streams.size !== count; i++) await page.waitForTimeout(100);
			assert.equal(moving.streams.size, count);
		};
		await streamsAre(1);
		await page.evaluate(() => window.__port.postMessage({ leave: true })); // as after 30 s of silence
		await streamsAre(0);
		moving.nextRound();
		await streamsAre(1);
		await page.waitForFunction((sum) => window.__viewer.tree.total[0] === sum, totalOf(liveStacksOf('search', 1)));
		await page.evaluate(() => (location.hash = '#/files'));
		await streamsAre(0);
		await page.waitForTimeout(6000);
		assert.equal(moving.streams.size, 0, 'who watches nothing is there, and no more');
		await context.close();
		await moving.close();
	});

	test('live: goes on after signing in, also after 12 hours', async () => {
		let status = 0;
		const locked = await startOwn({ token: 'secret-token', fail: (what) => (what === 'live' ? status : 0) });
		const { page, context } = await open('#/live?service=search', { url: locked.url });
		const signIn = async () => {
			await page.fill('#token', 'secret-token');
			await page.keyboard.press('Enter');
		};
		const roundIs = async (round) => {
			locked.nextRound();
			await page.waitForFunction((sum) => window.__viewer.tree?.total[0] === sum && document.getElementById('live-state').textContent === 'Live.', totalOf(liveStacksOf('search', round)));
			assert.ok(await page.locator('#trouble').isHidden());
		};
		await page.locator('#sign-in[open]').waitFor();
		await signIn();
		await page.waitForFunction(() => window.__viewer.tree);
		await roundIs(1);
		status = 401;
		for (const { response } of locked.streams) response.end('event: bye\ndata: {"why": "it was open for 12 hours"}\n\n');
		await page.locator('#sign-in[open]').waitFor();
		status = 0;
		await signIn();
		await page.locator('#sign-in[open]').waitFor({ state: 'detached' });
		await page.waitForFunction(() => document.getElementById('live-state').textContent === 'Live.');
		await roundIs(2);
		assert.equal(locked.streams.size, 1);
		await context.close();
		await locked.close();
	});

	test('live: the share of what was found is "at least" where the picture is cut', async () => {
		const cut = await startOwn();
		const opened = await open('#/live?service=search', { url: cut.url });
		const { page, context } = opened;
		await page.fill('#query', 'a');
		await page.waitForFunction(() => /^[\d.]+ % matched$/.test(document.getElementById('matched').textContent));
		cut.hides = true;
		cut.nextRound();
		await page.waitForFunction(() => /^at least [\d.]+ % matched$/.test(document.getElementById('matched').textContent));
		await context.close();
		await cut.close();
	});

	test('grouped by thread and label: the collector is asked, steps stack and are taken back', async () => {
		const opened = await open('#/profile?service=search&view=sandwich');
		const { page } = opened;
		const sum = await total(page);
		const top = () => page.evaluate(() => {
			const { tree, frames } = window.__viewer;
			const nodes = Array.from({ length: tree.count }, (_, i) => i).filter((i) => tree.level[i] === 1);
			return Object.fromEntries(nodes.map((i) => [frames.name(tree.frame[i]), tree.total[i]]));
		});
		const wanted = (group) => {
			const sums = {};
			for (const [[name], count] of groupedStacks(stacksOf('search'), [group])) sums[name] = (sums[name] ?? 0) + count;
			return sums;
		};
		const groupBy = async (text) => {
			await page.locator('#menu').click();
			await page.locator('#step-menu [role=menuitem]', { hasText: new RegExp(`^Group by ${text}$`) }).click();
		};
		const asked = () => new URL(collector.requests.findLast((r) => r.startsWith('/api/v1/flame')), 'http://x').searchParams.get('group');
		await page.evaluate(() => window.__viewer.go({ focus: window.__viewer.frames.named('ns0::fn_0')[0] }));
		await groupBy('thread');
		await page.waitForFunction(() => window.__viewer.stepsKey === 'group:thread');
		assert.deepEqual(await top(), wanted('thread'));
		assert.equal(asked(), 'thread');
		assert.equal(await page.evaluate(() => window.__viewer.frames.name(window.__viewer.state.focus)), 'ns0::fn_0', 'the function in the middle stays, whatever its number');
		await groupBy('label version');
		await page.waitForFunction(() => window.__viewer.stepsKey.endsWith('label:version'));
		assert.deepEqual(await top(), wanted('label:version'));
		assert.equal(asked(), 'thread,label:version');
		assert.deepEqual(await page.locator('#chips button').allTextContents(), ['by thread', 'by label version']);
		const again = await open(await page.evaluate(() => location.hash));
		await again.page.waitForFunction(() => window.__viewer.stepsKey.endsWith('label:version'));
		assert.equal(await total(again.page), sum);
		assert.equal(asked(), 'thread,label:version');
		await page.keyboard.press('z');
		await page.waitForFunction(() => window.__viewer.stepsKey === 'group:thread');
		assert.deepEqual(await top(), wanted('thread'));
		await page.locator('#chips button').click();
		await page.waitForFunction(() => window.__viewer.stepsKey === '');
		assert.equal(asked(), null);
		assert.equal(await total(page), sum);
		await page.goto(`${collector.url}#/files`);
		await page.setInputFiles('#file', { name: 'x.folded', mimeType: 'text/plain', buffer: Buffer.from(foldedText(knownStacks(61))) });
		await shown(page, 'files');
		await page.locator('#menu').click();
		assert.deepEqual(await page.locator('#step-menu [role=menuitem]').allInnerTexts(), ['Group by runtime', 'Order by name'], 'a file has what it has');
		await assertSilent(again);
		await assertSilent(opened);
	});

	test('a snapshot: kept with the button, opened by its link, deleted in two clicks', async () => {
		const opened = await open('#/profile?service=search&t=hide:main&from=now-15m');
		const { page, context } = opened;
		assert.ok(await page.locator('#snapshot-note').isHidden());
		await page.locator('#keep').click();
		assert.match(await page.locator('#keep-what').innerText(), /^search, 2026-11-22 11:45:00 – 12:00:00 UTC$/);
		await page.keyboard.type('before <b>the</b> \u202erelease');
		await page.keyboard.press('Enter');
		await page.locator('#keep-link').waitFor();
		const link = await page.locator('#keep-link').evaluate((a) => a.href);
		assert.equal(await page.locator('#keep-link').innerText(), link);
		const asked = collector.requests.findLast((r) => r.startsWith('/api/v1/snapshots'));
		const query = new URL(asked, 'http://x').searchParams;
		assert.deepEqual([...query.keys()].sort(), ['from', 'service', 'to', 'type']);
		assert.ok(/^\d+$/.test(query.get('from')), 'the times are those of the picture');
		await context.grantPermissions(['clipboard-read', 'clipboard-write']);
		await page.locator('#keep-copy').click();
		assert.equal(await page.evaluate(() => navigator.clipboard.readText()), link);
		await page.keyboard.press('Escape');
		const again = await open(link.slice(collector.url.length));
		assert.deepEqual(await again.page.locator('#chips button').allTextContents(), ['hide main']);
		assert.equal(await total(again.page), await total(page));
		const note = await again.page.locator('#snapshot-note').innerText();
		assert.match(note, /^Snapshot before <b>the<\/b> .*release cpu\{service="search"\} 2026-11-22 11:45:00 – 12:00:00 UTC, taken 2026-11-22 12:00:00 UTC of 360 profiles/);
		assert.ok(!note.includes('\u202e'));
		assert.ok(await again.page.locator('#timeline').isHidden() && await again.page.locator('#keep').isHidden() && await again.page.locator('#service').isHidden());
		assert.match(await again.page.locator('#exports a').first().evaluate((a) => a.href), /snapshot=[0-9a-f]{32}&as=pprof$/);
		assert.deepEqual(await again.page.locator('#samples [aria-pressed=true]').allInnerTexts().then((all) => all.map((t) => t.split('\n')[0])), ['cpu']);
		await again.page.locator('#samples .choice', { hasText: 'samples' }).click();
		await again.page.waitForFunction(() => location.hash.includes('sample=samples'));
		await shown(again.page, 'snapshot');
		assert.equal(new URL(collector.requests.findLast((r) => r.startsWith('/api/v1/flame')), 'http://x').searchParams.get('sample'), 'samples');
		const other = await open(link.slice(collector.url.length) + '&sample=nonsense');
		assert.match(await other.page.locator('#trouble').innerText(), /no such sample type/);
		await other.page.locator('#samples .choice', { hasText: 'cpu' }).click();
		await shown(other.page, 'snapshot');
		assert.equal(await total(other.page), await total(page));
		await other.context.close();
		await again.page.locator('#snapshot-delete').click();
		assert.equal(await again.page.locator('#snapshot-delete').innerText(), 'Delete for good?');
		await again.page.locator('#snapshot-delete').click();
		await shown(again.page, 'services');
		assert.ok(!(await again.page.evaluate(() => location.hash)).includes('id='), 'other pages have no trace of it');
		await assertSilent(again);
		await assertSilent(opened);
		for (const hash of [link.slice(collector.url.length), '#/snapshot?id=nonsense', '#/snapshot']) {
			const gone = await open(hash);
			assert.match(await gone.page.locator('#trouble').innerText(), /This snapshot is not there: it was deleted, or the link is not complete/);
			assert.ok(await gone.page.locator('#graph-row').isHidden());
			await gone.context.close();
		}
	});

	test('a snapshot of a process and of labels keeps these alone, and says whose it is', async () => {
		const opened = await open('#/profile?service=search&process=1204-77&program=nginx&thread=9&threadname=worker&labels=version%3D1%252B2&from=now-15m');
		const { page } = opened;
		await page.locator('#keep').click();
		assert.match(await page.locator('#keep-what').innerText(), /^search, only nginx 1204, thread worker 9, 2026-11-22 11:45:00 – 12:00:00 UTC$/);
		await page.keyboard.press('Enter');
		await page.locator('#keep-link').waitFor();
		const { from, to, ...rest } = Object.fromEntries(new URL(collector.requests.findLast((r) => r.startsWith('/api/v1/snapshots')), 'http://x').searchParams);
		assert.deepEqual(rest, { service: 'search', type: 'cpu', labels: 'version=1%2B2', process: '1204-77', program: 'nginx', thread: '9', 'thread-name': 'worker' });
		assert.ok(/^\d+$/.test(from) && /^\d+$/.test(to));
		await assertSilent(opened);
	});

	test('a snapshot that cannot be kept says why', async () => {
		let status = 0;
		const odd = await startOwn({ fail: (what) => (what === 'snapshots' ? status : 0) });
		const opened = await open('#/profile?service=search', { url: odd.url });
		const { page } = opened;
		await page.locator('#keep').click();
		for (const [code, text] of [[403, 'scope admin'], [507, 'Made to fail.'], [413, 'Made to fail.'], [401, 'Sign in']]) {
			status = code;
			await page.locator('#keep-form button').click();
			await page.waitForFunction((wanted) => document.getElementById('keep-trouble').textContent.includes(wanted), text);
		}
		await opened.context.close();
		await odd.close();
	});

	for (const colorScheme of ['light', 'dark']) {
		test(`a snapshot, 400 pixels wide, ${colorScheme}: axe-core finds nothing`, async () => {
			const { page, context } = await open('#/profile?service=search', { colorScheme, bypassCSP: true, viewport: { width: 400, height: 800 } });
			await page.locator('#selection summary').click();
			await page.locator('#keep').click();
			await page.keyboard.press('Enter');
			await page.locator('#keep-link').waitFor();
			const link = await page.locator('#keep-link').evaluate((a) => a.href);
			const look = async () => {
				await page.evaluate(readFileSync(axePath(), 'utf8'));
				assert.deepEqual(await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | '))), []);
				assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
			};
			await look();
			await page.goto(link);
			await page.reload();
			await shown(page, 'snapshot');
			await look();
			await context.close();
		});
	}

	test('a dropped file stays here; exports read back equal', async () => {
		const opened = await open('#/files');
		const { page } = opened;
		const stacks = knownStacks(61);
		const before = collector.requests.length;
		await page.setInputFiles('#file', { name: 'x.folded', mimeType: 'text/plain', buffer: Buffer.from(foldedText(stacks)) });
		await page.waitForFunction(() => window.__viewer.tree);
		assert.equal(await total(page), totalOf(stacks));
		await opened.context.grantPermissions(['clipboard-read', 'clipboard-write']);
		const copied = async (what, words) => {
			await page.selectOption('#export', what);
			await page.waitForFunction((said) => document.getElementById('toast').textContent === said, words);
			return (await page.evaluate(() => navigator.clipboard.readText())).trimEnd().split('\n');
		};
		await page.evaluate(() => window.__viewer.go({ query: 'fn_1', sort: 'total' }));
		const lines = (await copied('copy-table', 'Table copied')).slice(1).map((line) => line.split('\t'));
		assert.deepEqual(lines.map(([self, , sum, , name]) => [name, Number(self.replaceAll(',', '')), Number(sum.replaceAll(',', ''))]), [...countFunctions(stacks)].filter(([name]) => name.includes('fn_1'))
			.sort(([a, one], [b, two]) => two.total - one.total || (a < b ? -1 : 1)).map(([name, { self, total: sum }]) => [name, self, sum]));
		await page.evaluate(() => window.__viewer.setCurrent(2));
		assert.equal((await copied('copy-stack', 'Stack copied')).length, 2);
		for (const format of ['folded', 'speedscope', 'pprof']) {
			const download = page.waitForEvent('download');
			await page.selectOption('#export', format);
			const saved = readFileSync(await (await download).path());
			await page.evaluate(() => (window.treeBefore = window.__viewer.tree)); // the page may still draw it
			await page.setInputFiles('#file', { name: 'again', mimeType: 'text/plain', buffer: saved });
			await page.waitForFunction(() => window.__viewer.tree !== window.treeBefore);
			assert.equal(await total(page), totalOf(stacks), format);
		}
		for (const [format, head] of [['svg', '<svg'], ['csv', 'function,'], ['png', '\u0089PNG']]) {
			const download = page.waitForEvent('download');
			await page.selectOption('#export', format);
			assert.ok(readFileSync(await (await download).path(), 'latin1').startsWith(head), format);
		}
		assert.deepEqual(collector.requests.slice(before).filter((r) => !r.startsWith('/ui/')), []);
		await page.setInputFiles('#file', { name: 'bad<b>', mimeType: 'text/plain', buffer: Buffer.from('nothing') });
		await page.locator('#trouble:not([hidden])').waitFor();
		assert.match(await page.locator('#trouble').innerText(), /^bad<b> could not be read/);
		await assertSilent(opened);
	});

	test('pictures from the table, the calls and the sandwich are those of the graph', async () => {
		const opened = await open('#/profile?service=search&view=table&q=fn_1');
		const { page } = opened;
		await page.evaluate(() => { // Chromium saves ten files without a click of somebody, and then no more
			URL.createObjectURL = (blob) => {
				window.__saved = blob;
				return 'about:blank';
			};
			HTMLAnchorElement.prototype.click = () => {};
			const paint = window.requestAnimationFrame; // a busy machine's: what is painted then may be gone
			window.requestAnimationFrame = (run) => setTimeout(() => paint(run), 60);
		});
		const saved = async (format) => {
			await page.evaluate(() => delete window.__saved);
			await page.selectOption('#export', format);
			await page.waitForFunction(() => window.__saved);
			return page.evaluate(async () => Array.from(new Uint8Array(await window.__saved.arrayBuffer()), (c) => String.fromCharCode(c)).join(''));
		};
		const pictures = async () => [await saved('svg'), await saved('png')];
		const go = async (change) => {
			await page.evaluate((to) => window.__viewer.go(to), change);
			await page.waitForFunction(() => !window.__viewer.provisional && !window.__viewer.pending.size && !window.__viewer.graph.animation);
		};
		const focus = await page.evaluate(() => window.__viewer.frames.named('main')[0]);
		const kept = new Map();
		for (const change of [{ view: 'table' }, { view: 'calls' }, { view: 'sandwich', focus }, { view: 'table', collapse: true }, { view: 'inverted', collapse: false }, { view: 'table' }]) {
			await go(change);
			if (change.view === 'inverted') continue; // another tree than that of the next one's graph
			const isCollapsed = await page.evaluate(() => window.__viewer.state.collapse);
			const before = kept.get(isCollapsed) ?? kept.set(isCollapsed, await pictures()).get(isCollapsed);
			assert.deepEqual(await pictures(), before, JSON.stringify(change));
			assert.ok(await page.locator('#graph-pane').isHidden());
		}
		for (const isCollapsed of [true, false]) {
			await go({ view: 'graph', collapse: isCollapsed });
			const [svg, png] = await pictures();
			assert.ok(svg === kept.get(isCollapsed)[0] && svg.split('<rect').length > 20, 'as the graph has it');
			assert.ok(png === kept.get(isCollapsed)[1]);
			assert.equal(await page.evaluate(() => window.__viewer.graph.tree === window.__viewer.shownTree()), true);
		}
		await assertSilent(opened);
	});

	test('a token is asked for once, and is in no link', async () => {
		const locked = await startOwn({ token: 'secret-token' });
		const opened = await open('#/services', { url: locked.url });
		const { page } = opened;
		await page.locator('#sign-in[open]').waitFor();
		await page.fill('#token', 'wrong');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.getElementById('sign-trouble').textContent);
		await page.fill('#token', 'secret-token');
		await page.keyboard.press('Enter');
		await shown(page, 'services');
		assert.ok(!(await page.content()).includes('secret-token'));
		assert.ok(!locked.requests.some((r) => r.includes('secret')));
		assert.equal(await page.evaluate(() => document.cookie), '');
		await opened.context.close();
		await locked.close();
	});

	test('what goes wrong is said, and the page stays', async () => {
		let status = 0;
		const odd = await startOwn({ fail: (what) => (what === 'session' ? 0 : status) });
		const opened = await open('#/services', { url: odd.url });
		const { page } = opened;
		for (const [code, text] of [[404, 'Nothing is stored'], [503, 'busy'], [504, 'shorter range'], [400, 'made to fail'], [409, 'different things']]) {
			status = code;
			await page.goto(odd.url + '#/profile?service=gone' + code);
			await page.locator('#trouble:not([hidden])').waitFor();
			await page.waitForFunction((wanted) => document.getElementById('trouble').textContent.includes(wanted), text);
		}
		status = 0;
		await page.locator('#refresh').click();
		await shown(page, 'profile');
		assert.ok(await page.locator('#trouble').isHidden());
		status = 404;
		await page.locator('[data-page=compare]').click();
		await page.waitForFunction(() => document.getElementById('trouble').textContent.includes('Nothing is stored'));
		assert.ok(await page.locator('#graph-row').isHidden(), 'the graph of before');
		await odd.close();
		await page.locator('#refresh').click();
		await page.waitForFunction(() => document.getElementById('trouble').textContent.includes('does not answer'));
		await page.goto(odd.url + '#/profile?from=nonsense&service=x').catch(() => {});
		await opened.context.close();
		const bad = await open('#/profile?from=nonsense');
		assert.match(await bad.page.locator('#trouble').innerText(), /did not understand: from or to/);
		await bad.context.close();
	});

	for (const colorScheme of ['light', 'dark']) {
		test(`axe-core finds nothing, ${colorScheme}`, async () => {
			for (const hash of PAGES) {
				const { page, context } = await open(hash, { colorScheme, bypassCSP: true });
				await page.evaluate(readFileSync(axePath(), 'utf8'));
				const found = await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')));
				assert.deepEqual(found, [], hash);
				await context.close();
			}
		});
	}

	test('400 pixels wide, and by keys alone', async () => {
		for (const hash of PAGES) {
			const opened = await open(hash, { viewport: { width: 400, height: 800 } });
			assert.ok(await opened.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash);
			await assertSilent(opened);
		}
		const opened = await open('#/services');
		const { page } = opened;
		for (let i = 0; i < 40; i++) {
			await page.keyboard.press('Tab');
			if (await page.evaluate(() => document.activeElement.textContent === 'search')) break;
		}
		await page.keyboard.press('Enter');
		await shown(page, 'profile');
		assert.equal(await page.inputValue('#service'), 'search');
		await page.locator('#timeline input').first().focus();
		await page.keyboard.press('ArrowRight');
		await page.waitForFunction(() => location.hash.includes('part='));
		await shown(page, 'profile');
		const seen = new Set();
		await page.locator('#service').focus();
		for (let i = 0; i < 80; i++) {
			await page.keyboard.press('Tab');
			seen.add(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent.slice(0, 20)));
		}
		for (const id of ['query', 'mirror', 'export', 'flip']) assert.ok(seen.has(id), id);
		await assertSilent(opened);
	});
});
