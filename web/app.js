// SPDX-License-Identifier: Apache-2.0
// The pages that a collector serves: which one is shown, of what, and signing in.
import { AdminPage } from './admin_page.js';
import { WIDE, byId, shownName } from './around.js';
import { ApiError, askJson, dropFirst } from './api.js';
import { spanText } from './blocks.js';
import { FileSource } from './file.js';
import { HeatPage } from './heat_page.js';
import { HostsPage } from './hosts_page.js';
import { oneValue } from './labels.js';
import { SourceLines } from './lines.js';
import { LivePage } from './live_page.js';
import { AskedGraph, ProfilePage } from './profile_page.js';
import { DEFAULT_SELECTION, NOBODY, PAGES, SINCE_START, formatSelection, parseSelection, selectionOfFiles, viewPart } from './selection.js';
import { readInWorker } from './readers.js';
import { startServerWorker, warmDecoder } from './server.js';
import { ServicesPage } from './services_page.js';
import { SnapshotPage } from './snapshot_page.js';
import { formatHash, parseHash, withoutPlace } from './state.js';
import { Viewer, showProblem } from './viewer.js';

const RANGE_CHARS_MAX = 32;
const WARM_MS = 300; // after the first page is there
const READING_MS = 150; // a file that takes longer has words and a button to stop it
const GRAPH_PAGES = ['profile', 'compare', 'live', 'snapshot'];
const TITLES = { services: 'services', files: 'files', snapshot: 'snapshot', heat: 'heat map', admin: 'admin' };

/** Two times as somebody reads them, relative ones as they are. */
function rangeText(from, to) {
	const times = [from, to].map((text) => (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? Date.parse(text) : NaN));
	return (times.some(Number.isNaN) ? `${from} – ${to}` : spanText(...times)).slice(0, RANGE_CHARS_MAX);
}

/** The graph and what belongs to it, from the page that has its profile in itself: one text for both. */
async function takeViewerMarkup() {
	const answer = await fetch(new URL('page.html', import.meta.url), { credentials: 'same-origin' });
	const [, body] = (await answer.text()).split('<body>'); // its head is not this page's
	const page = new DOMParser().parseFromString(body, 'text/html');
	const box = byId('viewer');
	const types = page.querySelector('.toolbar .group:nth-child(2)');
	const select = page.createElement('select');
	select.id = 'type';
	select.hidden = true;
	select.setAttribute('aria-label', 'Shows');
	types.replaceChildren(select);
	box.append(...[...page.querySelector('main').childNodes].map((node) => document.importNode(node, true)));
	byId('graph-row').before(box.querySelector('.toolbar')); // over the list of changes, too
	for (const id of ['tip', 'toast', 'live', 'help-sheet']) document.body.append(document.importNode(page.getElementById(id), true));
	byId('pages').append(byId('step-menu'));
	document.querySelector('.range').append(...['theme', 'help'].map((id) => document.importNode(page.getElementById(id), true)));
}

/** The files that `hearth view` serves, or null: services in time; and whether there is nothing but what happens now. */
async function askSession() {
	try {
		const { shown = null, live = false } = await askJson('session');
		return { shown, isLive: live };
	} catch {
		return { shown: null, isLive: false }; // what is asked next says why
	}
}

function defaultsOf(shown, isLive) {
	if (isLive) return { ...DEFAULT_SELECTION, page: 'live', window: SINCE_START };
	return shown ? selectionOfFiles(shown) : DEFAULT_SELECTION;
}

/** What is shown, and its graph: the collector works on it while the page is built. */
async function askFirst() {
	const { shown, isLive } = await askSession();
	const selection = parseSelection(location.hash, defaultsOf(shown, isLive));
	return { shown, isLive, asked: selection.page === 'profile' ? new AskedGraph(selection, viewPart(location.hash)) : null };
}

