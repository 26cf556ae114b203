// SPDX-License-Identifier: Apache-2.0
// A collector as docs/api.yaml describes it, with known profiles: the pages are tested against it, and against the real one
// in tests/e2e. Run by itself it serves web/ for whoever works on the pages: fake_collector.mjs [PORT]
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { knownStacks, randomOf, shownName, totalOf } from './known.js';

const WEB = fileURLToPath(new URL('../../web/', import.meta.url));
const TYPES = { '.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8',
	'.wasm': 'application/wasm' };
const READERS = process.env.READERS; // the build's readers.wasm; without it the page reads fewer formats
export const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'none'; " +
	"worker-src 'self'; manifest-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const KINDS = ['native', 'kernel', 'python', 'java', 'java-inlined', 'process', 'container', 'thread', 'host', 'label'];
const SUFFIXES = { '_[k]': 1, '_[p]': 2, '_[j]': 3, '_[i]': 4 };
const NOW = Date.UTC(2026, 10, 22, 12);

const SERVICES = [['checkout-api', 'container', 3.9], ['search', 'container', 2.7], ['gunicorn: shop:app', 'application', 2.0],
	['postgresql.service', 'unit', 1.3], ['server.js', 'application', 0.9], ['php-fpm', 'unit', 0.6], ['(short-lived)', 'executable', 0.36],
	['<img src=x onerror=window.__hit=1>\u202egpj.exe', 'executable', 0.2], ['true', 'executable', 0.004], ['rm', 'executable', 0.003]];

// Hosts and what they cost; one says no host.
const HOSTS = [['node-a', 3.9], ['node-b', 2.6], ['<img src=x onerror=window.__hit=1>\u202etsoh', 0.9], ['', 0.3], ...Array.from({ length: 30 }, (_, i) => [`small-${i}`, 0.05])];
const PROCESSES = [['nginx', 1204, 3, 'checkout-api', 1.9], ['java', 77, 40, 'search', 1.2], ['<img src=x onerror=window.__hit=1>', 5, 1, 'php-fpm', 0.4],
	...Array.from({ length: 20 }, (_, i) => [`cc1-${i}`, 3000 + i, 1, '(short-lived)', 0.02])];
const ROUND = [10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800];

/** The stacks of a service, the same at every request. */
export function stacksOf(service) {
	const seed = [...service].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) >>> 0, 7);
	return knownStacks(seed % 1000, 500, 40).map(([frames, count]) => [[`proc ${service}`, 'main', ...frames], count * 1e7]);
}

/** With a frame for each group above every stack. */
export function groupedStacks(stacks, groups) {
	const values = { thread: (i) => `worker-${i % 3}`, host: (i) => `node-${'ab'[i % 2]}`, 'label:version': (i) => `version=2026.11.${i % 4}` };
	return stacks.map(([frames, count], i) => [[...groups.map((group) => values[group](i)), ...frames], count]);
}

/** compared: stacks of the base, or null */
function flameOf(stacks, base) {
	const all = base ? [...stacks, ...base] : stacks;
	const names = [...new Set(all.flatMap(([f]) => f))].sort();
	const number = new Map(names.map((n, i) => [n, i]));
	const root = { frame: names.length, children: new Map(), self: 0, total: 0, base: 0 };
	const add = (list, part) => {
		for (const [frames, count] of list) {
			let at = root;
			at.total += count;
			for (const name of frames) {
				if (!at.children.has(name)) at.children.set(name, { frame: number.get(name), children: new Map(), self: 0, total: 0, base: 0 });
				at = at.children.get(name);
				at.total += count;
			}
			at.self += count;
			at.base += part ? count : 0;
		}
	};
	add(stacks, false);
	if (base) add(base, true);
	const out = { frame: [], level: [], total: [], self: [], hidden: [], base_self: [], base_hidden: [], base_total: [] };
	const visit = (node, level) => {
		out.frame.push(node.frame);
		out.level.push(level);
		out.total.push(node.total);
		out.self.push(node.self);
		out.base_self.push(node.base);
		out.hidden.push(0);
		out.base_hidden.push(0);
		for (const child of [...node.children.values()].sort((a, b) => b.total - a.total || a.frame - b.frame)) visit(child, level + 1);
	};
	visit(root, 0);
	if (!base) for (const key of ['base_self', 'base_hidden', 'base_total']) delete out[key];
	const above = (name) => (name.startsWith('proc ') ? 5 : name.startsWith('worker-') ? 7 : name.startsWith('node-') ? 8 : name.startsWith('version=') ? 9 : 0);
	const suffix = (name) => SUFFIXES[/_\[\w\]$/.exec(name)?.[0]];
	return { ...out, names: names.map(shownName), kind: names.map((n) => suffix(n) ?? above(n)), module: names.map((n) => (n.startsWith('ns') ? 1 : 0)),
		modules: ['', 'libns.so'] };
}

