// SPDX-License-Identifier: Apache-2.0
// The administration page in a real browser, against fake_collector.mjs: who may change what, tokens shown once, names typed.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertSilent, axePath, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { Collector, missingCollector } from './collector.js';
import { startCollector } from './fake_collector.mjs';
import { pprofOf } from './known.js';

const reason = missingBrowser();
const TOKEN = 'secret-token';
const MARKUP = '<img src=x onerror=window.__hit=1>\u202egpj.exe';
const LONG = 'x'.repeat(1 << 20);
const SECRET = 'hearth_' + 'ab'.repeat(32);

describe('administration page', { skip: reason || false }, () => {
	let browser;
	const collectors = [];

	before(async () => {
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		for (const collector of collectors) await collector.close();
	});

	/** The page of a collector of its own, signed in where it asks for a token. */
	async function open(options = {}, view = {}) {
		const collector = await startCollector(options);
		collectors.push(collector);
		const opened = await openSite(browser, collector.url, '#/admin', view);
		const { page } = opened;
		if (options.token) {
			await page.locator('#sign-in[open]').waitFor();
			await page.fill('#token', options.token);
			await page.keyboard.press('Enter');
			await pageShown(page, 'admin');
			opened.noise.length = 0; // the browser's own words for 401
		}
		return { ...opened, collector, end: () => assertSilent(opened) };
	}

	const writes = (collector, method) => collector.writes.filter(([m]) => m === method);
	const text = (page, selector) => page.locator(selector).innerText();

	test('without tokens: what is kept, the rule, and nothing to change', async () => {
		const { page, end } = await open();
		assert.match(await text(page, '#admin-rule'), /No token is asked for: .* this machine only.*hearth token create --scope admin/s);
		for (const id of ['admin-tokens', 'admin-delete', 'admin-in', 'admin-out']) assert.ok(await page.locator('#' + id).isHidden(), id);
		assert.match(await text(page, '#kept'), /138,240[^]*10[^]*16[^]*642 MiB/);
		const outlook = await page.locator('#outlook li').allInnerTexts();
		assert.equal(outlook.length, 2);
		assert.match(outlook[0], /^Goes within a minute: 2026-11-07 \(too old\), 8,640 profiles, 39\.1 MiB\.$/);
		assert.match(outlook[1], /^Next because of its age: 2026-11-08, 8,641 profiles, 39\.2 MiB, not before 2026-11-22 13:00 UTC\.$/);
		const limits = await page.locator('#limits tbody tr').allInnerTexts();
		assert.match(limits[0], /--retention\s+14 d\s+oldest: 2026-11-07 11:59 UTC/);
		assert.match(limits[1], /--retention-size\s+1 GiB\s+642 MiB, 62\.\d+ %/);
		assert.match(limits[2], /--retention-free\s+1 GiB\s+55\.9 GiB of 93\.1 GiB/);
		assert.match(limits[3], /--retention-daily\s+400 d/);
		const days = await page.locator('#days tbody tr').allInnerTexts();
		assert.equal(days.length, 17);
		assert.match(days[0], /^2026-11-22, open\s+8,655/);
		assert.match(days[15], /^2026-11-07\s.*too old/);
		assert.match(days[16], /^daily sums of 2026/);
		await page.locator('#odd summary').click();
		assert.equal(await text(page, '#odd li'), '2026-11-01.db: is a link <b>');
		await end();
	});

	test('a limit that cannot be kept is said', async () => {
		const { page, collector, end } = await open({ disk: { lowered: true, goal: 5e8 } });
		assert.match(await text(page, '#limits tbody tr:nth-child(3)'), /1 GiB, lowered to 477 MiB/);
		const whole = collector.admin.storage.bind(collector.admin);
		collector.admin.storage = () => ({ ...whole(), over: true, stuck: true, next: undefined, days: whole().days.slice(1), disk: undefined });
		await page.locator('#refresh').dispatchEvent('click');
		await page.waitForFunction(() => document.querySelectorAll('#outlook li').length === 3);
		assert.deepEqual((await page.locator('#outlook li').allInnerTexts()).map((line) => line.slice(0, 20)), ['Nothing goes as thin', 'A limit cannot be ke', 'A file could not be ']);
		assert.match(await text(page, '#limits tbody tr:nth-child(3)'), /not known/);
		await end();
	});

	test('a token that may only read changes nothing', async () => {
		const { page, noise, end } = await open({ token: TOKEN, scopes: ['read'] });
		assert.match(await text(page, '#admin-rule'), /may only read\. Deleting and tokens need the scope admin/);
		for (const id of ['admin-tokens', 'admin-delete']) assert.ok(await page.locator('#' + id).isHidden(), id);
		assert.ok(await page.locator('#kept').isVisible());
		await page.locator('#admin-in').click();
		assert.ok(await page.locator('#sign-in').isVisible());
		await page.keyboard.press('Escape');
		assert.equal(await page.evaluate(async () => (await fetch('api/v1/services?service=search', { method: 'DELETE' })).status), 403);
		noise.splice(0, noise.length, ...noise.filter((line) => !/403/.test(line)));
		await end();
	});

	test('a secret is shown once', async () => {
		const { page, collector, end } = await open({ token: TOKEN });
		assert.match(await text(page, '#admin-rule'), /You may change what is kept/);
		assert.deepEqual((await page.locator('#tokens tbody td:first-child').allInnerTexts()).map((t) => t.replace(/\s+/g, ' ')),
			['the <b>admin</b>\\u{202e} 0011223344556677, yours', 'agents 8899aabbccddeeff']);
		await page.locator('#make-token button').click();
		assert.equal(await text(page, '#make-trouble'), 'Choose what it may do.');
		await page.fill('#make-token [name=name]', 'ci <b>');
		await page.check('#make-scopes [value=ingest]');
		await page.check('#make-scopes [value=read]');
		await page.locator('#make-token button').click();
		await page.locator('#made').waitFor();
		assert.equal(await text(page, '#made-secret'), SECRET);
		assert.equal(await text(page, '#made-title'), 'The token ci <b>');
		assert.equal(await page.evaluate(() => getSelection().toString()), SECRET);
		assert.equal(await page.evaluate(() => document.activeElement.id), 'made-secret');
		assert.deepEqual(writes(collector, 'POST').at(-1)[2], { name: 'ci <b>', scopes: ['ingest', 'read'] });
		assert.equal(await page.locator('#tokens tbody tr').count(), 3);
		const seesSecret = () => page.evaluate((secret) => document.documentElement.outerHTML.includes(secret) || location.href.includes(secret) ||
			JSON.stringify({ ...localStorage, ...sessionStorage }).includes(secret), SECRET);
		assert.ok(await seesSecret());
		await page.locator('#made-done').click();
		assert.ok(!(await seesSecret()), 'hidden by a click');
		for (const leave of [() => page.locator('[data-page=services]').click(), () => page.locator('#refresh').dispatchEvent('click'), () => page.reload()]) {
			await page.check('#make-scopes [value=read]');
			await page.locator('#make-token button').click();
			await page.locator('#made').waitFor();
			await leave();
			await page.waitForFunction(() => document.body.dataset.shown && document.getElementById('made-secret').textContent === '');
			assert.ok(!(await seesSecret()), leave.toString());
			await page.goto(collector.url + '#/admin');
			await pageShown(page, 'admin');
			assert.ok(!(await seesSecret()));
		}
		await page.goBack();
		assert.ok(!(await seesSecret()), 'nor by going back');
		await end();
	});

	test('revoking asks, and says what it means', async () => {
		const { page, collector, end } = await open({ token: TOKEN });
		await page.locator('[aria-label="Revoke agents"]').click();
		assert.match(await text(page, '#revoke-what'), /^agents, 8899aabbccddeeff: ingest\. Who uses it is refused from then on\.$/);
		await page.locator('#revoke-box .cancel').click();
		assert.equal(collector.admin.tokens.length, 2);
		await page.locator('[aria-label="Revoke agents"]').click();
		await page.locator('#revoke-box .danger').click();
		await page.waitForFunction(() => /agents is revoked/.test(document.getElementById('admin-done').textContent));
		await page.waitForFunction(() => document.querySelectorAll('#tokens tbody tr').length === 1);
		await page.locator('[aria-label^="Revoke the"]').click();
		assert.match(await text(page, '#revoke-what'), /You are signed in with it\. It is the last one with the scope admin/);
		await page.keyboard.press('Escape');
		assert.equal(collector.admin.tokens.length, 1);
		await end();
	});

	test('a service is deleted when its name was typed, and not before', async () => {
		const { page, collector, end } = await open({ token: TOKEN });
		await page.fill('#delete-filter', 'SEAR');
		assert.deepEqual(await page.locator('#delete-list .name').allInnerTexts(), ['search']);
		await page.locator('[aria-label="Delete search"]').click();
		await page.waitForFunction(() => /4,320 profiles in 16 files, about 78\.1 MiB go, for good/.test(document.getElementById('delete-amount').textContent));
		assert.equal(await text(page, '#delete-what'), 'search');
		for (const typed of ['', 'searc', 'Search', 'search ', 'searchx']) {
			await page.fill('#delete-name', typed);
			assert.ok(await page.locator('#delete-go').isDisabled(), typed);
			await page.keyboard.press('Enter');
		}
		assert.deepEqual(writes(collector, 'DELETE'), []);
		await page.keyboard.press('Escape');
		assert.ok(await page.locator('#delete-box').isHidden());
		await page.locator('[aria-label="Delete search"]').click();
		assert.equal(await page.inputValue('#delete-name'), '', 'what was typed before is gone');
		await page.fill('#delete-name', 'search');
		await page.locator('#delete-go').click();
		await page.waitForFunction(() => /^search is deleted: 4,320 profiles/.test(document.getElementById('admin-done').textContent));
		assert.deepEqual(writes(collector, 'DELETE').map(([, url]) => url), ['/api/v1/services?service=search']);
		await page.waitForFunction(() => /No service has this/.test(document.getElementById('delete-more').textContent));
		await end();
	});

	test('what goes wrong is said in the collector\'s words', async () => {
		const { page, noise, end } = await open({ token: TOKEN });
		await page.locator('[aria-label="Delete php-fpm"]').click();
		await page.fill('#delete-name', 'php-fpm');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => /disk is full.*nothing was deleted/.test(document.getElementById('delete-trouble').textContent));
		assert.ok(await page.locator('#delete-go').isEnabled(), 'it can be tried again');
		assert.ok(await page.locator('#delete-box').isVisible());
		await page.keyboard.press('Escape');
		noise.splice(0, noise.length, ...noise.filter((line) => !/507/.test(line)));
		await end();
	});

	test('hostile and endless names are text', async () => {
		const more = Array.from({ length: 300 }, (_, i) => `many-${i}`);
		const { page, noise, end } = await open({ token: TOKEN, more: [LONG, ' ', ...more] });
		assert.equal(await page.locator('#delete-list li').count(), 200);
		assert.equal(await text(page, '#delete-more'), '112 more: filter them.');
		await page.fill('#delete-filter', 'onerror');
		await page.locator('#delete-list button').click();
		assert.equal(await text(page, '#delete-what'), '<img src=x onerror=window.__hit=1>\\u{202e}gpj.exe');
		await page.fill('#delete-name', '<img src=x onerror=window.__hit=1>gpj.exe');
		assert.ok(await page.locator('#delete-go').isDisabled());
		await page.fill('#delete-name', '<img src=x onerror=window.__hit=1>\\u{202e}gpj.exe');
		assert.ok(await page.locator('#delete-go').isEnabled(), 'as it is shown');
		await page.fill('#delete-name', MARKUP);
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => /is deleted/.test(document.getElementById('admin-done').textContent));
		assert.ok(!(await text(page, 'body')).includes('\u202e'));
		await page.fill('#delete-filter', 'xxxxx');
		await page.locator('#delete-list button').click();
		assert.match(await text(page, '#delete-what'), /^x{4096}… \(1,048,576 characters\)$/);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await page.keyboard.press('Escape');
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		assert.equal(await page.locator('img').count(), 0);
		noise.splice(0, noise.length, ...noise.filter((line) => !/Failed to load resource/.test(line))); // of an address that long
		await end();
	});

	test('signing out', async () => {
		const { page, context } = await open({ token: TOKEN });
		await page.locator('#admin-out').click();
		await page.locator('#sign-in[open]').waitFor();
		assert.equal((await context.cookies()).filter((cookie) => cookie.value).length, 0);
		await context.close();
	});

	test('by keys alone, 400 pixels wide', async () => {
		const { page, collector, end } = await open({ token: TOKEN }, { viewport: { width: 400, height: 800 } });
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		const tabTo = async (wanted) => {
			for (let i = 0; i < 80; i++) {
				await page.keyboard.press('Tab');
				const found = await page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.value);
				if (found === wanted) return;
			}
			assert.fail(`Tab does not lead to ${wanted}`);
		};
		await page.locator('.top h1 a').focus();
		for (const stop of ['List of days', 'List of tokens', 'Revoke agents', 'ingest', 'read', 'admin', 'delete-filter']) await tabTo(stop);
		await page.keyboard.type('server');
		await tabTo('Delete server.js');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.activeElement.id === 'delete-name');
		await page.keyboard.type('server.js');
		await page.keyboard.press('Tab');
		assert.equal(await page.evaluate(() => document.activeElement.id), 'delete-go');
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => /^server\.js is deleted/.test(document.getElementById('admin-done').textContent));
		await page.waitForFunction(() => document.activeElement.id === 'delete-filter');
		assert.ok(!collector.admin.services.includes('server.js'));
		await page.locator('#make-token [name=name]').focus();
		await page.keyboard.type('k');
		await tabTo('read');
		await page.keyboard.press('Space');
		await page.keyboard.press('Enter');
		await page.locator('#made').waitFor();
		await page.keyboard.press('Tab');
		await page.keyboard.press('Tab');
		await page.keyboard.press('Enter');
		await page.waitForFunction(() => document.getElementById('made').hidden && document.activeElement.name === 'name');
		await end();
	});

	for (const colorScheme of ['light', 'dark']) {
		for (const width of [1400, 400]) {
			test(`axe-core finds nothing, ${colorScheme}, ${width} pixels`, async () => {
				for (const options of [{}, { token: TOKEN, scopes: ['read'] }, { token: TOKEN }]) {
					const { page, context } = await open(options, { colorScheme, bypassCSP: true, viewport: { width, height: 900 } });
					await page.evaluate(readFileSync(axePath(), 'utf8'));
					const check = async (what) => assert.deepEqual(await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' +
						v.nodes.map((n) => n.html.slice(0, 120)).join(' | '))), [], `${what} ${JSON.stringify(options)}`);
					await check('page');
					if (options.token && !options.scopes) {
						await page.locator('[aria-label="Delete search"]').click();
						await check('deleting');
						await page.keyboard.press('Escape');
						await page.locator('[aria-label="Revoke agents"]').click();
						await check('revoking');
						await page.keyboard.press('Escape');
						await page.check('#make-scopes [value=read]');
						await page.locator('#make-token button').click();
						await page.locator('#made').waitFor();
						await check('made');
					}
					assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
					await context.close();
				}
			});
		}
	}
});

