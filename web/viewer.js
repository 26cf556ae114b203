// SPDX-License-Identifier: Apache-2.0
// One profile on the page: holds what is shown (state.js), asks the source for data, puts the views together.
import { FrameTable } from './data.js';
import { countHits, compileQuery, matchFrames, matchNodes } from './search.js';
import { Matcher, Workbench } from './aside.js';
import { STEPS_MAX, formatStep, groupsToAsk, resolveSteps, stepText } from './transforms.js';
import { StepMenu } from './steps.js';
import { Minimap } from './minimap.js';
import { Controls } from './controls.js';
import { saveAs, tableText } from './exports.js';
import { COLOURS, coloursFor } from './colour.js';
import { FlameView } from './flame.js';
import { FunctionGrid } from './table.js';
import { CallTree } from './calls.js';
import { TreeMirror } from './a11y.js';
import { SandwichHalf, neighbour } from './halves.js';
import { DEFAULT_STATE, PATH_LENGTH_MAX, formatHash, parseHash } from './state.js';
import { formatCount, formatShare, formatValue, negativeText } from './format.js';
import { findAtMost, nodeChildren, nodePath } from './layout.js';
import { copyText, showDetails, stackText } from './details.js';
import { Theme, afterPainting, byId, showCrumbs, showLegend, showTip, shownName } from './around.js';

const DERIVED_PIXELS_MIN = 400;
const SANDWICH_SHARE = 1 / 5000;
const DERIVED_MAX = 6;
const COPIED_ROWS_MAX = 10000;
const REST_PARTS = 16; // of a pixel: as much as the smallest function of an opened rest may take
const BUSY_DELAY_MS = 150;
/** A frame's kind, module and name in a few characters (FNV-1a), so that an address can name a place. */
function frameKey(frames, frame) {
	let hash = 0x811c9dc5;
	for (const char of `${frames.kind(frame)}\n${frames.moduleName(frame) ?? ''}\n${frames.name(frame)}`) hash = Math.imul(hash ^ char.codePointAt(0), 0x01000193);
	return (hash >>> 0).toString(36);
}

/** The keys of the frames from below the root down to a node. */
function pathKeys(tree, frames, node) {
	return node > 0 && node < tree.count ? nodePath(tree, node).map((n) => frameKey(frames, tree.frame[n])) : [];
}

/** The node of such a path: as far down as the tree has it. */
function nodeOfKeys(tree, frames, keys) {
	let node = 0;
	for (const key of keys) {
		const child = nodeChildren(tree, node).find((n) => frameKey(frames, tree.frame[n]) === key);
		if (child === undefined) break;
		node = child;
	}
	return node;
}

/** The state as the part of the address behind the #. */
const HASH = {
	read: () => location.hash,
	write: (hash, replace) => (replace ? history.replaceState(null, '', hash) : history.pushState(null, '', hash)),
};

