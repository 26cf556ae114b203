// SPDX-License-Identifier: Apache-2.0
// Steps that change what a tree shows: each a pure function from columns to columns, so that they stack, can be taken back
// and run in a worker. What a step is about is named by text, not by number: a link means the same for newer data.
// Where a stack goes depends on its frames alone. So of two profiles as one each step gives what it gives of both.
import { TreeGrower } from './build.js';
import { KINDS, hashText } from './colour.js';
import { rankedOrder } from './order.js';

const TEXT_CHARS_MAX = 200;
export const STEPS_MAX = 32;
const GROUPS_MAX = 250;

/** What people read for each kind of step, and what it is about. */
export const STEP_KINDS = {
	focus: { about: 'function', label: 'from', help: 'only what this function does, however it was called' },
	only: { about: 'function', label: 'only with', help: 'only stacks that this function is in' },
	drop: { about: 'function', label: 'without stacks of', help: 'stacks that this function is in go' },
	hide: { about: 'function', label: 'hide', help: 'this function goes; what it called counts as called by its caller' },
	merge: { about: 'function', label: 'merge below', help: 'what this function calls counts as its own' },
	recursion: { about: 'function', label: 'recursion of', help: 'calls of this function from itself count as one, also indirect ones' },
	module: { about: 'module', label: 'collapse', help: 'consecutive functions of this module become one' },
	hidemodule: { about: 'module', label: 'hide', help: 'the functions of this module go, what they called stays' },
	group: { about: 'group', label: 'by', help: 'one part of the graph for each' },
	order: { about: 'order', label: 'order by', help: 'siblings by their names, not the dearest first: graphs of two times look alike' },
};
const GROUPS = ['process', 'container', 'thread', 'host', 'runtime'];
const LABEL_GROUP = 'label:'; // and the label's name
/** Groups of one request. */
export const SERVER_GROUPS_MAX = 8;

/** Is this what a step can group by? Names of labels may be too long for it. */
export function isGroup(text) {
	return GROUPS.includes(text) || (text.startsWith(LABEL_GROUP) && text.length > LABEL_GROUP.length && text.length <= TEXT_CHARS_MAX);
}

/** A group for people. */
export function groupText(text) {
	return text.startsWith(LABEL_GROUP) ? 'label ' + text.slice(LABEL_GROUP.length) : text;
}

/** A name as a step carries it: itself, or the hash of a long one. */
export function stepText(name) {
	if (name.length <= TEXT_CHARS_MAX && !name.startsWith('~')) return name;
	return `~${hashText(name).toString(16)}.${hashText(name + '~').toString(16)}.${name.length}`;
}

/**
 * Steps of an address: what is none is left out.
 * @param {string[]} texts
 * @returns {Step[]}
 */
export function parseSteps(texts) {
	const steps = [];
	for (const text of texts.slice(0, STEPS_MAX)) {
		const at = text.indexOf(':');
		const op = text.slice(0, Math.max(0, at));
		const about = text.slice(at + 1);
		if (!Object.hasOwn(STEP_KINDS, op) || about.length > TEXT_CHARS_MAX || (op === 'group' && !isGroup(about)) || (op === 'order' && about !== 'name')) continue;
		steps.push({ op, text: about });
	}
	return steps;
}

/** @param {Step} step */
export function formatStep({ op, text }) {
	return op + ':' + text;
}

const OWNERS = new Set(['process', 'container', 'thread', 'host', 'label', 'root', '']);

/** Processes, hosts and the like have none. A kind that is not known (a file of a later version) is taken by its name's first word. */
function runtimeOf(kind) {
	if (OWNERS.has(kind)) return '';
	return KINDS[kind]?.runtime ?? kind.split('-', 1)[0];
}

/**
 * The groupings that would split this profile.
 * @param {import('./data.js').FrameTable} frames
 * @param {readonly string[]} offered those that its source can make
 */
export function groupsOf(frames, offered = []) {
	const kinds = new Set();
	for (const kind of new Set(frames.kinds)) kinds.add(frames.kindNames[kind]);
	return [...GROUPS.filter((name) => name === 'runtime' || kinds.has(name) || offered.includes(name)), ...offered.filter((name) => name.startsWith(LABEL_GROUP))];
}

/** The groupings of these steps whose frames only the source of a profile can make. */
export function groupsToAsk(steps) {
	const asked = steps.filter(({ op, text }) => op === 'group' && (text === 'thread' || text === 'host' || text.startsWith(LABEL_GROUP)));
	return [...new Set(asked.map(({ text }) => text))].slice(0, SERVER_GROUPS_MAX);
}

/** Frames and those that steps before have added, by number. */
class StepFrames {
	/** @param {import('./data.js').FrameTable} frames */
	constructor(frames) {
		this.base = frames;
		/** @type {AddedFrame[]} */
		this.added = [];
	}

	get count() {
		return this.base.count + this.added.length;
	}

	name(f) {
		return f < this.base.count ? this.base.name(f) : this.added[f - this.base.count].name;
	}

	kind(f) {
		return f < this.base.count ? this.base.kind(f) : this.added[f - this.base.count].kind;
	}

