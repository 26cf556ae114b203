// SPDX-License-Identifier: Apache-2.0
// Which services cost what, since when, and are all agents sending?
import { byId, makeElement, shownName } from './around.js';
import { askJson } from './api.js';
import { spanText } from './blocks.js';
import { drawSparklines } from './chart.js';
import { formatCount, formatShare, formatValue } from './format.js';

const LATE_MS = 180000;
const SECOND = 1e9;

/** How long an answer's profiles took together: CPUs are time over this. The range itself where the server cannot know. */
export function coveredMs({ covered_ms: covered, from_ms: from, to_ms: to }) {
	return covered || to - from;
}

/** What time a service took in the range before, as if that had profiles of as much time: CPUs are compared, not sums. */
function beforeAsLong(before, { covered_ms: covered, before_covered_ms: beforeCovered }) {
	return covered && beforeCovered ? (before * covered) / beforeCovered : before;
}

/** @param {number} ms that have data: coveredMs() */
export function formatCpus(value, ms) {
	return (value / SECOND / Math.max(0.001, ms / 1000)).toFixed(2);
}

/** Why CPUs are more than time over the range; empty where they are not. */
export function coveredText(answer) {
	const { from_ms: from, to_ms: to } = answer;
	const part = coveredMs(answer) / Math.max(1, to - from);
	return part < 0.99 ? `Mean over the ${formatValue(coveredMs(answer) * 1e6, { unit: 'nanoseconds', scale: 1, nanoseconds: 0 })} of the range that have profiles` : '';
}

/** Against the range before: the text, and whether it is worth a look. */
export function changeOf(now, before, hasBase = true) {
	if (!hasBase) return { text: 'no data', tone: 'quiet' };
	if (!before) return { text: now ? 'new' : '', tone: '' };
	const part = (100 * (now - before)) / before;
	const text = (part >= 0 ? '+' : '−') + (Math.abs(part) >= 1000 ? '999' : Math.abs(part).toFixed(Math.abs(part) < 10 ? 1 : 0)) + ' %';
	return { text, tone: part >= 10 ? 'worse' : part <= -5 ? 'better' : '' };
}

/** When a service's first and last profile of the range began: its trend is of the whole range, where it may have none. */
export function profilesText({ first_ms: first, last_ms: last }) {
	return first > 0 && last >= first ? `Profiles of ${spanText(first, last)}` : '';
}

export function ageText(ms) {
	const seconds = Math.max(0, Math.round(ms / 1000));
	if (seconds < 90) return seconds + ' s ago';
	if (seconds < 5400) return Math.round(seconds / 60) + ' min ago';
	return seconds < 172800 ? Math.round(seconds / 3600) + ' h ago' : Math.round(seconds / 86400) + ' d ago';
}

function factRow(name, value, tone = '') {
	return makeElement('div', '', makeElement('dt', '', name), makeElement('dd', tone, value));
}

/** names: [text, class, what the pointer is told] of each column */
export function headRow(names) {
	return makeElement('tr', '', ...names.map(([text, className, title]) => {
		const cell = makeElement('th', className, text);
		cell.scope = 'col';
		if (title) cell.title = title;
		return cell;
	}));
}

export class ServicesPage {
	/** @param {PageApp} app */
	constructor(app) {
		this.app = app;
		this.isOpen = false; // services that cost little are listed
		/** @type {object | null} */
		this.asked = null; // the answer whose folded services are being asked for
		byId('service-filter').addEventListener('input', () => this.filter());
	}

	async show(signal) {
		const [services, agents] = await Promise.all([
			this.ask(signal),
			askJson('agents', { from: this.app.selection.from, to: this.app.selection.to }, { signal }),
		]);
		this.answer = services;
		this.agents = agents;
		this.fill();
		this.fillAgents();
	}

	/** Are services that cost little asked for? */
	get isWhole() {
		return this.isOpen || byId('service-filter').value !== '';
	}

