// SPDX-License-Identifier: Apache-2.0
// The page: reads the data blocks, holds the state, puts the views together. The same text runs as the worker that
// decodes the data.
import { FrameTable, readProfile } from './data.js';
import { decodeAside, runWorker, startWorker } from './decoder.js';
import { countHits, compileQuery, matchFrames, matchNodes } from './search.js';
import { collapsedTree, functionTotals, invertedTree, sandwichTrees } from './views.js';
import { COLOURS, Colours, classColour, colourClass } from './colour.js';
import { FlameView } from './flame.js';
import { FunctionGrid } from './table.js';
import { TreeMirror } from './a11y.js';
import { SandwichHalf, TREE_KEY, neighbour } from './halves.js';
import { DEFAULT_STATE, formatHash, parseHash } from './state.js';
import { actionForKey, fillHelp } from './keys.js';
import { formatShare, formatValue, visibleText } from './format.js';
import { nodePath } from './layout.js';

const TOOLTIP_CHARS_MAX = 1200;
const CRUMB_CHARS_MAX = 60;
const SEARCH_DELAY_MS = 60;
const DERIVED_PIXELS_MIN = 400;
const SANDWICH_SHARE = 1 / 5000;

function byId(id) {
	return document.getElementById(id);
}

class Viewer {
	constructor(meta) {
		this.meta = meta;
		this.profile = null;
		this.provisional = false;
		this.state = parseHash(location.hash);
		this.derived = new Map();
		this.current = -1;
		this.hits = null;
		this.matches = [];
		this.matchAt = -1;
		this.marks = {};
		const hooks = (which) => ({
			click: (node, view) => this.clickNode(which, node, view),
			hover: (node, event, view) => this.hoverNode(node, event, view),
			moved: (from, to) => which === 'graph' && this.go({ range: this.roundRange(from, to) }),
		});
		this.graph = new FlameView(byId('graph'), hooks('graph'));
		this.callers = new FlameView(byId('callers'), hooks('callers'));
		this.callees = new FlameView(byId('callees'), hooks('callees'));
		this.callers.flip = true;
		this.flames = [this.graph, this.callers, this.callees];
		this.mirror = new TreeMirror(byId('mirror'), byId('live'));
		const choose = (frame) => frame < this.frames.count && this.go({ focus: frame });
		this.halves = ['callers', 'callees'].map(
			(which) => new SandwichHalf(this[which], byId(which + '-mirror'), byId('live'), choose));
		this.grid = new FunctionGrid(byId('table'), {
			activate: (frame) => this.go({ view: 'sandwich', focus: frame }),
			sort: (key) => this.sortBy(key),
		});
		this.listen();
		this.applyTheme(this.storedTheme());
	}

	// ---- data -----------------------------------------------------------------------------------------------------

	setProfile(raw, provisional) {
		this.provisional = provisional;
		this.frames = new FrameTable(raw.frames, this.meta.kinds);
		this.tree = raw.tree;
		this.derived.clear();
		this.totals = null;
		this.colours = null;
		for (const flame of this.flames) {
			flame.tree = null;
			flame.shown.clear();
			flame.hooks.frames = this.frames;
		}
		this.hits = null;
		byId('provisional').hidden = !provisional;
		document.body.dataset.ready = provisional ? 'overview' : 'full';
		this.apply(false);
		// After the picture: it looks at every function.
		if (!provisional) setTimeout(() => this.fillLegend(), 0);
		this.marks[provisional ? 'overview' : 'full'] = performance.now();
	}

	/** Numbers in the state are those of the whole tree; while only the overview is there they are translated. */
	localNode(node) {
		if (!this.provisional) return node < this.tree.count ? node : 0;
		const at = this.tree.origin.indexOf(node);
		return at < 0 ? 0 : at;
	}

	wholeNode(node) {
		return this.provisional ? this.tree.origin[node] : node;
	}

	derivedTree(key, make) {
		let tree = this.derived.get(key);
		if (!tree) {
			tree = make();
			if (this.derived.size > 4) this.derived.delete(this.derived.keys().next().value);
			this.derived.set(key, tree);
		}
		return tree;
	}

