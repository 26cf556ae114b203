// SPDX-License-Identifier: Apache-2.0
// Files of every format that hearth reads, by its own readers compiled to WebAssembly (src/readers/exports.c): bytes in, trees out. In a
// worker (file_worker.js): one file, then the worker ends, and its memory with it.
import { decodeProfile, profileBuffers } from './data.js';
import { readPlainly } from './file.js';

const LAYERS_MAX = 2; // of gzip, as hearth convert takes
const ROOM = 1 << 20;
const HEAD = 32;
const PROGRESS_MS = 100;
const NO_MEMORY = 'it needs more memory than a page has; hearth convert and hearth view read larger files';
const UNREADABLE = 'the browser does not get its bytes: it is a folder, was changed, or may not be read';
const DAMAGED = 'its gzip data is damaged, or has several parts; hearth convert reads the latter';

/**
 * What the WebAssembly module is given.
 * @param {(done: number, total: number) => void} progress
 */
function importsOf(progress, memoryOf) {
	const view = () => new DataView(memoryOf().buffer);
	return {
		page: { progress },
		wasi_snapshot_preview1: {
			random_get(at, size) {
				crypto.getRandomValues(new Uint8Array(memoryOf().buffer, at, size));
				return 0;
			},
			clock_time_get(id, precision, at) {
				view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
				return 0;
			},
			// What the reader says before it gives up on a bug of its own.
			fd_write(fd, list, count, writtenAt) {
				let size = 0;
				for (let i = 0; i < count; i++) {
					const [at, length] = [0, 4].map((offset) => view().getUint32(list + 8 * i + offset, true));
					console.error(new TextDecoder().decode(new Uint8Array(memoryOf().buffer, at, length)));
					size += length;
				}
				view().setUint32(writtenAt, size, true);
				return 0;
			},
			fd_seek: () => 70, // ESPIPE
			fd_close: () => 8, // EBADF
		},
	};
}

/** The browser does not get the bytes of a file. */
class Unreadable extends Error {}

/** The file's own bytes. Browsers differ in how they fail: one throws what a damaged gzip stream does. */
function bytesOf(file) {
	const reader = file.stream().getReader();
	return new ReadableStream({
		async pull(controller) {
			const { done, value } = await reader.read().catch((problem) => {
				throw new Unreadable(`${UNREADABLE} (${problem.message})`);
			});
			return done ? controller.close() : controller.enqueue(value);
		},
	});
}

/**
 * What a DecompressionStream throws means damage: a TypeError in browsers, an error of zlib's in Node.js 20. The rest says itself what it is.
 * @returns {never}
 */
function asDamaged(problem) {
	const isOwn = [Unreadable, RangeError, WebAssembly.RuntimeError].some((kind) => problem instanceof kind);
	throw isOwn ? problem : new Error(DAMAGED);
}

/** The beginning of a stream, and a stream of all of it. */
async function peek(stream) {
	const reader = stream.getReader();
	const parts = [];
	let size = 0;
	while (size < HEAD) {
		const { done, value } = await reader.read();
		if (done) break;
		parts.push(value);
		size += value.length;
	}
	const head = new Uint8Array(size);
	let at = 0;
	for (const part of parts) {
		head.set(part, at);
		at += part.length;
	}
	const whole = new ReadableStream({
		async pull(controller) {
			if (parts.length) return controller.enqueue(parts.shift());
			const { done, value } = await reader.read();
			return done ? controller.close() : controller.enqueue(value);
		},
	});
	return { head, whole };
}

async function unpacked(stream) {
	let { head, whole } = await peek(stream);
	let layers = 0;
	for (; layers < LAYERS_MAX && head[0] === 0x1f && head[1] === 0x8b; layers++) {
		({ head, whole } = await peek(whole.pipeThrough(new DecompressionStream('gzip'))));
	}
	return { head, whole, isPacked: layers > 0 };
}

/** A reader of one file. */
class Reader {
	constructor(module, progress) {
		this.told = 0;
		this.progress = (what, done, total) => {
			if (performance.now() - this.told < PROGRESS_MS) return;
			this.told = performance.now();
			progress({ what, done, total });
		};
		const { exports } = new WebAssembly.Instance(module, importsOf((done, total) => this.progress('reading', done, total), () => this.wasm.memory));
		/** @type {any} */
		this.wasm = exports;
		this.wasm._initialize();
	}

	bytes(at, size) {
		return new Uint8Array(this.wasm.memory.buffer, at, size);
	}