describe('administration page of the real collector', { skip: reason || missingCollector() || false }, () => {
	let browser;
	let collector;
	let secret;
	const now = Date.now();
	const services = ['api', 'doomed', '<img src=x onerror=window.__hit=1>', '\u202egpj.exe', 'ü'.repeat(1000)];
	const body = pprofOf([['samples', 'count'], ['cpu', 'nanoseconds']], [[['main', 'work'], [3, 3e7]]]);

	before(async () => {
		collector = await Collector.start('--no-access-log');
		secret = collector.takeToken('ingest,read,admin');
		await collector.stop();
		await collector.run();
		for (const service of services) for (let day = 0; day < 3; day++) await collector.upload(service, 'cpu', body, now - day * 86400000 - 1000);
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		await collector?.close();
	});

	async function open() {
		const opened = await openSite(browser, collector.url, '#/admin');
		const { page } = opened;
		await page.locator('#sign-in[open]').waitFor();
		await page.fill('#token', secret);
		await page.keyboard.press('Enter');
		await pageShown(page, 'admin');
		opened.noise.length = 0; // the browser's own words for 401
		return opened;
	}

	const said = (page, words) => page.waitForFunction((source) => new RegExp(source).test(document.getElementById('admin-done').textContent), words);

	test('it shows what is stored', async () => {
		const opened = await open();
		const { page } = opened;
		assert.match(await page.locator('#kept').innerText(), /profiles\s+15\s+services\s+5\s+days\s+3/);
		assert.equal(await page.locator('#days tbody tr').count(), 3);
		assert.equal(await page.locator('#delete-list li').count(), services.length);
		assert.ok(!(await page.locator('body').innerText()).includes('\u202e'));
		assert.equal(await page.locator('img').count(), 0);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await assertSilent(opened);
	});

	test('a deleted service is gone after a restart, and its new profiles are taken again', async () => {
		const opened = await open();
		const { page } = opened;
		for (const service of services.slice(1)) {
			await page.fill('#delete-filter', service);
			await page.locator('#delete-list button').click();
			await page.waitForFunction(() => /3 profiles in 3 files/.test(document.getElementById('delete-amount').textContent));
			await page.fill('#delete-name', service);
			await page.keyboard.press('Enter');
			await said(page, 'is deleted: 3 profiles in 3 files');
			await page.waitForFunction(() => document.activeElement.id === 'delete-filter');
		}
		await collector.stop('SIGKILL');
		await collector.run();
		const asked = await collector.askJson('storage');
		assert.deepEqual([asked.services, asked.profiles], [['api'], 3]);
		await collector.upload('doomed', 'cpu', body, now - 500);
		await page.reload();
		await pageShown(page, 'admin');
		assert.deepEqual(await page.locator('#delete-list .name').allInnerTexts(), ['api', 'doomed']);
		await assertSilent(opened);
	});

	test('a token made on the page holds at once; revoked, it does not', async () => {
		const opened = await open();
		const { page } = opened;
		await page.fill('#make-token [name=name]', 'ci\u202e <b>');
		await page.check('#make-scopes [value=read]');
		await page.locator('#make-token button').click();
		await page.locator('#made').waitFor();
		const made = await page.locator('#made-secret').innerText();
		const reads = async () => (await fetch(collector.url + 'api/v1/services', { headers: { Authorization: 'Bearer ' + made } })).status;
		assert.equal(await reads(), 200);
		assert.equal((await fetch(collector.url + 'api/v1/services?service=api', { method: 'DELETE', headers: { Authorization: 'Bearer ' + made } })).status, 403);
		assert.ok(!readFileSync(collector.path('data/tokens'), 'utf8').includes(made));
		await page.locator('[aria-label="Revoke ci\\\\u{202e} <b>"]').click();
		await page.locator('#revoke-box .danger').click();
		await said(page, 'is revoked');
		assert.equal(await reads(), 401);
		await assertSilent(opened);
	});
});