function rangeOf(query, prefix = '') {
	const at = (text, otherwise) => {
		const found = /^now-(\d+)([smh])$/.exec(text ?? '');
		if (found) return NOW - Number(found[1]) * { s: 1000, m: 60000, h: 3600000 }[found[2]];
		if (!text || text === 'now') return otherwise;
		const time = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
		if (Number.isNaN(time)) throw Object.assign(new Error(`${prefix}from or to`), { status: 400 });
		return time;
	};
	return [at(query.get(prefix + 'from'), NOW - 3600000), at(query.get(prefix + 'to'), NOW)];
}

function pointsOf(service, count, total) {
	const random = randomOf(service.length * 77);
	const raw = Array.from({ length: count }, (_, i) => 1 + 0.4 * Math.sin((i / count) * 9 + service.length) + 0.3 * random());
	const sum = raw.reduce((a, b) => a + b, 0);
	return raw.map((v) => Math.round((v / sum) * total));
}

/** A stripe that moves through the second, a busy half second, noise; one service has no times, one has nothing. */
function secondsOf(service, columns) {
	const random = randomOf(service.length * 99 + 5);
	const cells = Array.from({ length: columns * 50 }, (_, at) => {
		const [column, row] = [Math.floor(at / 50), at % 50];
		const stripe = Math.abs(row - (25 + 15 * Math.sin(column / 25))) < 3 ? 5e7 : 0;
		const busy = column >= 40 && column < 46 && row > 10 && row < 36 ? 8e7 : 0;
		return ['php-fpm', 'true'].includes(service) ? 0 : 1e7 * Math.round((stripe + busy + (random() < 0.6 ? 2e7 * random() : 0)) / 1e7);
	});
	const total = cells.reduce((a, b) => a + b, 0);
	return { cells, total, untimed: service === 'php-fpm' ? 5e9 : service === 'true' ? 0 : Math.round(total / 24) };
}

/** Where round steps begin, how long they are and how many there are. */
function roundSteps(query, usual) {
	const [from, to] = rangeOf(query);
	const wanted = (to - from) / Number(query.get('points') ?? usual);
	const step = 1000 * (ROUND.find((s) => s * 1000 >= wanted) ?? ROUND.at(-1));
	const start = from - (from % step);
	return { from_ms: from, to_ms: to, start_ms: start, step_ms: step, count: Math.floor((to - start) / step) + 1 };
}

/** The largest of [name, CPUs, ...] and all others as one. */
function limited(list, query, usual) {
	const limit = Number(query.get('limit') ?? usual);
	return { rows: list.slice(0, limit), rest: list.slice(limit) };
}

const kept = new Map(); // snapshots by id

