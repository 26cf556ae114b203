// SPDX-License-Identifier: Apache-2.0
// The live flame graph of hearth profile -T in a real browser: it grows, outlives a restart of the tool, its shares are the kernel's, and
// the moving pictures show in an <img>.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { assertSilent, launchBrowser, missingBrowser, openSite } from './browser.js';
import { missingCollector } from './collector.js';

const reason = missingBrowser() || missingCollector() || (process.getuid() ? 'needs root' : '');
const SECONDS = 20;
const LAG_SECONDS = 1.5;
const WITHIN_POINTS = 3;

async function freePort() {
	const server = createSocket().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address();
	server.close();
	await once(server, 'close');
	return port;
}

/** The tool, once it takes requests. */
async function startTool(port, ...options) {
	const child = spawn(process.env.HEARTH, ['profile', '-f', '-T', '-R', String(port), ...options, '300'], { stdio: ['ignore', 'ignore', 'pipe'] });
	const [line] = await Promise.race([once(child.stderr, 'data'), once(child, 'exit').then(() => [''])]);
	assert.match(String(line), /Starting flame graph stream/);
	child.stderr.resume();
	return {
		async end() {
			const ended = once(child, 'exit');
			child.kill('SIGINT');
			assert.deepEqual(await ended, [0, null]);
		},
	};
}

function ticksOf(pid) {
	const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ');
	return Number(fields[11]) + Number(fields[12]);
}

function busyTicks() {
	const [user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/ +/).slice(1).map(Number);
	return user + nice + system + irq + softirq;
}

describe('hearth profile -T', { skip: reason || false }, () => {
	let browser;
	let load;
	let scratch;
	let port;
	let tool;

	before(async () => {
		// A program whose only function of weight is known. Its name is of this test alone.
		scratch = mkdtempSync(join(tmpdir(), 'hearth-live-'));
		const workloads = new URL('../e2e/workloads/', import.meta.url).pathname;
		const built = spawnSync('make', ['-s', '-C', workloads, `OUT=${scratch}`, join(scratch, 'spin')], { encoding: 'utf8' });
		assert.equal(built.status, 0, built.stderr);
		renameSync(join(scratch, 'spin'), join(scratch, 'live-load'));
		load = spawn(join(scratch, 'live-load'), ['280'], { stdio: 'ignore' });
		port = await freePort();
		tool = await startTool(port);
		browser = await launchBrowser();
	});
	after(async () => {
		load?.kill();
		if (scratch) rmSync(scratch, { recursive: true });
		await browser?.close();
		await tool?.end();
	});

	const totalOf = (page) => page.evaluate(() => window.__viewer.tree?.total[0] ?? 0);
	/** The share of a function of the load; it calls nothing of its own name. */
	const shareOf = (page, program, name) => page.evaluate(([process, wanted]) => {
		const { frames, tree } = window.__viewer;
		const processOf = (n) => (tree.level[n] > 1 ? processOf(tree.parent[n]) : frames.name(tree.frame[n]));
		let sum = 0;
		for (let n = 1; n < tree.count; n++) if (frames.name(tree.frame[n]) === wanted && processOf(n) === process) sum += tree.total[n];
		return (100 * sum) / tree.total[0];
	}, [program, name]);
	const grows = (page, from) => page.waitForFunction((least) => (window.__viewer.tree?.total[0] ?? 0) > least, from, { timeout: 20000 });

	test('the graph grows, keeps its places, and shows what the kernel counted', async () => {
		const tab = await openSite(browser, `http://127.0.0.1:${port}/`, '#/live?window=10s');
		const { page } = tab;
		await page.waitForFunction(() => window.__viewer.tree, null, { timeout: 20000 });
		assert.deepEqual(await page.locator('#live-windows button').allInnerTexts(), ['since start', '10 s', '1 min', '5 min']);
		await page.mouse.move(5, 5); // nothing is held
		// What is shown is of ten whole seconds that ended a second or so ago.
		const account = [];
		const takes = [];
		for (let half = 0; half < 2 * SECONDS; half++) {
			account.push([ticksOf(load.pid), busyTicks()]);
			if (account.length > 2 * (10 + LAG_SECONDS) && half % 4 === 3) {
				const [from, to] = [account[account.length - 1 - 2 * (10 + LAG_SECONDS)], account[account.length - 1 - 2 * LAG_SECONDS]];
				takes.push([await shareOf(page, 'live-load', 'spin_work'), (100 * (to[0] - from[0])) / (to[1] - from[1])]);
			}
			await rest(500);
		}
		const [share, wanted] = [0, 1].map((of) => takes.reduce((sum, take) => sum + take[of], 0) / takes.length);
		const off = takes.reduce((sum, take) => sum + Math.abs(take[0] - take[1]), 0) / takes.length;
		console.log(`# spin_work: ${share.toFixed(1)} % on the page, ${wanted.toFixed(1)} % by the kernel's account; a take is off by ${off.toFixed(1)} points`);
		assert.ok(share > 5 && off <= WITHIN_POINTS, `off by ${off} points: ${JSON.stringify(takes)}`);
		await page.locator('#live-windows button', { hasText: 'since start' }).click();
		await page.waitForFunction(() => document.querySelector('[data-window=start]').ariaPressed === 'true');
		await page.mouse.move(5, 5);
		const first = await totalOf(page);
		await grows(page, first);
		await grows(page, await totalOf(page));
		await page.locator('#live-pause').click();
		await page.waitForFunction(() => /Paused; there is/.test(document.getElementById('live-state').textContent), null, { timeout: 20000 });
		const held = await totalOf(page);
		await rest(2500);
		assert.equal(await totalOf(page), held, 'a held picture stands');
		await page.locator('#live-pause').click();
		await page.mouse.move(5, 5);
		await grows(page, held);
		await assertSilent(tab);
	});

	test('it goes on after the tool was started again', async () => {
		const { page, context } = await openSite(browser, `http://127.0.0.1:${port}/`, '');
		await page.waitForFunction(() => window.__viewer.tree, null, { timeout: 20000 });
		await page.mouse.move(5, 5);
		await rest(4000);
		const before = await totalOf(page);
		await tool.end();
		await page.waitForFunction(() => /does not answer/.test(document.getElementById('live-state').textContent), null, { timeout: 20000 });
		tool = await startTool(port);
		await page.waitForFunction((was) => /Live/.test(document.getElementById('live-state').textContent) && window.__viewer.tree.total[0] < was, before, { timeout: 30000 });
		await grows(page, await totalOf(page));
		await context.close();
	});

	test('moving pictures show in an <img> of another page', async () => {
		const server = createServer((request, response) => {
			response.setHeader('Content-Type', 'text/html');
			response.end(`<img id="it" src="http://127.0.0.1:${port}/" width="512" height="400">`);
		}).listen(0, '127.0.0.1');
		await once(server, 'listening');
		const page = await browser.newPage();
		await page.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: 'commit' });
		await page.waitForFunction(() => document.getElementById('it')?.naturalWidth === 1024, null, { timeout: 20000 });
		const seen = new Set();
		for (let i = 0; i < 6; i++) {
			seen.add((await page.locator('#it').screenshot()).toString('base64'));
			await rest(1100);
		}
		assert.ok(seen.size >= 3, `${seen.size} different pictures in 6 s`);
		await page.close();
		server.closeAllConnections();
		server.close();
	});
});