export class Viewer {
	/**
	 * @param {Source | null} source null: setSource() follows
	 * @param {{ read(): string, write(hash: string, replace: boolean): void }} address where the state is kept
	 */
	constructor(source, address = HASH) {
		this.address = address;
		this.isNamed = address !== HASH; // the page that has its profile in itself never has another one: there numbers do
		this.defaults = DEFAULT_STATE;
		this.palette = COLOURS;
		this.provisional = false;
		this.state = parseHash(address.read());
		this.derived = new Map();
		this.bench = new Workbench(() => this.source.startWorker());
		this.stepsKey = '';
		/** @type {Map<string, Promise<any>>} */
		this.pending = new Map(); // the jobs that are worked on, by key
		this.current = -1;
		this.hits = null;
		this.matches = [];
		this.matchAt = -1;
		this.marks = {};
		/** @type {((focus: number) => void) | null} */
		this.focusShown = null; // runs when the sandwich has another function in its middle
		/** @type {(() => void) | null} */
		this.openMore = null; // what a click on what is too narrow does
		/** @type {((frames: FrameTable, mode: string) => BoxColours) | null} */
		this.madeColours = null; // instead of Colours
		/** @type {import('./sides.js').Sides | null} */
		this.sides = null;
		/** @type {(() => void) | null} */
		this.treeShown = null; // runs when another tree is shown: of another profile, or after other steps
		/** @type {Tree | null} */
		this.toldTree = null; // what it has run for
		const hooks = (which) => ({
			click: (node, view) => this.clickNode(which, node, view),
			menu: (node, event, view) => this.steps.openFor(view.tree.frame[node], event.clientX, event.clientY),
			hover: (node, event, view, run) => showTip(node, event, view, this.tipFacts(), run),
			moved: (from, to) => which === 'graph' && this.go({ range: this.roundRange(from, to) }),
		});
		this.graph = new FlameView(byId('graph'), hooks('graph'));
		this.callers = new FlameView(byId('callers'), hooks('callers'));
		this.callees = new FlameView(byId('callees'), hooks('callees'));
		this.callers.flip = true;
		this.flames = [this.graph, this.callers, this.callees];
		this.mirror = new TreeMirror(byId('mirror'), byId('live'));
		const choose = (frame) => this.chooseFocus(frame);
		this.halves = ['callers', 'callees'].map(
			(which) => new SandwichHalf(this[which], byId(which + '-mirror'), byId('live'), choose, (half) => this.showDetails(half)));
		this.grid = new FunctionGrid(byId('table'), {
			activate: (frame) => this.go({ view: 'sandwich', focus: frame }),
			sort: (key) => this.sortBy(key),
		});
		this.calls = new CallTree(byId('calls'), {
			choose: (node) => this.go({ view: 'graph', zoom: this.wholeNode(node), path: [] }),
			menu: (node, event) => this.steps.openFor(this.tree.frame[node], event.clientX, event.clientY),
		});
		/** @type {Matcher | null} */
		this.matcher = null;
		/** @type {{ frames: FrameTable, numbers: Map<string, number> } | null} */
		this.keyed = null; // numberOf()
		this.isOpening = false;
		/** @type {{ tree: Tree, key: string, from: number, to: number, least: number, row: number } | null} */
		this.opened = null; // what of a derived tree was too narrow, and is shown; row: where, until it has come
		this.derivedKey = '';
		this.isFollowing = false; // what is shown moves by itself
		/** @type {SandwichHalf | null} */
		this.half = null; // the one whose box is the current one
		this.steps = new StepMenu(this);
		this.minimap = new Minimap(byId('minimap'), this.graph);
		if (source) this.setSource(source);
		this.theme = new Theme(byId('theme'), () => this.flames.forEach((flame) => flame.invalidate()));
		this.controls = new Controls(this);
	}

	// ---- data -----------------------------------------------------------------------------------------------------

	/**
	 * Another profile: openFirst() shows it, with the state that there is.
	 * @param {Source} source
	 */
	setSource(source) {
		const { meta } = source;
		this.source = source;
		this.types = meta.types;
		this.shownType = 0;
		this.meta = { ...meta, ...meta.types[0] };
	}

	/** The state is what the address says. */
	readAddress() {
		this.state = parseHash(this.address.read());
	}

	/** The type that the address asks for, its first picture before it. */
	async openFirst() {
		let isWhole = false;
		const first = this.typeIndex() === 0 ? this.source.overview() : null;
		first?.then((profile) => isWhole || this.setProfile(profile, true));
		const profile = await this.source.open(0);
		await first;
		isWhole = true;
		this.setProfile(profile, false);
	}

	/** Where the state is, by names: what a link means also for newer data, and for more nodes of it. */
	nameState() {
		const { state, frames, tree } = this;
		if (!this.isNamed || this.provisional || !tree) return;
		const joined = (keys) => keys.slice(0, PATH_LENGTH_MAX).join('.');
		state.zoomNames = joined(pathKeys(tree, frames, state.zoom));
		state.pathNames = joined(state.path.filter((f) => f < frames.count).map((f) => frameKey(frames, f)));
		state.focusName = state.focus >= 0 && state.focus < this.base.count ? frameKey(this.base, state.focus) : '';
	}

	/** The numbers that the names stand for in this tree; what is not in it ends a path. */
	findNamed() {
		const { state, frames, tree } = this;
		if (!this.isNamed || this.provisional) return;
		if (!state.zoom && state.zoomNames) state.zoom = nodeOfKeys(tree, frames, state.zoomNames.split('.'));
		if (state.focus < 0 && state.focusName) state.focus = this.numberOf(state.focusName);
		if (state.path.length || !state.pathNames) return;
		const path = state.pathNames.split('.').map((key) => this.numberOf(key));
		state.path = path.includes(-1) ? path.slice(0, path.indexOf(-1)) : path;
	}

	/** The frame of a key; -1: there is none. */
	numberOf(key) {
		const { frames } = this;
		if (this.keyed?.frames !== frames) this.keyed = { frames, numbers: new Map(Array.from({ length: frames.count }, (_, f) => [frameKey(frames, f), f])) };
		return this.keyed.numbers.get(key) ?? -1;
	}