/** path: what stands behind snapshots, with its slash */
function snapshots(method, path, query, body) {
	const id = path.slice(1);
	if (method === 'POST') {
		const [from, to] = rangeOf(query);
		const made = { id: (kept.size + 0xa11ce).toString(16).padStart(32, '0'), title: body.title, selection: `cpu{service="${query.get('service')}"}`, service: query.get('service'), type: 'cpu',
			from_ms: from, to_ms: to, created_ms: NOW, profiles: 360, bytes: 70000, samples: [{ sample: 'cpu', unit: 'nanoseconds', total: 14e12 }, { sample: 'samples', unit: 'count', total: 1400 }],
			default: 'cpu' };
		kept.set(made.id, made);
		return [201, made];
	}
	if (!id && method === 'GET') return [200, { count: kept.size, snapshots: [...kept.values()].reverse() }];
	if (!kept.has(id)) return [404, { code: 404, error: 'there is no such snapshot' }];
	if (method !== 'DELETE') return [200, kept.get(id)];
	kept.delete(id);
	return [204];
}

const API = {
	services(query) {
		const [from, to] = rangeOf(query);
		const points = Number(query.get('points') ?? 60);
		const rows = SERVICES.map(([service, kind, cpus], i) => {
			const total = Math.round(cpus * (to - from) * 1e6);
			return { service, kind, total, before: i === 4 ? Math.round(total / 1.41) : i === 7 ? 0 : Math.round(total * (0.9 + 0.03 * i)), profiles: 360,
				first_ms: from + i * 60000, last_ms: to - 6000, hosts: 1 + (i % 3), points: pointsOf(service, points, total) };
		});
		const sum = (list) => list.reduce((all, r) => all + r.total, 0);
		for (const row of rows) if (row.kind === 'executable' && row.total < sum(rows) / 200) row.small = true;
		const services = rows.filter((r) => query.get('small') === 'list' || !r.small);
		const folded = rows.filter((r) => !services.includes(r));
		return { from_ms: from, to_ms: to, start_ms: from, step_ms: (to - from) / points, points, type: 'cpu', sample: 'cpu', unit: 'nanoseconds',
			total: sum(rows), services, folded: { services: folded.length, total: sum(folded) } };
	},
	agents() {
		const agent = (host, late, lost) => ({ host, version: '0.3.0', kernel: '6.1.0-18-amd64', system: 'Debian 12', sampler: 'bpf', cpus: 8, rate_hz: 99, first_ms: NOW - 3600000,
			last_ms: NOW - late, profiles: 360, services: 12, lost, quality: { user: 24000, whole: 23800, guessed: 60, cut: 140 - lost, lost } });
		return { from_ms: NOW - 3600000, to_ms: NOW, now_ms: NOW, agents: [agent('node-a', 6000, 0), agent('node-b', 8000, 0), agent('node-c', 1900000, 12)] };
	},
	types() {
		return { types: [{ type: 'cpu', profiles: 360, default: 'cpu', samples: [{ sample: 'cpu', unit: 'nanoseconds', total: 14e12 }] },
			{ type: 'offcpu', profiles: 360, default: 'off_cpu', samples: [{ sample: 'off_cpu', unit: 'nanoseconds', total: 148e12 }] }] };
	},
	labels(query) {
		const find = (query.get('find') ?? '').toLowerCase();
		const label = (name, all) => {
			const values = all.map((value, i) => ({ value, profiles: 100, total: Math.round(9e12 / (i + 1)) })).filter(({ value }) => name.includes(find) || value.toLowerCase().includes(find));
			return { name, count: values.length, values };
		};
		const labels = [label('host', ['node-a', 'node-b', 'node-c']), label('version', ['2026.11.3', '2026.11.2']),
			label('thread', ['http-nio-1', 'GC', 'C2 compiler', 'pool=1,2', '<b>', 'a', 'b', 'c'])].filter(({ name, count }) => count && (!query.get('name') || query.get('name') === name));
		return { sample: 'cpu', unit: 'nanoseconds', labels, count: labels.length };
	},
	timeline(query) {
		if (query.get('steps') === 'round' && query.get('group')) return API.heat(query);
		const [from, to] = rangeOf(query);
		const points = Number(query.get('points') ?? 300);
		return { from_ms: from, to_ms: to, start_ms: from, step_ms: (to - from) / points, sample: 'cpu', unit: 'nanoseconds', total: 14e12, profiles: 360,
			series: [{ value: '', total: 14e12, points: pointsOf(query.get('service') ?? '', points, 14e12) }] };
	},
	heat(query) {
		const { count, ...steps } = roundSteps(query, 300);
		const all = query.get('group') === 'host' ? HOSTS : query.get('group') === 'service' ? SERVICES.map(([name, , cpus]) => [name, cpus]) : [['2026.11.3', 3], ['2026.11.2', 2]];
		const labels = new URLSearchParams(query.get('labels') ?? '');
		const { rows, rest } = limited(labels.has('only') ? [] : all, query, 20);
		const span = (steps.to_ms - steps.from_ms) * 1e6;
		const series = rows.map(([value, cpus]) => ({ value, other: false, profiles: 360, first_ms: steps.from_ms, last_ms: steps.to_ms, points: pointsOf(value + 'x', count, Math.round(cpus * span)) }));
		if (rest.length) {
			series.push({ value: '', other: true, profiles: 9, first_ms: steps.from_ms, last_ms: steps.to_ms,
				points: pointsOf('rest', count, rest.reduce((sum, [, cpus]) => sum + Math.round(cpus * span), 0)) });
		}
		for (const row of series) row.total = row.points.reduce((a, b) => a + b, 0);
		return { ...steps, type: 'cpu', sample: 'cpu', unit: 'nanoseconds', mixed: false, total: series.reduce((sum, row) => sum + row.total, 0), profiles: 999, folded: rest.length, series };
	},
	subseconds(query) {
		const [asked, to] = rangeOf(query);
		const isLast = to - asked > 600000;
		if (isLast && query.get('last') !== '5m') throw Object.assign(new Error('the range is longer than ten minutes'), { status: 400 });
		const from = isLast ? to - 300000 : asked;
		const start = from - (from % 1000);
		const columns = Math.max(1, Math.ceil((to - start) / 1000));
		return { from_ms: from, to_ms: to, type: 'cpu', sample: 'cpu', unit: 'nanoseconds', mixed: false, start_ms: start, columns, rows: 50, step_ms: 20, last: isLast, partial: false,
			...secondsOf(query.get('service') ?? '', columns), profiles: 30, profiles_timed: query.get('service') === 'php-fpm' ? 0 : 30 };
	},
	processes(query) {
		const { count, ...steps } = roundSteps(query, 60);
		const by = query.get('by') || 'process';
		const program = query.get('program');
		const wanted = PROCESSES.filter(([name, pid]) => (!program || name === program) && (!query.get('process') || query.get('process') === `${pid}-${pid}99`));
		const each = by === 'thread' ? wanted.flatMap(([name, pid, threads, service, cpus]) => Array.from({ length: threads }, (_, i) => [name, pid, i, service, cpus / threads])) : wanted;
		const { rows, rest } = limited(each, query, 100);
		const span = (steps.to_ms - steps.from_ms) * 1e6;
		const sum = (points) => points.reduce((a, b) => a + b, 0);
		const out = rows.map(([name, pid, threads, service, cpus]) => {
			const points = pointsOf(name, count, Math.round(cpus * span));
			return { program: name, ...(by !== 'program' && { process: `${pid}-${pid}99`, pid }), ...(by === 'thread' ? { thread: pid + threads, thread_name: `${name}-${threads}` } : { threads }),
				...(by === 'program' && { processes: 2 }), service, total: sum(points), first_ms: steps.from_ms, last_ms: steps.to_ms, points };
		});
		const folded = pointsOf('rest', count, rest.reduce((all, [, , , , cpus]) => all + Math.round(cpus * span), 0));
		return { ...steps, type: 'cpu', sample: 'cpu', unit: 'nanoseconds', mixed: false, by, points: count, total: sum(out.map((r) => r.total)) + sum(folded), rows: out,
			folded: { rows: rest.length, total: sum(folded), points: folded } };
	},
	flame(query) {
		const [from, to] = rangeOf(query);
		if (query.has('snapshot') && !kept.has(query.get('snapshot'))) throw Object.assign(new Error('there is no such snapshot'), { status: 404 });
		const lacks = kept.has(query.get('snapshot')) && query.get('sample') && !kept.get(query.get('snapshot')).samples.some((s) => s.sample === query.get('sample'));
		if (lacks) throw Object.assign(new Error(`these profiles have no sample type "${query.get('sample')}"`), { status: 404 });
		const service = kept.get(query.get('snapshot'))?.service ?? query.get('service') ?? '';
		const plain = service ? stacksOf(service) : SERVICES.flatMap(([name]) => stacksOf(name));
		const stacks = groupedStacks(plain, (query.get('group') ?? '').split(',').filter(Boolean));
		const tree = flameOf(stacks, null);
		return { meta: { from_ms: from, to_ms: to, service, type: 'cpu', sample: 'cpu', unit: 'nanoseconds', scale: 1, nanoseconds: 1, total: totalOf(stacks),
			...(query.get('within') && { within_ms: query.get('within').split('-').map(Number), untimed: Math.round(totalOf(stacks) / 19), whole_total: totalOf(stacks) }),
			nodes: tree.level.length, whole_nodes: tree.level.length, profiles: 360, kinds: KINDS, path: 0, facts: { host: 'node-a', lost: 3, user: 9000, whole: 8900, guessed: 40, cut: 60 } }, ...tree };
	},
	compare(query) {
		const has = (name) => query.has('base-' + name) || query.has(name);
		const of = (name) => query.get('base-' + name) ?? query.get(name) ?? '';
		if (query.has('base-snapshot') && !kept.has(query.get('base-snapshot'))) throw Object.assign(new Error('the base: there is no such snapshot: it was deleted'), { status: 404 });
		if (!query.has('base-snapshot') && (of('service') === 'nothing' || of('labels').includes('none'))) throw Object.assign(new Error('the base: nothing found'), { status: 404 });
		const { meta } = API.flame(query);
		const now = meta.service || SERVICES[0][0];
		const snapshot = kept.get(query.get('base-snapshot'));
		const service = snapshot?.service ?? (has('service') ? of('service') : now);
		const groups = (query.get('group') ?? '').split(',').filter(Boolean);
		const known = new URLSearchParams([['from', of('from')], ['to', of('to')]].filter(([, text]) => text));
		const [from, to] = snapshot ? [snapshot.from_ms, snapshot.to_ms] : rangeOf(known, '').map((ms) => (ms > 1e15 ? Math.floor(ms / 1e6) : ms));
		const base = groupedStacks(stacksOf(service || SERVICES[0][0]), groups).filter(([frames]) => !frames.some((f) => shownName(f) === 'ns1::fn_1')).map(([f, count]) => [f.length > 6 ? [...f.slice(0, 5), 'old_name'] : f, Math.round(count * 0.7)]);
		const stacks = groupedStacks(stacksOf(now), groups);
		const tree = flameOf(stacks, base);
		return { meta: { ...meta, total: totalOf(stacks) + totalOf(base), base_total: totalOf(base), base_profiles: 360, base_service: service, base_from_ms: from, base_to_ms: to,
			nodes: tree.level.length, whole_nodes: tree.level.length }, ...tree };
	},
	lines(query, body) {
		const [{ name }] = body.path;
		if (name === 'main') throw Object.assign(new Error('the function is not in these profiles'), { status: 404 });
		const line = (file, at, total) => ({ file, line: at, self: total / 2, total });
		return { sample: 'cpu', unit: 'nanoseconds', self: 6e9, total: 12e9, count: 3, lines: [line('/src/odd dir/a#b?.c', 12, 8e9), line('javascript:window.__hit=1//<b>', 3, 3e9), line('', 0, 1e9)] };
	},
};