class App {
	/**
	 * @param {ShownFiles | null} shown two files at most, instead of services in time
	 * @param {boolean} isLive nothing but the live page
	 * @param {AskedGraph | null} asked
	 */
	constructor(shown, isLive, asked) {
		this.turn = 0;
		this.cancel = new AbortController();
		this.shown = shown;
		this.isLive = isLive;
		this.defaults = defaultsOf(shown, isLive);
		this.pages = isLive ? ['live'] : !shown ? PAGES : shown.base ? ['profile', 'compare', 'files'] : ['profile', 'files'];
		if (shown || isLive) document.body.dataset.of = 'files';
		this.selection = this.readSelection();
		this.address = {
			read: () => viewPart(location.hash),
			write: (hash, replace) => this.writeView(hash, replace),
		};
		this.viewer = new Viewer(null, this.address);
		this.services = new ServicesPage(this);
		this.profile = new ProfilePage(this, asked);
		this.heat = new HeatPage(this);
		this.hosts = new HostsPage(this);
		this.live = new LivePage(this);
		this.snapshot = new SnapshotPage(this);
		this.admin = new AdminPage(this);
		this.lines = new SourceLines(this.viewer, () => this.linesParams());
		this.viewer.focusShown = (focus) => this.lines.show(focus);
		this.listen();
	}

	/** Ends with what is shown. */
	get signal() {
		return this.cancel.signal;
	}

	readSelection() {
		const selection = parseSelection(location.hash, this.defaults);
		return this.pages.includes(selection.page) ? selection : { ...selection, page: this.defaults.page };
	}

	/** What source lines are asked of: nothing where there are none to ask for. */
	linesParams() {
		const { page } = this.selection;
		return page === 'profile' ? this.profile.partParams() : page === 'snapshot' ? this.snapshot.params() : null;
	}

	write(hash, replace) {
		if (replace) history.replaceState(null, '', hash);
		else history.pushState(null, '', hash);
	}

	/** What moves has no numbers that mean the same a second later: a link to it has none. */
	writeView(hash, replace) {
		const isLive = this.selection.page === 'live';
		const view = isLive ? formatHash({ ...withoutPlace(parseHash(hash)), focus: -1, focusName: '' }) : hash;
		this.write(formatSelection(this.selection, view, this.defaults), replace || isLive);
	}

	/**
	 * The address of another selection; what is not named stays.
	 * @param {Partial<PageSelection>} change
	 */
	link(change) {
		return formatSelection({ ...this.selection, part: null, within: null, ...change }, '', this.defaults);
	}

	/**
	 * @param {Partial<PageSelection>} change
	 * @param {boolean} isSame the same graph under another address: what is zoomed into stays
	 */
	go(change, isSame = 'diff' in change || 'sides' in change) {
		const keepsView = !('page' in change);
		this.selection = { ...this.selection, ...('from' in change || 'to' in change ? { part: null, within: null } : {}), ...('part' in change ? { within: null } : {}), ...change };
		const view = isSame ? this.viewer.state : withoutPlace(this.viewer.state);
		this.write(formatSelection(this.selection, keepsView ? formatHash(view) : '', this.defaults), false);
		this.show();
	}

	async show() {
		const { selection } = this;
		this.cancel.abort();
		this.cancel = new AbortController();
		const { signal } = this;
		this.showFrame();
		byId('trouble').hidden = true;
		delete document.body.dataset.shown;
		byId('pages').setAttribute('aria-busy', 'true');
		try {
			if (selection.page !== 'files') this.stopReading();
			if (selection.page !== 'live') this.live.hide();
			if (selection.page !== 'admin') this.admin.hide();
			const { services, heat, hosts, admin } = this;
			const page = { services, heat, hosts, admin }[selection.page];
			if (page) await page.show(signal);
			else if (selection.page === 'live') await this.live.show();
			else if (selection.page === 'snapshot') await this.showSnapshot(signal);
			else if (selection.page !== 'files') await this.profile.show(signal);
			else if (this.file) await this.showFile();
			document.body.dataset.shown = selection.page;
		} catch (problem) {
			if (signal.aborted || problem.name === 'AbortError') return;
			document.body.dataset.shown = 'failed';
			this.trouble(problem);
		}
		byId('pages').setAttribute('aria-busy', 'false');
	}

