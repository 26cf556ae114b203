// SPDX-License-Identifier: Apache-2.0
// What passes between the modules, for the type checker (tests/web/types_test.js): nothing of this reaches a browser.
// `Elements` are the elements of the pages by id; the check adds those of page.html and index.html.

/** Numbers of a column: counts of 32 bits where all of them fit, otherwise any. */
type Values = Uint32Array | Float64Array;
type Levels = Uint16Array | Uint32Array;

/** A tree in preorder; layout.js describes its columns. */
interface Tree {
	count: number;
	deepest: number;
	level: Levels;
	frame: Uint32Array;
	total: Values;
	self: Values;
	parent: Uint32Array;
	size: Uint32Array;
	x: Values;
	rowStart: Uint32Array;
	order: Uint32Array;
	rowX: Values;
	rowTotal: Values;
	blockSpan: Values;
	/** Of a pruned copy: the nodes' numbers in the whole tree. */
	origin?: Uint32Array | null;
	/** Parts are too narrow for it. */
	isCut?: boolean;
	/** Boxes of several functions that were too narrow for it. */
	rests?: Uint32Array;
	/** Of two profiles as one: what of total and self is the base's. */
	base?: Values;
	baseSelf?: Values;
	/** Of one of those two: the tree that `origin` is about. */
	sideOf?: Tree;
}

/** Names one after the other in UTF-8, where each ends, and which are ASCII. */
interface PackedNames {
	text: Uint8Array;
	ends: Uint32Array;
	plain: Uint8Array;
}

interface Frames {
	count: number;
	names: PackedNames;
	kinds: Uint8Array;
	module: Uint32Array;
	modules: string[];
	/** Of a pruned copy: the frames' numbers in the whole profile. */
	origin: Uint32Array | null;
	shared?: SharedNames;
}

/** What all FrameTables of the same frames share. */
interface SharedNames {
	names: string[];
	ascii: string;
	rust?: Set<number>;
	classes?: Uint8Array;
}

/** As decodeProfile() of data.js gives it. */
interface Profile {
	frames: Frames;
	tree: Tree;
}

/** A frame that a step of the view has made. */
interface AddedFrame {
	name: string;
	kind: string;
	module: string;
}

/** Samples with values below zero, which have no width and are left out; how far they are below it, not divided by the scale. */
interface Negative {
	samples: number;
	value: number;
}

interface ValueType {
	name: string;
	unit: string;
	scale: number;
	nanoseconds: number;
	negative?: Negative;
}

/** How values are written: a title and a type, in one. */
interface ShownMeta extends Partial<ValueType> {
	unit: string;
	scale: number;
	nanoseconds: number;
	title?: string;
}

/** Where profiles come from; source.js has what each is for. */
interface Source {
	meta: { title: string; types: ValueType[]; kinds: string[] };
	overview(): Promise<Profile> | null;
	startWorker(): Worker | null;
	open(index: number): Promise<Profile>;
	/** Of a collector: groups that it can make beyond what the frames have, those that the profile has, and both again. */
	offered?: readonly string[];
	grouped?: readonly string[];
	regroup?(list: readonly string[]): Promise<Source>;
	/** The collector left out what is small; the same with more of it. */
	isCut?: boolean;
	more?(): Promise<Source>;
}

/** Self and total of each frame. */
interface Totals {
	self: Float64Array;
	total: Float64Array;
}

/** A step of the view, as the address has it. */
interface Step {
	op: string;
	text: string;
}

/** A step by the numbers of frames: what applySteps() of transforms.js takes. */
interface FrameStep {
	op: string;
	first?: number;
	mask?: Uint8Array;
	of?: Uint8Array;
	weak?: Uint8Array;
	ranks?: Uint32Array;
}

/** Which files a collector shows instead of services in time (docs/api.yaml, session). */
interface ShownFiles {
	service: string;
	base?: string;
	type: string;
	at_ms: number;
	facts: Record<string, string>;
	base_facts?: Record<string, string>;
}

/** Of how much time there are profiles, as /api/v1/services says it; null: nobody was asked. */
type Measured = { covered_ms?: number; from_ms: number; to_ms: number } | null;

/** What a kept result is (docs/api.yaml). */
interface SnapshotFacts {
	id: string;
	title: string;
	selection: string;
	service: string;
	from_ms: number;
	to_ms: number;
}

