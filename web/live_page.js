// SPDX-License-Identifier: Apache-2.0
// The last seconds or minutes, moving while somebody watches. Nothing is asked for while nobody can see it.
import { byId, makeElement, shownName } from './around.js';
import { ApiError, apiUrl, reasonOf } from './api.js';
import { drawSparklines } from './chart.js';
import { labelChips, showChips } from './choices.js';
import { decodeHere } from './decoder.js';
import { FrameTable } from './data.js';
import { formatCount, formatShare, formatValue } from './format.js';
import { formatLabels } from './labels.js';
import { LiveFeeds } from './live_feed.js';
import { SiblingOrder, heaviestFirst } from './order.js';
import { SINCE_START, WINDOWS } from './selection.js';
import { startServerWorker, typeOfMeta } from './server.js';
import { coveredMs, formatCpus } from './services_page.js';

const LIVE_NODES = 10000;
const HERE_MS = 5000;
const ROUNDS_KEPT = 120;
const SERVICES_SHOWN = 100;
const LATE_MS = 15000;

/** The feeds of all tabs, or where there is no worker for them, of this one. */
function openFeeds(tell) {
	let asked = '';
	/** @type {LiveFeeds | null} */
	let own = null;
	const watchHere = () => {
		own ??= new LiveFeeds();
		if (asked) own.watch(asked, tell);
	};
	let port = null;
	try {
		const worker = new SharedWorker(new URL('live_worker.js', import.meta.url), { type: 'module', name: 'hearth-live' });
		port = worker.port;
		port.onmessage = ({ data }) => tell(data);
		worker.onerror = watchHere; // its script did not load: the collector was away
		setInterval(() => own || port.postMessage({ here: asked }), HERE_MS);
	} catch {
		own = new LiveFeeds();
	}
	return {
		watch: (query) => {
			asked = query;
			if (own) watchHere();
			else port.postMessage({ watch: query });
		},
		leave: () => {
			asked = '';
			if (own) own.leave(tell);
			else port.postMessage({ leave: true });
		},
	};
}

/**
 * One picture of the stream as a source of the page (source.js).
 * @implements {Source}
 */
class RoundSource {
	constructor(meta, profile) {
		this.answer = meta;
		this.profile = profile;
		this.meta = { title: meta.service ?? '', types: [typeOfMeta(meta)], kinds: meta.kinds };
	}

	startWorker() {
		return startServerWorker();
	}

	overview() {
		return null;
	}

	open() {
		return Promise.resolve(this.profile);
	}
}

export class LivePage {
	/** @param {PageApp} app */
	constructor(app) {
		this.app = app;
		this.order = new SiblingOrder();
		this.services = [];
		this.rounds = [];
		this.isPaused = false;
		this.emptied = 0; // how often there was nothing: a picture from before that comes too late
		this.pointer = false;
		/** @type {{ watch(query: string): void, leave(): void } | null} */
		this.feeds = null;
		byId('live-pause').addEventListener('click', () => this.setPaused(!this.isPaused));
		byId('live-sort').addEventListener('click', () => this.sortAgain());
		const windows = app.isLive ? { [SINCE_START]: 'since start', ...WINDOWS } : WINDOWS;
		for (const span of Object.keys(windows)) {
			const button = makeElement('button', '', windows[span]);
			button.type = 'button';
			button.dataset.window = span;
			button.addEventListener('click', () => app.go({ window: span }));
			byId('live-windows').append(button);
		}
		byId('graph').addEventListener('pointerenter', () => this.hold(true));
		byId('graph').addEventListener('pointerleave', () => this.hold(false));
		document.addEventListener('visibilitychange', () => this.follow());
		addEventListener('pagehide', () => this.feeds?.leave());
		addEventListener('pageshow', (event) => event.persisted && this.follow());
	}

	query() {
		const { service, type, sample, labels, window: span } = this.app.selection;
		return apiUrl('live', { service, type, sample, labels: formatLabels(labels), window: span, 'max-nodes': LIVE_NODES }).split('?')[1];
	}

	show() {
		const { selection } = this.app;
		for (const button of document.querySelectorAll('[data-window]')) {
			button.setAttribute('aria-pressed', String(button.dataset.window === selection.window));
		}
		byId('live-title').textContent = selection.service ? shownName(selection.service, 300) : this.app.isLive ? 'This machine' : 'All services';
		showChips(byId('live-chosen'), labelChips(this.app));
		const query = this.query();
		const { turn } = this.app;
		if (this.isOn && query === this.asked && turn === this.turn) return Promise.resolve();
		this.isOn = true;
		this.asked = query;
		this.turn = turn;
		this.state = '';
		this.lastAt = 0;
		this.held = null;
		this.first = true;
		this.rounds = [];
		this.order.forget();
		this.app.profile.key = null;
		byId('live-empty').hidden = true;
		this.setPaused(false);
		return new Promise((done) => {
			this.shown = done;
			this.follow();
		});
	}

	hide() {
		if (!this.isOn) return;
		this.isOn = false;
		this.asked = '';
		this.feeds?.leave();
		clearInterval(this.clock);
	}

	/** Starts or stops: a tab that nobody sees asks for nothing. */
	follow() {
		clearInterval(this.clock);
		if (!this.isOn || document.visibilityState === 'hidden') {
			this.feeds?.leave();
			return;
		}
		this.feeds ??= openFeeds((message) => this.take(message));
		this.feeds.watch(this.asked);
		this.clock = setInterval(() => this.say(), 1000);
	}

