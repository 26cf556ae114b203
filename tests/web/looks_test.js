// SPDX-License-Identifier: Apache-2.0
// How the pages look: axe-core on every state that somebody comes to, in both themes and at 400 pixels; the same picture twice;
// the columns of the graph beside the shares; the overview beside the graph.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertSilent, axePath, launchBrowser, missingBrowser, openSite, pageShown } from './browser.js';
import { startCollector } from './fake_collector.mjs';
import { foldedText, knownStacks, totalOf } from './known.js';
import { assertColumns, assertDrag, graphAtRest } from './overview.js';

const reason = missingBrowser();
const PROFILE = '#/profile?service=checkout-api';

async function chooseFile(page, stacks = knownStacks(61)) {
	await page.setInputFiles('#file', { name: 'x.folded', mimeType: 'text/plain', buffer: Buffer.from(foldedText(stacks)) });
	await page.waitForFunction((sum) => window.__viewer.tree?.total[0] === sum, totalOf(stacks));
}

async function pressFor(page, key, id) {
	await page.keyboard.press(key);
	await page.locator(id).waitFor();
}

// What somebody comes to: [name, address, what is done there].
const STATES = [
	['a file', '#/files', (page) => chooseFile(page)],
	['inverted', PROFILE + '&view=inverted'],
	['the table', PROFILE + '&view=table'],
	['the call tree', PROFILE + '&view=calls'],
	['the sandwich', PROFILE + '&view=sandwich&f=3'],
	['the menu of steps', PROFILE, (page) => pressFor(page, 'm', '#step-menu')],
	['the keys', PROFILE, (page) => pressFor(page, '?', '#help-sheet')],
	['steps, a search, a zoom', PROFILE + '&t=hide:main&q=fn_1&z=4'],
	['what is wrong', '#/profile?from=nonsense', (page) => page.locator('#trouble').waitFor()],
	['a base of its own', '#/compare?service=checkout-api&base=own&base-service=search'],
	['nothing live', '#/live?service=nothing', (page) => page.locator('#live-empty').waitFor()],
];
const DIFFERING_MAX = 100; // pixels of 1.1 million: edges of lines, which the browser smooths
const NARROW = ['#/services', PROFILE, '#/compare?service=checkout-api', '#/compare?service=checkout-api&base=own', '#/live?service=search', '#/files'];

