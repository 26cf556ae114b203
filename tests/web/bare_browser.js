// SPDX-License-Identifier: Apache-2.0
// Chromium without a debugger's work: playwright watches network and scripts of each page, so that V8 parses a page's script once more for the places of
// stack traces, and it puts a script of its own of 300 kB beside the page's: a fifth of the time until a small graph is drawn.
// Here nobody watches while a page opens. The protocol goes through a pipe (--remote-debugging-pipe): JSON, a 0 behind each message.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CHROMIUM, FLAGS } from './browser.js';

export class BareBrowser {
	static async start({ width, height }) {
		const browser = new BareBrowser();
		browser.folder = mkdtempSync(join(tmpdir(), 'hearth-bare-'));
		browser.child = spawn(CHROMIUM, [...FLAGS, '--headless=new', '--remote-debugging-pipe', `--user-data-dir=${browser.folder}`, `--window-size=${width},${height}`,
			'--hide-scrollbars', '--mute-audio', '--no-startup-window', '--no-default-browser-check', '--disable-extensions'],
		{ stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
		browser.waiting = new Map();
		let rest = '';
		browser.child.stdio[4].setEncoding('utf8').on('data', (text) => {
			const messages = (rest + text).split('\0');
			rest = messages.pop();
			for (const message of messages) browser.take(JSON.parse(message));
		});
		browser.child.on('exit', () => browser.waiting.forEach(({ reject }) => reject(new Error('Chromium has ended'))));
		const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank', width, height });
		({ sessionId: browser.sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true }));
		return browser;
	}

	take({ id, result, error }) {
		const asked = this.waiting.get(id);
		this.waiting.delete(id);
		if (error) asked?.reject(new Error(error.message));
		else asked?.resolve(result);
	}

	send(method, params = {}) {
		const id = (this.id = (this.id ?? 0) + 1);
		this.child.stdio[3].write(JSON.stringify({ id, method, params, sessionId: this.sessionId }) + '\0');
		return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
	}

	/** Runs @job, a function without what lies around it, in each page before the page's own scripts. */
	async addInitScript(job) {
		await this.send('Page.enable');
		await this.send('Page.addScriptToEvaluateOnNewDocument', { source: `(${job})()` });
	}

	goto(url) {
		return this.send('Page.navigate', { url });
	}

	async evaluate(job) {
		const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression: `(${job})()`, awaitPromise: true, returnByValue: true });
		if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
		return result.value;
	}

	async close() {
		if (this.child.exitCode === null) {
			this.child.stdio[3].end();
			const killer = setTimeout(() => this.child.kill('SIGKILL'), 5000);
			await once(this.child, 'exit');
			clearTimeout(killer);
		}
		rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
	}
}