	/** The frames that a step's text names. */
	maskOfText(text) {
		if (text.startsWith('~')) return this.mask((f) => stepText(this.name(f)) === text);
		const mask = this.mask((f) => f >= this.base.count && this.name(f) === text);
		for (const f of this.base.named(text)) mask[f] = 1;
		return mask;
	}

	/** By name; those of one name as they come. */
	ranks() {
		const names = Array.from({ length: this.count }, (_, f) => this.name(f));
		const sorted = names.map((_, f) => f).sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
		const ranks = new Uint32Array(this.count);
		for (const [rank, f] of sorted.entries()) ranks[f] = rank;
		return ranks;
	}

	mask(test) {
		const mask = new Uint8Array(this.count + 1);
		for (let f = 0; f < this.count; f++) mask[f] = test(f) ? 1 : 0;
		return mask;
	}
}

/** @param {StepFrames} frames */
function resolveGroup(frames, by) {
	if (by !== 'runtime') {
		const label = by.startsWith(LABEL_GROUP) ? by.slice(LABEL_GROUP.length) : '';
		const kind = label ? 'label' : by;
		const none = `(no ${label || by})`;
		const isOne = (f) => frames.kind(f) === kind && (!label || frames.name(f).startsWith(label + '=') || frames.name(f) === none);
		const mask = frames.mask(isOne);
		frames.added.push({ name: none, kind, module: '' });
		return { mask };
	}
	const names = [];
	const of = new Uint8Array(frames.count + 1);
	for (let f = 0; f < frames.count; f++) {
		const runtime = runtimeOf(frames.kind(f));
		if (!runtime) continue;
		if (!names.includes(runtime) && names.length < GROUPS_MAX) names.push(runtime);
		of[f] = names.indexOf(runtime) + 1;
	}
	// Kernel and native frames are whose they were called from.
	const weak = Uint8Array.from(['', ...names], (name) => (name === '' || name === 'kernel' ? 2 : name === 'native' ? 1 : 0));
	for (const name of ['(no runtime)', ...names]) frames.added.push({ name, kind: 'process', module: '' });
	return { of, weak };
}

/** @param {StepFrames} frames */
function resolveModule(frames, op, text) {
	const { modules, module } = frames.base;
	const known = new Set(modules.map((name, i) => (i && stepText(name) === text ? i : -1)));
	const mask = frames.mask((f) => known.has(module[f]));
	if (op === 'module') {
		const name = modules.find((_, i) => known.has(i)) ?? text;
		frames.added.push({ name: `[${name}]`, kind: 'native', module: name });
	}
	return { mask };
}

/**
 * resolveSteps - steps by text to steps by number
 *
 * Returns { steps, added }: steps for applySteps(); added: frames that the steps make, numbered behind those of `base`.
 * @param {readonly Step[]} list
 * @param {import('./data.js').FrameTable} base
 * @returns {{ steps: FrameStep[], added: AddedFrame[] }}
 */
export function resolveSteps(list, base) {
	const frames = new StepFrames(base);
	// The order comes last: the other steps put the dearest first, and add frames.
	const steps = [...list.filter(({ op }) => op !== 'order'), ...list.filter(({ op }) => op === 'order').slice(0, 1)].map(({ op, text }) => {
		const first = frames.count;
		if (op === 'order') return { op, ranks: frames.ranks() };
		if (op === 'group') return { op, first, ...resolveGroup(frames, text) };
		if (STEP_KINDS[op].about === 'module') return { op, first, ...resolveModule(frames, op, text) };
		return { op, mask: frames.maskOfText(text) };
	});
	return { steps, added: frames.added };
}

/**
 * rewrite - a new tree of the nodes that `place` puts somewhere
 * @param {Tree} tree
 * @param {(grower: TreeGrower, node: number, parent: number, frame: number) => number} place the new node, -1 (not shown, what is
 *        below may be), or -2 (the whole subtree goes); parent: where the node's parent went
 */
function rewrite(tree, rootFrame, rootPlace, place) {
	const { count, frame, parent, size } = tree;
	const grower = new TreeGrower(rootFrame, count, Boolean(tree.base));
	const to = new Int32Array(count);
	to[0] = rootPlace;
	if (rootPlace === 0) grower.addSelf(0, tree, 0);
	for (let i = 1; i < count;) {
		const at = place(grower, i, to[parent[i]], frame[i]);
		to[i] = at;
		if (at === -2) {
			i += size[i];
			continue;
		}
		if (at >= 0) grower.addSelf(at, tree, i);
		i++;
	}
	return grower.finish();
}