	share() {
		return 1 / Math.max(DERIVED_PIXELS_MIN, byId('stage').clientWidth);
	}

	followsPath() {
		return this.state.view === 'inverted' || this.state.collapse;
	}

	shownTree() {
		const { view, path, collapse } = this.state;
		if (this.provisional || (view !== 'inverted' && !collapse)) return this.tree;
		const options = { path: path.filter((f) => f < this.frames.count), share: this.share() };
		const key = `${view === 'inverted' ? 'i' : 'c'}:${options.path.join('.')}:${options.share}`;
		const build = view === 'inverted' ? invertedTree : collapsedTree;
		return this.derivedTree(key, () => build(this.tree, this.frames.count, options));
	}

	sandwich() {
		const { focus, collapse } = this.state;
		const share = Math.min(this.share(), SANDWICH_SHARE);
		const key = `s:${focus}:${collapse}`;
		return this.derivedTree(key, () => sandwichTrees(this.tree, this.frames.count, focus, { collapse, share }));
	}

	functionTotals() {
		return (this.totals ??= functionTotals(this.tree, this.frames.count));
	}

	// ---- state ----------------------------------------------------------------------------------------------------

	/** Changes the state and remembers it in the history. */
	go(change, replace = false) {
		const before = this.state;
		this.state = { ...before, ...change };
		if ('view' in change && change.view !== before.view && !('path' in change)) this.state.path = [];
		if (!('range' in change) && ['view', 'zoom', 'path', 'collapse'].some((key) => key in change)) this.state.range = null;
		if ('collapse' in change) Object.assign(this.state, { path: [], zoom: 0 });
		const hash = formatHash(this.state);
		if (hash !== formatHash(before)) {
			if (replace) history.replaceState(null, '', hash);
			else history.pushState(null, '', hash);
		}
		this.apply(true);
	}

	apply(animate) {
		if (!this.tree) return;
		const { state } = this;
		if (!this.colours || this.colours.mode !== state.colour) {
			this.colours = new Colours(this.frames, state.colour);
			for (const flame of this.flames) flame.setColours(this.colours);
		}
		this.applyControls();
		this.applyQuery();
		const waiting = this.provisional && state.view !== 'graph';
		byId('waiting').hidden = !waiting;
		byId('graph-pane').hidden = waiting || (state.view !== 'graph' && state.view !== 'inverted');
		byId('sandwich').hidden = waiting || state.view !== 'sandwich';
		byId('table').hidden = waiting || state.view !== 'table';
		if (waiting) return;
		if (state.view === 'table') this.showTable();
		else if (state.view === 'sandwich') this.showSandwich();
		else this.showGraph(animate);
	}

	showGraph(animate) {
		const { graph, state } = this;
		const tree = this.shownTree();
		const replaced = graph.tree !== tree;
		const turned = graph.flip !== state.flip;
		graph.flip = state.flip;
		if (replaced) {
			graph.tree = tree;
			graph.hovered = graph.selected = -1;
			graph.hitsBefore = null;
			this.matchAt = -1;
		}
		const onPath = this.followsPath() && !this.provisional;
		const zoom = onPath ? Math.min(state.path.length, tree.count - 1) : this.localNode(state.zoom);
		graph.zoomTo(zoom, animate && !replaced, state.range);
		if (replaced || turned) {
			graph.resize();
			graph.scrollToRoot();
		}
		this.setHits(graph);
		if (this.current < 0 || this.current >= tree.count || replaced) this.current = zoom;
		if (zoom && !(this.current >= zoom && this.current < zoom + tree.size[zoom])) this.current = zoom;
		if (replaced && zoom) graph.revealRow(tree.level[zoom]);
		this.mirror.update(tree, this.frames, this.current);
		this.fillCrumbs(tree, zoom);
		byId('cut-note').hidden = !tree.isCut;
	}

