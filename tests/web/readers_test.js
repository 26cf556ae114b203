// SPDX-License-Identifier: Apache-2.0
// What the Files page reads by WebAssembly, under node: samples of every format have the totals and frames that hearth convert finds;
// broken files end in words, never in a trap; READERS names the module, without it there is nothing to test.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { openAsBlob, readFileSync, readdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { FrameTable } from '../../web/data.js';
import { readWithModule } from '../../web/readers.js';
import { pathsOfTree, randomOf } from './known.js';

const CORPUS = new URL('../corpus/', import.meta.url).pathname;
const FORMATS = ['col', 'folded', 'jfr', 'legacy', 'otlp', 'perf_data', 'perf_script', 'pprof', 'speedscope', 'window'];
const samples = FORMATS.flatMap((format) => readdirSync(join(CORPUS, format)).map((name) => join(CORPUS, format, name)));
const PACKED_INSIDE = join(CORPUS, 'perf_data/compressed'); // zstd
const MUTATIONS = Number(process.env.READERS_MUTATIONS ?? 3); // of each sample
const EACH_MS = 5000;
const skip = process.env.READERS ? false : 'this build has no readers.wasm (option readers)';
let module;
let folder;

before(() => {
	if (skip) return;
	module = new WebAssembly.Module(readFileSync(process.env.READERS));
	folder = mkdtempSync(join(tmpdir(), 'hearth-readers-'));
});

after(() => folder && rmSync(folder, { recursive: true }));

const read = (bytes, name) => readWithModule(module, new Blob([bytes]), name);

/** The same file as a page that hearth convert writes: its types with totals and frames, or null where it fails. */
async function converted(path) {
	const out = join(folder, 'out.html');
	rmSync(out, { force: true });
	const run = spawnSync(process.env.HEARTH, ['convert', '-q', path, '-o', out], { encoding: 'utf8' });
	if (run.status) return { failure: run.stderr };
	const text = readFileSync(out, 'utf8');
	const block = (id) => new RegExp(`<script [^>]*id="${id}">([^<]*)</script>`).exec(text)[1];
	const { types, kinds } = JSON.parse(block('meta'));
	const { readProfile } = await import('../../web/data.js');
	const profiles = await Promise.all(types.map((_, i) => readProfile(block(i ? 'data-' + i : 'data'))));
	return { types, kinds, profiles };
}

/** What is shown of it, comparably. */
function plain({ types, kinds, profiles }) {
	return types.map(({ name, unit, scale, nanoseconds }, i) => {
		const { tree, frames } = profiles[i];
		const table = new FrameTable(frames, kinds);
		const paths = [...pathsOfTree(tree, (f) => `${table.name(f)} (${table.kind(f)}, ${table.moduleName(f)})`)];
		return { name, unit, scale, nanoseconds, total: tree.total[0], paths: paths.sort(([a], [b]) => (a < b ? -1 : 1)) };
	});
}

test('each sample of the corpus: the types, totals and frames of hearth convert', { skip }, async () => {
	let equal = 0;
	for (const path of samples) {
		const wanted = await converted(path);
		const bytes = readFileSync(path);
		if (wanted.failure || path === PACKED_INSIDE) {
			await assert.rejects(read(bytes, basename(path)), path);
			continue;
		}
		assert.deepEqual(plain(await read(bytes, basename(path))), plain(wanted), path);
		equal++;
	}
	assert.ok(equal > samples.length / 2, `${equal} of ${samples.length}`);
});

test('what a page cannot read says so', { skip }, async () => {
	await assert.rejects(read(readFileSync(PACKED_INSIDE), 'perf.data'), /compressed \(perf record -z\).*hearth convert/);
	await assert.rejects(read(new Uint8Array(0), 'x'), /empty/);
	await assert.rejects(read(new TextEncoder().encode('hello\nworld\n'), 'x.bin'), /known format/);
	await assert.rejects(read(new TextEncoder().encode('{}\n'), 'x.cpuprofile'), /does not read them/);
	assert.deepEqual(await read(new TextEncoder().encode('\n<!DOCTYPE html><p>'), 'x.html'), { isPage: true });
});

