// SPDX-License-Identifier: Apache-2.0
// Chromium without a debugger's work: playwright watches network and scripts of each page, so that V8 parses a page's script once more for the places of
// stack traces, and it puts a script of its own of 300 kB beside the page's: a fifth of the time until a small graph is drawn.
// Here nobody watches while a page opens, and the browser is there before: Chromium makes its own window, of web pages too, after it has started,
// which took 145 of the 496 ms of CPU that were spent while a page of two nodes opened.
// The protocol goes through a pipe (--remote-debugging-pipe): JSON, a 0 behind each message.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CHROMIUM, FLAGS } from './browser.js';

const SETTLE_MS = 10000; // at most
const STEP_MS = 200;
const STEP_TICKS = 2; // of 10 ms: a browser that uses no more has nothing of its own to do
const STEPS = 3;

/** The ticks of CPU that a process and those that it has started have used, or 0. */
function ticksOf(root) {
	const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
		try {
			const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ');
			return [{ pid: Number(pid), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }];
		} catch {
			return []; // it has ended
		}
	});
	const own = new Set([root]);
	for (let count = 0; count < own.size;) {
		count = own.size;
		for (const { pid, parent } of processes) if (own.has(parent)) own.add(pid);
	}
	return processes.reduce((sum, { pid, ticks }) => sum + (own.has(pid) ? ticks : 0), 0);
}

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
		await browser.settle();
		return browser;
	}

	/** Until the browser has done what it does after its start. */
	async settle() {
		const end = Date.now() + SETTLE_MS;
		let before = ticksOf(this.child.pid);
		for (let calm = 0; calm < STEPS && Date.now() < end;) {
			await new Promise((done) => setTimeout(done, STEP_MS));
			const now = ticksOf(this.child.pid);
			calm = now - before <= STEP_TICKS ? calm + 1 : 0;
			before = now;
		}
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
