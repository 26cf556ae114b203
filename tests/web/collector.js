// SPDX-License-Identifier: Apache-2.0
// The real collector (HEARTH serve) on a free port of this machine, and what go tool pprof says of a file.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const READY_MS = 20000;

/** Why there is no collector to test, or ''. */
export function missingCollector() {
	return process.env.HEARTH ? '' : 'HEARTH does not name the program';
}

async function freePort() {
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address();
	server.close();
	await once(server, 'close');
	return port;
}

/** Why no test can ask go tool pprof, or ''. */
export function missingGo() {
	return spawnSync('go', ['version']).status === 0 ? '' : 'needs go (scripts/packages.txt)';
}

export class Collector {
	/** A collector that has started. options: what serve is given besides address and folder */
	static async start(...options) {
		const collector = new Collector();
		collector.scratch = mkdtempSync(join(tmpdir(), 'hearth-web-'));
		chmodSync(collector.scratch, 0o755); // the collector may be another user
		collector.port = await freePort();
		collector.options = options;
		collector.headers = {}; // of every request, such as a token
		await collector.run();
		return collector;
	}

	get url() {
		return `http://127.0.0.1:${this.port}/`;
	}

	path(name) {
		return join(this.scratch, name);
	}

	/** Starts, also once more after stop(): the same port, the same folder. */
	async run() {
		const log = openSync(this.path('serve.log'), 'a');
		this.child = spawn(process.env.HEARTH, ['serve', '--addr', `127.0.0.1:${this.port}`, '--data-dir', this.path('data'), ...this.options],
			{ stdio: ['ignore', log, log] });
		const end = Date.now() + READY_MS;
		while (this.child.exitCode === null && Date.now() < end) {
			const answer = await fetch(this.url + '-/ready').catch(() => null);
			if (answer?.ok) return;
			await new Promise((done) => setTimeout(done, 20));
		}
		throw new Error('the collector does not start: ' + readFileSync(this.path('serve.log'), 'utf8').slice(-2000));
	}

	async stop(signal = 'SIGTERM') {
		if (this.child.exitCode !== null || this.child.signalCode !== null) return;
		const ended = once(this.child, 'exit');
		this.child.kill(signal);
		await ended;
	}

	async close() {
		await this.stop();
		rmSync(this.scratch, { recursive: true, force: true });
	}

	/** A new token, with which this object asks from then on. scopes: as in ingest,read */
	takeToken(scopes) {
		const done = spawnSync(process.env.HEARTH, ['token', 'create', '--data-dir', this.path('data'), '--scope', scopes, '--name', 'tests'], { encoding: 'utf8' });
		if (done.status !== 0) throw new Error('hearth token: ' + done.stderr);
		this.headers = { Authorization: 'Bearer ' + done.stdout.trim() };
		return done.stdout.trim();
	}

	/** Stores a profile. at: ms; labels: { name: value } */
	async upload(service, type, body, at, labels = {}) {
		const piece = (text) => encodeURIComponent(text);
		const pairs = Object.entries(labels).map(([name, value]) => `${piece(name)}=${piece(value)}`).join(',');
		const query = new URLSearchParams({ service, type, created_at: String(Math.round(at)), ...(pairs && { labels: pairs }) });
		const answer = await fetch(`${this.url}api/0/profiles?${query}`, { method: 'POST', body, headers: this.headers });
		if (answer.status !== 200) throw new Error(`upload: ${answer.status} ${await answer.text()}`);
	}

	/** An answer of the viewer's API; throws when it is none. */
	async ask(what, params) {
		const answer = await fetch(`${this.url}api/v1/${what}?${new URLSearchParams(params)}`, { headers: this.headers });
		if (!answer.ok) throw new Error(`${what}: ${answer.status} ${await answer.text()}`);
		return answer;
	}

	async askJson(what, params) {
		return (await this.ask(what, params)).json();
	}

	/** Saves an answer as a file. Returns its path. */
	async save(name, target) {
		const answer = await fetch(this.url + target, { headers: this.headers });
		if (!answer.ok) throw new Error(`${target}: ${answer.status} ${await answer.text()}`);
		writeFileSync(this.path(name), Buffer.from(await answer.arrayBuffer()));
		return this.path(name);
	}

	/** As goTop(). */
	goTop(file, column) {
		return goTop([file], column, this.scratch);
	}

	/** The sum of what `hearth convert` makes of a file as folded stacks. */
	foldedTotal(file) {
		const out = this.path('converted.folded');
		const done = spawnSync(process.env.HEARTH, ['convert', file, '-q', '-o', out], { encoding: 'utf8' });
		if (done.status !== 0) throw new Error('hearth convert: ' + done.stderr);
		return sumOfFolded(readFileSync(out, 'utf8'));
	}
}

/**
 * What go tool pprof -top says of one column of files that it adds up: { total, functions: Map(name -> { self, total }) }; missingGo() is ''.
 * unit: in which it counts; scratch: a folder for it
 */
export function goTop(files, column, scratch, unit = 'nanoseconds') {
	const done = spawnSync('go', ['tool', 'pprof', '-top', '-nodecount=100000', '-nodefraction=0', `-unit=${unit}`, '-symbolize=none',
		`-sample_index=${column}`, ...files], { encoding: 'utf8', env: { ...process.env, PPROF_TMPDIR: scratch } });
	if (done.status !== 0) throw new Error('go tool pprof: ' + done.stderr);
	const number = (text) => Number(text.replace(/[a-zA-Z]+$/, ''));
	const functions = new Map();
	for (const line of done.stdout.split('\n')) {
		const found = /^\s*(-?\d+(?:[a-zA-Z]+)?)\s+\S+%\s+\S+%\s+(-?\d+(?:[a-zA-Z]+)?)\s+\S+%\s+(.+)$/.exec(line);
		if (found) functions.set(found[3].trim(), { self: number(found[1]), total: number(found[2]) });
	}
	return { total: number(/of (\S+) total/.exec(done.stdout)[1]), functions };
}

export function sumOfFolded(text) {
	return text.split('\n').filter((line) => line && !line.startsWith('#')).reduce((sum, line) => sum + Number(/ (\d+)$/.exec(line)[1]), 0);
}