/** The binary form of a flame graph (docs/api.yaml, flag 2). */
export function binaryOf({ meta, names, kind, module, modules, level, frame, self, hidden }) {
	const varints = (numbers) => {
		const out = [];
		for (let value of numbers) {
			for (; value > 127; value = Math.floor(value / 128)) out.push((value % 128) | 128);
			out.push(value);
		}
		return Buffer.from(out);
	};
	const texts = names.map((name) => Buffer.from(name));
	const callees = Array.from({ length: names.length + 1 }, () => []);
	const open = [];
	const calls = [];
	const pops = [];
	for (const [i, f] of frame.entries()) {
		if (i) {
			const list = callees[open[level[i] - 1]];
			if (!list.includes(f)) list.push(f);
			calls.push(list.indexOf(f));
			pops.push(level[i - 1] + 1 - level[i]);
		}
		open[level[i]] = f;
	}
	const columns = [varints(modules.slice(1).map((m) => Buffer.byteLength(m))), Buffer.from(modules.slice(1).join('')), varints(texts.flatMap((t) => [0, t.length])), Buffer.concat(texts),
		Buffer.from(kind), varints(module), varints(callees.map((c) => c.length)), varints(callees.flat()), varints(pops), varints(calls), varints(self.slice(1)), Buffer.alloc(0), Buffer.alloc(0), varints(hidden)];
	const head = varints([1, 2, names.length, modules.length - 1, level.length, Math.max(...level), meta.total, ...columns.map((c) => c.length)]);
	const text = Buffer.from(JSON.stringify(meta));
	const size = Buffer.alloc(4);
	size.writeUInt32LE(text.length);
	return Buffer.concat([size, text, deflateRawSync(Buffer.concat([head, ...columns]))]);
}

