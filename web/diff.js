// SPDX-License-Identifier: Apache-2.0
// Two profiles as one tree: which part of each node is of the base, in colours and as a list of functions.
import { COLOURS, classBucket, diffBucket } from './colour.js';
import { functionTotals } from './views.js';

/** How a part changed: -1 gone, 0 the same, 1 new. */
function changeOfParts(was, now) {
	return was === now ? 0 : (now - was) / Math.max(was, now);
}

/** Colours by change: blue takes less than in the base, orange more. All trees have `base`, see data.js. */
export class DiffColours {
	/**
	 * @param {import('./data.js').FrameTable} frames
	 * @param {Tree} tree what is shown: the two profiles as one, or what steps have made of them
	 * @param {boolean} byShare parts of the two totals are compared, so that a longer profile is not a larger one; otherwise values
	 */
	constructor(frames, tree, mode, byShare) {
		this.frames = frames;
		this.tree = tree;
		this.mode = mode;
		this.whole = byShare ? { base: tree.base[0], now: tree.total[0] - tree.base[0] } : { base: 1, now: 1 };
		this.functions = null;
	}

	change(was, now) {
		const { whole } = this;
		return changeOfParts(whole.base ? was / whole.base : 0, whole.now ? now / whole.now : 0);
	}

	ofFunction(frame) {
		const { total, baseTotal } = (this.functions ??= diffFunctions(this.tree, this.frames.count));
		return frame < this.frames.count ? this.change(baseTotal[frame], total[frame] - baseTotal[frame]) : 0;
	}

	changeAt(node, tree) {
		const [of, at] = tree.sideOf ? [tree.sideOf, tree.origin[node]] : [tree, node];
		return this.change(of.base[at], of.total[at] - of.base[at]);
	}

	of(frame, node, tree) {
		return node === 0 && frame === this.frames.count ? classBucket('root') : diffBucket(this.changeAt(node, tree));
	}

	/** Before the label: no meaning by colour alone. */
	mark(frame, node, tree) {
		const change = this.changeAt(node, tree);
		if (change === 1) return 'new ';
		if (change === -1) return 'gone ';
		return change > 0.05 ? '+ ' : change < -0.05 ? '− ' : '';
	}

	legendOf(frame) {
		const change = this.ofFunction(frame);
		const name = change === 1 ? 'new' : change === -1 ? 'gone' : change > 0.05 ? 'more' : change < -0.05 ? 'less' : 'same';
		const step = { new: 1, gone: -1, more: 0.5, less: -0.5, same: 0 }[name];
		return { name, colour: COLOURS[diffBucket(step)] };
	}
}

/**
 * functionTotals() of both: self and total of the two together, baseSelf and baseTotal of the base's part.
 * @param {Tree} tree
 */
export function diffFunctions(tree, frameCount) {
	const both = functionTotals(tree, frameCount);
	const base = functionTotals({ ...tree, total: tree.base, self: tree.baseSelf }, frameCount);
	return { ...both, baseSelf: base.self, baseTotal: base.total };
}

/** The functions whose self value changed most: [{frame, was, now}...], parts of wholeBase and wholeOther (1: values). */
export function largestChanges(functions, wholeBase, wholeOther, most) {
	const rows = [];
	for (let f = 0; f < functions.self.length; f++) {
		const was = wholeBase ? functions.baseSelf[f] / wholeBase : 0;
		const now = wholeOther ? (functions.self[f] - functions.baseSelf[f]) / wholeOther : 0;
		if (was !== now) rows.push({ frame: f, was, now });
	}
	return rows.sort((a, b) => Math.abs(b.now - b.was) - Math.abs(a.now - a.was)).slice(0, most);
}
