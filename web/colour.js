// SPDX-License-Identifier: Apache-2.0
// The warm flame graph palette people know: kernel orange, C++ yellow, other native code red to orange, Java green,
// inlined aqua. Boxes are light in both themes, so that one dark label colour is legible on all of them.

const SHADE_COUNT = 8;

// hue from, hue to, saturation, lightness from, lightness to
const CLASSES = {
	native: [6, 26, 88, 66, 71],
	cpp: [46, 55, 84, 60, 68],
	kernel: [30, 37, 92, 58, 66],
	jit: [92, 118, 50, 60, 68],
	java: [92, 118, 50, 60, 68],
	'java-inlined': [172, 184, 50, 60, 68],
	'java-c1': [72, 84, 52, 58, 66],
	'java-interpreted': [128, 146, 34, 64, 72],
	python: [200, 214, 70, 68, 75],
	'python-native': [218, 230, 55, 73, 79],
	'python-error': [282, 292, 45, 72, 78],
	ruby: [336, 348, 72, 72, 78],
	php: [250, 262, 58, 76, 82],
	dotnet: [268, 282, 55, 74, 80],
	process: [36, 42, 16, 76, 80],
	container: [206, 214, 16, 76, 80],
	unnamed: [24, 36, 26, 70, 76],
	root: [36, 40, 14, 80, 82],
};
const CLASS_NAMES = Object.keys(CLASSES);
const MODULE_HUES = 24;

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

export function colourClass(kind, name) {
	if (kind !== 'native') return kind in CLASSES ? kind : 'native';
	if (/^(\[|0x[0-9a-f]+$)/.test(name)) return 'unnamed';
	return name.includes('::') ? 'cpp' : 'native';
}

export function classColour(name) {
	return COLOURS[FIRST_BUCKET + CLASS_NAMES.indexOf(name) * SHADE_COUNT + 3];
}

/** What belongs together when a frame has no module: its package, namespace or directory. */
export function packageOf(name) {
	const plain = name.split(/[(<]/, 1)[0];
	const at = Math.max(plain.lastIndexOf('/'), plain.indexOf('::'), plain.lastIndexOf('.', plain.lastIndexOf('.') - 1));
	return at > 0 ? plain.slice(0, at) : plain;
}

/** Colours - a frame's bucket, worked out when first drawn. */
export class Colours {
	constructor(frames, mode) {
		this.frames = frames;
		this.mode = mode;
		this.bucket = new Uint16Array(frames.count + 1);
	}

	of(frame) {
		return this.bucket[frame] || (this.bucket[frame] = this.choose(frame));
	}

	choose(frame) {
		const { frames } = this;
		const root = FIRST_BUCKET + CLASS_NAMES.indexOf('root') * SHADE_COUNT;
		if (frame >= frames.count) return root;
		const name = frames.name(frame);
		if (this.mode === 'module') {
			const hue = hashText(frames.moduleName(frame) || packageOf(name)) % MODULE_HUES;
			return FIRST_BUCKET + CLASS_NAMES.length * SHADE_COUNT + hue;
		}
		const at = CLASS_NAMES.indexOf(colourClass(frames.kind(frame), name));
		return FIRST_BUCKET + at * SHADE_COUNT + (hashText(name) % SHADE_COUNT);
	}
}