	setHits(flame) {
		if (!this.hits) {
			flame.setHits(null, null);
			return;
		}
		if (!flame.hitsBefore || flame.hits !== this.hits) flame.setHits(this.hits, countHits(flame.tree, this.hits));
	}

	showSandwich() {
		const { focus } = this.state;
		const totals = this.functionTotals();
		const known = focus >= 0 && focus < this.frames.count;
		byId('sandwich-empty').hidden = known;
		byId('sandwich-halves').hidden = !known;
		byId('crumbs').replaceChildren();
		if (!known) return;
		const trees = this.sandwich();
		for (const [i, tree] of [trees.callers, trees.callees].entries()) {
			this.halves[i].show(tree, this.frames);
			this.setHits(this.halves[i].flame);
		}
		const name = visibleText(this.frames.name(focus)) || '(empty name)';
		byId('focus-name').textContent = byId('focus-name').title = name.slice(0, TOOLTIP_CHARS_MAX);
		const whole = this.tree.total[0];
		byId('focus-facts').textContent = `total ${formatValue(totals.total[focus], this.meta)} · ` +
			`${formatShare(totals.total[focus], whole)}   self ${formatValue(totals.self[focus], this.meta)} · ` +
			formatShare(totals.self[focus], whole);
	}

	showTable() {
		byId('crumbs').replaceChildren();
		const { sort, ascending } = this.state;
		this.grid.sortKey = sort;
		this.grid.ascending = ascending;
		this.grid.setData(this.frames, this.functionTotals(), this.tree.total[0], this.hits);
	}

	sortBy(key) {
		const { sort, ascending } = this.state;
		this.go({ sort: key, ascending: key === sort ? !ascending : key === 'name' }, true);
	}

	// ---- search ---------------------------------------------------------------------------------------------------

	applyQuery() {
		const { query, regex } = this.state;
		const key = `${query}\n${regex}\n${this.provisional}`;
		if (document.activeElement !== byId('query')) byId('query').value = query;
		if (key === this.queryKey && (this.hits || !query)) return;
		this.queryKey = key;
		this.matchAt = -1;
		const compiled = query ? compileQuery(query, regex) : null;
		byId('query').setAttribute('aria-invalid', String(Boolean(compiled?.error)));
		for (const button of [byId('next'), byId('previous')]) button.disabled = !compiled || Boolean(compiled.error);
		if (!compiled || compiled.error) {
			this.hits = null;
			this.matchedShare = 0;
			byId('matched').textContent = compiled ? 'not a regular expression' : '';
			return;
		}
		this.hits = matchFrames(this.frames, compiled.test);
		const { sum } = matchNodes(this.tree, this.hits);
		this.matchedShare = this.tree.total[0] > 0 ? sum / this.tree.total[0] : 0;
		byId('matched').textContent = formatShare(sum, this.tree.total[0]) + ' matched';
	}

	stepMatch(by) {
		const { graph, state } = this;
		if (!this.hits || (state.view !== 'graph' && state.view !== 'inverted')) return;
		const tree = graph.tree;
		if (this.matchAt < 0) {
			const zoom = graph.zoomed;
			this.matches = matchNodes(tree, this.hits, zoom).nodes.sort((a, b) => tree.total[b] - tree.total[a] || a - b);
		}
		const count = this.matches.length;
		if (!count) return;
		this.matchAt = this.matchAt < 0 ? (by > 0 ? 0 : count - 1) : (this.matchAt + by + count) % count;
		const node = this.matches[this.matchAt];
		const wide = ((tree.total[node] / (graph.to - graph.from)) * graph.width) >= 3;
		if (!wide) this.zoomNode(tree.parent[node] || node);
		this.setCurrent(graph.tree === tree ? node : this.current);
		this.mirror.say(`match ${this.matchAt + 1} of ${count}: ` + this.mirror.describe(tree, this.frames, node));
	}

	/** Free zooms go into the address with what a screen can tell apart; the whole width is none. */
	roundRange(from, to) {
		const whole = this.graph.tree.total[0];
		if (to - from >= whole) return null;
		return [Number(from.toFixed(3)), Math.min(whole, Number(to.toFixed(3)))];
	}