	ask(signal) {
		const { from, to } = this.app.selection;
		return askJson('services', { from, to, points: 60, steps: 'round', before: '1d', small: this.isWhole ? 'list' : 'fold' }, { signal });
	}

	/** What the server has folded is asked for when somebody looks for it: once, but again after it failed. */
	async filter() {
		this.fill();
		const { answer } = this;
		const { signal } = this.app;
		if (!this.isWhole || !answer?.folded?.services || answer.isWhole || this.asked === answer) return;
		this.asked = answer;
		try {
			const whole = await this.ask(signal);
			if (this.answer !== answer) return;
			this.answer = Object.assign(whole, { isWhole: true });
			byId('trouble').hidden = true;
			this.fill();
		} catch (problem) {
			if (!signal.aborted) this.app.trouble(problem);
		} finally {
			if (this.asked === answer) this.asked = null;
		}
	}

	async open(isOpen) {
		this.isOpen = isOpen;
		await this.filter();
		byId('services').querySelector('.open-small')?.focus();
	}

	fill() {
		const { answer } = this;
		if (!answer) return;
		const filter = byId('service-filter').value.toLowerCase();
		const isTime = answer.unit === 'nanoseconds';
		const amount = isTime ? 'CPUs' : answer.sample;
		byId('services').tHead.replaceChildren(headRow([['Service'], ['Over the range', 'trend', spanText(answer.from_ms, answer.to_ms)], [amount, 'number', isTime ? coveredText(answer) : ''], ['Share'],
			['Against a day ago', 'number before'], ['Hosts', 'number hosts']]));
		this.hasBase = answer.services.some((s) => s.before > 0); // on the first day there is nothing to compare with
		const shown = [];
		const small = { count: answer.folded?.services ?? 0, total: answer.folded?.total ?? 0 };
		for (const service of answer.services) {
			if (filter ? service.service.toLowerCase().includes(filter) : this.isOpen || !service.small) shown.push(service);
			else if (!filter) {
				small.count++;
				small.total += service.total;
			}
		}
		this.largest = shown.reduce((most, s) => Math.max(most, s.total), small.total) / Math.max(1, answer.total);
		/** @type {{ row: HTMLElement, canvas?: HTMLCanvasElement, points?: number[] }[]} */
		const rows = shown.map((service) => this.serviceRow(service, isTime));
		const listed = answer.services.filter((s) => s.small).length;
		if (small.count || (this.isOpen && listed && !filter)) rows.push(this.smallRow(small, listed, isTime));
		byId('services').tBodies[0].replaceChildren(...rows.map((row) => row.row));
		drawSparklines(rows.filter((row) => row.canvas).map(({ canvas, points }) => [canvas, points]));
		byId('services').hidden = !rows.length;
		byId('services-empty').hidden = rows.length > 0;
		byId('services-empty').replaceChildren(...(filter ? ['No service has this in its name.'] : ['Nothing was stored in this range. ',
			makeElement('code', '', 'hearth agent --upload-to ' + location.origin), ' on a machine sends its profiles here; a longer range may have some.']));
	}

	amount(value, isTime) {
		const { unit } = this.answer;
		return isTime ? formatCpus(value, coveredMs(this.answer)) : formatValue(value, { unit, scale: 1, nanoseconds: 0 });
	}

	shareCell(total) {
		const bar = makeElement('span');
		const share = this.answer.total ? total / this.answer.total : 0;
		bar.style.setProperty('--share', String(share / Math.max(1e-9, this.largest)));
		return makeElement('td', 'share-box', makeElement('div', 'share', bar, makeElement('span', '', formatShare(total, this.answer.total))));
	}

