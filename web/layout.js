// SPDX-License-Identifier: Apache-2.0
// Where each node of a preorder tree lies: four linear passes. Siblings come heaviest first from the writer.

export const BLOCK_BITS = 6;

/**
 * A new column for numbers as those of another one.
 * @param {Values} values
 * @returns {Values}
 */
export function columnLike(values, size) {
	return values instanceof Uint32Array ? new Uint32Array(size) : new Float64Array(size);
}

/**
 * Where each node lies, once its parent and its row are known. blockSpan: per 64 positions of the row order the widest box or gap:
 * what is below a pixel is skipped as a whole when drawing.
 * @param {Pick<Tree, 'level' | 'frame' | 'total' | 'self' | 'parent' | 'size'>} nodes
 * @param {Uint32Array} rowCounts nodes per level
 * @returns {Tree}
 */
function placeNodes({ level, frame, total, self, parent, size }, rowCounts) {
	const count = level.length;
	const deepest = rowCounts.length - 1;
	const rowStart = new Uint32Array(deepest + 2);
	for (let l = 0; l <= deepest; l++) rowStart[l + 1] = rowStart[l] + rowCounts[l];
	const x = columnLike(total, count);
	const order = new Uint32Array(count);
	const rowX = columnLike(total, count);
	const rowTotal = columnLike(total, count);
	const blockSpan = columnLike(total, (count >> BLOCK_BITS) + 1);
	const fill = rowStart.slice();
	const next = new Float64Array(deepest + 2); // where the next node of a level begins
	const end = new Float64Array(deepest + 1); // of what lies in a row
	for (let i = 0; i < count; i++) {
		const l = level[i];
		const left = next[l];
		const width = total[i];
		const at = fill[l]++;
		if (at > rowStart[l]) {
			const gap = left - end[l];
			if (gap > blockSpan[(at - 1) >> BLOCK_BITS]) blockSpan[(at - 1) >> BLOCK_BITS] = gap;
		}
		if (width > blockSpan[at >> BLOCK_BITS]) blockSpan[at >> BLOCK_BITS] = width;
		x[i] = rowX[at] = next[l + 1] = left;
		next[l] = end[l] = left + width;
		rowTotal[at] = width;
		order[at] = i;
	}
	return { count, deepest, level, frame, total, self, parent, size, x, rowStart, order, rowX, rowTotal, blockSpan };
}

/**
 * layoutTree - the arrays that drawing, searching and the views use
 *
 * Per node: level, frame, total, self, parent, size (nodes of its subtree, itself included), x (sum of what lies left).
 * Per row: the nodes order[rowStart[level]..], their x in rowX and
 * total in rowTotal (again, in the order that drawing reads them), from left to right.
 * @param {Levels} level
 * @param {Uint32Array} frame
 * @param {Values} total
 * @param {Values} self
 * @returns {Tree}
 */
export function layoutTree(level, frame, total, self, deepest) {
	const count = level.length;
	const parent = new Uint32Array(count);
	const size = new Uint32Array(count);
	const open = new Uint32Array(deepest + 1);
	const rowCounts = new Uint32Array(deepest + 1);
	for (let i = 0; i < count; i++) {
		const l = level[i];
		open[l] = i;
		if (l) parent[i] = open[l - 1];
		rowCounts[l]++;
	}
	for (let i = count - 1; i > 0; i--) {
		size[i]++;
		size[parent[i]] += size[i];
	}
	size[0]++;
	return placeNodes({ level, frame, total, self, parent, size }, rowCounts);
}

/**
 * layoutTree() of nodes whose totals are not known, but that of all; the root's self is what nobody else has of it.
 * @param {Levels} level
 * @param {Uint32Array} frame
 * @param {Uint32Array} parent
 * @param {Values} self
 * @param {Uint32Array} rowCounts nodes per level
 * @param {number} sum
 * @returns {Tree}
 */
export function treeOfNodes(level, frame, parent, self, rowCounts, sum) {
	const count = level.length;
	const total = self.slice();
	const size = new Uint32Array(count);
	for (let i = count - 1; i > 0; i--) {
		size[i]++;
		size[parent[i]] += size[i];
		total[parent[i]] += total[i];
	}
	size[0]++;
	self[0] += sum - total[0];
	total[0] = sum;
	return placeNodes({ level, frame, total, self, parent, size }, rowCounts);
}

/**
 * Both sides of a comparison: the tree gets what of self and total is the base's.
 * @param {Tree} tree
 * @param {Values} baseSelf
 * @returns {Tree}
 */
export function withBase(tree, baseSelf) {
	const base = baseSelf.slice();
	for (let i = tree.count - 1; i > 0; i--) base[tree.parent[i]] += base[i];
	return Object.assign(tree, { base, baseSelf });
}

/**
 * A node's two sides of a comparison, as { total, self, whole }; null: the tree is of one profile. A tree of one side has the other's, too.
 * @param {Tree} tree
 */
export function sidesOf(tree, node) {
	const [of, at] = tree.sideOf ? [tree.sideOf, tree.origin[node]] : [tree, node];
	const { base, baseSelf, total, self } = of;
	if (!base) return null;
	return { base: { total: base[at], self: baseSelf[at], whole: base[0] }, now: { total: total[at] - base[at], self: self[at] - baseSelf[at], whole: total[0] - base[0] } };
}

/** The last position in rowX[from, to) whose x is at most value, or from - 1. */
export function findAtMost(rowX, from, to, value) {
	let low = from;
	let high = to;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (rowX[middle] <= value) low = middle + 1;
		else high = middle;
	}
	return low - 1;
}

/** The first position in rowX[from, to) at or above value, looking near `from` first. */
export function gallopTo(rowX, from, to, value) {
	let step = 1;
	let low = from;
	while (low + step < to && rowX[low + step] < value) {
		low += step;
		step *= 2;
	}
	let high = Math.min(low + step, to);
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (rowX[middle] < value) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** @param {Tree} tree */
export function nodeChildren(tree, node, max = Infinity) {
	const children = [];
	const end = node + tree.size[node];
	for (let i = node + 1; i < end && children.length < max; i += tree.size[i]) children.push(i);
	return children;
}

/**
 * Nodes from below the root down to `node`.
 * @param {Tree} tree
 */
export function nodePath(tree, node) {
	const path = [];
	for (let i = node; i > 0; i = tree.parent[i]) path.push(i);
	return path.reverse();
}

/** @param {Tree} tree */
export function isWithin(tree, node, ancestor) {
	return node >= ancestor && node < ancestor + tree.size[ancestor];
}
