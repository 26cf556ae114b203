// SPDX-License-Identifier: Apache-2.0
// Classic flame graphs in a real browser: zoom, search, the line of details, hostile names. Nothing is requested. GRAPH_PICTURES names a
// folder for screenshots.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchBrowser, missingBrowser } from './browser.js';

const reason = missingBrowser() || (process.env.HEARTH ? '' : 'HEARTH does not name the program');
const FOLDED = 'p;main;read_[k] 30\np;main;run;alpha 40\np;main;run;beta 10\nq;main;run;alpha 20\n';
const HOSTILE = ['</title><script>window.__hit = 1</script>', '" onmouseover="window.__hit=1', ']]><script>window.__hit = 1</script>',
	'<image href="http://127.0.0.1:9/x"/>', '&#60;b&#62;', '\u202eabc', '(((', 'javascript:alert(1)'];

describe('classic flame graphs', { skip: reason || false }, () => {
	let browser;
	const folder = mkdtempSync(join(tmpdir(), 'hearth-graph-'));

	before(async () => {
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		rmSync(folder, { recursive: true });
	});

	function draw(name, text, ...args) {
		const input = join(folder, name + '.folded');
		const output = join(folder, name + '.svg');
		writeFileSync(input, text);
		execFileSync(process.env.HEARTH, ['convert', input, '-q', '-o', output, ...args]);
		return output;
	}

	async function open(file, query = '') {
		const context = await browser.newContext({ viewport: { width: 1240, height: 400 } });
		const page = await context.newPage();
		const noise = [];
		page.on('console', (message) => noise.push('console: ' + message.text()));
		page.on('pageerror', (error) => noise.push('error: ' + error.message));
		page.on('request', (request) => request.url().startsWith('file://' + file) || noise.push('request: ' + request.url()));
		await page.goto('file://' + file + query);
		return { page, close: async () => {
			assert.deepEqual(noise, []);
			assert.equal(await page.evaluate(() => window.__hit), undefined);
			await context.close();
		} };
	}

	const text = (page, id) => page.locator('#' + id).textContent();
	/** The first shown frame of that name. */
	async function box(page, name) {
		const at = await page.evaluate((wanted) => [...document.querySelectorAll('#frames > g')].findIndex(
			(g) => !g.classList.contains('hide') && g.querySelector('title').textContent.startsWith(wanted + ' (')), name);
		return page.locator('#frames > g > rect').nth(at);
	}
	const shownNames = (page) => page.evaluate(() => [...document.querySelectorAll('#frames > g:not(.hide) > title')].map((t) => t.textContent.replace(/ \(.*/, '')).sort());
	const picture = (page, name) => process.env.GRAPH_PICTURES && page.screenshot({ path: join(process.env.GRAPH_PICTURES, name + '.png') });
	const answer = (page, words) => page.once('dialog', (dialog) => (words === null ? dialog.dismiss() : dialog.accept(words)));

	test('zoom keeps the callers, dims them, and goes back', async () => {
		const { page, close } = await open(draw('zoom', FOLDED));
		await picture(page, 'whole');
		assert.equal((await shownNames(page)).length, 11);
		await (await box(page, 'run')).click();
		assert.deepEqual(await shownNames(page), ['all', 'alpha', 'beta', 'main', 'p', 'run']);
		const wide = await page.evaluate(() => [...document.querySelectorAll('#frames > g:not(.hide)')].map((g) => [g.querySelector('title').textContent.replace(/ \(.*/, ''),
			g.querySelector('rect').getAttribute('width'), g.classList.contains('parent')]));
		assert.deepEqual(wide, [['all', '1180.0', true], ['p', '1180.0', true], ['main', '1180.0', true], ['run', '1180.0', false], ['alpha', '944.0', false], ['beta', '236.0', false]]);
		await picture(page, 'zoomed');
		assert.match(page.url(), /\?x=364\.0&y=\d+$/);
		const { page: same, close: closeSame } = await open(join(folder, 'zoom.svg'), new URL(page.url()).search);
		assert.deepEqual(await shownNames(same), ['all', 'alpha', 'beta', 'main', 'p', 'run']);
		await closeSame();
		await page.locator('#unzoom').click();
		assert.equal((await shownNames(page)).length, 11);
		assert.equal(await page.locator('#unzoom.hide').count(), 1);
		assert.doesNotMatch(page.url(), /\?/);
		await close();
	});

	test('search: button, Ctrl-F, either case, what is no pattern, in the address', async () => {
		const { page, close } = await open(draw('search', FOLDED));
		answer(page, 'alpha|run');
		await page.locator('#search').click();
		assert.equal(await text(page, 'matched'), 'Matched: 70.0%');
		assert.equal(await text(page, 'search'), 'Reset Search');
		assert.match(page.url(), /\?s=alpha%7Crun$/);
		assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('#frames .match rect')).fill), 'rgb(230, 0, 230)');
		await picture(page, 'found');
		await page.locator('#search').click();
		assert.equal((await text(page, 'matched')).trim(), '');
		answer(page, 'ALPHA');
		await page.keyboard.press('Control+f');
		assert.equal(await text(page, 'matched'), 'Matched: 0.0%');
		await page.keyboard.press('Control+i');
		assert.equal(await text(page, 'matched'), 'Matched: 60.0%');
		answer(page, '((');
		await page.keyboard.press('F3');
		assert.equal(await text(page, 'matched'), 'Not a pattern');
		answer(page, null);
		await page.keyboard.press('F3');
		assert.equal(await text(page, 'matched'), 'Not a pattern');
		await close();
		const again = await open(join(folder, 'search.svg'), '?s=beta');
		assert.equal(await text(again.page, 'matched'), 'Matched: 10.0%');
		await again.close();
	});

	test('the line of details', async () => {
		const { page, close } = await open(draw('details', FOLDED, '--nametype', 'Frame <b>:'));
		await (await box(page, 'beta')).hover();
		assert.equal(await text(page, 'details'), 'Frame <b>: beta (10 samples, 10.00%)');
		await page.mouse.move(1, 1);
		assert.equal((await text(page, 'details')).trim(), '');
		await close();
	});

	test('hostile names are text', async () => {
		const lines = HOSTILE.map((name, i) => `p;${name} ${10 + i}\n`).join('');
		const { page, close } = await open(draw('hostile', lines, '--inverted', '--subtitle', '<script>window.__hit=1</script>'));
		const titles = await page.locator('#frames title').allTextContents();
		for (const name of HOSTILE.filter((n) => !n.includes(';'))) assert.ok(titles.some((t) => t.startsWith(name + ' (')), name);
		assert.equal(await page.locator('script').count(), 1);
		assert.equal(await page.locator('image').count(), 0);
		for (const g of await page.locator('#frames > g > rect').all()) await g.hover();
		answer(page, '<script>');
		await page.keyboard.press('Control+f');
		assert.match(await text(page, 'matched'), /^Matched: \d/);
		await picture(page, 'hostile');
		await close();
	});

	test('a difference', async () => {
		const { page, close } = await open(draw('difference', 'p;main;a 30 60\np;main;b 50 20\np;main;c 0 20\n', '--delta', 'total'));
		await picture(page, 'difference');
		await (await box(page, 'c')).hover();
		assert.equal(await text(page, 'details'), 'Function: c (20 samples, 20.00%; +20.00%; before 0, new)');
		await close();
	});

	test('without samples', async () => {
		const { page, close } = await open(draw('empty', '# nothing\n', '--from', 'folded'));
		assert.match(await page.locator('text').textContent(), /no samples/);
		await close();
	});
});