	/** What was said of an earlier question may still be on its way when the next one has been asked. */
	take(message) {
		if (!this.isOn || message.query !== this.asked) return;
		const act = { flame: () => this.takeRound(message), empty: () => this.takeEmpty(), totals: () => this.takeTotals(message.json),
			away: () => this.setState('away'), ended: () => this.setState('ended', message.why), refused: () => this.refused(message.status, message.words),
			problem: () => this.refused(Number(message.json.code), String(message.json.error ?? '')) }[message.event];
		act?.();
	}

	/** words: the collector's own */
	refused(status, words) {
		this.setState('refused');
		this.app.trouble(new ApiError(status, reasonOf(status, words)));
		this.shown?.();
	}

	/** why: what the collector said when it ended the stream */
	setState(state, why = '') {
		this.state = state;
		this.why = why;
		this.say();
	}

	takeEmpty() {
		this.emptied++;
		this.lastAt = performance.now();
		byId('live-empty').hidden = false;
		byId('trouble').hidden = true;
		byId('graph-row').hidden = true;
		this.setState('');
		this.shown?.();
	}

	async takeRound({ meta, packed }) {
		const { asked, emptied } = this;
		this.lastAt = performance.now();
		try {
			const profile = await decodeHere(packed);
			if (!this.isOn || asked !== this.asked || emptied !== this.emptied) return;
			this.held = { meta, profile };
			if (!this.first && this.isHeld()) this.setState('');
			else await this.draw();
		} catch (problem) {
			this.app.trouble(problem);
		}
	}

	isHeld() {
		return this.isPaused || this.pointer || !byId('step-menu').hidden;
	}

	/** What came last, on the page. */
	async draw() {
		const { viewer } = this.app;
		const { meta, profile } = this.held;
		this.held = null;
		byId('live-empty').hidden = true;
		byId('trouble').hidden = true;
		byId('graph-row').hidden = false;
		const source = new RoundSource(meta, this.order.arrange(profile, new FrameTable(profile.frames, meta.kinds)));
		this.meta = meta;
		viewer.openMore = viewer.madeColours = null;
		if (this.first) {
			this.first = false;
			viewer.setSource(source);
			viewer.readAddress();
			await viewer.openFirst();
		} else {
			viewer.follow(source, source.profile);
		}
		this.addRound(meta);
		this.setState('');
		this.shown?.();
	}

	addRound({ total }) {
		this.rounds.push(total);
		if (this.rounds.length > ROUNDS_KEPT) this.rounds.shift();
		drawSparklines([[byId('live-trend'), this.rounds]]);
	}

	hold(isOn) {
		this.pointer = isOn && this.isOn;
		if (!this.pointer && this.held && !this.isHeld()) this.draw();
		else this.say();
	}

	setPaused(isPaused) {
		this.isPaused = isPaused;
		byId('live-pause').setAttribute('aria-pressed', String(isPaused));
		if (!isPaused && this.held && !this.isHeld()) this.draw();
		else this.say();
	}

	sortAgain() {
		this.order.forget();
		this.services = [];
		if (this.totals) this.takeTotals(this.totals);
		const { viewer } = this.app;
		const { raw } = viewer;
		if (!raw || !this.meta) return;
		this.held ??= { meta: this.meta, profile: { ...raw, tree: heaviestFirst(raw.tree) } };
		this.draw();
	}

	/** Services keep their places, too. */
	takeTotals(totals) {
		this.totals = totals;
		const now = new Map(totals.services.map((s) => [s.service, s.total]));
		for (const { service } of totals.services) if (!this.services.includes(service)) this.services.push(service);
		this.services = this.services.filter((name) => now.has(name)).slice(0, SERVICES_SHOWN);
		const { service: chosen } = this.app.selection;
		const amount = (value) => (totals.unit === 'nanoseconds' ? formatCpus(value, coveredMs(totals)) : formatShare(value, totals.total));
		const list = byId('live-services');
		const focused = list.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.service : null;
		const button = (name, text, value) => {
			const made = makeElement('button', 'choice', makeElement('span', '', text), makeElement('span', '', amount(value)));
			made.type = 'button';
			made.dataset.service = name;
			made.title = text;
			made.setAttribute('aria-pressed', String(name === chosen));
			made.addEventListener('click', () => this.app.go({ service: name }));
			return makeElement('li', '', made);
		};
		list.replaceChildren(button('', 'All services', totals.total), ...this.services.map((name) => button(name, shownName(name, 200), now.get(name))));
		byId('live-unit').textContent = totals.unit === 'nanoseconds' ? 'Services, CPUs' : 'Services, share';
		if (focused !== null) [...list.querySelectorAll('button')].find((b) => b.dataset.service === focused)?.focus({ preventScroll: true });
	}

	/** The line above the graph: how much, how fresh, and why it stands still. */
	say() {
		const age = this.lastAt ? performance.now() - this.lastAt : 0;
		const words = { away: 'The collector does not answer; trying again.', refused: 'Refused; see above.',
			ended: `The collector ended the stream${this.why ? ` (${shownName(this.why, 200)})` : ''}; asking again.` }[this.state];
		let text = words ?? (this.isPaused ? 'Paused.' : this.held ? 'Held while you point at it.' : !this.lastAt ? 'Waiting for the first picture.' : age > LATE_MS ? `Nothing new for ${Math.round(age / 1000)} s.` : 'Live.');
		if (this.isPaused && !words && this.held) text = 'Paused; there is something newer.';
		if (byId('live-state').textContent !== text) byId('live-state').textContent = text;
		if (!this.meta) return;
		const { total, unit, profiles } = this.meta;
		const much = unit === 'nanoseconds' ? `${formatCpus(total, coveredMs(this.totals ?? this.meta))} CPUs` : formatValue(total, this.app.viewer.meta);
		byId('live-amount').textContent = `${much} · ${formatCount(profiles ?? 0)} ${profiles === 1 ? 'profile' : 'profiles'}`;
	}
}