	// ---- moving about ---------------------------------------------------------------------------------------------

	zoomNode(node) {
		const { tree } = this.graph;
		if (this.followsPath() && !this.provisional) {
			this.go({ path: nodePath(tree, node).map((i) => tree.frame[i]) });
		} else {
			this.go({ zoom: this.wholeNode(node) });
		}
	}

	clickNode(which, node, view) {
		if (which === 'graph') {
			this.current = node;
			this.zoomNode(node);
			this.setCurrent(Math.min(this.current, this.graph.tree.count - 1));
		} else if (view.tree.frame[node] < this.frames.count) {
			this.go({ focus: view.tree.frame[node] });
		}
	}

	setCurrent(node) {
		this.current = node;
		this.graph.select(node);
		this.mirror.update(this.graph.tree, this.frames, node);
	}

	moveCurrent(key) {
		const { tree, zoomed } = this.graph;
		const to = neighbour(tree, Math.max(0, this.current), key, this.state.flip, zoomed);
		this.setCurrent(to);
		if (to < zoomed) this.zoomNode(to);
	}

	zoomOut() {
		const { zoomed, tree } = this.graph;
		if (this.state.view === 'sandwich' || this.state.view === 'table') history.back();
		else if (zoomed > 0) this.zoomNode(tree.parent[zoomed]);
	}

	currentFrame() {
		const { graph, state } = this;
		if (state.view === 'sandwich') return state.focus;
		if (state.view === 'table') return this.grid.shownRows[this.grid.active] ?? -1;
		const node = graph.hovered >= 0 ? graph.hovered : this.current;
		return node > 0 ? graph.tree.frame[node] : -1;
	}

	async copyName() {
		const frame = this.currentFrame();
		if (frame < 0) return;
		try {
			await navigator.clipboard.writeText(this.frames.name(frame));
			this.toast('Copied');
		} catch {
			this.toast('The browser did not allow copying');
		}
	}

	toast(text) {
		byId('toast').textContent = text;
		byId('toast').hidden = false;
		clearTimeout(this.toastTimer);
		this.toastTimer = setTimeout(() => (byId('toast').hidden = true), 1500);
	}

	// ---- what is drawn around the graph ---------------------------------------------------------------------------

	hoverNode(node, event, view) {
		const tip = byId('tip');
		if (node < 0 || !view.tree) {
			tip.hidden = true;
			return;
		}
		const { tree } = view;
		const frame = tree.frame[node];
		const whole = this.tree.total[0];
		const kind = [this.frames.kind(frame), visibleText(this.frames.moduleName(frame))].filter(Boolean).join(' · ');
		byId('tip-name').textContent = visibleText(this.frames.name(frame)).slice(0, TOOLTIP_CHARS_MAX) || '(empty name)';
		byId('tip-kind').textContent = kind;
		byId('tip-total').textContent = formatValue(tree.total[node], this.meta) + ' · ' + formatShare(tree.total[node], whole);
		byId('tip-self').textContent = formatValue(tree.self[node], this.meta) + ' · ' + formatShare(tree.self[node], whole);
		byId('tip-zoom-row').hidden = !view.zoomed;
		if (view.zoomed) byId('tip-zoom').textContent = formatShare(tree.total[node], tree.total[view.zoomed]) + ' of the zoomed frame';
		byId('tip-note').hidden = !this.provisional;
		tip.hidden = false;
		const [w, h] = [tip.offsetWidth, tip.offsetHeight];
		const x = Math.min(event.clientX + 14, innerWidth - w - 6);
		const below = event.clientY + 18 + h < innerHeight;
		tip.style.left = Math.max(4, x) + 'px';
		tip.style.top = Math.max(4, below ? event.clientY + 18 : event.clientY - h - 12) + 'px';
	}

