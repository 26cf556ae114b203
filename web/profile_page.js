// SPDX-License-Identifier: Apache-2.0
// One selection: what is in it (service, sample type, labels), when, and its flame graph; or two as one.
import { WIDE, byId, makeElement, shownName } from './around.js';
import { ApiError, apiUrl, askJson } from './api.js';
import { BaseForm } from './base_form.js';
import { spanText } from './blocks.js';
import { Timeline } from './chart.js';
import { chip, choiceButton, labelChips, sampleChoices, showChips, totalText } from './choices.js';
import { BASES, baseAndNow, compareFiles, compareParams, compareProblem, sideText } from './compare.js';
import { DiffColours, diffFunctions, largestChanges } from './diff.js';
import { Facets } from './facets.js';
import { formatShare, formatValue } from './format.js';
import { NOBODY, NO_BASE, partParams, partTimes, rangeParams, whoseParams, whoseText } from './selection.js';
import { exactSpan, shortSpan } from './seconds.js';
import { ServerSource } from './server.js';
import { Sides } from './sides.js';
import { parseHash } from './state.js';
import { groupsToAsk, isGroup } from './transforms.js';
import { changeOf, coveredMs, coveredText, formatCpus, headRow } from './services_page.js';

const GROUPS_OFFERED = 12;
const CHANGES_SHOWN = 40;
const ASIDE_PX = 256; // .side of pages.css
const UNLIKE = 0.01; // lengths of time that differ by more are said
const SERVER_FORMATS = ['pprof', 'col', 'html'];

/** What a graph can be grouped by where the collector knows these labels. */
function groupsOfLabels(labels) {
	const names = labels.filter((l) => l.count > 1 && l.name !== 'host').map((l) => 'label:' + l.name);
	return ['thread', 'host', ...names.filter(isGroup).slice(0, GROUPS_OFFERED)];
}

/** @param {ShownFiles} shown */
function filesOf({ base, service }) {
	return base ? [base, service] : [service];
}

function fillNames(select, names) {
	select.replaceChildren(...names.map((name) => new Option(shownName(name, 100), name)));
}

/** The groups that the steps of an address ask for. */
const groupsOf = (hash) => groupsToAsk(parseHash(hash).steps);

/** A graph that is asked for before the page that shows it is there. */
export class AskedGraph {
	/**
	 * @param {PageSelection} selection
	 * @param {string} view what state.js reads of the address
	 */
	constructor(selection, view) {
		const grouped = groupsOf(view);
		const params = partParams(selection);
		this.key = JSON.stringify([params, grouped]);
		this.cancel = new AbortController();
		this.source = ServerSource.open('flame', params, { signal: this.cancel.signal, grouped });
		this.source.catch(() => {}); // said by who takes it
	}

	/** The same as ServerSource.open(), when that is what was asked for; else null, and it was for nothing. */
	take(params, { grouped, offered, signal }) {
		if (this.key !== JSON.stringify([params, grouped])) {
			this.cancel.abort();
			return null;
		}
		signal.addEventListener('abort', () => this.cancel.abort());
		return this.source.then((source) => Object.assign(source, { offered }));
	}
}

export class ProfilePage {
	/**
	 * @param {PageApp} app
	 * @param {AskedGraph | null} asked
	 */
	constructor(app, asked) {
		this.app = app;
		this.asked = asked;
		/** @type {{ sides: { base: import('./compare.js').Side, now: import('./compare.js').Side }, facts: SnapshotFacts | null, measured: { base: Measured, now: Measured } }} */
		this.compared = { sides: { base: {}, now: {} }, facts: null, measured: { base: null, now: null } }; // what is shown of a comparison
		this.offered = groupsOfLabels([]); // filled when the labels are known
		this.facets = new Facets(app, (labels) => this.offered.splice(0, Infinity, ...groupsOfLabels(labels)));
		app.viewer.treeShown = () => this.isCompared() && this.fillCompared();
		this.timeline = new Timeline(byId('timeline'), (from, to) => this.choosePart(from, to));
		byId('service').addEventListener('change', () => app.go({ service: byId('service').value, labels: [] }));
		this.baseForm = new BaseForm(app);
		byId('base').addEventListener('change', () => this.chooseBase(byId('base').value));
		byId('swap').addEventListener('click', () => this.swap());
		byId('diff').addEventListener('change', () => app.go({ diff: byId('diff').value }));
		byId('sides').addEventListener('change', () => app.go({ sides: byId('sides').value }));
		if (app.shown) {
			byId('service-label').textContent = 'File';
			for (const id of ['service', 'base']) fillNames(byId(id), filesOf(app.shown));
			byId('service').closest('.field').hidden = !app.shown.base;
		} else {
			for (const [value, text] of Object.entries(BASES)) byId('base').append(new Option(text, value));
		}
	}

