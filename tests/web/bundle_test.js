// SPDX-License-Identifier: Apache-2.0
// What the build makes of modules: one that does the same; what it cannot join ends the build. WEB_EMBED: web/embed.c, built.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';

/** The bytes of the first array in a C source. */
function bytesOf(source) {
	return Buffer.from(source.slice(source.indexOf('= {') + 3, source.indexOf('};')).split(',').map((t) => t.trim()).filter(Boolean).map(Number));
}

/** Joins main.js of these files: { run, text }. */
function bundle(t, files) {
	const folder = mkdtempSync(join(tmpdir(), 'hearth-bundle-'));
	t.after(() => rmSync(folder, { recursive: true }));
	for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
	const out = join(folder, 'out.c');
	const run = spawnSync(process.env.WEB_EMBED, ['--files', out, join(folder, 'main.js'), '--'], { encoding: 'utf8' });
	return { folder, run, text: run.status ? '' : gunzipSync(bytesOf(readFileSync(out, 'utf8'))).toString() };
}

test('modules joined do what they do apart: names of their own, imports of imports, each once', async (t) => {
	const { folder, run, text } = bundle(t, {
		'main.js': "import { twice } from './b.js';\nimport { count, Kind } from './a.js';\nconst name = 'main';\nawait null;\nglobalThis.__said = [name, twice(3), count(), new Kind().name, import.meta.url.endsWith('all.mjs')];\n",
		'a.js': "// a comment\nlet n = 0;\nconst name = 'a';\nexport function count() {\n\treturn ++n;\n}\nexport class Kind {\n\tget name() {\n\t\treturn name;\n\t}\n}\nexport const unused = 1;\n",
		'b.js': "/**\n * Two lines.\n */\nimport { count } from './a.js';\nconst name = 'b';\nexport const twice = (x) => name.repeat(x) + count();\n",
	});
	assert.equal(run.stderr, '');
	assert.ok(!text.includes('comment') && !text.includes('Two lines'));
	writeFileSync(join(folder, 'all.mjs'), text);
	await import(pathToFileURL(join(folder, 'all.mjs')).href);
	assert.deepEqual(globalThis.__said, ['main', 'bbb1', 2, 'a', true]);
});

test('what cannot be joined ends the build and says where', (t) => {
	for (const [files, words] of [
		[{ 'main.js': "import * as a from './a.js';\n", 'a.js': '' }, /main\.js: not a form of import.*\* as a/],
		[{ 'main.js': "import { a } from 'node:fs';\n" }, /main\.js: not a form of import/],
		[{ 'main.js': "import './a.js';\n", 'a.js': '' }, /main\.js: not a form of import/],
		[{ 'main.js': "import { a } from './a.js';\n", 'a.js': 'export default 1;\n' }, /a\.js: not a form of export/],
		[{ 'main.js': "import { a } from './a.js';\n", 'a.js': 'export { b as a };\n' }, /a\.js: not a form of export/],
		[{ 'main.js': "import { a } from './a.js';\n", 'a.js': "import { b } from './b.js';\nexport const a = 1;\n", 'b.js': "import { a } from './a.js';\nexport const b = 1;\n" }, /a\.js: modules import each other/],
		[{ 'main.js': "import { a } from './gone.js';\n" }, /gone\.js: cannot open/],
	]) {
		const { run } = bundle(t, files);
		assert.equal(run.status, 1, JSON.stringify(files));
		assert.match(run.stderr, words);
	}
});
