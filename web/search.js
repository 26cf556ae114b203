// SPDX-License-Identifier: Apache-2.0
// Searching: once per name, not per node; shares count a stack once, however often it matches.
import { visibleText } from './format.js';

/**
 * What a query looks for: { test } from name to boolean, or { error }. Substrings ignore case unless given capitals.
 * @param {string} query
 * @returns {{ test?: (name: string) => boolean, error?: string }}
 */
export function compileQuery(query, isRegex) {
	if (isRegex) {
		try {
			const expression = new RegExp(query, /[A-Z]/.test(query) ? 'u' : 'iu');
			return { test: (name) => expression.test(name) };
		} catch (problem) {
			return { error: String(problem.message) };
		}
	}
	if (query !== query.toLowerCase()) return { test: (name) => name.includes(query) };
	return { test: (name) => name.toLowerCase().includes(query) };
}

/**
 * One byte per frame (the root's and what is hidden last): 1 where the name matches.
 * @param {{ count: number, name(frame: number): string }} frames
 * @param {(name: string) => boolean} test
 */
export function matchFrames(frames, test) {
	const hits = new Uint8Array(frames.count + 2);
	for (let i = 0; i < frames.count; i++) hits[i] = test(visibleText(frames.name(i))) ? 1 : 0;
	return hits;
}

/**
 * The topmost nodes that match, in preorder, the sum of their totals, and whether something without a name may match as well: what is
 * too narrow, or left out. `within`: only that subtree.
 * @param {Tree} tree
 * @param {Uint8Array} hits
 */
export function matchNodes(tree, hits, within = 0) {
	const nodes = [];
	const end = within + tree.size[within];
	const hidden = hits.length - 1; // the frame behind the root's
	let sum = 0;
	let isLeast = Boolean(tree.isCut);
	for (let i = within; i < end;) {
		if (hits[tree.frame[i]]) {
			nodes.push(i);
			sum += tree.total[i];
			i += tree.size[i];
		} else {
			if (tree.frame[i] === hidden) isLeast = true;
			i++;
		}
	}
	return { nodes, sum, isLeast };
}

/**
 * hitsBefore[p]: matching nodes left of position p of the row order; tells whether a merged run hides a match.
 * @param {Tree} tree
 * @param {Uint8Array} hits
 */
export function countHits(tree, hits) {
	const before = new Uint32Array(tree.count + 1);
	for (let p = 0; p < tree.count; p++) before[p + 1] = before[p] + hits[tree.frame[tree.order[p]]];
	return before;
}