	/** A base of its own takes a form first; every other one is there at once. */
	chooseBase(base) {
		if (this.app.shown) this.app.go({ baseService: base });
		else if (base !== 'own') this.app.go({ base, ...NO_BASE, isSwapped: false });
		else this.baseForm.show(true, this.range);
	}

	swap() {
		const { service, baseService, isSwapped } = this.app.selection;
		this.app.go(this.app.shown ? { service: baseService, baseService: service } : { isSwapped: !isSwapped });
	}

	/** Part of the range: the rest stays in the timeline. Its first and last bar may reach beyond the range. */
	choosePart(from, to) {
		const [first, last] = this.range;
		this.app.go({ part: from === null ? null : [Math.round(Math.max(from, first)), Math.round(Math.min(to, last + 1))] });
	}

	params() {
		return rangeParams(this.app.selection);
	}

	/** The part that is chosen, as parameters of a request. */
	partParams() {
		return partParams(this.app.selection);
	}

	async show(signal) {
		const { selection } = this.app;
		const isCompare = selection.page === 'compare';
		byId('compare-fields').hidden = !isCompare;
		byId('change').hidden = byId('changes').hidden = !isCompare;
		byId('base').value = this.app.shown ? selection.baseService : selection.base;
		byId('base-label').textContent = selection.isSwapped ? 'Compared with the selection, which is the base' : 'Base';
		byId('diff').value = selection.diff;
		byId('sides').value = selection.sides;
		byId('profile-title').textContent = selection.service ? shownName(selection.service, 300) : 'All services';
		this.fillWhose();
		const isOwn = isCompare && !this.app.shown && selection.base === 'own';
		if (!isOwn) this.baseForm.show(false, null);
		const key = JSON.stringify([this.params(), selection.part, selection.within, selection.page, selection.base, selection.isSwapped, Object.keys(NO_BASE).map((name) => selection[name]), this.app.turn]);
		if (key === this.key) {
			if (isCompare) this.applyCompared();
			return;
		}
		this.key = null;
		// What is asked of two ranges needs the first one's times.
		const flame = isCompare ? null : this.openGraph({ signal, ...this.groups() });
		// The timeline and the graph do not wait for each other: what comes first is shown first. Files have no time.
		const timeline = this.app.shown ? null : this.showTimeline(signal);
		const rest = this.showAround(timeline, signal);
		for (const answer of [flame, timeline, rest]) answer?.catch(() => {}); // said below, unless another fails first
		if (this.app.shown) byId('service').value = selection.service;
		if (isCompare) {
			await timeline;
			if (isOwn) this.baseForm.show(true, this.range);
			await this.showCompared(signal);
		} else {
			await this.showSource(await flame, null);
		}
		await rest;
		this.key = key;
	}

	/** What can be chosen. Amounts are of the part that is chosen, as the graph is. */
	async showAround(timeline, signal) {
		await timeline;
		if (this.app.shown) { // files have no time
			await this.showTypes(null, signal);
			return;
		}
		const services = this.showServices(signal);
		const measured = this.measure(services, signal);
		await Promise.all([services, this.showTypes(measured, signal), this.facets.show(measured, signal)]);
	}

	/** An answer that says of how much of the time there are profiles. services: the one of the whole range */
	measure(services, signal) {
		const { part, within } = this.app.selection;
		if (!part || within) return services;
		const { type, sample } = this.params();
		return askJson('services', { ...partTimes(part), type, sample, points: 1, limit: 1 }, { signal });
	}

	/** The same of both sides; null where nobody knows: files and snapshots do not say, and a few seconds (within) are of single samples. */
	async measureSides({ base, now }, signal) {
		const { type, sample } = this.params();
		const [ofBase, ofNow] = await Promise.all([base, now].map(({ from, to, within, snapshot }) =>
			(this.app.shown || within || snapshot !== undefined ? null : askJson('services', { from, to, type, sample, points: 1, limit: 1 }, { signal }))));
		return { base: ofBase, now: ofNow };
	}

