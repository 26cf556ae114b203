// SPDX-License-Identifier: Apache-2.0
// Times of pages in fresh browsers, for page_bench.mjs and large_test.js: opening, script per frame, the inverted view, from a click to a graph.
import { BareBrowser } from './bare_browser.js';
import { launchBrowser } from './browser.js';

const VIEW = { width: 1400, height: 900 };
const LOOK_MS = 100;
const OPEN_MS = 60000;

export function quantile(values, share) {
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

/** Script of each frame in which the graph is drawn: all callbacks of the frame, the animation's step too, and what wheel and scroll ran before it. */
const watchFrames = () => {
	const frames = (window.__frames = []);
	let [at, spent, before, drew] = [-1, 0, 0, false];
	const drawn = () => window.__viewer?.graph?.frameTimes.length;
	const timed = (job) => {
		const begin = performance.now();
		try {
			job();
		} finally {
			before += performance.now() - begin;
		}
	};
	const ask = window.requestAnimationFrame.bind(window);
	window.requestAnimationFrame = (job) => ask((now) => {
		if (now !== at) {
			if (drew) frames.push(spent);
			[at, spent, drew] = [now, 0, false];
		}
		const count = drawn();
		timed(() => job(now));
		[spent, before] = [spent + before, 0];
		drew ||= drawn() !== count;
	});
	const listen = EventTarget.prototype.addEventListener;
	EventTarget.prototype.addEventListener = function (type, job, options) {
		const isInput = ['scroll', 'wheel'].includes(type) && typeof job === 'function';
		listen.call(this, type, isInput ? (event) => timed(() => job.call(this, event)) : job, options);
	};
};

async function move(page) {
	return page.evaluate(async () => {
		const v = window.__viewer;
		const wait = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		window.__frames.length = 0;
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
		const zoom = window.__frames.slice();
		window.__frames.length = 0;
		const box = document.getElementById('graph');
		for (let y = 0; y <= box.scrollHeight; y += 23) {
			box.scrollTop = y;
			await wait();
		}
		return { zoom, scroll: window.__frames.slice() };
	});
}

/** When the flame graph was asked for, came, and had come, in ms since navigation start. */
const flameTimes = () => {
	const entry = performance.getEntriesByType('resource').filter((e) => e.name.includes('/api/v1/flame')).at(-1);
	return entry ? { asked: entry.requestStart, answered: entry.responseStart, came: entry.responseEnd } : {};
};

/** Asked for without a cut, by the page itself: a route of playwright's would add its own time. */
const withoutCut = () => {
	const ask = window.fetch.bind(window);
	window.fetch = (url, options) => ask(String(url).replace(/max-nodes=\d+/, 'max-nodes=5000000'), options);
};

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

/** A fresh browser for one measurement. job: with a page of it */
async function inBrowser(job) {
	const browser = await launchBrowser();
	try {
		return await job(await browser.newPage({ viewport: VIEW }));
	} finally {
		await browser.close();
	}
}

/** From navigation to the picture, in a browser that nobody watches meanwhile. */
async function openBare(url, isWhole) {
	const browser = await BareBrowser.start(VIEW);
	try {
		if (isWhole) await browser.addInitScript(withoutCut);
		await browser.addInitScript(watch);
		await browser.goto(url);
		const end = Date.now() + OPEN_MS;
		while (!(await browser.evaluate(() => window.__times?.full > 0))) {
			if (Date.now() > end) throw new Error(`${url}: nothing is drawn`);
			await new Promise((done) => setTimeout(done, LOOK_MS));
		}
		return { ...(await browser.evaluate(() => window.__times)), ...(await browser.evaluate(flameTimes)),
			nodes: await browser.evaluate(() => window.__viewer.graph.tree.size.length) };
	} finally {
		await browser.close();
	}
}

/** Times of one page in ms, and nodes: how many it has. isBrief: only until it is drawn */
export async function openTimes(url, { isWhole = false, isBrief = false } = {}) {
	const times = await openBare(url, isWhole);
	if (isBrief) return times;
	return inBrowser(async (page) => {
		if (isWhole) await page.addInitScript(withoutCut);
		await page.addInitScript(watchFrames);
		await page.goto(url);
		await page.waitForFunction(() => document.body.dataset.ready === 'full');
		const frames = await move(page);
		return { ...times, zoom: quantile(frames.zoom, 0.95), scroll: quantile(frames.scroll, 0.95), frames: frames.zoom.length + frames.scroll.length,
			...(await invert(page)) };
	});
}

/** What openTimes() calls blocked, and nothing else of the page: the same timer, in a browser of its own. */
export function blockedTimes(url) {
	return inBrowser(async (page) => {
		await page.goto(url);
		await page.waitForFunction(() => document.body.dataset.ready === 'full');
		return (await invert(page)).blocked;
	});
}

/** Times since the click on a service in the page of services, until its graph is drawn. */
export function clickTimes(url, service) {
	return inBrowser(async (page) => {
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
		return page.evaluate(() => {
			const out = { drawn: window.__drawn - window.__clicked, nodes: window.__viewer.tree.count };
			for (const entry of performance.getEntriesByType('resource')) {
				const name = /\/api\/v1\/(\w+)/.exec(entry.name)?.[1];
				if (!name || entry.startTime < window.__clicked) continue;
				out[name + ' from'] = entry.startTime - window.__clicked;
				out[name + ' to'] = entry.responseEnd - window.__clicked;
			}
			return out;
		});
	});
}
