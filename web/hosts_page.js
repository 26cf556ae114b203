// SPDX-License-Identifier: Apache-2.0
// What runs on a host: its processes, threads or programs over time, the dearest first; each a link to its flame graph.
import { byId, makeElement, shownName } from './around.js';
import { askJson } from './api.js';
import { drawSparklines } from './chart.js';
import { formatCount, formatShare, formatValue } from './format.js';
import { formatLabels, oneValue } from './labels.js';
import { NOBODY, whoseParams, whoseText } from './selection.js';
import { ageText, coveredMs, coveredText, formatCpus, headRow } from './services_page.js';

const HOSTS_SHOWN = [100, 1000];
const ROWS_SHOWN = [100, 1000];
const BY = { process: 'Processes', thread: 'Threads', program: 'Programs' };

export class HostsPage {
	/** @param {PageApp} app */
	constructor(app) {
		this.app = app;
		this.hostLevel = this.level = 0;
		/** @type {PageSelection} what the answer is of */
		this.of = null;
		byId('owner-filter').addEventListener('input', () => this.fillRows());
		for (const [by, text] of Object.entries(BY)) {
			const button = makeElement('button', '', text);
			button.type = 'button';
			button.dataset.by = by;
			button.addEventListener('click', () => app.go({ page: 'hosts', by, ...(by === 'thread' ? {} : NOBODY) }));
			byId('owner-by').append(button);
		}
		new MutationObserver(() => this.drawTrends()).observe(document.documentElement, { attributeFilter: ['data-theme'] });
	}

	get host() {
		return oneValue(this.app.selection.labels, 'host') ?? this.dearest;
	}

	params() {
		const { type, sample, from, to } = this.app.selection;
		return { type, sample, from, to };
	}

	async show(signal) {
		const { selection } = this.app;
		const { from, to } = selection;
		const [hosts, { agents, now_ms: now }] = await Promise.all([
			askJson('timeline', { ...this.params(), group: 'host', steps: 'round', points: 60, limit: HOSTS_SHOWN[this.hostLevel] }, { signal }),
			askJson('agents', { from, to }, { signal }),
		]);
		this.hosts = hosts;
		this.agents = new Map(agents.map((agent) => [agent.host, agent]));
		this.now = now;
		this.dearest = hosts.series.find((s) => s.value && !s.other)?.value;
		this.fillHosts();
		byId('hosts-empty').hidden = this.host !== undefined;
		byId('host-work').hidden = byId('host-side').hidden = this.host === undefined;
		if (this.host === undefined) return;
		const { by } = selection;
		if (this.shown !== this.host + '\0' + by) this.level = 0;
		this.shown = this.host + '\0' + by;
		this.answer = await askJson('processes', { ...this.params(), by, labels: formatLabels([['host', this.host]]), points: 60, limit: ROWS_SHOWN[this.level],
			...whoseParams(selection) }, { signal });
		this.of = { ...selection, labels: [['host', this.host]] };
		this.fillHead();
		this.fillRows();
	}

	amount(value, answer) {
		const { unit } = answer;
		return unit === 'nanoseconds' ? formatCpus(value, coveredMs(this.hosts)) : formatValue(value, { unit, scale: 1, nanoseconds: 0 });
	}

	/* Hosts */

	fillHosts() {
		const { series, folded } = this.hosts;
		this.hostTrends = [];
		const items = series.filter((row) => !row.other).map((row) => {
			const cpus = this.agents.get(row.value)?.cpus;
			const name = row.value ? shownName(row.value, 200) : '(no host)';
			const amount = this.amount(row.total, this.hosts) + (cpus ? ` of ${cpus}` : '');
			const canvas = makeElement('canvas');
			canvas.setAttribute('aria-hidden', 'true');
			this.hostTrends.push([canvas, row.points]);
			const button = makeElement('button', 'choice', makeElement('span', '', name), makeElement('span', '', amount), canvas);
			button.type = 'button';
			button.title = row.value ? name : 'These profiles do not say their host: no selector can name them';
			button.disabled = !row.value;
			button.setAttribute('aria-pressed', String(row.value !== '' && row.value === this.host));
			button.addEventListener('click', () => this.app.go({ page: 'hosts', labels: [['host', row.value]], ...NOBODY }));
			return makeElement('li', '', button);
		});
		if (folded) {
			const more = makeElement('button', 'quiet', `${formatCount(folded)} more`);
			more.type = 'button';
			more.disabled = this.hostLevel === HOSTS_SHOWN.length - 1;
			more.addEventListener('click', () => {
				this.hostLevel++;
				this.app.again();
			});
			items.push(makeElement('li', '', more));
		}
		byId('host-list').replaceChildren(...items);
		this.drawTrends();
	}

	fillHead() {
		const { answer, host } = this;
		const agent = this.agents.get(host);
		const row = this.hosts.series.find((s) => s.value === host && !s.other);
		const isTime = answer.unit === 'nanoseconds';
		const facts = [[isTime ? 'CPUs busy' : answer.sample, this.amount(row?.total ?? answer.total, answer) + (isTime && agent?.cpus ? ` of ${agent.cpus}` : '')]];
		if (agent) facts.push(['last profile', ageText(this.now - agent.last_ms)], ['kernel', shownName(agent.kernel ?? '', 60)]);
		byId('host-name').textContent = shownName(host, 200);
		byId('host-facts').replaceChildren(...facts.map(([name, value]) => makeElement('div', '', makeElement('dt', '', name), makeElement('dd', '', value))));
		for (const button of byId('owner-by').querySelectorAll('button')) button.setAttribute('aria-pressed', String(button.dataset.by === answer.by));
		const whose = whoseText(this.app.selection);
		const of = byId('owner-of');
		of.hidden = !whose;
		of.replaceChildren(...(whose ? [this.allButton(`Only of ${shownName(whose, 100)}`)] : []));
		const all = makeElement('a', '', 'Flame graph of the host');
		all.href = this.app.link({ page: 'profile', service: '', labels: [['host', host]], ...NOBODY });
		byId('host-graph').replaceChildren(all);
	}