	openGraph(options) {
		const asked = this.asked?.take(this.partParams(), options);
		this.asked = null;
		return asked ?? ServerSource.open('flame', this.partParams(), options);
	}

	/** Only some labels, some processes' samples or some times are shown: that is said, and one button away from all of them. */
	fillWhose() {
		const text = whoseText(this.app.selection);
		const { within, part } = this.app.selection;
		const back = (words, title, change) => chip(words, title, () => this.app.go(change));
		const labels = labelChips(this.app);
		const chips = [...labels, ...(text ? [back(`Only ${shownName(text, 200)}`, 'Show all processes', NOBODY)] : []), ...(within ? [back(shortSpan(...within), `${exactSpan(...within)}: show the whole range`, { within: null })] : []),
			...(part && !within ? [back(spanText(...part), 'Show the whole range', { part: null })] : [])];
		// On a narrow screen the rest is folded away.
		byId('selection').querySelector('summary').textContent = 'Selection: ' + [byId('profile-title').textContent.slice(0, 60), ...labels.map((one) => one.textContent.slice(0, -2).slice(0, 60)), ...(text ? [`only ${shownName(text, 60)}`] : []), ...(within ? [exactSpan(...within)] : [])].join(', ');
		showChips(byId('whose'), chips);
		if (!within) byId('untimed').hidden = true;
	}

	/** What a stretch of single samples' times leaves out. */
	fillUntimed({ untimed = 0, whole_total: whole = 0, base_total: base = 0 }) {
		byId('untimed').hidden = !untimed;
		byId('untimed').textContent = `${formatShare(untimed, untimed + whole - base)} of the samples around this time have no time of their own and are left out.`;
	}

	async showTimeline(signal) {
		const { part } = this.app.selection;
		const width = innerWidth - (matchMedia(WIDE).matches ? ASIDE_PX : 0); // clientWidth would have the whole page laid out before anything is in it
		const params = { ...this.params(), points: Math.max(60, Math.min(300, Math.round(width / 4))), steps: 'round' };
		let answer = await askJson('timeline', params, { signal });
		if (part && (part[1] <= answer.from_ms || part[0] >= answer.to_ms)) { // a link of another day: what is around the part
			const half = Math.round((answer.to_ms - answer.from_ms) / 2);
			answer = await askJson('timeline', { ...params, from: part[0] - half, to: part[1] + half }, { signal });
		}
		const points = answer.series[0]?.points ?? [];
		this.range = [answer.from_ms, answer.to_ms];
		this.timeline.show(points, answer.start_ms, answer.step_ms, this.app.selection.within ?? this.app.selection.part);
	}

	/** measured: a promise of an answer that says of how much time there are profiles; null: files have no time */
	async showTypes(measured, signal) {
		const [{ types }, all] = await Promise.all([askJson('types', { ...this.partParams(), type: '', sample: '' }, { signal }), measured]);
		const { type, sample } = this.app.selection;
		const seconds = all ? coveredMs(all) / 1000 : 0;
		const mean = all ? coveredText(all) : '';
		const buttons = types.flatMap((t) => sampleChoices(t.samples).map((s) => {
			const pressed = t.type === type && s.text === (sample || t.default);
			const name = this.app.shown ? s.name : t.samples.length > 1 || s.sample !== t.type ? `${t.type}: ${s.name}` : t.type;
			const isMean = s.unit === 'nanoseconds' && t.type === type && seconds > 0; // of how much time other types have profiles nobody asked
			const amount = isMean ? totalText(s.total, s.unit, seconds) + ' s/s' : totalText(s.total, s.unit, 0);
			const button = choiceButton(name, amount, pressed, () => this.app.go({ type: t.type, sample: s.text }));
			if (mean && isMean) button.title += '\n' + mean;
			return button;
		}));
		byId('samples').replaceChildren(byId('samples').firstElementChild, ...buttons);
	}

	async showServices(signal) {
		const { from, to, type, sample } = this.params();
		const answer = await askJson('services', { from, to, type, sample, points: 1, limit: 1000, ...whoseParams(this.app.selection) }, { signal });
		const { service } = this.app.selection;
		const names = answer.services.map((s) => s.service);
		if (service && !names.includes(service)) names.unshift(service);
		byId('service').replaceChildren(new Option('All services', ''), ...names.map((name) => new Option(shownName(name, 100), name)));
		byId('service').value = service;
		this.baseForm.fillServices(names);
		return answer;
	}

