// SPDX-License-Identifier: Apache-2.0
// Opening and drawing times of pages, medians of RUNS (5) fresh browsers (environment: browser.js):
//   node page_bench.mjs [--whole] FILE.html|URL...   files, or pages of a collector; --whole: asked for without a cut
//   node page_bench.mjs --click URL SERVICE          from the click on a service in the page of services to its graph
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { launchBrowser } from './browser.js';

const RUNS = Number(process.env.RUNS ?? 5);

function quantile(values, share) {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

// Drawn: the task after the frame after the tree was handed over; both marks are since navigation start.
const watch = () => {
	const times = (window.__times = {});
	const look = () => {
		const ready = document.body?.dataset.ready;
		for (const stage of ['overview', 'full']) {
			if (ready === stage && !(stage in times)) {
				times[stage] = 0;
				requestAnimationFrame(() => setTimeout(() => (times[stage] = performance.now()), 0));
			}
		}
	};
	new MutationObserver(look).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-ready'] });
};

async function move(page) {
	return page.evaluate(async () => {
		const v = window.__viewer;
		const wait = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		v.graph.frameTimes.length = 0;
		let node = 0;
		for (let step = 0; step < 12; step++) {
			const { tree } = v.graph;
			if (tree.size[node] <= 1) break;
			node += 1;
			v.zoomNode(node);
			for (let f = 0; f < 12; f++) await wait();
		}
		v.zoomNode(0);
		for (let f = 0; f < 15; f++) await wait();
		const zoom = v.graph.frameTimes.slice();
		v.graph.frameTimes.length = 0;
		const box = document.getElementById('graph');
		for (let y = 0; y <= box.scrollHeight; y += 23) {
			box.scrollTop = y;
			await wait();
		}
		return { zoom, scroll: v.graph.frameTimes.slice() };
	});
}

/** When the flame graph was asked for, came, and had come, in ms since navigation start. */
const flameTimes = () => {
	const entry = performance.getEntriesByType('resource').filter((e) => e.name.includes('/api/v1/flame')).at(-1);
	return entry ? { asked: entry.requestStart, answered: entry.responseStart, came: entry.responseEnd } : {};
};

const withoutCut = (route) => route.continue({ url: route.request().url().replace(/max-nodes=\d+/, 'max-nodes=5000000') });

function summary(rows, keys) {
	const median = (key) => quantile(rows.map((r) => r[key] ?? 0), 0.5).toFixed(1);
	return keys.filter((key) => rows.some((r) => key in r)).map((key) => `${key} ${median(key)} ms`).join('   ');
}

/** The longest time that the page cannot do anything else while the inverted view is made; and until it is drawn. */
async function invert(page) {
	return page.evaluate(async () => {
		const v = window.__viewer;
		const { port1, port2 } = new MessageChannel();
		let longest = 0;
		let last = performance.now();
		let isOver = false;
		port1.onmessage = () => {
			const now = performance.now();
			longest = Math.max(longest, now - last);
			last = now;
			if (!isOver) port2.postMessage(0);
		};
		const begin = performance.now();
		port2.postMessage(0);
		v.go({ view: 'inverted' });
		while (v.graph.tree === v.tree) await new Promise((done) => setTimeout(done, 1));
		await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
		const inverted = performance.now() - begin;
		await new Promise((done) => setTimeout(done, 500)); // the minimap, the legend
		isOver = true;
		return { inverted, blocked: longest };
	});
}

async function measure(url, isWhole) {
	const rows = [];
	let nodes = 0;
	for (let run = 0; run < RUNS; run++) {
		const browser = await launchBrowser();
		const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
		if (isWhole) await page.route(/\/api\/v1\/flame/, withoutCut);
		await page.addInitScript(watch);
		await page.goto(url);
		await page.waitForFunction(() => window.__times.full > 0);
		const times = { ...(await page.evaluate(() => window.__times)), ...(await page.evaluate(flameTimes)) };
		nodes = await page.evaluate(() => window.__viewer.graph.tree.size.length);
		const frames = await move(page);
		rows.push({ ...times, zoom: quantile(frames.zoom, 0.95), scroll: quantile(frames.scroll, 0.95), ...(await invert(page)) });
		await browser.close();
	}
	return `${nodes} nodes   ${summary(rows, ['overview', 'asked', 'answered', 'came', 'full', 'zoom', 'scroll', 'inverted', 'blocked'])}`;
}

/** Times since the click. */
async function measureClick(url, service) {
	const rows = [];
	for (let run = 0; run < RUNS; run++) {
		const browser = await launchBrowser();
		const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
		await page.goto(url);
		const link = page.locator('#services a', { hasText: service }).first();
		await link.waitFor();
		await page.evaluate(() => {
			addEventListener('click', () => (window.__clicked = performance.now()), { capture: true, once: true });
			window.__viewer.marks.full = 0;
			const look = () => {
				if (!(window.__viewer.marks.full > window.__clicked)) requestAnimationFrame(look);
				else requestAnimationFrame(() => setTimeout(() => (window.__drawn = performance.now()), 0));
			};
			requestAnimationFrame(look);
		});
		await link.click();
		await page.waitForFunction(() => window.__drawn > 0 && document.body.dataset.shown === 'profile');
		rows.push(await page.evaluate(() => {
			const out = { drawn: window.__drawn - window.__clicked, nodes: window.__viewer.tree.count };
			for (const entry of performance.getEntriesByType('resource')) {
				const name = /\/api\/v1\/(\w+)/.exec(entry.name)?.[1];
				if (!name || entry.startTime < window.__clicked) continue;
				out[name + ' from'] = entry.startTime - window.__clicked;
				out[name + ' to'] = entry.responseEnd - window.__clicked;
			}
			return out;
		}));
		await browser.close();
	}
	const keys = [...new Set(rows.flatMap((r) => Object.keys(r)))].filter((key) => key !== 'nodes');
	return `${rows[0].nodes} nodes   ${summary(rows, keys)}   largest drawn ${Math.max(...rows.map((r) => r.drawn)).toFixed(0)} ms`;
}

const args = process.argv.slice(2);
if (args[0] === '--click') {
	console.log(`${args[1]}: ${await measureClick(args[1], args[2])} (since the click)`);
} else {
	const isWhole = args[0] === '--whole';
	for (const what of args.slice(isWhole ? 1 : 0)) {
		const isPage = /^https?:/.test(what);
		if (!isPage && !existsSync(what)) throw new Error('no such file: ' + what);
		console.log(`${what}: ${await measure(isPage ? what : 'file://' + resolve(what), isWhole)} (zoom, scroll: script per frame, p95; blocked: longest task while the inverted view is made)`);
	}
}