	trouble(problem) {
		if (!(problem instanceof ApiError)) console.error(problem);
		byId('trouble').hidden = false;
		byId('trouble').textContent = problem instanceof ApiError ? problem.message : 'This could not be shown: ' + problem.message;
		if (problem.status === 401 && !byId('sign-in').open) byId('sign-in').showModal();
	}

	/** What is around a page: links that keep the selection, the range, and which parts are there. */
	showFrame() {
		const { selection } = this;
		const hasGraph = GRAPH_PAGES.includes(selection.page) || (selection.page === 'files' && Boolean(this.file));
		for (const page of ['services', 'heat', 'hosts', 'admin']) byId(page + '-page').hidden = selection.page !== page;
		byId('files-page').hidden = selection.page !== 'files' || Boolean(this.file);
		byId('profile-page').hidden = !hasGraph;
		const isLive = selection.page === 'live';
		for (const id of ['selection', 'timeline']) byId(id).hidden = selection.page === 'files' || isLive || (id === 'timeline' && Boolean(this.shown));
		for (const id of ['live-side', 'live-bar']) byId(id).hidden = !isLive || (id === 'live-side' && this.isLive);
		if (selection.page !== 'compare') byId('change').hidden = byId('changes').hidden = true;
		if (!isLive) byId('graph-row').hidden = false;
		document.body.dataset.page = selection.page;
		for (const link of document.querySelectorAll('a[data-page]')) {
			const { page } = link.dataset;
			link.href = this.link({ page, part: selection.part, ...(page === 'profile' || page === 'compare' ? { within: selection.within } : NOBODY) });
			link.hidden = !this.pages.includes(page);
			if (link.dataset.page === selection.page) link.setAttribute('aria-current', 'page');
			else link.removeAttribute('aria-current');
		}
		byId('home').href = this.link({ page: this.defaults.page });
		let known = false;
		for (const button of document.querySelectorAll('[data-range]')) {
			const pressed = button.dataset.range === selection.from && selection.to === 'now';
			known ||= pressed;
			button.setAttribute('aria-pressed', String(pressed));
		}
		byId('range-text').textContent = known ? 'Other' : rangeText(selection.from, selection.to);
		byId('range-text').setAttribute('aria-pressed', String(!known));
		const host = oneValue(selection.labels, 'host');
		const name = TITLES[selection.page] ?? (selection.page === 'hosts' ? host || 'hosts' : selection.service || 'all services');
		document.title = `hearth: ${shownName(name, 100)}`;
	}

	listen() {
		for (const button of document.querySelectorAll('[data-range]')) {
			button.addEventListener('click', () => this.go({ from: button.dataset.range, to: 'now' }));
		}
		const form = byId('range-form');
		const [from, to] = form.querySelectorAll('input');
		byId('range-text').addEventListener('click', () => {
			form.hidden = !form.hidden;
			from.value = this.selection.from;
			to.value = this.selection.to;
			if (!form.hidden) from.focus();
		});
		form.addEventListener('submit', (event) => {
			event.preventDefault();
			form.hidden = true;
			this.go({ from: from.value || DEFAULT_SELECTION.from, to: to.value || DEFAULT_SELECTION.to });
		});
		byId('pin').addEventListener('click', () => this.pin());
		byId('refresh').addEventListener('click', () => this.again());
		addEventListener('popstate', () => {
			this.selection = this.readSelection();
			this.show();
		});
		byId('sign-in').querySelector('form').addEventListener('submit', (event) => {
			event.preventDefault();
			this.signIn();
		});
		byId('file').addEventListener('change', () => {
			this.openFile(byId('file').files[0]);
			byId('file').value = ''; // the same file may be chosen again
		});
		byId('reading-stop').addEventListener('click', () => this.stopReading());
		addEventListener('dragover', (event) => {
			event.preventDefault();
			byId('drop').classList.add('over');
		});
		addEventListener('drop', (event) => {
			event.preventDefault();
			byId('drop').classList.remove('over');
			if (event.dataTransfer.files.length) this.openFile(event.dataTransfer.files[0]);
		});
		byId('type').addEventListener('change', () => this.fillTypes());
		const wide = matchMedia(WIDE);
		const fold = () => (byId('selection').open = byId('live-side').open = byId('host-side').open = wide.matches);
		wide.addEventListener('change', fold);
		fold();
	}