	/** What the steps of the address are grouped by, and what else a graph can be. */
	groups() {
		const { page, base, baseSnapshot } = this.app.selection;
		const isFew = this.app.shown || (page === 'compare' && base === 'own' && baseSnapshot); // files and snapshots know nothing else
		return { grouped: groupsOf(this.app.address.read()), offered: isFew ? ['thread'] : this.offered };
	}

	/** params: of the source's exports */
	async showSource(source, colours, params = this.partParams()) {
		const { viewer } = this.app;
		viewer.openMore = async () => {
			const { source: small } = viewer;
			const { signal } = this.app;
			if (!small.isCut) return;
			const large = await small.more();
			if (viewer.source !== small || signal.aborted) return;
			await this.showSource(large, colours, params);
		};
		viewer.madeColours = colours;
		viewer.setSource(source);
		viewer.readAddress();
		await viewer.openFirst();
		this.fillQuality(source.answer);
		this.fillUntimed(source.answer);
		const exports = SERVER_FORMATS.map((as) => {
			const link = makeElement('a', '', as);
			link.href = apiUrl('export', { ...params, as });
			link.setAttribute('download', '');
			return link;
		});
		byId('exports').replaceChildren(...exports);
	}

	/** @param {{ facts?: StackFacts, profiles?: number, nodes: number, whole_nodes?: number }} answer */
	fillQuality({ facts = {}, profiles, nodes, whole_nodes: whole }) {
		const rows = this.app.shown ? this.factsOfFile() : [['profiles', String(profiles ?? '')]];
		const known = facts.user ?? (facts.whole ?? 0) + (facts.guessed ?? 0) + (facts.cut ?? 0);
		const all = known + (facts.lost ?? 0);
		if (known) {
			for (const key of ['whole', 'guessed', 'cut', 'lost']) rows.push([key + ' stacks', formatShare(facts[key] ?? 0, all)]);
		}
		if (whole > nodes) rows.push(['shown of ' + whole + ' paths', String(nodes)]);
		byId('quality').replaceChildren(...rows.map(([name, value]) => makeElement('div', '', makeElement('dt', '', name), makeElement('dd', '', value))));
	}

	factsOfFile() {
		const { base, facts, base_facts: baseFacts } = this.app.shown;
		const ofBase = this.app.selection.page !== 'compare' && this.app.selection.service === base;
		return Object.entries(ofBase ? baseFacts : facts).map(([name, value]) => [name, shownName(value, 300)]);
	}

	async showCompared(signal) {
		const { selection, shown } = this.app;
		/** @type {{ base: import('./compare.js').Side, now: import('./compare.js').Side }} */
		const sides = shown ? { base: { service: selection.baseService, labels: [] }, now: { service: selection.service, labels: [] } } : baseAndNow(selection, this.range);
		const params = shown ? compareFiles(selection) : compareParams(selection, this.range);
		const facts = this.snapshotFacts(sides, signal);
		const measured = this.measureSides(sides, signal);
		measured.catch(() => {}); // said below, unless another fails first
		const source = await ServerSource.open('compare', params, { signal, ...this.groups() }).catch((problem) => {
			if (problem.status === 404 && shown) throw new ApiError(404, 'One of the two files has nothing of this sample type.');
			throw problem instanceof ApiError ? new ApiError(problem.status, compareProblem(problem, sides), problem.words) : problem;
		});
		this.compared = { sides, facts: await facts, measured: await measured };
		signal.throwIfAborted(); // both end without an error, also when the page was left
		const { viewer } = this.app;
		viewer.sides ??= new Sides(viewer, byId('stage'));
		viewer.sides.on = this.app.selection.sides === 'two';
		await this.showSource(source, (table, mode) => new DiffColours(table, viewer.tree, mode, this.app.selection.diff === 'share'));
	}

	/** Is what the viewer has a comparison? */
	isCompared() {
		return this.app.selection.page === 'compare' && Boolean(this.app.viewer.tree?.base);
	}

	/** Another way to show what is there: nothing is asked anew. */
	applyCompared() {
		const { viewer } = this.app;
		viewer.sides.on = this.app.selection.sides === 'two';
		viewer.colours = null;
		viewer.toldTree = null;
		viewer.apply(false);
	}

