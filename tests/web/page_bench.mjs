// SPDX-License-Identifier: Apache-2.0
// Opening and drawing times of pages, medians of five fresh browsers:
//   node page_bench.mjs FILE.html...     (environment: browser.js)
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { launchBrowser } from './browser.js';

const RUNS = 5;

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

async function measure(file) {
	const rows = [];
	let nodes = 0;
	for (let run = 0; run < RUNS; run++) {
		const browser = await launchBrowser();
		const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
		await page.addInitScript(watch);
		await page.goto('file://' + file);
		await page.waitForFunction(() => window.__times.full > 0);
		const times = await page.evaluate(() => window.__times);
		nodes = await page.evaluate(() => window.__viewer.graph.tree.size.length);
		const frames = await move(page);
		rows.push({ ...times, zoom: quantile(frames.zoom, 0.95), scroll: quantile(frames.scroll, 0.95) });
		await browser.close();
	}
	const median = (key) => quantile(rows.map((r) => r[key] ?? 0), 0.5).toFixed(1);
	const figures = ['overview', 'full', 'zoom', 'scroll'].map((key) => `${key} ${median(key)} ms`);
	return `${nodes} nodes   ${figures.join('   ')}`;
}

for (const file of process.argv.slice(2)) {
	if (!existsSync(file)) throw new Error('no such file: ' + file);
	console.log(`${file}: ${await measure(resolve(file))} (zoom, scroll: script per frame, p95)`);
}
