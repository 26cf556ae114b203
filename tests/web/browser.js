// SPDX-License-Identifier: Apache-2.0
// Starts Debian's Chromium for the tests. playwright-core and axe-core are not in the tree: VIEWER_NODE_MODULES names
// the node_modules folder they were installed to (npm install playwright-core axe-core --ignore-scripts).
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
	'--disable-component-update', '--disable-sync'];

function loadModule(name) {
	const folder = process.env.VIEWER_NODE_MODULES;
	return createRequire(folder ? join(folder, 'package.json') : import.meta.url)(name);
}

function findModule(name) {
	const folder = process.env.VIEWER_NODE_MODULES;
	return createRequire(folder ? join(folder, 'package.json') : import.meta.url).resolve(name);
}

/** Why the browser tests cannot run here, or ''. */
export function missingBrowser() {
	if (!existsSync(CHROMIUM)) return `no Chromium at ${CHROMIUM} (apt-get install chromium)`;
	for (const name of ['playwright-core', 'axe-core']) {
		try {
			findModule(name);
		} catch {
			return `${name} is not installed (see tests/web/browser.js)`;
		}
	}
	if (!process.env.HTML_FOLDED) return 'HTML_FOLDED does not name the program that makes a page (tests/bench/html_folded)';
	return '';
}

export function axePath() {
	return findModule('axe-core/axe.min.js');
}

export async function launchBrowser() {
	return loadModule('playwright-core').chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** A page that must stay silent: every request but the file's own, console message, error and policy violation is kept. */
export async function openPage(browser, file, options = {}) {
	const { hash = '', ...rest } = options;
	const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...rest });
	const page = await context.newPage();
	const noise = [];
	const url = 'file://' + file;
	page.on('console', (message) => noise.push('console: ' + message.text()));
	page.on('pageerror', (error) => noise.push('error: ' + error.message));
	page.on('request', (request) => {
		const to = request.url();
		if (!to.startsWith(url) && !to.startsWith('blob:')) noise.push('request: ' + to);
	});
	await page.addInitScript(() => {
		window.__violations = [];
		document.addEventListener('securitypolicyviolation', (event) => {
			window.__violations.push(event.violatedDirective + ' ' + event.blockedURI);
		});
	});
	await context.setOffline(true);
	await page.goto(url + hash);
	await page.waitForFunction(() => ['full', 'failed'].includes(document.body.dataset.ready));
	return { page, noise, context };
}