	fillCrumbs(tree, zoom) {
		const path = [0, ...nodePath(tree, zoom)];
		const skip = path.length > 12 ? path.length - 11 : 0;
		const items = [];
		const add = (node, text) => {
			const item = document.createElement('li');
			const button = document.createElement('button');
			button.type = 'button';
			button.textContent = text;
			button.title = visibleText(this.frames.name(tree.frame[node])).slice(0, TOOLTIP_CHARS_MAX);
			if (node === zoom) button.setAttribute('aria-current', 'true');
			button.addEventListener('click', () => this.zoomNode(node));
			item.append(button);
			items.push(item);
		};
		for (const [i, node] of path.entries()) {
			if (i > 0 && i < skip) continue;
			const name = visibleText(this.frames.name(tree.frame[node])) || '(empty name)';
			const short = name.length > CRUMB_CHARS_MAX ? name.slice(0, CRUMB_CHARS_MAX) + '…' : name;
			add(node, i === skip && skip ? '… ' + short : short);
		}
		byId('crumbs').replaceChildren(...(zoom ? items : []));
	}

	fillLegend() {
		const share = new Map();
		const totals = this.functionTotals();
		for (let f = 0; f < this.frames.count; f++) {
			if (!totals.self[f]) continue;
			const name = colourClass(this.frames.kind(f), this.frames.name(f));
			share.set(name, (share.get(name) ?? 0) + totals.self[f]);
		}
		const items = [...share].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([name, self]) => {
			const item = document.createElement('li');
			const swatch = document.createElement('span');
			swatch.className = 'swatch';
			swatch.style.background = classColour(name);
			item.append(swatch, ` ${name === 'cpp' ? 'C++' : name} ${formatShare(self, this.tree.total[0])}`);
			return item;
		});
		byId('legend').replaceChildren(...items);
	}

	applyControls() {
		const { state } = this;
		for (const tab of document.querySelectorAll('[data-view]')) {
			tab.setAttribute('aria-pressed', String(tab.dataset.view === state.view));
		}
		byId('flip').setAttribute('aria-pressed', String(state.flip));
		byId('collapse').setAttribute('aria-pressed', String(state.collapse));
		byId('regex').setAttribute('aria-pressed', String(state.regex));
		byId('colour').value = state.colour;
		byId('legend').hidden = state.colour !== 'kind';
	}

	storedTheme() {
		try {
			return localStorage.getItem('hearth-theme') ?? 'system';
		} catch {
			return 'system';
		}
	}

	applyTheme(theme) {
		const dark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
		this.theme = theme;
		document.documentElement.dataset.theme = dark ? 'dark' : 'light';
		byId('theme').setAttribute('aria-pressed', String(dark));
		for (const flame of this.flames) flame.invalidate();
	}

	toggleTheme() {
		const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
		try {
			localStorage.setItem('hearth-theme', next);
		} catch {
			// A browser that keeps nothing for files still switches.
		}
		this.applyTheme(next);
	}

	// ---- events ---------------------------------------------------------------------------------------------------

	listen() {
		const on = (id, run) => byId(id).addEventListener('click', run);
		for (const tab of document.querySelectorAll('[data-view]')) {
			tab.addEventListener('click', () => this.run('view' + tab.dataset.view[0].toUpperCase() + tab.dataset.view.slice(1)));
		}
		on('next', () => this.stepMatch(1));
		on('previous', () => this.stepMatch(-1));
		on('regex', () => this.go({ regex: !this.state.regex }, true));
		for (const [id, action] of [['flip', 'toggleFlip'], ['collapse', 'toggleCollapse'], ['theme', 'toggleTheme'],
			['reset', 'reset'], ['help', 'help']]) on(id, () => this.run(action));
		on('help-close', () => byId('help-sheet').close());
		on('copy-focus', () => this.copyName());
		byId('colour').addEventListener('change', (event) => this.go({ colour: event.target.value }, true));
		byId('query').addEventListener('input', () => {
			clearTimeout(this.searchTimer);
			this.searchTimer = setTimeout(() => this.go({ query: byId('query').value }, true), SEARCH_DELAY_MS);
		});
		byId('query').addEventListener('keydown', (event) => this.queryKeys(event));
		byId('mirror').addEventListener('keydown', (event) => this.treeKeys(event));
		document.addEventListener('keydown', (event) => this.pageKeys(event));
		addEventListener('popstate', () => {
			this.state = parseHash(location.hash);
			this.apply(true);
		});
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.applyTheme(this.theme));
		fillHelp(byId('help-keys'));
		const wide = matchMedia('(min-width: 721px)');
		byId('facts').open = wide.matches;
		wide.addEventListener('change', () => (byId('facts').open = wide.matches));
	}

	queryKeys(event) {
		if (event.key === 'Enter') {
			event.preventDefault();
			this.flushQuery();
			this.stepMatch(event.shiftKey ? -1 : 1);
		} else if (event.key === 'Escape') {
			event.stopPropagation();
			byId('query').value = '';
			this.flushQuery();
			byId('mirror').focus();
		}
	}

	flushQuery() {
		clearTimeout(this.searchTimer);
		if (byId('query').value !== this.state.query) this.go({ query: byId('query').value }, true);
	}

	treeKeys(event) {
		if (event.ctrlKey || event.altKey || event.metaKey || !this.graph.tree) return;
		if (!TREE_KEY.test(event.key)) return;
		event.preventDefault();
		this.moveCurrent(event.key);
	}

	pageKeys(event) {
		if (byId('help-sheet').open) return;
		const inText = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
		const action = actionForKey(event, inText, event.target === byId('mirror'));
		if (!action) return;
		event.preventDefault();
		this.run(action);
	}

	run(action) {
		const { state } = this;
		const actions = {
			search: () => byId('query').select(),
			nextMatch: () => this.stepMatch(1),
			previousMatch: () => this.stepMatch(-1),
			zoomSelected: () => this.zoomNode(Math.max(0, this.current)),
			zoomOut: () => this.zoomOut(),
			reset: () => this.go({ zoom: 0, path: [], query: '' }),
			sandwichSelected: () => this.currentFrame() >= 0 && !this.provisional &&
				this.go({ view: 'sandwich', focus: this.currentFrame() }),
			copyName: () => this.copyName(),
			viewGraph: () => this.go({ view: 'graph' }),
			viewInverted: () => this.go({ view: 'inverted' }),
			viewSandwich: () => this.go({ view: 'sandwich', focus: state.focus >= 0 ? state.focus : this.currentFrame() }),
			viewTable: () => this.go({ view: 'table' }),
			toggleFlip: () => this.go({ flip: !state.flip }, true),
			toggleCollapse: () => this.go({ collapse: !state.collapse }),
			toggleColour: () => this.go({ colour: state.colour === 'kind' ? 'module' : 'kind' }, true),
			toggleTheme: () => this.toggleTheme(),
			help: () => byId('help-sheet').showModal(),
		};
		if (this.tree) actions[action]();
	}
}