	/** Numbers of another tree: those with names are found again. */
	forgetNumbers() {
		const { state } = this;
		this.state = { ...state, zoom: state.zoomNames ? 0 : state.zoom, path: state.pathNames ? [] : state.path, focus: state.focusName ? -1 : state.focus };
	}

	/** @param {Profile} raw */
	setProfile(raw, provisional) {
		this.provisional = provisional;
		if (byId('problem')) byId('problem').hidden = true;
		if (this.isNamed) this.forgetNumbers();
		this.raw = raw;
		this.base = new FrameTable(raw.frames, this.meta.kinds);
		this.bench.setTree(raw.tree);
		this.showTree(this.base, raw.tree, '');
		this.focusCarried();
		if (!provisional && this.types.length > 1 && byId('fact-total')) {
			byId('fact-total').textContent = formatValue(this.tree.total[0], this.meta);
			byId('fact-paths').textContent = formatCount(this.tree.count - 1);
		}
		byId('provisional').hidden = !provisional;
		document.body.dataset.ready = provisional ? 'overview' : 'full';
		this.apply(false);
		this.marks[provisional ? 'overview' : 'full'] = performance.now();
	}

	/**
	 * A later picture of the same: what is looked at stays, found again by its names.
	 * @param {Source} source
	 * @param {Profile} profile
	 */
	follow(source, profile) {
		this.isFollowing = true;
		try {
			this.showLater(source, profile);
		} finally {
			this.isFollowing = false;
		}
	}

	showLater(source, profile) {
		const { state, graph } = this;
		const known = (frames) => frames.filter((f) => f >= 0 && f < this.frames.count).map((f) => frameKey(this.frames, f));
		const before = graph.tree ?? this.tree;
		const [zoomed, current] = [pathKeys(this.tree, this.frames, state.zoom), pathKeys(before, this.frames, this.current)];
		const [path, focus] = [known(state.path), known([state.focus])[0]];
		const scrolled = this.flames.map((flame) => flame.scroller.scrollTop);
		this.setSource(source);
		this.raw = profile;
		this.base = new FrameTable(profile.frames, this.meta.kinds);
		this.bench.setTree(profile.tree);
		this.showTree(this.base, profile.tree, '');
		this.applySteps();
		const focused = focus === undefined ? -1 : this.numberOf(focus);
		this.state = { ...state, zoom: nodeOfKeys(this.tree, this.frames, zoomed), range: null, path: path.map((key) => this.numberOf(key)).filter((f) => f >= 0), focus: focused };
		this.apply(false);
		if (graph.tree && (state.view === 'graph' || state.view === 'inverted')) this.setCurrent(nodeOfKeys(graph.tree, this.frames, current));
		for (const [i, flame] of this.flames.entries()) flame.scroller.scrollTop = scrolled[i];
	}

	/**
	 * What all views are about from now on: the profile's tree, or what the steps made of it.
	 * @param {FrameTable} frames
	 * @param {Tree} tree
	 */
	showTree(frames, tree, stepsKey) {
		this.frames = frames;
		this.tree = tree;
		this.stepsKey = stepsKey;
		this.current = -1;
		this.derived.clear();
		this.pending = new Map();
		this.colours = null;
		for (const flame of this.flames) {
			flame.tree = null;
			flame.shown.clear();
			flame.hooks.frames = frames;
		}
		this.hits = null;
		this.queryKey = null;
	}

	/** Brings the tree to the steps of the state. False: not yet, apply() runs again when it is. */
	applySteps() {
		if (this.regroup()) return false;
		const key = this.provisional ? '' : this.state.steps.map(formatStep).join('\n');
		if (key === this.stepsKey) return true;
		if (!key) {
			this.showTree(this.base, this.raw.tree, '');
			return true;
		}
		const { steps, added } = resolveSteps(this.state.steps, this.base);
		const frames = new FrameTable(this.raw.frames, this.meta.kinds, added);
		const tree = this.derive('steps:' + key, { kind: 'steps', steps, rootFrame: frames.count, key }, this.raw.tree);
		if (!tree) return false;
		this.showTree(frames, tree, key);
		return true;
	}

