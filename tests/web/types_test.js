// SPDX-License-Identifier: Apache-2.0
// The viewer's modules under TypeScript's checker (tsconfig.json, web/types.d.ts): a name or an element that is not there, a field
// that nobody sets, an argument of another kind. Nothing is compiled.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { moduleFolder } from './browser.js';

const typescript = moduleFolder('typescript');
const skip = typescript ? false : 'typescript is not installed (make setup-extra)';
const here = fileURLToPath(new URL('.', import.meta.url));
const web = fileURLToPath(new URL('../../web/', import.meta.url));
let folder;

/** The pages' elements by id, as types.d.ts declares those that scripts make. */
function elementsOf(...pages) {
	const members = pages.flatMap((page) => [...readFileSync(join(web, page), 'utf8').matchAll(/<(\w+)\s[^>]*?\bid="([\w-]+)"/g)]
		.filter(([, tag]) => tag !== 'script').map(([, tag, id]) => `'${id}': HTMLElementTagNameMap['${tag}'];`));
	assert(members.length > 50, 'the pages have elements with ids');
	return `interface Elements {\n${members.join('\n')}\n}\n`;
}

// Faults that the checker has to find, in these lines: else it looks at nothing.
const FAULTS = [3, 4, 6];
const WRONG = `import { byId } from '${web}around.js';
import { Viewer } from '${web}viewer.js';
byId('no-such-element').hidden = true;
byId('query').valeu = '';
/** @param {Viewer} viewer */
export const f = (viewer) => viewer.treee;
`;

before(() => {
	folder = mkdtempSync(join(tmpdir(), 'hearth-types-'));
});

after(() => rmSync(folder, { recursive: true }));

test('the checker finds nothing in web/', { skip }, () => {
	const project = { extends: join(here, 'tsconfig.json'), include: [join(web, '*.js'), join(web, 'types.d.ts'), 'elements.d.ts', 'wrong.js'] };
	writeFileSync(join(folder, 'elements.d.ts'), elementsOf('page.html', 'index.html'));
	writeFileSync(join(folder, 'wrong.js'), WRONG);
	writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project));
	const done = spawnSync(process.execPath, [join(typescript, 'bin', 'tsc'), '-p', folder, '--pretty', 'false'], { encoding: 'utf8', cwd: web });
	const lines = (done.stdout + done.stderr).trim().split('\n');
	const ours = /\bwrong\.js\((\d+),/;
	assert.deepEqual(lines.filter((line) => !ours.test(line)), []);
	assert.deepEqual(lines.map((line) => Number(ours.exec(line)[1])), FAULTS, lines.join('\n'));
});
