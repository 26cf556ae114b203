// SPDX-License-Identifier: Apache-2.0
// Opening and drawing times of pages, medians of RUNS (5) fresh browsers, of what blocks the largest (environment: browser.js):
//   node page_bench.mjs [--whole] FILE.html|URL...   files, or pages of a collector; --whole: asked for without a cut
//   node page_bench.mjs --click URL SERVICE          from the click on a service in the page of services to its graph
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { clickTimes, openTimes, quantile } from './page_times.js';

const RUNS = Number(process.env.RUNS ?? 5);

async function repeated(job) {
	const rows = [];
	for (let run = 0; run < RUNS; run++) rows.push(await job());
	return rows;
}

/** "never" is about the worst of all runs. */
function summary(rows, keys) {
	const share = (key) => (key === 'blocked' ? 1 : 0.5);
	const value = (key) => quantile(rows.map((r) => r[key] ?? 0), share(key)).toFixed(1);
	return keys.filter((key) => rows.some((r) => key in r)).map((key) => `${key} ${value(key)} ms`).join('   ');
}

async function measure(url, isWhole) {
	const rows = await repeated(() => openTimes(url, { isWhole }));
	return `${rows[0].nodes} nodes   ${summary(rows, ['overview', 'asked', 'answered', 'came', 'full', 'zoom', 'scroll', 'inverted', 'blocked'])}`;
}

async function measureClick(url, service) {
	const rows = await repeated(() => clickTimes(url, service));
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
		console.log(`${what}: ${await measure(isPage ? what : 'file://' + resolve(what), isWhole)} (zoom, scroll: script per frame, p95; blocked: the longest task of all runs while the inverted view is made)`);
	}
}
