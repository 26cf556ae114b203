// SPDX-License-Identifier: Apache-2.0
// The warm flame graph palette people know: kernel orange, C++ yellow, other native code red to orange, Java green,
// inlined aqua. Boxes are light in both themes, so that one dark label colour is legible on all of them.

const SHADE_COUNT = 8;

// Kinds of frames, as the columns name them, in their order (src/model/model.h, MODEL_KINDS): the runtime whose frames they are, which a graph can be grouped
// by; what .col and folded files write behind a name; what the legend says; hue from, hue to, saturation, lightness from, lightness to.
export const KINDS = {
	native: { runtime: 'native', suffix: '', text: 'native', colour: [6, 26, 88, 66, 71] },
	kernel: { runtime: 'kernel', suffix: '_[k]', text: 'kernel', colour: [30, 37, 92, 58, 66] },
	jit: { runtime: 'jit', suffix: '', text: 'jit', colour: [92, 118, 50, 60, 68] },
	python: { runtime: 'python', suffix: '_[p]', text: 'Python', colour: [200, 214, 70, 68, 75] },
	'python-native': { runtime: 'python', suffix: '_[pn]', text: 'native, beside Python', colour: [218, 230, 55, 73, 79] },
	'python-error': { runtime: 'python', suffix: '_[pe]', text: 'Python, missing', colour: [282, 292, 45, 72, 78] },
	java: { runtime: 'java', suffix: '_[j]', text: 'Java', colour: [92, 118, 50, 60, 68] },
	'java-inlined': { runtime: 'java', suffix: '_[i]', text: 'Java, inlined', colour: [172, 184, 50, 60, 68] },
	'java-c1': { runtime: 'java', suffix: '_[1]', text: 'Java, C1', colour: [72, 84, 52, 58, 66] },
	'java-interpreted': { runtime: 'java', suffix: '_[0]', text: 'Java, interpreted', colour: [128, 146, 34, 64, 72] },
	ruby: { runtime: 'ruby', suffix: '_[rb]', text: 'Ruby', colour: [336, 348, 72, 72, 78] },
	php: { runtime: 'php', suffix: '_[php]', text: 'PHP', colour: [250, 262, 58, 76, 82] },
	dotnet: { runtime: 'dotnet', suffix: '_[net]', text: '.NET', colour: [268, 282, 55, 74, 80] },
	perl: { runtime: 'perl', suffix: '_[perl]', text: 'Perl', colour: [142, 156, 46, 68, 74] },
	javascript: { runtime: 'nodejs', suffix: '', text: 'Node.js', colour: [304, 318, 50, 74, 80] },
};

/** The file of a pprof mapping that tells what a frame is of: docs/formats/pprof.md. */
export function mappingOfKind(kind, module) {
	if (kind === 'native' || kind === 'kernel') return module || (kind === 'kernel' ? '[kernel.kallsyms]' : '');
	if (kind === 'python' && module) return `[python:${module}]`;
	return Object.hasOwn(KINDS, kind) ? `[${kind}]` : '';
}

/** What was installed together, or ''. */
export function distributionOfMapping(file) {
	return /^\[python:(.+)\]$/s.exec(file)?.[1] ?? '';
}

// Classes of colours: the kinds, what names tell of native frames, and frames that are none.
const CLASSES = {
	...Object.fromEntries(Object.entries(KINDS).map(([name, kind]) => [name, kind.colour])),
	cpp: [46, 55, 84, 60, 68],
	rust: [14, 24, 42, 62, 70],
	process: [36, 42, 16, 76, 80],
	container: [206, 214, 16, 76, 80],
	thread: [328, 336, 14, 78, 82],
	host: [158, 166, 16, 74, 78],
	label: [264, 272, 14, 78, 82],
	unnamed: [24, 36, 26, 70, 76],
	root: [36, 40, 14, 80, 82],
};
const CLASS_NAMES = Object.keys(CLASSES);
const MODULE_HUES = 24;
// From gone over less, same and more to new: told apart also by who does not see red and green.
const DIFF_COLOURS = [[228, 70, 70], [214, 78, 68], [212, 70, 75], [210, 60, 82], [38, 14, 85], [32, 88, 79], [27, 92, 71], [22, 94, 64],
	[8, 90, 64]];