describe('looks', { skip: reason || false }, () => {
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

	async function assertAccessible(page, what) {
		await page.evaluate(readFileSync(axePath(), 'utf8'));
		const found = await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')));
		assert.deepEqual(found, [], what);
	}

	for (const colorScheme of ['light', 'dark']) {
		test(`axe-core finds nothing in any state, ${colorScheme}`, async () => {
			for (const [name, hash, act] of STATES) {
				const { page, context } = await openSite(browser, collector.url, hash, { colorScheme, bypassCSP: true });
				await act?.(page);
				assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
				await assertAccessible(page, name);
				await context.close();
			}
		});

		test(`axe-core finds nothing in the dialog to sign in, ${colorScheme}`, async () => {
			const locked = await startCollector({ token: 'secret-token' });
			try {
				for (const width of [1400, 400]) {
					const { page, context } = await openSite(browser, locked.url, '#/services', { colorScheme, bypassCSP: true, viewport: { width, height: 800 } });
					await page.locator('#sign-in[open]').waitFor();
					await assertAccessible(page, `${width}`);
					await page.fill('#token', 'wrong');
					await page.keyboard.press('Enter');
					await page.waitForFunction(() => document.getElementById('sign-trouble').textContent);
					await assertAccessible(page, `${width}, with a wrong token`);
					await context.close();
				}
			} finally {
				await locked.close();
			}
		});

		test(`axe-core finds nothing, 400 pixels wide, ${colorScheme}`, async () => {
			for (const hash of NARROW) {
				const { page, context } = await openSite(browser, collector.url, hash, { colorScheme, bypassCSP: true, viewport: { width: 400, height: 800 } });
				if (hash === '#/files') await chooseFile(page);
				await assertAccessible(page, hash);
				assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash);
				await context.close();
			}
		});
	}

	/** The graph has come to rest, and the pointer is nowhere. */
	async function atRest(page, name) {
		await pageShown(page, name);
		await graphAtRest(page);
	}

	/** Without the browser's advice for the test that reads the canvas. */
	const withoutAdvice = (opened) => (opened.noise = opened.noise.filter((line) => !/willReadFrequently/.test(line)));

	/** How many pixels of two pictures differ, counted by the browser. */
	function differing(page, one, two) {
		return page.evaluate(async (pictures) => {
			const [a, b] = await Promise.all(pictures.map(async (text) => {
				const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
				const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
				const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
				context.drawImage(bitmap, 0, 0);
				return new Uint32Array(context.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
			}));
			return a.length === b.length ? a.filter((pixel, i) => pixel !== b[i]).length : -1;
		}, [one, two].map((picture) => picture.toString('base64')));
	}

	for (const [name, hash] of [['services', '#/services'], ['profile', PROFILE], ['compare', '#/compare?service=checkout-api'], ['heat', '#/heat']]) {
		test(`${name}: drawn twice and after a reload it is the same picture`, async () => {
			const one = await openSite(browser, collector.url, hash);
			await atRest(one.page, name);
			const picture = await one.page.screenshot();
			await one.page.reload();
			await atRest(one.page, name);
			const reloaded = await one.page.screenshot();
			const two = await openSite(browser, collector.url, hash);
			await atRest(two.page, name);
			for (const [where, other] of [['after a reload', reloaded], ['in another tab', await two.page.screenshot()]]) {
				const count = await differing(one.page, picture, other);
				assert.ok(count >= 0 && count <= DIFFERING_MAX, `${where}: ${count} pixels differ`);
			}
			const dark = await openSite(browser, collector.url, hash, { colorScheme: 'dark' });
			await atRest(dark.page, name);
			assert.ok(await differing(dark.page, picture, await dark.page.screenshot()) > 500000, 'another theme is another picture: the comparison sees something');
			for (const opened of [one, two, dark]) await assertSilent(opened);
		});
	}

	test('the columns of the graph are as wide as the shares say, in the colours that they have', async () => {
		const opened = await openSite(browser, collector.url, PROFILE);
		const { page } = opened;
		await atRest(page, 'profile');
		const { boxes, wrong } = await page.evaluate(() => {
			const { graph: view } = window.__viewer;
			const { tree, canvas } = view;
			const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
			const ratio = canvas.width / view.width;
			const at = (x, y) => [...pixels.data.slice((Math.floor(y * ratio) * canvas.width + Math.floor(x * ratio)) * 4).slice(0, 3)].join();
			const scale = view.width / tree.total[0];
			const out = [];
			let seen = 0;
			for (let node = 1; node < tree.count; node++) {
				const [left, wide] = [tree.x[node] * scale, tree.total[node] * scale];
				const top = view.rowTop(tree.level[node]);
				if (wide < 12 || top < 0 || top > view.height - 20) continue;
				seen++;
				// Along the upper edge, above the letters: one colour from one end of the box to the other.
				const y = top + 2;
				const colour = at(left + 2, y);
				for (let x = left + 2; x < left + wide - 2; x++) if (at(x, y) !== colour) out.push(`${node} at ${x}: ${at(x, y)}, not ${colour}`);
				// The edge is a gap of another colour, within a pixel.
				const edge = [left + wide - 1.5, left + wide - 0.5, left + wide + 0.5].map((x) => at(Math.min(x, view.width - 1), y));
				if (left + wide < view.width - 2 && edge.every((c) => c === colour)) out.push(`${node}: no edge at ${left + wide}`);
			}
			return { boxes: seen, wrong: out.slice(0, 5) };
		});
		assert.deepEqual(wrong, []);
		assert.ok(boxes > 20, `${boxes} boxes`);
		withoutAdvice(opened);
		await assertSilent(opened);
	});

	test('the overview has the columns of the whole graph, and a drag on it moves what is shown', async () => {
		const opened = await openSite(browser, collector.url, PROFILE);
		const { page } = opened;
		const rest = () => atRest(page, 'profile');
		await rest();
		await assertColumns(page);
		await assertDrag(page, rest);
		withoutAdvice(opened);
		await assertSilent(opened);
	});
});