/** Stacks of the moving range: what was the lesser part becomes the larger one with every round. */
export function liveStacksOf(service, round) {
	return stacksOf(service || SERVICES[0][0]).map(([frames, count], i) => [frames, count * (1 + ((i + round) % 2) * 20)]);
}

/** hides: a part of the picture is too narrow for it. */
function liveEvents(query, round, hides = false) {
	const service = query.get('service') ?? '';
	if (service === 'nothing') return `event: empty\nid: ${round}\ndata: {}\n\n`;
	const stacks = liveStacksOf(service, round);
	const tree = flameOf(stacks, null);
	if (hides) tree.hidden[0] = Math.ceil(totalOf(stacks) / 10);
	const meta = { ...API.flame(query).meta, total: totalOf(stacks) + tree.hidden[0], nodes: tree.level.length, whole_nodes: tree.level.length };
	const totals = API.services(query);
	if (round % 2) totals.services.reverse();
	return `event: totals\nid: ${round}\ndata: ${JSON.stringify(totals)}\n\nevent: flame\nid: ${round}\ndata: ${JSON.stringify({ meta, bin: binaryOf({ meta, ...tree }).toString('base64') })}\n\n`;
}

const DAY_MS = 86400000;

/** What the administration page asks and changes. options: as startCollector() */
class Admin {
	constructor({ token = '', scopes = ['ingest', 'read', 'admin'], more = [], disk = {} }) {
		this.session = { needs_token: Boolean(token), scopes };
		this.services = [...SERVICES.map(([name]) => name), ...more];
		this.tokens = token ? [this.token('0011223344556677', 'the <b>admin</b>\u202e', scopes, true), this.token('8899aabbccddeeff', 'agents', ['ingest'], false)] : [];
		this.disk = disk;
	}