/** What a collector is asked for; selection.js has it in the address. */
interface PageSelection {
	page: string;
	service: string;
	/** Of two files: which is the base. Of a base of its own: null is what the selection has, as with the next three. */
	baseService: string | null;
	baseLabels: readonly string[][] | null;
	baseFrom: string | null;
	baseTo: string | null;
	/** The id of a kept result that is the base, or what stands there in place of one. */
	baseSnapshot: string;
	/** The selection is the base. */
	isSwapped: boolean;
	type: string;
	sample: string;
	labels: readonly string[][];
	from: string;
	to: string;
	part: readonly number[] | null;
	/** Only samples whose own time lies there: [from, to) in ms. */
	within: readonly number[] | null;
	base: string;
	/** Of a comparison: share or value; one or two graphs. */
	diff: string;
	sides: string;
	window: string;
	/** The id of a kept result, on its page. */
	snapshot: string;
	/** Whose samples; empty: everybody's. */
	process: string;
	program: string;
	thread: string;
	threadName: string;
	/** Of the heat map: host, service, or a label. */
	rows: string;
	/** Of the page of hosts: process, thread, program. */
	by: string;
}

/** What the pages of a collector know of the app around them. */
interface PageApp {
	selection: PageSelection;
	shown: ShownFiles | null;
	/** There is nothing but the live page. */
	isLive: boolean;
	/** Counts how often everything was asked again. */
	turn: number;
	/** Ends with what is shown. */
	signal: AbortSignal;
	viewer: import('./viewer.js').Viewer;
	/** Where the view has its part of the address. */
	address: { read(): string; write(text: string, replace?: boolean): void };
	profile: import('./profile_page.js').ProfilePage;
	link(change: Partial<PageSelection>): string;
	go(change: Partial<PageSelection>): void;
	/** Asks everything again. */
	again(): void;
	trouble(problem: Error): void;
}

/** What is shown of a profile; state.js has it in the address. */
interface ViewState {
	view: string;
	zoom: number;
	range: readonly number[] | null;
	path: readonly number[];
	focus: number;
	query: string;
	regex: boolean;
	flip: boolean;
	collapse: boolean;
	type: string;
	colour: string;
	sort: string;
	ascending: boolean;
	steps: readonly Step[];
	zoomNames: string;
	pathNames: string;
	focusName: string;
}

/** What colours boxes: Colours of colour.js, or DiffColours of diff.js. */
interface BoxColours {
	mode: string;
	of(frame: number, node: number, tree: Tree): number;
	legendOf(frame: number): { name: string; colour: string };
	mark?(frame: number, node: number, tree: Tree): string;
	/** Where colours say nothing of a function: what each says, from the dearest. */
	ramp?(): string[][];
}

/** Boxes of a row that are drawn as one: positions [first, last) of its order, and where they lie. */
interface NarrowRun {
	tree: Tree;
	first: number;
	last: number;
	from: number;
	to: number;
	/** How many different ones, and what they cost together. */
	functions: number;
	total: number;
}

/** What a FlameView tells of, and asks for. */
interface FlameHooks {
	click(node: number, view: import('./flame.js').FlameView, event: MouseEvent): void;
	menu?(node: number, event: MouseEvent, view: import('./flame.js').FlameView): void;
	hover(node: number, event: MouseEvent, view: import('./flame.js').FlameView, run: NarrowRun | null): void;
	moved(from: number, to: number, view: import('./flame.js').FlameView): void;
	drawn?(): void;
	frames?: import('./data.js').FrameTable;
	colours?: BoxColours;
}

/** How stacks ended, counted (docs/api.yaml). */
interface StackFacts {
	user?: number;
	whole?: number;
	guessed?: number;
	cut?: number;
	lost?: number;
}

/** Elements of the pages that no page's text has: made by scripts, or put in by the writer. */
interface Elements {
	type: HTMLSelectElement;
	'fact-total': HTMLElement;
	'fact-paths': HTMLElement;
}

// ---- what browsers know and the checker's library does not -----------------------------------------------------------

interface Uint8ArrayConstructor {
	fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

/** The pages have elements of HTML only: selectors find no others. */
interface ParentNode {
	querySelector<Tag extends keyof HTMLElementTagNameMap>(selectors: Tag | `${Tag}[${string}`): HTMLElementTagNameMap[Tag] | null;
	querySelector(selectors: string): HTMLElement | null;
	querySelectorAll<Tag extends keyof HTMLElementTagNameMap>(selectors: Tag | `${Tag}[${string}`): NodeListOf<HTMLElementTagNameMap[Tag]>;
	querySelectorAll(selectors: string): NodeListOf<HTMLElement>;
}

interface Element {
	closest(selectors: string): HTMLElement | null;
}

/** Exists in workers, where the page's text runs as well. */
/** What first.js has asked for: undefined before, null once it was taken or comes too late. */
declare var hearthFirst: { url: string; cancel: AbortController; answer: Promise<Response> } | null | undefined;

declare const WorkerGlobalScope: unknown;

/** Left for tests. */
interface Window {
	__viewer: unknown;
	__app: unknown;
}