test('gzip once and twice, but not a third time or damaged', { skip }, async () => {
	const text = new TextEncoder().encode('main;f 3\nmain;g 4\n');
	const once = gzipSync(text);
	const twice = gzipSync(once);
	for (const bytes of [once, twice]) assert.equal((await read(bytes, 'x.gz')).profiles[0].tree.total[0], 7);
	await assert.rejects(read(gzipSync(twice), 'x.gz'), Error);
	for (const bytes of [once.subarray(0, 15), once.subarray(0, -3)]) await assert.rejects(read(bytes, 'x.gz'), /gzip data/);
});

test('a file that cannot be read is not called damaged', { skip }, async () => {
	const path = join(folder, 'gone.gz');
	writeFileSync(path, gzipSync('main;f 3\n'));
	const gone = await openAsBlob(path);
	rmSync(path);
	await assert.rejects(readWithModule(module, gone, 'gone.gz'), /does not get its bytes/);
	const bytes = gzipSync('main;f 3\n');
	let left = 2;
	const stream = () => new ReadableStream({ // halfway, as a browser may say it
		pull: (controller) => (left-- ? controller.enqueue(bytes.subarray(0, 20)) : controller.error(new TypeError('network error'))),
	});
	await assert.rejects(readWithModule(module, /** @type {any} */ ({ size: 90, stream }), 'x.gz'), /does not get its bytes/);
});

test('more than the memory of a page: words, and the next file is read', { skip }, async () => {
	const path = join(folder, 'large');
	writeFileSync(path, '');
	spawnSync('truncate', ['-s', '1200M', path]);
	await assert.rejects(readWithModule(module, await openAsBlob(path), 'large'), /more memory than a page has/);
	assert.equal((await read(new TextEncoder().encode('a 1\n'), 'x')).profiles[0].tree.total[0], 1);
});

test('lines that are left out are told', { skip }, async () => {
	const bytes = new TextEncoder().encode('a;b 1\n' + 'no count here\n' + 'a;c 2\n');
	const { words, profiles } = await read(bytes, 'x.folded').catch(({ message }) => ({ words: message, profiles: null }));
	assert.match(words, /line 2/);
	assert.ok(!profiles || profiles[0].tree.total[0] === 3);
});

/** Bytes that are changed, cut, doubled or moved. */
function mutated(bytes, random) {
	const out = Buffer.from(bytes);
	const below = (n) => Math.floor(random() * n);
	for (let i = 1 + below(8); i > 0 && out.length; i--) out[below(out.length)] = [0, 0xff, 0x80, 0x7f, below(256)][below(5)];
	if (!below(3)) return out.subarray(0, below(out.length + 1));
	if (!below(4)) return Buffer.concat([out, out.subarray(below(out.length + 1))]);
	return out;
}

test('broken files end in words, without a trap, in time', { skip, timeout: 1200000 }, async () => {
	const seed = Number(process.env.READERS_SEED ?? 71);
	const random = randomOf(seed);
	let count = 0;
	for (const path of samples) {
		for (let i = 0; i < MUTATIONS; i++) {
			const bytes = mutated(readFileSync(path), random);
			const from = performance.now();
			try {
				await read(bytes, basename(path));
			} catch (problem) {
				assert.doesNotMatch(problem.message, /broke on it/, `${path}, seed ${seed}, ${i}: ${problem.message}\n${bytes.toString('base64').slice(0, 4000)}`);
				assert.equal(problem.constructor, Error, problem.stack);
			}
			assert.ok(performance.now() - from < EACH_MS, `${path}, seed ${seed}, ${i} takes ${performance.now() - from} ms`);
			count++;
		}
	}
	assert.equal(count, samples.length * MUTATIONS);
});