	token(id, name, scopes, own) {
		return { id, name, scopes, created_ms: NOW - 30 * DAY_MS, own };
	}

	get mayChange() {
		return this.session.needs_token && this.session.scopes.includes('admin');
	}

	storage() {
		const days = Array.from({ length: 16 }, (_, i) => ({ day: new Date(NOW - (15 - i) * DAY_MS).toISOString().slice(0, 10), open: i > 13, profiles: 8640 + i, files: i > 13 ? 2 : 1, bytes: 41e6 + i * 1e5,
			newest_ms: NOW - (15 - i) * DAY_MS - 5000, ...(i === 0 && { goes: 'age' }) }));
		return { engine: 'sqlite', now_ms: NOW, days, years: [{ year: '2026', open: true, files: 1, bytes: 5e6 }],
			retention: { age_ms: 14 * DAY_MS, daily_age_ms: 400 * DAY_MS, size: 2 ** 30, free_auto: true, free: 2 ** 30 }, disk: { size: 1e11, free: 6e10, leaving: 0, goal: 2 ** 30, lowered: false, ...this.disk },
			over: false, stuck: false, next: { day: days[1].day, not_before_ms: NOW + 3600000 }, profiles: 138240, bytes: days.reduce((sum, day) => sum + day.bytes, 5e6), odd: [{ file: '2026-11-01.db', why: 'is a link <b>' }], odd_count: 1,
			services: this.services, service_count: this.services.length };
	}