// From what costs next to nothing to what is half of everything and more: each step is twice the one before.
const VALUE_COLOURS = [[50, 50, 90], [48, 62, 86], [45, 72, 82], [41, 80, 77], [36, 85, 73], [30, 88, 69], [22, 90, 66], [10, 90, 64]];

export const LABEL_COLOUR = '#1c1409';
const HIT_BUCKET = 0;
const RUN_BUCKET = 1;
const FIRST_BUCKET = 2;
export const BUCKETS = { hit: HIT_BUCKET, run: RUN_BUCKET };

function mixHue([from, to, saturation, low, high], share, muted) {
	const hue = from + (to - from) * share;
	// Neighbouring shades differ in lightness too: boxes stay apart without outlines.
	const lightness = low + (high - low) * ((share * 5) % 1);
	return muted ? `hsl(${hue} ${saturation * 0.42}% ${lightness * 0.55 + 42}%)` : `hsl(${hue} ${saturation}% ${lightness}%)`;
}

function bucketColours() {
	const plain = [];
	const muted = [];
	for (const name of CLASS_NAMES) {
		for (let shade = 0; shade < SHADE_COUNT; shade++) {
			plain.push(mixHue(CLASSES[name], shade / (SHADE_COUNT - 1), false));
			muted.push(mixHue(CLASSES[name], shade / (SHADE_COUNT - 1), true));
		}
	}
	for (let i = 0; i < MODULE_HUES; i++) {
		const hue = (i * 360) / MODULE_HUES;
		plain.push(mixHue([hue, hue, 52, 70, 76], (i % 5) / 5, false));
		muted.push(mixHue([hue, hue, 52, 70, 76], (i % 5) / 5, true));
	}
	for (const [hue, saturation, lightness] of [...DIFF_COLOURS, ...VALUE_COLOURS]) {
		plain.push(`hsl(${hue} ${saturation}% ${lightness}%)`);
		muted.push(mixHue([hue, hue, saturation, lightness, lightness], 0, true));
	}
	return ['#f25cf2', '#e3bd95', ...plain, ...muted];
}

export const COLOURS = bucketColours();
export const MUTED_OFFSET = (COLOURS.length - FIRST_BUCKET) / 2;

/** FNV-1a: equal names have equal colours in every file. */
export function hashText(text) {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	hash ^= hash >>> 15;
	return Math.imul(hash, 0x2c1b3c6d) >>> 16;
}