	/** Asks everything again: what is relative to now has moved. */
	again() {
		this.turn++;
		this.show();
	}

	/** Times before now become fixed ones, so that a link shows the same tomorrow. */
	async pin() {
		const { signal, selection: { from, to, part, within } } = this;
		try {
			const answer = await askJson('timeline', { from, to, points: 1 }, { signal });
			if (signal.aborted) return;
			this.go({ from: new Date(answer.from_ms).toISOString(), to: new Date(answer.to_ms).toISOString(), part, within }, true);
		} catch (problem) {
			if (!signal.aborted) this.trouble(problem);
		}
	}

	/** The token becomes a cookie that no script reads. */
	async signIn() {
		byId('sign-trouble').textContent = '';
		try {
			await askJson('session', {}, { method: 'POST', body: { token: byId('token').value } });
			byId('token').value = '';
			byId('sign-in').close();
			this.again();
		} catch (problem) {
			byId('sign-trouble').textContent = problem.status === 401 ? 'There is no such token.' : problem.message;
		}
	}

	/** Another file, another page, or Stop ends the reading of the one before. */
	async openFile(file) {
		if (!file) return;
		this.reading?.abort();
		const reading = (this.reading = new AbortController());
		const { signal } = reading;
		byId('trouble').hidden = true;
		const progress = (at) => signal.aborted || this.showReading(file, at);
		const timer = setTimeout(progress, READING_MS);
		try {
			const opened = await FileSource.open(file, startServerWorker, readInWorker, { signal, progress });
			if (signal.aborted) return;
			this.file = opened;
		} catch (problem) {
			if (signal.aborted) return;
			this.showFilesPage();
			this.trouble(new ApiError(0, `${file.name.slice(0, 100)} could not be read: ${problem.message}`));
			return;
		} finally {
			clearTimeout(timer);
			if (this.reading === reading) this.showReading(null);
		}
		this.go({ page: 'files' });
		if (this.file.words) this.viewer.toast(this.file.words);
	}

	stopReading() {
		this.reading?.abort();
		this.showReading(null);
	}

	/** In place of what is shown, which neither comes late nor moves on. */
	showFilesPage() {
		this.cancel.abort();
		this.live.hide();
		byId('pages').setAttribute('aria-busy', 'false');
		this.selection = { ...this.selection, page: 'files' };
		this.file = null;
		this.showFrame();
	}

	/** How far a large file is; small ones are there before. The page changes only once: who leaves it stays away. */
	showReading(file, { what = 'reading', done = 0, total = 0 } = {}) {
		if (file && byId('reading').hidden) this.showFilesPage();
		byId('reading').hidden = !file;
		byId('reading-text').textContent = file ? `${what} ${file.name.slice(0, 100)}${total ? `: ${Math.floor((100 * done) / total)} %` : ''}` : '';
	}

	fillTypes() {
		const select = byId('type');
		const { types } = this.viewer;
		select.hidden = types.length < 2;
		select.replaceChildren(...types.map((type, i) => new Option(type.name.slice(0, 60), String(i))));
		select.value = String(this.viewer.typeIndex());
	}

	async showSnapshot(signal) {
		this.profile.key = null;
		await this.snapshot.show(signal);
	}

	async showFile() {
		const { viewer } = this;
		this.profile.key = null;
		viewer.openMore = viewer.madeColours = null;
		viewer.setSource(this.file);
		viewer.readAddress();
		this.fillTypes();
		await viewer.openFirst();
	}
}

try {
	const [{ shown, isLive, asked }] = await Promise.all([askFirst(), takeViewerMarkup()]);
	dropFirst();
	const app = new App(shown, isLive, asked);
	window.__app = app;
	window.__viewer = app.viewer;
	await app.show();
	if (app.selection.page !== 'live') setTimeout(warmDecoder, WARM_MS); // the live page has its own
} catch (problem) {
	console.error(problem);
	byId('trouble').hidden = false;
	byId('trouble').textContent = 'The page could not be started: ' + problem.message;
	if (byId('problem')) showProblem(problem);
}