	text(which) {
		return new TextDecoder().decode(this.bytes(this.wasm.text(which), this.wasm.text_size(which)));
	}

	room(size) {
		const at = this.wasm.room(size);
		if (!at) throw new RangeError(NO_MEMORY);
		return at;
	}

	/** @param {number} expected bytes, or 0 where nobody knows */
	async fill(stream, expected) {
		let room = Math.max(expected, ROOM);
		let at = this.room(room);
		let size = 0;
		const reader = stream.getReader(); // Safari has no `for await` over it
		for (;;) {
			const { done, value: part } = await reader.read();
			if (done) return size;
			if (size + part.length > room) at = this.room(room = Math.max(size + part.length, room + (room >> 1)));
			this.bytes(at + size, part.length).set(part);
			size += part.length;
			this.progress('loading', size, expected);
		}
	}

	read(size, name) {
		const text = new TextEncoder().encode(name);
		const nameAt = this.wasm.name_room(text.length);
		if (!nameAt) throw new RangeError(NO_MEMORY);
		this.bytes(nameAt, text.length).set(text);
		if (this.wasm.read(size, nameAt, text.length) < 0) throw new Error(this.text(1));
	}

	/** The trees, each released when it is taken. */
	take() {
		const { types, kinds } = JSON.parse(this.text(0));
		const profiles = types.map((_, i) => decodeProfile(this.bytes(this.wasm.columns(i), this.wasm.columns_size(i))));
		return { types, kinds, profiles, words: this.text(1) };
	}
}

/**
 * What is in a file: { types, kinds, profiles, words }, words of what was left out; { isPage } of a page that hearth wrote, which is
 * not read here. Throws with words for people.
 * @param {WebAssembly.Module} module
 * @param {Blob} file
 * @param {string} name
 */
export async function readWithModule(module, file, name, progress = (_) => {}) {
	try {
		const reader = new Reader(module, progress);
		const { head, whole, isPacked } = await unpacked(bytesOf(file)).catch(asDamaged);
		if (new TextDecoder().decode(head).trimStart().toLowerCase().startsWith('<!doctype')) return { isPage: true };
		const size = await reader.fill(whole, isPacked ? 0 : file.size).catch(isPacked ? asDamaged : undefined);
		reader.read(size, name);
		return reader.take();
	} catch (problem) {
		if (problem instanceof WebAssembly.RuntimeError) throw new Error(`hearth's reader broke on it (${problem.message}); please report that`);
		if (problem instanceof RangeError) throw new Error(NO_MEMORY);
		throw problem;
	}
}

/** The readers that this hearth was built with; null: it has none, or the browser runs none. */
async function loadModule() {
	try {
		const answer = await fetch(new URL('readers.wasm', import.meta.url), { credentials: 'same-origin' });
		return answer.status === 200 ? await WebAssembly.compileStreaming(answer) : null;
	} catch {
		return null;
	}
}

/** The worker's side. */
export function runReader() {
	const module = loadModule();
	onmessage = async ({ data: { file, name } }) => {
		try {
			const compiled = await module;
			const found = compiled ? await readWithModule(compiled, file, name, (progress) => postMessage({ progress })) : null;
			const read = found?.profiles ? found : await readPlainly(file, Boolean(found));
			postMessage({ read }, { transfer: read.profiles.flatMap(profileBuffers) });
		} catch (problem) {
			postMessage({ error: String(problem?.message ?? problem) });
		}
	};
}

/**
 * The page's side: the file in a worker of its own, which ends with it. Returns what is in it, as readWithModule(); null: there is no such worker.
 * @param {{ signal?: AbortSignal, progress?: (at: { what: string, done: number, total: number }) => void }} [options]
 */
export function readInWorker(file, options = {}) {
	const { signal, progress } = options;
	return new Promise((resolve, reject) => {
		let worker;
		try {
			worker = new Worker(new URL('file_worker.js', import.meta.url), { type: 'module' });
		} catch {
			resolve(null);
			return;
		}
		const end = (settle, value) => {
			worker.terminate();
			settle(value);
		};
		signal?.addEventListener('abort', () => end(reject, signal.reason));
		worker.onerror = () => end(resolve, null);
		worker.onmessage = ({ data }) => {
			if (data.progress) progress?.(data.progress);
			else if (data.error) end(reject, new Error(data.error));
			else end(resolve, data.read);
		};
		worker.postMessage({ file, name: file.name });
	});
}
