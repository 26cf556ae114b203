// SPDX-License-Identifier: Apache-2.0
// What hearth convert writes for other viewers, opened by them; and what they write, read by hearth.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchBrowser, missingBrowser } from './browser.js';
import { missingCollector } from './collector.js';
import { countFunctions, knownStacks, pprofOf, shownName, totalOf } from './known.js';
import { Speedscope, assertRows, missingSpeedscope, timeText } from './speedscope.js';

const reason = missingBrowser() || missingCollector() || missingSpeedscope();
const TICK = 1e7;
const TYPES = [['samples', 'count'], ['cpu', 'nanoseconds']];
const stacks = knownStacks(77, 80).map(([frames, count]) => [['main', ...frames.map((f) => (f.endsWith('_[k]') ? f : shownName(f)))], count]);
const shownAs = { samples: (count) => count.toLocaleString('en-US'), cpu: (count) => timeText((count * TICK) / 1e9) };

describe("npm's speedscope and hearth convert", { skip: reason || false }, () => {
	let browser;
	let speedscope;
	let scratch;
	const path = (name) => join(scratch, name);

	function hearth(...args) {
		const done = spawnSync(process.env.HEARTH, args, { encoding: 'utf8' });
		assert.equal(done.status, 0, done.stderr);
		return done;
	}

	/** The stacks of a file, as hearth writes them folded. */
	function folded(file, value) {
		const text = hearth('convert', file, '-q', '--value', value, '--format', 'folded', '-o', '-').stdout;
		return text.trim().split('\n').map((line) => [line.slice(0, line.lastIndexOf(' ')).split(';'), Number(line.slice(line.lastIndexOf(' ') + 1))]);
	}

	before(async () => {
		scratch = mkdtempSync(join(tmpdir(), 'hearth-convert-'));
		writeFileSync(path('known.pb'), pprofOf(TYPES, stacks.map(([frames, count]) => [frames, [count, count * TICK]])));
		browser = await launchBrowser();
		speedscope = await Speedscope.start(browser);
	});
	after(async () => {
		speedscope?.close();
		await browser?.close();
		rmSync(scratch, { recursive: true, force: true });
	});

	for (const sample of ['samples', 'cpu']) {
		test(`it opens our file with equal totals: ${sample}`, async () => {
			hearth('convert', path('known.pb'), '-q', '--value', sample, '--title', 'title of ' + sample, '-o', path(sample + '.speedscope.json'));
			const page = await speedscope.open(readFileSync(path(sample + '.speedscope.json')), 'title of ' + sample);
			assertRows(await speedscope.rows(page), countFunctions(stacks), totalOf(stacks), shownAs[sample]);
			await page.close();
		});

		test(`it opens our .cpuprofile with equal times: ${sample}`, async () => {
			hearth('convert', path('known.pb'), '-q', '--value', sample, '-o', path('known.cpuprofile'));
			const page = await speedscope.open(readFileSync(path('known.cpuprofile')), 'file.json');
			const tick = sample === 'cpu' ? TICK : 1e6; // a sample lasts a millisecond where no rate is known
			assertRows(await speedscope.rows(page), countFunctions(stacks), totalOf(stacks), (count) => timeText((count * tick) / 1e9));
			await page.close();
		});

		test(`what it exports of our file is read with equal stacks: ${sample}`, async () => {
			hearth('convert', path('known.pb'), '-q', '--value', sample, '--title', 'again ' + sample, '-o', path('again.speedscope.json'));
			const page = await speedscope.open(readFileSync(path('again.speedscope.json')), 'again ' + sample);
			const exported = await speedscope.export(page);
			assert.ok(JSON.parse(exported).profiles.every((p) => p.type === 'evented'));
			writeFileSync(path('theirs.json'), exported);
			const sorted = (list) => list.map(([frames, count]) => `${frames.map(shownName).join(';')} ${count}`).sort();
			const scale = sample === 'cpu' ? TICK : 1;
			assert.deepEqual(sorted(folded(path('theirs.json'), sample)), sorted(stacks.map(([frames, count]) => [frames, count * scale])));
			await page.close();
		});
	}
});