// What only Rust's names have: closures, "<T as Trait>::f", paths of its standard library, the hash of the old mangling.
const RUST = new RegExp([/::\{\{?closure/, /^<.* as .*>::/, /::h[0-9a-f]{16}$/, /\$(LT|GT|RF|u20)\$/,
	/(^|[<&( ])(core::(ops|fmt|iter|ptr|slice|str|option|result|num|panicking|hash|cell|mem|array|char|sync)|alloc::\w+|std::(rt|sys|sys_common|io|fmt|panicking|panic|collections|fs|env))::/]
	.map((r) => r.source).join('|'));

/** The numbers of the modules that have Rust's code: other names in them look like C++ without its arguments. */
export function rustModules(frames) {
	const found = new Set();
	for (let f = 0; f < frames.count; f++) {
		if (frames.kind(f) === 'native' && frames.module[f] && !found.has(frames.module[f]) && RUST.test(frames.name(f))) {
			found.add(frames.module[f]);
		}
	}
	return found;
}

/** rust: are there names of Rust in the frame's module? */
export function colourClass(kind, name, rust = false) {
	if (kind !== 'native') return kind in CLASSES ? kind : 'native';
	if (/^(\[|0x[0-9a-f]+$)/.test(name)) return 'unnamed';
	if (RUST.test(name)) return 'rust';
	if (!name.includes('::')) return 'native';
	return rust && !name.includes('(') ? 'rust' : 'cpp';
}

const CLASS_TEXTS = { cpp: 'C++', rust: 'Rust' };

export function classText(name) {
	return KINDS[name]?.text ?? CLASS_TEXTS[name] ?? name;
}

export function classColour(name) {
	return COLOURS[FIRST_BUCKET + CLASS_NAMES.indexOf(name) * SHADE_COUNT + 3];
}

function moduleBucket(name) {
	return FIRST_BUCKET + CLASS_NAMES.length * SHADE_COUNT + (hashText(name) % MODULE_HUES);
}

/** The bucket of a class by name. */
export function classBucket(name) {
	return FIRST_BUCKET + CLASS_NAMES.indexOf(name) * SHADE_COUNT;
}

/** change: -1 gone, 0 the same, 1 new. */
export function diffBucket(change) {
	const most = (DIFF_COLOURS.length - 1) / 2;
	const step = Math.abs(change) === 1 ? most * change : Math.max(1 - most, Math.min(most - 1, Math.round(change * most * 1.5)));
	return FIRST_BUCKET + CLASS_NAMES.length * SHADE_COUNT + MODULE_HUES + most + step;
}

/** share: of the whole. */
function valueBucket(share) {
	const most = VALUE_COLOURS.length - 1;
	const step = share > 0 ? Math.max(0, Math.min(most, most + 1 + Math.floor(Math.log2(share)))) : 0;
	return FIRST_BUCKET + CLASS_NAMES.length * SHADE_COUNT + MODULE_HUES + DIFF_COLOURS.length + step;
}

/** What belongs together when a frame has no module: its package, namespace or directory. */
export function packageOf(name) {
	const plain = name.split(/[(<]/, 1)[0];
	const at = Math.max(plain.lastIndexOf('/'), plain.indexOf('::'), plain.lastIndexOf('.', plain.lastIndexOf('.') - 1));
	return at > 0 ? plain.slice(0, at) : plain;
}

/** Colours - a frame's bucket, worked out when first drawn. */
export class Colours {
	/** @param {import('./data.js').FrameTable} frames */
	constructor(frames, mode) {
		this.frames = frames;
		this.mode = mode;
		this.rust = (frames.shared.rust ??= rustModules(frames));
		this.classes = (frames.shared.classes ??= new Uint8Array(frames.count + 1)); // number in CLASS_NAMES, + 1
		this.bucket = new Uint16Array(frames.count + 1);
	}

	of(frame) {
		return this.bucket[frame] || (this.bucket[frame] = this.choose(frame));
	}

	classOf(frame) {
		const { frames, classes } = this;
		if (frame >= frames.own) return colourClass(frames.kind(frame), frames.name(frame));
		if (!classes[frame]) {
			classes[frame] = CLASS_NAMES.indexOf(colourClass(frames.kind(frame), frames.name(frame), this.rust.has(frames.module[frame]))) + 1;
		}
		return CLASS_NAMES[classes[frame] - 1];
	}

	moduleOf(frame) {
		return this.frames.moduleName(frame) || packageOf(this.frames.name(frame));
	}

	/** What the legend calls a frame's colour, and that colour. */
	legendOf(frame) {
		if (this.mode === 'module') {
			const name = this.moduleOf(frame);
			return { name, colour: COLOURS[moduleBucket(name)] };
		}
		const name = this.classOf(frame);
		return { name: classText(name), colour: classColour(name) };
	}

	choose(frame) {
		const { frames } = this;
		const root = FIRST_BUCKET + CLASS_NAMES.indexOf('root') * SHADE_COUNT;
		if (frame >= frames.count) return root;
		const name = frames.name(frame);
		if (this.mode === 'module') {
			return moduleBucket(this.moduleOf(frame));
		}
		const at = CLASS_NAMES.indexOf(this.classOf(frame));
		return FIRST_BUCKET + at * SHADE_COUNT + (hashText(name) % SHADE_COUNT);
	}
}

/** Colours by what a box costs, itself and what is below it, of the whole graph. */
export class ValueColours {
	/** @param {import('./data.js').FrameTable} frames */
	constructor(frames) {
		this.frames = frames;
		this.mode = 'value';
	}

	of(frame, node, tree) {
		return node === 0 && frame === this.frames.count ? classBucket('root') : valueBucket(tree.total[node] / tree.total[0]);
	}

	/** A function has no colour: its boxes cost this and that. */
	legendOf() {
		return { name: 'any', colour: COLOURS[valueBucket(0)] };
	}

	/** Instead of a legend by function: [what it says, colour] from the dearest. */
	ramp() {
		const most = VALUE_COLOURS.length;
		return Array.from({ length: most }, (_, i) => [i < most - 1 ? `from ${100 / 2 ** (i + 1)} %` : 'less', COLOURS[valueBucket(i < most - 1 ? 2 ** -(i + 1) : 0)]]);
	}
}

/** @returns {BoxColours} */
export function coloursFor(frames, mode) {
	return mode === 'value' ? new ValueColours(frames) : new Colours(frames, mode);
}