	/** Returns an answer, or { status, error }. */
	answer(method, what, query, body) {
		const refuse = (status, error) => ({ status, error });
		const amount = (service) => ({ service, profiles: 4320, sums: 0, files: 16, bytes: 81920000, aside: 0 });
		const isThere = (service) => this.services.includes(service);
		if (what === 'storage') return this.storage();
		if (what === 'storage/service') return isThere(query.get('service')) ? amount(query.get('service')) : refuse(404, 'nothing is stored of this service');
		if (method !== 'GET' && !this.mayChange) return refuse(403, 'this needs a token with the scope admin');
		if (what === 'services') {
			const service = query.get('service');
			if (!isThere(service)) return refuse(404, 'nothing is stored of this service');
			if (service === 'php-fpm') return refuse(507, 'the disk is full: what stays is written anew and needs room beside; nothing was deleted');
			this.services = this.services.filter((name) => name !== service);
			return amount(service);
		}
		if (this.session.needs_token && !this.mayChange) return refuse(403, 'the token has not the scope that this needs');
		if (method === 'GET') return { asked_for: this.session.needs_token, possible: true, writable: true, tokens: this.tokens };
		if (method === 'POST') {
			const made = this.token(String(this.tokens.length).repeat(16), body.name, body.scopes, false);
			this.tokens.push(made);
			return { ...made, token: 'hearth_' + 'ab'.repeat(32) };
		}
		const gone = this.tokens.find((token) => token.id === query.get('id'));
		if (!gone) return refuse(404, 'there is no token with this id');
		this.tokens = this.tokens.filter((token) => token !== gone);
		return { ...gone, left: this.tokens.length };
	}
}

/**
 * options.token: asked for; scopes: what it may do; more: further names of services; disk: of what GET storage answers;
 * covered: which part of a range has profiles, or a function of its begin that says so.
 * Returns { url, close, requests, writes, streams, nextRound(), admin }; writes: [method, address, body] of what the admin page changes.
 */
