// SPDX-License-Identifier: Apache-2.0
// What may take longer than a frame: done at once for small trees, in a worker for large ones, so that the page never
// stands still. The worker has a copy of the tree from the first such job on.
import { profileBuffers } from './data.js';
import { decodeHere } from './decoder.js';
import { compileQuery, matchFrames } from './search.js';
import { collapsedTree, functionTotals, invertedTree, sandwichTrees } from './views.js';
import { applySteps } from './transforms.js';

const AT_ONCE_NODES = 20000;
const PIECE = 1 << 19;
const NOT_WANTED = 'not wanted any more';
const NO_WORKER = 'no worker';
const SENT_COLUMNS = ['level', 'frame', 'total', 'self', 'parent', 'size'];
const COMPARED_COLUMNS = ['base', 'baseSelf']; // of two profiles as one

const JOBS = {
	steps: (tree, { steps, rootFrame }) => applySteps(tree, steps, rootFrame),
	inverted: (tree, { frameCount, options }) => invertedTree(tree, frameCount, options),
	collapsed: (tree, { frameCount, options }) => collapsedTree(tree, frameCount, options),
	sandwich: (tree, { frameCount, focus, options }) => sandwichTrees(tree, frameCount, focus, options),
	totals: (tree, { frameCount }) => functionTotals(tree, frameCount),
};

function buffersOf(result) {
	const trees = result.callers ? [result.callers, result.callees] : [result];
	return [...new Set(trees.flatMap((tree) => Object.values(tree)).filter(ArrayBuffer.isView).map((a) => a.buffer))];
}

/** A tree that shares nothing with the one given. */
function copyTree(tree) {
	return Object.fromEntries(Object.entries(tree).map(([key, v]) => [key, v?.slice ? v.slice() : v]));
}

/** Jobs over one tree. startWorker: () => Worker, or null where there can be none. */
export class Workbench {
	constructor(startWorker) {
		this.startWorker = startWorker;
		this.worker = null;
		this.waiting = new Map();
		this.next = 1;
		this.setTree(null);
	}

	/** The tree that jobs without steps are about. */
	setTree(tree) {
		this.tree = tree;
		this.sent = false;
		this.giveUp();
		this.worker?.terminate();
		this.worker = null;
	}

	giveUp() {
		for (const { reject } of this.waiting.values()) reject(new Error(NOT_WANTED));
		this.waiting.clear();
	}

	/**
	 * The result of a job, or a promise of it.
	 * job: { kind: a key of JOBS, on: '' or the key of the steps whose result it is about, ... }; tree: that one, if it is here
	 */
	run(job, tree) {
		if (!this.startWorker || (tree && tree.count <= AT_ONCE_NODES)) return JOBS[job.kind](tree, job);
		return this.runAside(job).catch((problem) => {
			if (problem.message === NOT_WANTED || !tree) throw problem;
			if (problem.message === NO_WORKER) this.startWorker = null;
			return JOBS[job.kind](tree, job);
		});
	}

	async runAside(job) {
		if (!this.worker) this.open();
		const { worker, tree } = this;
		if (!worker) throw new Error(NO_WORKER);
		const number = this.next++;
		const result = new Promise((resolve, reject) => this.waiting.set(number, { resolve, reject }));
		if (!this.sent) {
			this.sent = true;
			await this.send(worker, tree);
			this.ready?.();
			this.isReady = true;
		} else if (!this.isReady) {
			await this.whenReady;
		}
		if (this.worker === worker) worker.postMessage({ job, number });
		return result;
	}

	/** In pieces: copying all of a large tree at once would take longer than a frame. */
	async send(worker, tree) {
		const columns = tree.base ? [...SENT_COLUMNS, ...COMPARED_COLUMNS] : SENT_COLUMNS;
		const types = Object.fromEntries(columns.map((column) => [column, tree[column].constructor.name]));
		worker.postMessage({ begin: { count: tree.count, deepest: tree.deepest }, types });
		for (const column of columns) {
			for (let at = 0; at < tree.count && this.worker === worker; at += PIECE) {
				const values = tree[column].slice(at, at + PIECE);
				worker.postMessage({ column, at, values }, [values.buffer]);
				await new Promise((done) => setTimeout(done, 0));
			}
		}
	}

