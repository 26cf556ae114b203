// SPDX-License-Identifier: Apache-2.0
// npm's speedscope as its package has it, served from this machine, and what it shows of a file.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { moduleFolder } from './browser.js';

const MIME = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' };
const folder = moduleFolder('speedscope');

/** Why there is no speedscope to test with, or ''. */
export function missingSpeedscope() {
	return folder ? '' : 'speedscope is not installed (make setup-extra)';
}

export class Speedscope {
	static async start(browser) {
		const app = new Speedscope();
		app.browser = browser;
		app.server = createServer((request, response) => {
			const { pathname } = new URL(request.url, 'http://x');
			const file = join(folder, 'dist', 'release', pathname === '/' ? 'index.html' : pathname.replaceAll('..', ''));
			if (pathname === '/file.json') response.writeHead(200, { 'Content-Type': MIME['.json'] }).end(app.file);
			else if (existsSync(file)) createReadStream(file).pipe(response.writeHead(200, { 'Content-Type': MIME[extname(file)] ?? 'application/octet-stream' }));
			else response.writeHead(404).end();
		});
		await once(app.server.listen(0, '127.0.0.1'), 'listening');
		return app;
	}

	close() {
		this.server.close();
	}

	/** A tab that shows a file. title: what stands in front of "speedscope" in its title then */
	async open(file, title) {
		this.file = file;
		const page = await this.browser.newPage({ viewport: { width: 1400, height: 1600 } });
		await page.goto(`http://127.0.0.1:${this.server.address().port}/#profileURL=/file.json`);
		await page.waitForFunction((text) => document.title.includes(text), title);
		return page;
	}

	/** Rows of its table of all functions: [total, self, name]. */
	async rows(page) {
		await page.keyboard.press('3'); // callers and callees, beside a table of all functions
		await page.locator('table tr').nth(5).waitFor();
		return page.locator('table tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
	}

	/** The file that its own export makes of what it has read. */
	async export(page) {
		const download = page.waitForEvent('download');
		await page.keyboard.press('Control+s');
		return readFileSync(await (await download).path());
	}
}

/** Seconds as speedscope writes them. */
export function timeText(seconds) {
	if (seconds >= 60) {
		const rest = Math.floor(seconds - Math.floor(seconds / 60) * 60).toString().padStart(2, '0');
		return `${Math.floor(seconds / 60)}:${rest}`;
	}
	for (const [size, unit] of [[1, 's'], [1e-3, 'ms'], [1e-6, '\u00b5s']]) if (seconds >= size) return (seconds / size).toFixed(2) + unit;
	return (seconds * 1e9).toFixed(2) + 'ns';
}

/** rows: of Speedscope.rows(); wanted: name -> { self, total }; shown: how it writes a value */
export function assertRows(rows, wanted, sum, shown) {
	const found = new Map(rows.filter((row) => row.length > 2).map(([total, self, name]) => [name, { total, self }]));
	let seen = 0;
	for (const [name, { self, total: all }] of wanted) {
		const row = found.get(name);
		if (!row) continue; // it draws the rows that are in sight
		seen++;
		for (const [text, count] of [[row.total, all], [row.self, self]]) {
			const [value, share] = /^(.*?)\s*\(<?(.*)%\)$/.exec(text).slice(1);
			assert.equal(value, shown(count), `${name}: ${text}`);
			assert.ok(Math.abs(Number(share) - (100 * count) / sum) < 0.51, `${name}: ${text}`);
		}
	}
	assert.ok(seen > 10, `${seen} of ${wanted.size}: ${JSON.stringify(rows.slice(0, 5))}`);
	assert.ok(found.has('main'));
}
