// SPDX-License-Identifier: Apache-2.0
// The strip below the graph: what the tooltip says of the box at the pointer, of the current one, for the keyboard; and stacks as text.
import { byId, kindText, shownName, tipLines } from './around.js';
import { formatShare, visibleText } from './format.js';
import { nodePath } from './layout.js';

/** Text to the clipboard; also where the page has no clipboard of its own, which a collector without TLS has not. */
export async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		const before = document.activeElement;
		const area = document.createElement('textarea');
		area.value = text;
		area.style.position = 'fixed';
		document.body.append(area);
		area.select();
		const done = document.execCommand('copy');
		area.remove();
		if (before instanceof HTMLElement) before.focus({ preventScroll: true });
		return done;
	}
}

/**
 * The functions from the outermost one to a node's, one a line.
 * @param {Tree} tree
 * @param {import('./data.js').FrameTable} frames
 * @param {boolean} isUp callers are below what they call, as in the inverted view
 */
export function stackText(tree, frames, node, isUp) {
	const path = nodePath(tree, node).map((n) => tree.frame[n]).filter((f) => f < frames.count);
	const lines = (isUp ? path.reverse() : path).map((f) => {
		const module = visibleText(frames.moduleName(f));
		return (visibleText(frames.name(f)) || '(empty name)') + (module ? ` [${module}]` : '') + '\n';
	});
	return lines.join('');
}

/**
 * What is known of a box, on the page.
 * @param {Tree} tree
 * @param {{ frames: import('./data.js').FrameTable, whole: number, meta: ShownMeta, provisional: boolean }} facts as showTip() takes them
 * @param {boolean} isQuiet it is not read aloud: nobody has moved
 */
export function showDetails(tree, node, facts, isQuiet) {
	const { frames, whole, meta, provisional } = facts;
	const frame = tree.frame[node];
	const above = node > 0 ? tree.total[tree.parent[node]] : 0;
	const [first, second] = tipLines(tree, node, whole, meta);
	byId('details-text').setAttribute('aria-live', isQuiet ? 'off' : 'polite');
	const texts = {
		name: shownName(frames.name(frame)), kind: kindText(frames, frame),
		'total-of': first[0], total: first[1], parent: above > 0 ? formatShare(tree.total[node], above) : '–', 'self-of': second[0], self: provisional ? 'being read' : second[1],
	};
	for (const [part, text] of Object.entries(texts)) {
		const place = byId('details-' + part);
		if (place.textContent !== text) place.textContent = text;
	}
	byId('copy-stack').disabled = node === 0;
}
