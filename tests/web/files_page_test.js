// SPDX-License-Identifier: Apache-2.0
// The Files page of a real collector in a real browser: a sample of every format by drop and by choice, totals as hearth convert has them; large
// files; what cannot be read; the policies. Nothing of it reaches the collector.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createWriteStream, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { assertSilent, launchBrowser, missingBrowser, openSite } from './browser.js';
import { Collector, missingCollector } from './collector.js';
import { pprofOf } from './known.js';

const reason = missingBrowser() || missingCollector() || (process.env.READERS ? '' : 'this build has no readers.wasm (option readers)');
const CORPUS = new URL('../corpus/', import.meta.url).pathname;
const SAMPLES = ['col/example', 'jfr/all', 'legacy/heap_v2', 'legacy/cpu64le', 'otlp/two_columns', 'perf_data/file', 'perf_script/chains', 'pprof/hostile_names', 'speedscope/sampled', 'folded/plain'];
const LARGE_BYTES = Number(process.env.FILES_LARGE_BYTES ?? 60e6);
const STILL_MS = 1000; // the longest time that the page may stand still on a busy machine; read in the page, the file would take several seconds of it
const TRIED = 30000;

describe('the Files page', { skip: reason || false }, () => {
	let browser;
	let collector;

	before(async () => {
		collector = await Collector.start();
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		await collector?.close();
	});

	const open = () => openSite(browser, collector.url, '#/files');
	const sumOf = (page) => page.evaluate(() => window.__viewer.tree.total[0] * window.__viewer.meta.scale);

	/** What the page shows after the change, or says. */
	async function shown(page, give) {
		await page.evaluate(() => (window.treeBefore = window.__viewer.tree));
		await give();
		await page.waitForFunction(() => (window.__viewer.tree && window.__viewer.tree !== window.treeBefore && window.__app.file) || !document.getElementById('trouble').hidden, null, { timeout: TRIED });
		return page.locator('#trouble:not([hidden])').count().then((n) => (n ? page.locator('#trouble').innerText() : ''));
	}

	const drop = (page, name, bytes) => page.evaluate(([name, base64]) => {
		const data = new DataTransfer();
		data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
		document.getElementById('drop').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
	}, [name, bytes.toString('base64')]);

	/** The sum of the first type that hearth convert's page shows. */
	function convertedSum(path) {
		const out = collector.path('out.html');
		const done = spawnSync(process.env.HEARTH, ['convert', '-q', path, '-o', out], { encoding: 'utf8' });
		assert.equal(done.status, 0, done.stderr);
		const { types } = JSON.parse(/id="meta">([^<]*)</.exec(readFileSync(out, 'utf8'))[1]);
		return types[0].total * types[0].scale;
	}

	test('every format, dropped: the totals of hearth convert', async () => {
		const opened = await open();
		const { page } = opened;
		const asked = [];
		page.on('request', (request) => asked.push(request.url()));
		for (const sample of SAMPLES) {
			const trouble = await shown(page, () => drop(page, sample.replace('/', '-'), readFileSync(CORPUS + sample)));
			assert.equal(trouble, '', sample);
			assert.equal(await sumOf(page), convertedSum(CORPUS + sample), sample);
		}
		assert.deepEqual(asked.filter((url) => !/\/ui\/(file_worker\.js|readers\.wasm|worker\.js)$/.test(url)), []);
		await assertSilent(opened);
	});

	test('exports have the values of the file, which the readers divide', async () => {
		const opened = await open();
		const { page } = opened;
		const bytes = pprofOf([['inuse_space', 'bytes']], [[['main', 'a'], [4096]], [['main', 'b'], [12288]]]);
		for (const [name, file, wanted] of [['x.folded', Buffer.from('main;a\t500\nmain;b\t1500\n'), 'main;b 1500\nmain;a 500\n'], ['x.pb', bytes, 'main;b 12288\nmain;a 4096\n']]) {
			assert.equal(await shown(page, () => drop(page, name, file)), '');
			assert.ok(await page.evaluate(() => window.__viewer.meta.scale) > 1, name);
			const download = page.waitForEvent('download');
			await page.selectOption('#export', 'folded');
			assert.equal(readFileSync(await (await download).path(), 'utf8'), wanted);
		}
		await assertSilent(opened);
	});

	test('a page that hearth wrote; what is no profile; and again one that is', async () => {
		const opened = await open();
		const { page } = opened;
		const sum = convertedSum(CORPUS + 'folded/plain');
		assert.equal(await shown(page, () => page.setInputFiles('#file', collector.path('out.html'))), '');
		assert.equal(await sumOf(page), sum);
		assert.match(await shown(page, () => drop(page, 'x.data', readFileSync(CORPUS + 'perf_data/compressed'))), /x\.data could not be read: .*perf record -z/);
		assert.match(await shown(page, () => drop(page, 'x.gz', Buffer.from([0x1f, 0x8b, 8, 0, 1]))), /gzip/);
		assert.equal(await shown(page, () => drop(page, 'x.jfr', readFileSync(CORPUS + 'jfr/all'))), '');
		assert.equal(await sumOf(page), convertedSum(CORPUS + 'jfr/all'));
		await assertSilent(opened);
	});

	test('a large file: the page does not stand still, says how far it is, and can be stopped', async () => {
		const path = collector.path('large.folded');
		const out = createWriteStream(path);
		let sum = 0;
		for (let size = 0, i = 0; size < LARGE_BYTES;) {
			const lines = [];
			for (let k = 0; k < 1000; k++, i++) {
				lines.push(`main;service_${i % 17};handler_${(i * 7919) % 97};step_${(i * 104729) % 41};leaf_with_a_longer_name_${i % 7} ${1 + (i % 9)}\n`);
				sum += 1 + (i % 9);
			}
			const text = lines.join('');
			size += text.length;
			if (!out.write(text)) await once(out, 'drain');
		}
		out.end();
		await once(out, 'finish');
		const opened = await open();
		const { page } = opened;
		const began = Date.now();
		await page.evaluate(() => {
			let last = performance.now();
			window.longest = 0;
			window.said = new Set();
			setInterval(() => {
				const now = performance.now();
				window.longest = Math.max(window.longest, now - last);
				last = now;
				window.said.add(document.getElementById('reading-text').textContent);
			}, 5);
		});
		assert.equal(await shown(page, () => page.setInputFiles('#file', path)), '');
		const took = Date.now() - began;
		assert.equal(await sumOf(page), sum);
		const { longest, said } = await page.evaluate(() => ({ longest: window.longest, said: [...window.said] }));
		console.log(`# ${(LARGE_BYTES / 1e6).toFixed(0)} MB shown after ${took} ms, the page stood still for ${longest.toFixed(0)} ms at most`);
		assert.ok(longest < STILL_MS, `${longest} ms`);
		assert.ok(said.some((text) => /^(loading|reading) large\.folded: \d+ %$/.test(text)), said.join('|'));
		await page.setInputFiles('#file', path); // the same again
		await page.waitForFunction(() => { // at once: the file may be read before a pointer has got there
			const stop = document.getElementById('reading-stop');
			const isThere = stop.checkVisibility();
			if (isThere) stop.click();
			return isThere;
		}, null, { polling: 'raf' });
		await page.waitForFunction(() => document.getElementById('reading').hidden && !window.__app.file);
		assert.equal(await page.locator('#trouble').isHidden(), true);
		await page.setInputFiles('#file', path);
		await page.locator('#reading-stop').waitFor();
		await page.locator('a[data-page=services]').click();
		await page.waitForFunction(() => document.body.dataset.shown === 'services');
		assert.ok(await page.evaluate(() => window.__app.reading.signal.aborted && !document.getElementById('services-page').hidden), 'the page can be left');
		await assertSilent(opened);
	});

	test('a page that hearth wrote, packed: read beside the page, and not without end', async () => {
		const path = collector.path('wide.folded');
		let lines = '';
		let sum = 0;
		for (let i = 0; i < 200000; i++) {
			lines += `main;service_${i % 17};handler_${i % 977};leaf_with_a_longer_name_${i} ${1 + (i % 9)}\n`;
			sum += 1 + (i % 9);
		}
		writeFileSync(path, lines);
		assert.equal(spawnSync(process.env.HEARTH, ['convert', '-q', path, '-o', collector.path('wide.html')]).status, 0);
		writeFileSync(collector.path('wide.html.gz'), gzipSync(readFileSync(collector.path('wide.html'))));
		const opened = await open();
		const { page } = opened;
		await page.evaluate(() => {
			window.tasks = [];
			new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' });
			// What the page itself does between the drop and the answer of the worker.
			const { __app: app } = window;
			const openFile = app.openFile.bind(app);
			app.openFile = (file) => {
				window.decoded = 0;
				for (const name of ['atob', 'DecompressionStream']) {
					const own = window[name];
					window[name] = function (...args) {
						window.decoded++;
						return new.target ? new own(...args) : own(...args);
					};
				}
				return openFile(file);
			};
		});
		assert.equal(await shown(page, () => page.setInputFiles('#file', collector.path('wide.html.gz'))), '');
		assert.equal(await sumOf(page), sum);
		assert.equal(await page.evaluate(() => window.decoded), 0, 'nothing is unpacked in the page');
		console.log(`# the longest task of the page: ${await page.evaluate(() => Math.max(0, ...window.tasks))} ms`);
		const zeros = collector.path('bomb.html.gz');
		const made = spawnSync('sh', ['-c', `(printf '<!doctype html>'; head -c 1200000000 /dev/zero) | gzip -1 > '${zeros}'`]);
		assert.equal(made.status, 0);
		assert.match(await shown(page, () => page.setInputFiles('#file', zeros)), /bomb\.html\.gz could not be read: unpacked it is larger than 1 GiB; hearth convert/);
		await assertSilent(opened);
	});

	test('only the worker that reads may run WebAssembly', async () => {
		const policyOf = async (name) => (await fetch(`${collector.url}ui/${name}`)).headers.get('content-security-policy');
		for (const name of readdirSync(new URL('../../web/', import.meta.url)).filter((one) => /^(app|worker|live_worker|index|page)\.(js|html)$/.test(one))) {
			assert.ok(!/unsafe/.test(await policyOf(name)), name);
		}
		assert.match(await policyOf('file_worker.js'), /script-src 'self' 'wasm-unsafe-eval';/);
		const opened = await open();
		const refused = await opened.page.evaluate(() => WebAssembly.compile(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)).then(() => false, () => true));
		assert.ok(refused, 'a page compiles WebAssembly');
		await opened.context.close();
	});

	test('a hearth without its readers, or a browser that runs none: fewer formats, and words', async () => {
		const opened = await open();
		const { page } = opened;
		await opened.context.route('**/readers.wasm', (route) => route.fulfill({ status: 204 })); // as the collector says it
		assert.equal(await shown(page, () => drop(page, 'x.folded', Buffer.from('a;b 3\n'))), '');
		assert.equal(await sumOf(page), 3);
		await page.evaluate(() => {
			const post = Worker.prototype.postMessage;
			Worker.prototype.postMessage = function (data, ...rest) {
				if (data?.name === 'old.folded') window.release = () => post.call(this, data, ...rest);
				else post.call(this, data, ...rest);
			};
		});
		await drop(page, 'old.folded', Buffer.from('a;b 5\n'));
		await page.waitForFunction(() => window.release && !document.getElementById('reading').hidden);
		assert.equal(await shown(page, () => drop(page, 'new.folded', Buffer.from('a;b 7\n'))), '');
		await page.evaluate(() => window.release());
		await page.waitForTimeout(200);
		assert.equal(await sumOf(page), 7, 'an older file replaces no newer one');
		assert.match(await shown(page, () => drop(page, 'x.jfr', readFileSync(CORPUS + 'jfr/all'))), /hearth was built without its other readers/);
		await assertSilent(opened);
	});
});