	allButton(text) {
		const button = makeElement('button', 'chip', text + ' ×');
		button.type = 'button';
		button.title = 'Show all of them';
		button.addEventListener('click', () => this.app.go({ page: 'hosts', ...NOBODY }));
		return button;
	}

	/* Rows */

	/** What only this row has. */
	whose(row) {
		const { by } = this.answer;
		if (by === 'program') return { ...NOBODY, program: row.program };
		const of = { ...NOBODY, process: row.process, program: row.program };
		return by === 'thread' ? { ...of, thread: String(row.thread), threadName: row.thread_name ?? '' } : of;
	}

	/** Of what is shown, even while something else is asked for. */
	linkOf(row) {
		return this.app.link({ ...this.of, page: 'profile', service: '', ...this.whose(row) });
	}

	nameOf(row) {
		const { by } = this.answer;
		const name = by === 'thread' ? row.thread_name || row.program : row.program;
		const number = { process: row.pid, thread: row.thread, program: 0 }[by];
		return [name ? shownName(name, 100) : number ? '(no name)' : '(no process is said)', number ? String(number) : ''];
	}

	fillRows() {
		const { answer } = this;
		if (!answer) return;
		const { by } = answer;
		const filter = byId('owner-filter').value.toLowerCase();
		const rows = answer.rows.filter((row) => !filter || [row.program, row.thread_name, row.service, String(row.pid ?? ''), String(row.thread ?? '')].some((text) => text?.toLowerCase().includes(filter)));
		const last = { process: 'Threads', thread: 'Process', program: 'Processes' }[by];
		byId('owners').tHead.replaceChildren(headRow([[{ process: 'Process', thread: 'Thread', program: 'Program' }[by]], ['Service', 'service'], ['Over the range', 'trend'],
			[answer.unit === 'nanoseconds' ? 'CPUs' : answer.sample, 'number', answer.unit === 'nanoseconds' ? coveredText(this.hosts) : ''], ['Share'], [last, by === 'thread' ? 'members' : 'number members']]));
		this.largest = rows.reduce((most, row) => Math.max(most, row.total), 0) / Math.max(1, answer.total);
		this.trends = [];
		const shown = rows.map((row) => this.row(row, by));
		if (answer.folded.total && !filter) shown.push(this.foldedRow());
		byId('owners').tBodies[0].replaceChildren(...shown);
		byId('owners').hidden = !shown.length;
		byId('owners-empty').hidden = shown.length > 0;
		byId('owners-empty').textContent = filter ? 'Nothing has this in its name.' : 'Nothing was stored of this host in this range.';
		this.drawTrends();
	}

	row(row, by) {
		const [name, number] = this.nameOf(row);
		const link = makeElement('a', '', name);
		link.href = this.linkOf(row);
		link.title = number ? `${name} ${number}` : name;
		return makeElement('tr', '', makeElement('td', '', link, makeElement('span', 'kind', number)),
			makeElement('td', 'service', shownName(row.service ?? '', 100).replace('(empty name)', '')), this.trendCell(row.points),
			makeElement('td', 'number', this.amount(row.total, this.answer)), this.shareCell(row.total), this.membersCell(row, by));
	}

	/** Threads of a process, processes of a program: a link to them. Of a thread: its process. */
	membersCell(row, by) {
		if (by === 'thread') return makeElement('td', 'members', shownName(row.program, 60), makeElement('span', 'kind', String(row.pid)));
		const link = makeElement('a', '', formatCount(by === 'process' ? row.threads : row.processes));
		link.title = by === 'process' ? 'Its threads' : 'Its processes';
		link.href = this.app.link({ ...this.of, page: 'hosts', by: by === 'process' ? 'thread' : 'process', ...this.whose(row) });
		return makeElement('td', 'number members', link);
	}

	foldedRow() {
		const { folded } = this.answer;
		const more = makeElement('button', 'quiet', `${formatCount(folded.rows)} more`);
		more.type = 'button';
		more.disabled = this.level === ROWS_SHOWN.length - 1;
		more.addEventListener('click', () => {
			this.level++;
			this.app.again();
		});
		return makeElement('tr', '', makeElement('td', '', more), makeElement('td', 'service'), this.trendCell(folded.points),
			makeElement('td', 'number', this.amount(folded.total, this.answer)), this.shareCell(folded.total), makeElement('td', 'members'));
	}

	trendCell(points) {
		const canvas = makeElement('canvas');
		canvas.setAttribute('aria-hidden', 'true');
		this.trends.push([canvas, points]);
		return makeElement('td', 'trend', canvas);
	}

	shareCell(total) {
		const bar = makeElement('span');
		const share = this.answer.total ? total / this.answer.total : 0;
		bar.style.setProperty('--share', String(Math.min(1, share / Math.max(1e-9, this.largest))));
		return makeElement('td', 'share-box', makeElement('div', 'share', bar, makeElement('span', '', formatShare(total, this.answer.total))));
	}

	drawTrends() {
		drawSparklines([...(this.hostTrends ?? []), ...(this.trends ?? [])]);
	}
}