/**
 * Below -1 there is only what the mask begins.
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function focusTree(tree, rootFrame, { mask }) {
	return rewrite(tree, rootFrame, -1, (grower, node, parent, f) =>
		parent < 0 ? (mask[f] ? grower.child(0, f) : -1) : grower.child(parent, f));
}

/**
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function onlyTree(tree, rootFrame, { mask }) {
	const inside = new Uint8Array(tree.count);
	const { frame, parent, count } = tree;
	const grower = new TreeGrower(rootFrame, count, Boolean(tree.base));
	const to = new Int32Array(count);
	for (let i = 1; i < count; i++) {
		inside[i] = inside[parent[i]] | mask[frame[i]];
		to[i] = grower.child(to[parent[i]], frame[i]);
		if (inside[i]) grower.addSelf(to[i], tree, i);
	}
	return grower.finish();
}

/**
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function dropTree(tree, rootFrame, { mask }) {
	return rewrite(tree, rootFrame, 0, (grower, node, parent, f) => (mask[f] ? -2 : grower.child(parent, f)));
}

/**
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function hideTree(tree, rootFrame, { mask }) {
	return rewrite(tree, rootFrame, 0, (grower, node, parent, f) => (mask[f] ? parent : grower.child(parent, f)));
}

/**
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function mergeTree(tree, rootFrame, { mask }) {
	return rewrite(tree, rootFrame, 0, (grower, node, parent, f) => {
		const at = grower.child(parent, f);
		if (!mask[f]) return at;
		grower.addTotal(at, tree, node);
		return -2;
	});
}

/**
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function recursionTree(tree, rootFrame, { mask }) {
	const { level } = tree;
	const open = new Int32Array(mask.length).fill(-1); // per frame: its outermost call that is open
	const calls = []; // those, by level
	const outermost = new Int32Array(mask.length);
	return rewrite(tree, rootFrame, 0, (grower, node, parent, f) => {
		while (calls.length && calls.at(-1).level >= level[node]) open[calls.pop().frame] = -1;
		if (!mask[f]) return grower.child(parent, f);
		if (open[f] >= 0) return outermost[f];
		open[f] = node;
		calls.push({ level: level[node], frame: f });
		return (outermost[f] = grower.child(parent, f));
	});
}

/**
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function moduleTree(tree, rootFrame, { mask, first }) {
	return rewrite(tree, rootFrame, 0, (grower, node, parent, f) => {
		if (!mask[f]) return grower.child(parent, f);
		return grower.frame[parent] === first ? parent : grower.child(parent, first);
	});
}

/**
 * The frames above a node once more, below `at`; without the first one that the mask names.
 * @param {Tree} tree
 * @param {TreeGrower} grower
 * @param {Uint8Array} [mask]
 */
function copyPath(tree, grower, node, at, mask) {
	const path = [];
	for (let i = node; i > 0; i = tree.parent[i]) path.push(tree.frame[i]);
	let to = at;
	for (const f of path.reverse()) {
		if (!mask?.[f]) to = grower.child(to, f);
	}
	return to;
}

/**
 * By a frame of the stack: it becomes the first one.
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function frameGroupTree(tree, rootFrame, { mask, first }) {
	const found = new Uint8Array(tree.count);
	return rewrite(tree, rootFrame, 0, (grower, node, parent, f) => {
		const above = tree.parent[node];
		found[node] = found[above];
		if (found[node]) return grower.child(parent, f);
		if (mask[f]) {
			found[node] = 1;
			return copyPath(tree, grower, above, grower.child(0, f), mask);
		}
		return grower.child(above ? parent : grower.child(0, first), f);
	});
}

/**
 * By the innermost frame that says something: what is weaker than its caller's group counts as that.
 * @param {Tree} tree
 * @param {number} rootFrame
 * @param {FrameStep} step
 */
function runtimeTree(tree, rootFrame, { of, weak, first }) {
	const group = new Uint8Array(tree.count);
	return rewrite(tree, rootFrame, 0, (grower, node, parent, f) => {
		const above = tree.parent[node];
		const before = above ? group[above] : 0;
		group[node] = !of[f] || (before && weak[of[f]] > weak[before]) ? before : of[f];
		if (before && group[node] === before) return grower.child(parent, f);
		const top = grower.child(0, first + group[node]);
		if (!above) return grower.child(top, f);
		return grower.child(group[node] === before ? parent : copyPath(tree, grower, above, top), f);
	});
}

const APPLY = {
	focus: focusTree, only: onlyTree, drop: dropTree, hide: hideTree, merge: mergeTree, recursion: recursionTree,
	module: moduleTree, hidemodule: hideTree,
	order: (tree, rootFrame, { ranks }) => rankedOrder(tree, ranks),
	group: (tree, rootFrame, step) => (step.of ? runtimeTree : frameGroupTree)(tree, rootFrame, step),
};

/**
 * The root's frame and the one behind it (what is hidden) move behind the frames that steps add.
 * @param {Tree} tree
 */
function withRoot(tree, rootFrame) {
	const before = tree.frame[0];
	if (before === rootFrame) return tree;
	return { ...tree, frame: tree.frame.map((f) => (f >= before ? rootFrame + (f - before) : f)) };
}

/**
 * The tree after the steps; its root has the frame `rootFrame`, as all frames' count is.
 * @param {Tree} tree
 * @param {FrameStep[]} steps
 */
export function applySteps(tree, steps, rootFrame) {
	let shown = withRoot(tree, rootFrame);
	for (const step of steps) shown = APPLY[step.op](shown, rootFrame, step);
	return shown;
}