	/** Groups whose frames only the source can make are asked for. True: it was, setProfile() follows. */
	regroup() {
		const { source } = this;
		if (this.provisional || !this.needsGroups(this.state.steps)) {
			this.regrouping = null;
			return false;
		}
		const wanted = groupsToAsk(this.state.steps);
		const key = wanted.join('\n');
		if (this.regrouping === key) return true;
		this.regrouping = key;
		this.setBusy(true);
		const isWanted = () => this.regrouping === key && this.source === source;
		source.regroup(wanted).then(async (next) => {
			const profile = await next.open(0);
			if (!isWanted()) return;
			this.setSource(next);
			this.setProfile(profile, false);
		}).catch((problem) => isWanted() && this.say('This view could not be made: ' + problem.message)).finally(() => this.setBusy(this.pending.size > 0));
		return true;
	}

	// ---- which of the profile's values is shown: each has a tree of its own, whose numbers mean nothing in another ------

	typeIndex() {
		return Math.max(0, this.types.findIndex((type) => type.name === this.state.type));
	}

	async loadType(index) {
		byId('waiting').hidden = false;
		try {
			const profile = await this.source.open(index);
			if (this.typeIndex() !== index) return;
			this.shownType = index;
			this.meta = { ...this.meta, ...this.types[index] };
			this.setProfile(profile, false);
		} catch (problem) {
			showProblem(problem);
		}
	}