	open() {
		this.isReady = false;
		this.whenReady = new Promise((resolve) => (this.ready = resolve));
		this.worker = this.startWorker();
		if (!this.worker) return;
		this.worker.onmessage = ({ data }) => {
			const waits = this.waiting.get(data.number);
			this.waiting.delete(data.number);
			if (data.error) waits?.reject(new Error(data.error));
			else waits?.resolve(data.result);
		};
		this.worker.onerror = () => {
			for (const { reject } of this.waiting.values()) reject(new Error(NO_WORKER));
			this.waiting.clear();
		};
	}
}

const MATCH_MS = 1000;
const MATCH_FIRST_MS = 4000; // the worker starts
const MATCH_CHARS = 4096; // of a name

/** Regular expressions over names, in a worker that ends when it takes too long. startWorker: as Workbench's. */
export class Matcher {
	constructor(startWorker) {
		this.startWorker = startWorker;
		this.worker = null;
		this.frames = null;
		/** @type {((hits: Uint8Array | null) => void) | null} */
		this.done = null; // of the question that the worker has
	}

	end() {
		this.worker?.terminate();
		this.worker = null;
	}

	/**
	 * One byte per frame, as matchFrames() gives them; null: it took too long, or another question came.
	 * @param {import('./data.js').FrameTable} frames
	 * @param {string} query
	 * @returns {Promise<Uint8Array | null>}
	 */
	match(frames, query) {
		if (this.done) this.end(); // its answer would be taken for this one's
		this.done?.(null);
		const isNew = !this.worker;
		this.worker ??= this.startWorker();
		const { worker } = this;
		if (!worker) return Promise.resolve(matchFrames(frames, compileQuery(query, true).test)); // a browser without workers
		return new Promise((resolve) => {
			const timer = setTimeout(() => {
				this.end();
				this.done(null);
			}, isNew ? MATCH_FIRST_MS : MATCH_MS);
			this.done = (hits) => {
				clearTimeout(timer);
				this.done = null;
				resolve(hits);
			};
			worker.onmessage = ({ data }) => data.hits && this.worker === worker && this.done?.(data.hits);
			worker.onerror = () => this.done?.(null);
			const names = isNew || frames !== this.frames ? Array.from({ length: frames.count }, (_, f) => frames.name(f).slice(0, MATCH_CHARS)) : null;
			this.frames = frames;
			worker.postMessage({ match: query, names });
		});
	}
}

/** The worker's side: decodes a data block, keeps a tree and does jobs over it, or looks for an expression in names. */
export function runWorker() {
	let base = null;
	let stepped = null;
	let names = [];
	let steppedKey = '';
	const answer = (number, result) => postMessage({ number, result }, { transfer: buffersOf(result) });
	const work = (job, number) => {
		if (job.kind === 'steps') {
			stepped = JOBS.steps(base, job);
			steppedKey = job.key;
			answer(number, copyTree(stepped));
			return;
		}
		if (job.on && job.on !== steppedKey) throw new Error('the tree is not there');
		answer(number, JOBS[job.kind](job.on ? stepped : base, job));
	};
	onmessage = async ({ data }) => {
		try {
			if (typeof data === 'string' || data instanceof Uint8Array) {
				const profile = await decodeHere(data);
				postMessage({ profile }, { transfer: profileBuffers(profile) });
			} else if (data.match !== undefined) {
				names = data.names ?? names;
				postMessage({ hits: matchFrames({ count: names.length, name: (f) => names[f] }, compileQuery(data.match, true).test) });
			} else if (data.begin) {
				base = data.begin;
				for (const [column, type] of Object.entries(data.types)) base[column] = new globalThis[type](base.count);
			} else if (data.column) {
				base[data.column].set(data.values, data.at);
			} else {
				work(data.job, data.number);
			}
		} catch (problem) {
			postMessage({ number: data?.number, error: String(problem?.message ?? problem) });
		}
	};
}