	serviceRow(service, isTime) {
		const link = makeElement('a', '', shownName(service.service, 200));
		link.href = this.app.link({ page: 'profile', service: service.service });
		link.title = link.textContent;
		const canvas = makeElement('canvas');
		canvas.setAttribute('aria-hidden', 'true');
		const { text, tone } = changeOf(service.total, isTime ? beforeAsLong(service.before, this.answer) : service.before, this.hasBase);
		const trend = makeElement('td', 'trend', canvas);
		trend.title = profilesText(service);
		const row = makeElement('tr', '', makeElement('td', '', link, makeElement('span', 'kind', service.kind ?? '')), trend,
			makeElement('td', 'number', this.amount(service.total, isTime)), this.shareCell(service.total),
			makeElement('td', 'number before ' + tone, text), makeElement('td', 'number hosts', formatCount(service.hosts ?? 0)));
		return { row, canvas, points: service.points };
	}

	smallRow({ count, total }, listed, isTime) {
		const isListed = this.isOpen && listed > 0;
		const text = isListed ? `Fold ${formatCount(listed)} below 0.5 % each` : `${formatCount(count)} more below 0.5 % each`;
		const button = makeElement('button', 'open-small quiet', text);
		button.type = 'button';
		button.setAttribute('aria-expanded', String(isListed));
		button.addEventListener('click', () => this.open(!isListed));
		const name = makeElement('td', 'quiet', button);
		if (!count) return { row: makeElement('tr', '', name, ...Array.from({ length: 5 }, () => makeElement('td'))) };
		return { row: makeElement('tr', '', name, makeElement('td', 'trend'), makeElement('td', 'number', this.amount(total, isTime)),
			this.shareCell(total), makeElement('td', 'before'), makeElement('td', 'hosts')) };
	}

	fillAgents() {
		const { agents, now_ms: now } = this.agents;
		const cpus = agents.reduce((sum, a) => sum + (a.cpus ?? 0), 0);
		const { total, unit } = this.answer;
		const quality = { user: 0, whole: 0, lost: 0 };
		for (const a of agents) for (const key of Object.keys(quality)) quality[key] += a.quality?.[key] ?? 0;
		const late = agents.filter((a) => now - a.last_ms > LATE_MS);
		const newest = agents.reduce((last, a) => Math.max(last, a.last_ms), 0);
		const busy = unit === 'nanoseconds' ? formatCpus(total, coveredMs(this.answer)) + (cpus ? ` of ${cpus}` : '') : '';
		const facts = [factRow('hosts', formatCount(agents.length))];
		if (busy) {
			facts.push(factRow('CPUs busy', busy));
			facts[1].title = coveredText(this.answer);
		}
		if (quality.user) facts.push(factRow('whole stacks', formatShare(quality.whole, quality.user + quality.lost)));
		if (agents.length) facts.push(factRow('lost', formatCount(quality.lost), quality.lost ? 'warn' : ''));
		if (agents.length) facts.push(factRow('agents sending', `${agents.length - late.length} of ${agents.length}, ${ageText(now - newest)}`, late.length ? 'warn' : ''));
		byId('machine').replaceChildren(...facts);
		const table = byId('agents').querySelector('table');
		table.tHead.replaceChildren(headRow([['Host'], ['Last profile'], ['Version'], ['Kernel'], ['Sampler'], ['CPUs', 'number'], ['Whole', 'number'], ['Lost', 'number']]));
		table.tBodies[0].replaceChildren(...agents.map((a) => {
			const link = makeElement('a', '', shownName(a.host, 200));
			link.href = this.app.link({ page: 'profile', service: '', labels: [['host', a.host]] });
			const cells = [link, ageText(now - a.last_ms), a.version, a.kernel, a.sampler].map((text, i) =>
				makeElement('td', i === 1 && now - a.last_ms > LATE_MS ? 'warn' : '', typeof text === 'string' ? shownName(text, 80) : text ?? ''));
			const whole = a.quality?.user ? formatShare(a.quality.whole, a.quality.user + a.quality.lost) : '';
			cells.push(...[a.cpus ?? '', whole, formatCount(a.lost ?? 0)].map((text) => makeElement('td', 'number', String(text))));
			return makeElement('tr', '', ...cells);
		}));
		byId('agents').hidden = !agents.length;
		byId('agents').querySelector('summary').textContent = late.length ? `Agents: ${late.length} not sending` : 'Agents';
	}
}