	/** What is said of the tree that is shown, steps included. */
	fillCompared() {
		const { viewer } = this.app;
		this.fillChange(/** @type {ServerSource} */ (viewer.source), viewer.tree);
		this.fillChanges(viewer.tree);
	}

	/** What a snapshot among the sides is of; null: there is none, or it cannot be had. */
	snapshotFacts({ base, now }, signal) {
		const id = base.snapshot ?? now.snapshot;
		return id ? askJson('snapshots/' + encodeURIComponent(id), {}, { signal }).catch(() => null) : Promise.resolve(null);
	}

	/** The lines above the graph, and the titles of two graphs. */
	fillChange({ answer, meta }, tree) {
		const { diff } = this.app.selection;
		const { viewer, shown } = this.app;
		const { sides, facts, measured } = this.compared;
		const isTime = answer.unit === 'nanoseconds' && !shown;
		const spans = { base: answer.base_within_ms ?? [answer.base_from_ms, answer.base_to_ms], now: answer.within_ms ?? [answer.from_ms, answer.to_ms] };
		const values = { base: tree.base[0], now: tree.total[0] - tree.base[0] };
		const coveredOf = (side) => ({ covered_ms: measured[side]?.covered_ms, from_ms: spans[side][0], to_ms: spans[side][1] });
		const lengthOf = (side) => Math.max(1, coveredMs(coveredOf(side)));
		const amountOf = (side) => (isTime ? formatCpus(values[side], lengthOf(side)) + ' CPUs' : formatValue(values[side], meta.types[0]));
		const words = (name, side, ...more) => {
			const amount = makeElement('b', '', `${name} ${amountOf(side)}`);
			if (isTime) amount.title = coveredText(coveredOf(side));
			return makeElement('p', 'side-words', amount, ...more, makeElement('span', 'quiet', ' ' + sideText(sides[side], shown ? null : spans[side], facts)));
		};
		const longer = isTime ? lengthOf('base') / lengthOf('now') : 1;
		const { text, tone } = changeOf(values.now * longer, values.base);
		const of = viewer.state.steps.length ? ' of what the steps leave' : '';
		const colour = diff === 'share' ? `orange takes a larger part${of} than in the base, blue a smaller one` : 'orange costs more than in the base, blue less';
		const note = diff !== 'share' && !shown && Math.abs(lengthOf('base') / lengthOf('now') - 1) > UNLIKE ? '; the two times that have profiles are not of one length' : '';
		byId('change').replaceChildren(makeElement('div', 'side-lines', words('Base', 'base'), makeElement('span', 'quiet', '→'), words('Now', 'now', ' ', makeElement('span', tone, text))),
			makeElement('p', 'quiet', viewer.sides.note, `; ${colour}${note}`));
		viewer.sides.name([`Base: ${amountOf('base')}`, `Now: ${amountOf('now')}`]);
	}

	fillChanges(tree) {
		const { frames } = this.app.viewer;
		const source = /** @type {ServerSource} */ (this.app.viewer.source);
		const [was, total] = [tree.base[0], tree.total[0]];
		const byShare = this.app.selection.diff === 'share';
		const rows = largestChanges(diffFunctions(tree, frames.count), byShare ? was : 1, byShare ? total - was : 1, CHANGES_SHOWN);
		this.fillChangeRows(rows, frames, byShare ? (part) => (100 * part).toFixed(1) : (value) => formatValue(value, source.meta.types[0]), byShare ? ' %' : '');
	}

	fillChangeRows(rows, frames, amount, unit) {
		const table = byId('changes').querySelector('table');
		table.tHead.replaceChildren(headRow([['Function'], ['Base' + unit, 'number'], ['Now' + unit, 'number'], ['Change', 'number']]));
		table.tBodies[0].replaceChildren(...rows.map(({ frame, was, now }) => {
			const name = makeElement('button', '', shownName(frames.name(frame), 200));
			name.type = 'button';
			name.title = name.textContent;
			name.addEventListener('click', () => this.app.viewer.go({ view: 'sandwich', focus: frame }));
			return makeElement('tr', '', makeElement('td', '', name), makeElement('td', 'number', was ? amount(was) : 'new'),
				makeElement('td', 'number', now ? amount(now) : 'gone'),
				makeElement('td', 'number ' + (now > was ? 'worse' : 'better'), (now > was ? '+' : '−') + amount(Math.abs(now - was))));
		}));
	}
}