export function startCollector(options = {}) {
	const requests = [];
	const writes = [];
	const streams = new Set();
	const admin = new Admin(options);
	let round = 0;
	const server = createServer(async (request, response) => {
		const url = new URL(request.url, 'http://127.0.0.1');
		const headers = { 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-cache' };
		const send = (status, type, body) => {
			response.writeHead(status, { ...headers, 'Content-Type': type });
			response.end(body);
		};
		requests.push(request.url);
		const name = url.pathname === '/' ? 'index.html' : /^\/ui\/([\w.]+)$/.exec(url.pathname)?.[1];
		if (name) {
			if (name === 'file_worker.js') headers['Content-Security-Policy'] = POLICY.replace("script-src 'self'", "$& 'wasm-unsafe-eval'");
			if (name === 'readers.wasm' && !READERS) {
				send(204, TYPES['.wasm'], '');
				return;
			}
			try {
				send(200, TYPES[extname(name)] ?? 'application/octet-stream', readFileSync(name === 'readers.wasm' && READERS ? READERS : join(WEB, name)));
			} catch {
				send(404, 'text/plain', 'no such file');
			}
			return;
		}
		const what = url.pathname.replace('/api/v1/', '');
		if (options.fail?.(what)) {
			send(options.fail(what), 'application/json', JSON.stringify({ code: options.fail(what), error: 'made to fail' }));
			return;
		}
		if (options.token && what === 'session' && request.method === 'POST') {
			let body = '';
			request.on('data', (part) => (body += part));
			request.on('end', () => {
				if (JSON.parse(body).token !== options.token) {
					send(401, 'application/json', '{"code":401,"error":"no such token"}');
					return;
				}
				headers['Set-Cookie'] = `hearth-token=${options.token}; HttpOnly; SameSite=Strict; Path=/`;
				send(200, 'application/json', JSON.stringify(admin.session));
			});
			return;
		}
		if (what === 'session') {
			const isIn = !options.token || (request.headers.cookie ?? '').includes(options.token);
			if (request.method === 'DELETE') headers['Set-Cookie'] = 'hearth-token=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0';
			if (request.method === 'DELETE') send(204, 'text/plain', '');
			else send(200, 'application/json', JSON.stringify(isIn ? admin.session : { needs_token: true, scopes: [] }));
			return;
		}
		if (options.token && !(request.headers.cookie ?? '').includes(options.token)) {
			send(401, 'application/json', '{"code":401,"error":"a token is needed"}');
			return;
		}
		if (what === 'live') {
			response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream' });
			response.write('retry: 3000\n\nevent: hello\ndata: {"version": 1}\n\n:\n\n' + liveEvents(url.searchParams, round));
			if (url.searchParams.get('once')) {
				response.end();
				return;
			}
			const stream = { response, query: url.searchParams };
			streams.add(stream);
			response.on('close', () => streams.delete(stream));
			return;
		}
		if (what.startsWith('snapshots')) {
			let text = '';
			for await (const part of request) text += part;
			const [status, answer] = snapshots(request.method, what.slice('snapshots'.length), url.searchParams, text && JSON.parse(text));
			send(status, 'application/json', answer ? JSON.stringify(answer) : '');
			return;
		}
		if (['storage', 'storage/service', 'tokens'].includes(what) || (what === 'services' && request.method === 'DELETE')) {
			let body = '';
			for await (const part of request) body += part;
			if (request.method !== 'GET') writes.push([request.method, request.url, body && JSON.parse(body)]);
			const { status, error, ...answer } = admin.answer(request.method, what, url.searchParams, body && JSON.parse(body));
			send(status ?? 200, 'application/json', JSON.stringify(status ? { code: status, error } : answer));
			return;
		}
		if (!Object.hasOwn(API, what)) {
			send(404, 'application/json', '{"code":404,"error":"no such path"}');
			return;
		}
		let body = '';
		for await (const part of request) body += part;
		try {
			const answer = API[what](url.searchParams, body && JSON.parse(body));
			if (options.covered && ['services', 'timeline'].includes(what)) {
				const coveredFrom = (from) => (typeof options.covered === 'function' ? options.covered(from) : options.covered) * (answer.to_ms - answer.from_ms);
				answer.covered_ms = coveredFrom(answer.from_ms);
				if (url.searchParams.get('before') === '1d') answer.before_covered_ms = coveredFrom(answer.from_ms - 86400000);
			}
			if (url.searchParams.get('format') === 'bin' && !answer.base_self) send(200, 'application/vnd.hearth.flame', binaryOf(answer));
			else send(200, 'application/json', JSON.stringify(answer));
		} catch (problem) {
			send(problem.status ?? 500, 'application/json', JSON.stringify({ code: problem.status ?? 500, error: problem.message }));
		}
	});
	return new Promise((resolve) => server.listen(options.port ?? 0, '127.0.0.1', () => resolve({
		url: `http://127.0.0.1:${server.address().port}/`, requests, writes, streams, admin,
		hides: false,
		nextRound() {
			round++;
			for (const { response, query } of streams) response.write(liveEvents(query, round, this.hides));
		},
		close: () => new Promise((done) => {
			server.closeAllConnections();
			server.close(done);
		}),
	})));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const collector = await startCollector({ port: Number(process.argv[2] ?? 0) });
	setInterval(() => collector.nextRound(), 1000);
	console.log(collector.url);
}