function showProblem(problem) {
	byId('problem').hidden = false;
	byId('problem').textContent = 'This profile could not be read: ' + (problem?.message ?? problem);
	document.body.dataset.ready = 'failed';
}

function documentEnd() {
	if (document.readyState !== 'loading') return Promise.resolve();
	return new Promise((resolve) => document.addEventListener('DOMContentLoaded', resolve, { once: true }));
}

export async function startPage(source) {
	const worker = source ? startWorker(source) : null;
	const viewer = new Viewer(JSON.parse(byId('meta').textContent));
	window.__viewer = viewer;
	viewer.defaults = DEFAULT_STATE;
	viewer.palette = COLOURS;
	const overview = byId('overview').textContent;
	let isWhole = false;
	const first = overview ? readProfile(overview).then((profile) => isWhole || viewer.setProfile(profile, true)) : null;
	await documentEnd();
	try {
		const profile = await decodeAside(worker, byId('data').textContent);
		byId('data').textContent = '';
		await first;
		isWhole = true;
		viewer.setProfile(profile, false);
	} catch (problem) {
		showProblem(problem);
	}
}

if (typeof document === 'undefined') {
	if (typeof WorkerGlobalScope !== 'undefined') runWorker();
} else {
	await startPage(document.currentScript?.textContent ?? '');
}