	/** The function in the middle of the sandwich stays there. */
	focusCarried() {
		if (!this.carried || this.provisional) return;
		const { name, kind } = this.carried;
		this.carried = null;
		for (let f = 0; f < this.frames.count; f++) {
			if (this.frames.name(f) !== name || this.frames.kind(f) !== kind) continue;
			this.state.focus = f;
			this.nameState();
			this.address.write(formatHash(this.state), true);
			return;
		}
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

	/** The result of a job (aside.js), or null while it is worked on: apply() runs again then. */
	derive(key, job, tree = this.tree) {
		const made = this.start(key, job, tree);
		return made instanceof Promise ? null : made;
	}

	/** The same, or the job's promise while it is worked on. */
	start(key, job, tree = this.tree) {
		const known = this.derived.get(key) ?? this.pending.get(key);
		if (known) return known;
		const on = job.kind === 'steps' ? '' : this.stepsKey;
		const result = this.bench.run({ ...job, on }, tree);
		if (!(result instanceof Promise)) return this.keep(key, result);
		const { pending } = this;
		pending.set(key, result);
		this.setBusy(true);
		result.then((made) => {
			if (pending !== this.pending) return;
			this.keep(key, made);
			pending.delete(key);
			this.apply(false);
			if (job.kind === 'totals') this.fillLegend();
		}, (problem) => pending === this.pending && this.say('This view could not be made: ' + problem.message)).finally(() => {
			pending.delete(key);
			this.setBusy(this.pending.size > 0);
		});
		return result;
	}

	/**
	 * A promise of a job's result, of the tree that is shown when it has come.
	 * @param {() => [string, object] | null} begin what start() is given, asked anew for another tree; null: the tree itself
	 */
	async whenDone(begin) {
		for (;;) {
			const { tree } = this;
			try {
				const job = begin();
				const made = job ? await this.start(...job) : tree;
				if (tree === this.tree) return made;
			} catch (problem) {
				if (tree === this.tree) throw problem;
			}
		}
	}

	keep(key, made) {
		if (this.derived.size > DERIVED_MAX) this.derived.delete(this.derived.keys().next().value);
		this.derived.set(key, made);
		return made;
	}

	setBusy(isBusy) {
		clearTimeout(this.busyTimer);
		if (isBusy) this.busyTimer = setTimeout(() => (byId('working').hidden = false), BUSY_DELAY_MS);
		else byId('working').hidden = true;
	}

	share() {
		return 1 / Math.max(DERIVED_PIXELS_MIN, byId('stage').clientWidth);
	}

	followsPath() {
		return this.state.view === 'inverted' || this.state.collapse;
	}

	/** What the graph shows, or would show beside another view; null while it is made. */
	shownTree() {
		const job = this.graphJob();
		return job ? this.derive(...job) : this.tree;
	}

	/**
	 * The job that makes the graph's tree; null: it is the tree itself.
	 * @returns {[string, object] | null}
	 */
	graphJob() {
		const { view, path, collapse } = this.state;
		if (this.provisional || (view !== 'inverted' && !collapse)) return null;
		const options = { path: path.filter((f) => f < this.frames.count), share: this.share() };
		const kind = view === 'inverted' ? 'inverted' : 'collapsed';
		const key = `${kind}:${options.path.join('.')}:${options.share}`;
		this.derivedKey = key;
		if (this.opened?.tree !== this.tree || this.opened.key !== key) this.opened = null;
		const { from, to, least } = this.opened ?? {};
		const window = this.opened && { from, to, least };
		return [window ? `${key}:${from}:${to}:${least}` : key, { kind, frameCount: this.frames.count, options: { ...options, window } }];
	}

	sandwich() {
		const { focus, collapse } = this.state;
		const share = Math.min(this.share(), SANDWICH_SHARE);
		return this.derive(`s:${focus}:${collapse}`, { kind: 'sandwich', frameCount: this.frames.count, focus, options: { collapse, share } });
	}

	/** @returns {[string, object]} */
	totalsJob() {
		return ['totals', { kind: 'totals', frameCount: this.frames.count }];
	}

	functionTotals() {
		return this.derive(...this.totalsJob());
	}

	/** A promise of functionTotals(). */
	whenTotals() {
		return this.whenDone(() => this.totalsJob());
	}

	// ---- state ----------------------------------------------------------------------------------------------------

	/**
	 * Changes the state and remembers it in the history.
	 * @param {Partial<ViewState>} change
	 */
	go(change, replace = false) {
		const before = this.state;
		this.state = { ...before, ...change };
		if ('view' in change && change.view !== before.view && !('path' in change)) this.state.path = [];
		if (!('range' in change) && ['view', 'zoom', 'path', 'collapse'].some((key) => key in change)) this.state.range = null;
		if ('type' in change && change.type !== before.type) {
			this.carry(before.focus);
			Object.assign(this.state, { zoom: 0, path: [], range: null, focus: -1 });
		}
		if ('steps' in change) Object.assign(this.state, { zoom: 0, path: [], range: null, focus: this.carriedFocus(change.steps, before) });
		if ('collapse' in change) Object.assign(this.state, { path: [], zoom: 0 });
		this.nameState();
		const hash = formatHash(this.state);
		if (hash !== formatHash(before)) {
			this.address.write(hash, replace);
		}
		this.apply(true);
	}

	/** A function that another profile has under another number. */
	carry(focus) {
		this.carried = focus >= 0 && focus < this.frames.count ? { name: this.frames.name(focus), kind: this.frames.kind(focus) } : null;
	}

	/** Are these steps about groups that the profile does not have, and its source can make? */
	needsGroups(steps) {
		const { source } = this;
		return Boolean(source?.offered?.length) && groupsToAsk(steps).join('\n') !== source.grouped.join('\n');
	}

	/** A function keeps its number through steps, but what a step has made goes with it. */
	carriedFocus(steps, before) {
		if (this.needsGroups(steps)) {
			this.carry(before.focus);
			return -1;
		}
		return steps.length > before.steps.length || before.focus < this.base.count ? before.focus : -1;
	}

	addStep(op, text) {
		const { steps } = this.state;
		if (steps.length < STEPS_MAX) this.go({ steps: [...steps, { op, text }] });
		else this.toast('No more steps fit');
	}

	undoStep() {
		if (this.state.steps.length) this.go({ steps: this.state.steps.slice(0, -1) });
	}

	/** A step about the current function or its module. */
	stepOn(op) {
		const frame = this.currentFrame();
		if (frame < 0 || frame >= this.frames.count || this.provisional) return;
		if (op === 'module' || op === 'hidemodule') {
			const name = this.frames.moduleName(frame);
			if (name) this.addStep(op, stepText(name));
			else this.toast('This function has no module');
		} else {
			this.addStep(op, stepText(this.frames.name(frame)));
		}
	}

	apply(animate) {
		if (!this.tree) return;
		const { state } = this;
		if (!this.provisional && this.typeIndex() !== this.shownType) {
			this.loadType(this.typeIndex());
			return;
		}
		this.steps.update();
		if (!this.applySteps()) return;
		this.findNamed();
		if (!this.colours || this.colours.mode !== state.colour) {
			this.colours = this.madeColours?.(this.frames, state.colour) ?? coloursFor(this.frames, state.colour);
			// After the picture: it looks at every function.
			if (!this.provisional) afterPainting(() => this.fillLegend());
			for (const flame of this.flames) flame.setColours(this.colours);
		}
		if (this.toldTree !== this.tree) {
			this.toldTree = this.tree;
			this.treeShown?.();
		}
		this.controls.update();
		this.applyNotes();
		this.applyQuery();
		const waiting = this.provisional && state.view !== 'graph';
		const isTwo = state.view === 'graph' && !state.collapse && Boolean(this.sides?.takes(this.tree));
		this.sides?.setShown(isTwo, this.tree);
		byId('waiting').hidden = !waiting;
		byId('graph-pane').hidden = waiting || isTwo || (state.view !== 'graph' && state.view !== 'inverted');
		byId('sandwich').hidden = waiting || state.view !== 'sandwich';
		byId('table').hidden = waiting || state.view !== 'table';
		byId('calls').hidden = waiting || state.view !== 'calls';
		if (waiting) {
			byId('details').hidden = true;
			return;
		}
		if (state.view === 'table') this.showTable();
		else if (state.view === 'calls') this.showCalls();
		else if (state.view === 'sandwich') this.showSandwich();
		else this.showGraph(animate);
		if (isTwo) this.sides.show(this.tree, this.graph.zoomed, animate);
		this.showDetails(this.half, true);
	}

	/** The current box of the graph, or of a half of the sandwich. */
	currentBox(half = this.half) {
		const { view } = this.state;
		if (view === 'calls') return { tree: this.tree, node: this.calls.current(), isUp: false };
		if (view === 'sandwich') {
			const { flame, current } = half ?? this.halves[1];
			return { tree: this.state.focus < 0 ? null : flame.tree, node: current, isUp: flame === this.callers };
		}
		return { tree: view === 'table' ? null : this.graph.tree, node: Math.max(0, this.current), isUp: view === 'inverted' };
	}

	/**
	 * @param {SandwichHalf | null} [half] whose current box it is from now on
	 * @param {boolean} [isQuiet] nobody has moved to it: it is not read aloud
	 */
	showDetails(half = null, isQuiet = this.isFollowing) {
		this.half = half;
		const { tree, node } = this.currentBox();
		const isShown = this.state.view !== 'calls' && tree !== null && node < tree.count;
		byId('details').hidden = !isShown;
		if (isShown) showDetails(tree, node, this.tipFacts(), isQuiet);
	}

	showGraph(animate) {
		const { graph, state } = this;
		const tree = this.shownTree();
		if (!tree) return;
		const replaced = graph.tree !== tree;
		const turned = graph.flip !== state.flip;
		if (replaced) this.matchAt = -1;
		this.fillGraph(tree, animate && !replaced);
		const zoom = graph.zoomed;
		if (replaced || turned) {
			graph.resize();
			graph.scrollToRoot();
		}
		if (this.current < 0 || this.current >= tree.count || replaced) this.current = zoom;
		if (replaced && this.opened) this.goToOpened();
		if (zoom && !(this.current >= zoom && this.current < zoom + tree.size[zoom])) this.current = zoom;
		if (replaced && zoom) graph.revealRow(tree.level[zoom]);
		this.mirror.update(tree, this.frames, this.current);
		showCrumbs(byId('crumbs'), tree, this.frames, zoom, (to) => this.zoomNode(to));
		byId('cut-note').hidden = !tree.isCut;
	}

	/** Gives the graph its tree, as the state has it zoomed and searched. */
	fillGraph(tree, animate) {
		const { graph, state } = this;
		graph.flip = state.flip;
		if (graph.tree !== tree) {
			graph.tree = tree;
			graph.hovered = graph.selected = -1;
			graph.hitsBefore = null;
		}
		const onPath = this.followsPath() && !this.provisional;
		graph.zoomTo(onPath ? Math.min(state.path.length, tree.count - 1) : this.localNode(state.zoom), animate, state.range);
		this.setHits(graph);
	}

	/**
	 * Runs with the graph as its own view would show it, for pictures of it. Beside another view it gets back what it had.
	 * @template T
	 * @param {(graph: FlameView) => T} run
	 */
	async withGraph(run) {
		const tree = await this.whenDone(() => this.graphJob());
		const { graph, state: { view } } = this;
		if (view === 'graph' || view === 'inverted') return run(graph);
		const before = graph.tree;
		this.fillGraph(tree, false);
		try {
			return await run(graph);
		} finally {
			if (graph.tree === tree && this.state.view === view) Object.assign(graph, { tree: before, hitsBefore: null });
		}
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
		this.focusShown?.(focus);
		byId('sandwich-empty').hidden = known;
		byId('sandwich-halves').hidden = !known;
		byId('crumbs').replaceChildren();
		if (!known) return;
		const trees = totals && this.sandwich();
		if (!trees) return;
		for (const [i, tree] of [trees.callers, trees.callees].entries()) {
			this.halves[i].show(tree, this.frames);
			this.setHits(this.halves[i].flame);
		}
		byId('focus-name').textContent = byId('focus-name').title = shownName(this.frames.name(focus));
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
		const totals = this.functionTotals();
		if (totals) this.grid.setData(this.frames, totals, this.tree.total[0], this.hits, this.meta);
	}

	showCalls() {
		byId('crumbs').replaceChildren();
		this.calls.setData(this.tree, this.frames, this.meta, this.hits, this.localNode(this.state.zoom));
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
		if (key === this.queryKey && (this.hits || !query || regex)) return;
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
		if (regex) this.matchAside(query, key);
		else this.takeHits(matchFrames(this.frames, compiled.test));
	}

	/** @param {Uint8Array} hits */
	takeHits(hits) {
		this.hits = hits;
		const { sum, isLeast } = matchNodes(this.tree, hits);
		this.matchedShare = this.tree.total[0] > 0 ? sum / this.tree.total[0] : 0;
		byId('matched').textContent = `${isLeast || this.provisional ? 'at least ' : ''}${formatShare(sum, this.tree.total[0])} matched`;
	}

	/** An expression may take for ever over names that somebody chose: beside the page, and not for long. */
	async matchAside(query, key) {
		const { frames } = this;
		this.hits = null;
		this.matchedShare = 0;
		byId('matched').textContent = 'searching';
		this.matcher ??= new Matcher(() => this.source.startWorker());
		const hits = await this.matcher.match(frames, query);
		if (key !== this.queryKey || frames !== this.frames) return;
		if (hits) this.takeHits(hits);
		else byId('matched').textContent = 'this expression takes too long';
		this.apply(false);
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
		if (tree.frame[node] > this.frames.count) { // what was too narrow has nothing below it here
			if (tree.rests?.includes(node)) this.openRest(node);
			else this.showMore();
			return;
		}
		if (this.followsPath() && !this.provisional) {
			this.go({ path: nodePath(tree, node).map((i) => tree.frame[i]) });
		} else {
			this.go({ zoom: this.wholeNode(node) });
		}
	}

	/** The functions of a box of those that are too narrow, over the whole width; once more shows still smaller ones. */
	openRest(node) {
		const { tree } = this.graph;
		const [from, to] = [tree.x[node], tree.x[node] + tree.total[node]];
		const least = Math.min((to - from) * this.share(), this.opened?.least ?? Infinity) / REST_PARTS;
		this.opened = { tree: this.tree, key: this.derivedKey, from, to, least, row: tree.level[node] };
		this.go({ range: this.roundRange(from, to) });
		this.say(`${formatShare(to - from, tree.total[0])} that was too narrow to show, over the whole width. Back returns`);
	}

	/** The first box of what was opened is the current one. */
	goToOpened() {
		const { tree } = this.graph;
		const { row, from } = this.opened;
		this.opened.row = -1;
		const at = row < 0 ? -1 : findAtMost(tree.rowX, tree.rowStart[row], tree.rowStart[row + 1], from);
		if (row < 0 || at < tree.rowStart[row]) return;
		this.current = tree.order[at];
		this.graph.revealRow(row);
	}

	/** More of what the source has left out; one question at a time. */
	async showMore() {
		if (!this.openMore) this.say('These are too narrow to show here');
		if (!this.openMore || this.isOpening) return;
		this.isOpening = true;
		this.setBusy(true);
		try {
			await this.openMore();
		} catch (problem) {
			if (problem.name !== 'AbortError') this.say('More could not be shown: ' + problem.message);
		} finally {
			this.isOpening = false;
			this.setBusy(this.pending.size > 0);
		}
	}

	clickNode(which, node, view) {
		if (which === 'graph') {
			this.current = node;
			this.zoomNode(node);
			this.setCurrent(Math.min(this.current, this.graph.tree.count - 1));
		} else {
			this.chooseFocus(view.tree.frame[node]);
		}
	}

	chooseFocus(frame) {
		if (frame < this.frames.count) this.go({ focus: frame });
		else if (frame > this.frames.count) this.say('Each of these is too narrow to show; the table (4) lists all functions');
	}

	setCurrent(node) {
		this.current = node;
		this.graph.select(node);
		this.mirror.update(this.graph.tree, this.frames, node);
		this.showDetails();
	}

	moveCurrent(key) {
		const { tree, zoomed } = this.graph;
		const to = neighbour(tree, Math.max(0, this.current), key, this.state.flip, zoomed);
		this.setCurrent(to);
		if (to < zoomed) this.zoomNode(to);
	}

	zoomOut() {
		const { zoomed, tree } = this.graph;
		if (['sandwich', 'table', 'calls'].includes(this.state.view)) history.back();
		else if (zoomed > 0) this.zoomNode(tree.parent[zoomed]);
	}

	currentFrame() {
		const { graph, state } = this;
		if (state.view === 'sandwich') return state.focus;
		if (state.view === 'table') return this.grid.shownRows[this.grid.active] ?? -1;
		if (state.view === 'calls') return this.calls.current() > 0 ? this.tree.frame[this.calls.current()] : -1;
		if (this.sides?.hovered() >= 0) return this.sides.hovered();
		const node = graph.hovered >= 0 ? graph.hovered : this.current;
		return node > 0 ? graph.tree.frame[node] : -1;
	}

	async copyName() {
		const frame = this.currentFrame();
		if (frame >= 0) await this.copy(this.frames.name(frame));
	}

	/** what: said of it. */
	async copy(text, what = 'Copied') {
		this.toast(await copyText(text) ? what : 'The browser did not allow copying');
	}

	/** The stack of the box at the pointer, or of the current one. */
	async copyStack() {
		const { tree, node, isUp } = this.currentBox();
		const { hovered } = this.graph;
		const text = tree ? stackText(tree, this.frames, tree === this.graph.tree && hovered >= 0 ? hovered : node, isUp) : '';
		if (text) await this.copy(text, 'Stack copied');
		else this.say('There is no current frame');
	}

	/** The table of functions as it is sorted and searched, at most so many rows. */
	async copyTable() {
		const totals = await this.whenTotals();
		const { grid, frames, tree, hits, meta, state } = this;
		grid.sortKey = state.sort;
		grid.ascending = state.ascending;
		grid.setData(frames, totals, tree.total[0], hits, meta);
		const rows = grid.shownRows.subarray(0, COPIED_ROWS_MAX);
		const left = grid.shownRows.length - rows.length;
		await this.copy(tableText(rows, totals, frames, tree.total[0], meta), left ? `The first ${formatCount(rows.length)} functions copied` : 'Table copied');
	}

	say(text) {
		this.mirror.say(text);
		this.toast(text);
	}

	async export() {
		const format = byId('export').value;
		byId('export').value = '';
		if (!format) return;
		if (this.provisional || !this.tree) {
			this.say('The graph is not whole yet: choose again in a moment.');
			return;
		}
		const { view } = this.state;
		const wasHidden = byId('graph-pane').hidden;
		if (format === 'png') byId('graph-pane').hidden = false; // a picture needs its canvas
		try {
			if (format === 'copy-stack') await this.copyStack();
			else if (format === 'copy-table') await this.copyTable();
			else await saveAs(this, format);
		} catch (problem) {
			this.say(`This could not be ${format.startsWith('copy-') ? 'copied' : 'saved'}: ` + problem.message);
		} finally {
			if (this.state.view === view) byId('graph-pane').hidden = wasHidden;
		}
	}

	toast(text) {
		byId('toast').textContent = text;
		byId('toast').hidden = false;
		clearTimeout(this.toastTimer);
		this.toastTimer = setTimeout(() => (byId('toast').hidden = true), 1500);
	}

	// ---- what is drawn around the graph ---------------------------------------------------------------------------

	tipFacts() {
		return { frames: this.frames, whole: this.tree?.total[0] ?? 0, meta: this.meta, provisional: this.provisional };
	}

	fillLegend() {
		const totals = this.functionTotals();
		if (totals) showLegend(byId('legend'), this.frames, totals, this.colours, this.tree.total[0]);
	}

	/** What the tree leaves out, and why there is nothing to see. */
	applyNotes() {
		const { tree, raw, provisional } = this;
		const left = negativeText(this.types[this.shownType].negative, this.meta);
		byId('negative').hidden = !left;
		byId('negative').textContent = left;
		const isEmpty = !provisional && tree.total[0] === 0;
		byId('no-samples').hidden = !isEmpty;
		byId('no-samples').textContent = raw.tree.total[0] > 0 ? 'No samples: the steps of the view leave nothing.' : left ? 'No samples: all that have a value are left out.' : 'No samples.';
	}
}

export function showProblem(problem) {
	byId('problem').hidden = false;
	byId('problem').textContent = 'This profile could not be read: ' + (problem?.message ?? problem);
	document.body.dataset.ready = 'failed';
}
