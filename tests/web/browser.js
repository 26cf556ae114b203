// SPDX-License-Identifier: Apache-2.0
// Starts Debian's Chromium for the tests. playwright-core and axe-core are not in the tree: VIEWER_NODE_MODULES names
// the node_modules folder they were installed to (npm install playwright-core axe-core --ignore-scripts).
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
	'--disable-component-update', '--disable-sync'];

function loadModule(name) {
	const folder = process.env.VIEWER_NODE_MODULES;
	return createRequire(folder ? join(folder, 'package.json') : import.meta.url)(name);
}

function findModule(name) {
	const folder = process.env.VIEWER_NODE_MODULES;
	return createRequire(folder ? join(folder, 'package.json') : import.meta.url).resolve(name);
}

/** The folder of an installed package, or '' when there is none. */
export function moduleFolder(name) {
	try {
		return dirname(findModule(name + '/package.json'));
	} catch {
		return '';
	}
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

/** An empty tab that keeps what a page must not do: every request elsewhere, console message, error and policy violation. */
async function openTab(browser, isOwn, options) {
	const context = await browser.newContext(options);
	const page = await context.newPage();
	const noise = [];
	page.on('console', (message) => noise.push('console: ' + message.text()));
	page.on('pageerror', (error) => noise.push('error: ' + error.message));
	page.on('request', (request) => isOwn(request.url()) || noise.push('request: ' + request.url()));
	await page.addInitScript(() => {
		window.__violations = [];
		document.addEventListener('securitypolicyviolation', (event) => {
			window.__violations.push(event.violatedDirective + ' ' + event.blockedURI);
		});
	});
	return { page, noise, context };
}

/** A page in a file, without a network. */
export async function openPage(browser, file, options = {}) {
	const { hash = '', ...rest } = options;
	const url = 'file://' + file;
	const tab = await openTab(browser, (to) => to.startsWith(url) || to.startsWith('blob:'), { viewport: { width: 1400, height: 900 }, ...rest });
	await tab.context.setOffline(true);
	await tab.page.goto(url + hash);
	await tab.page.waitForFunction(() => ['full', 'failed'].includes(document.body.dataset.ready));
	return tab;
}

/** A page of a collector, shown or refused. */
export async function openSite(browser, url, hash, options = {}) {
	const tab = await openTab(browser, (to) => to.startsWith(url) || /^(data|blob):/.test(to), { viewport: { width: 1400, height: 800 }, ...options });
	await tab.page.goto(url + hash);
	await tab.page.waitForFunction(() => document.body.dataset.shown);
	return tab;
}

/** Ends a tab that has to have stayed silent. */
export async function assertSilent({ page, noise, context }) {
	assert.deepEqual(await page.evaluate(() => window.__violations), []);
	assert.deepEqual(noise, []);
	await context.close();
}

/** Until the page of that name is there with all that belongs to it. */
export function pageShown(page, name) {
	return page.waitForFunction((wanted) => document.body.dataset.shown === wanted && document.getElementById('pages').ariaBusy === 'false', name);
}
