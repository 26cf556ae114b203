// SPDX-License-Identifier: Apache-2.0
// What the overview beside a graph (web/minimap.js) has to be, on a collector's page and in a file: its columns, the frame around what is shown, a drag.
import assert from 'node:assert/strict';

/** The graph and its overview have come to rest, and the pointer is nowhere. */
export async function graphAtRest(page) {
	await page.mouse.move(2, 2);
	await page.waitForFunction(() => !window.__viewer.tree || (!window.__viewer.graph.pending && !window.__viewer.graph.animation));
	await page.evaluate(async () => {
		await document.fonts.ready;
		for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
	});
	await page.waitForTimeout(300); // the overview is drawn after the graph
}

/** Each row is as wide as the share of the whole that its functions have, from the root on, or with the root at the bottom. */
export async function assertColumns(page) {
	const { width, height } = await page.locator('#minimap').boundingBox();
	assert.ok(width > 50 && height > 50, `${width} x ${height}`);
	const found = await page.evaluate(() => {
		const { graph: view, minimap: map } = window.__viewer;
		const { tree } = view;
		const pixels = map.back.getContext('2d').getImageData(0, 0, map.back.width, map.back.height);
		const empty = pixels.data.slice(-4).join(); // below the last row
		const used = (row) => {
			let sum = 0;
			const line = Math.floor(((view.flip ? tree.deepest - row : row) + 0.5) * map.rowHeight);
			for (let column = 0; column < map.back.width; column++) sum += pixels.data.slice((line * map.back.width + column) * 4).slice(0, 4).join() !== empty;
			return sum / map.back.width;
		};
		const share = (row) => [...tree.order.slice(tree.rowStart[row], tree.rowStart[row + 1])].reduce((sum, node) => sum + tree.total[node], 0) / tree.total[0];
		return Array.from({ length: tree.deepest + 1 }, (_, row) => [used(row), share(row), tree.rowStart[row + 1] - tree.rowStart[row]]);
	});
	assert.ok(found.length > 5);
	for (const [row, [used, share, boxes]] of found.entries()) {
		assert.ok(Math.abs(used - share) < 0.02 + boxes / width, `row ${row}: ${used} of the overview, ${share} of the graph`);
	}
}

/** A zoom makes the frame narrow; a drag moves what is shown, and a reload leaves it there. rest: waits until the page has come to rest */
export async function assertDrag(page, rest) {
	const { width, height, x, y } = await page.locator('#minimap').boundingBox();
	await page.evaluate(() => window.__viewer.graph.setWindow(0, window.__viewer.tree.total[0] / 4));
	await rest();
	const shown = () => page.evaluate(() => [window.__viewer.graph.from, window.__viewer.graph.to].map((at) => at / window.__viewer.tree.total[0]));
	const frame = await page.evaluate(() => {
		const canvas = document.getElementById('minimap');
		const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
		const back = window.__viewer.minimap.back.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
		const columns = new Set();
		for (let i = 0; i < data.length; i += 4) if (data[i] !== back[i] || data[i + 1] !== back[i + 1]) columns.add((i / 4) % canvas.width);
		return [Math.min(...columns) / canvas.width, Math.max(...columns) / canvas.width];
	});
	assert.ok(frame[0] < 0.03 && Math.abs(frame[1] - 0.25) < 0.03, `the frame is around what is shown: ${frame}`);
	await page.mouse.move(x + 0.2 * width, y + 5);
	await page.mouse.down();
	for (const to of [0.3, 0.45, 0.6]) {
		await page.mouse.move(x + to * width, y + 5);
		const [from, end] = await shown();
		assert.ok(Math.abs((from + end) / 2 - to) < 0.02 && Math.abs(end - from - 0.25) < 0.01, `at ${to}: ${from} to ${end}`);
	}
	await page.mouse.move(x + width + 300, y + height + 50); // far outside
	const outside = await shown();
	assert.ok(outside[0] >= 0 && outside[1] <= 1 + 1e-9, outside.join());
	await page.mouse.move(x + 0.6 * width, y + 5);
	await page.mouse.up();
	await page.waitForFunction(() => window.__viewer.state.range);
	assert.match(await page.evaluate(() => location.hash), /w=/);
	const before = await shown();
	await page.mouse.move(x + 0.1 * width, y + 5); // the button is up: nothing moves
	for (const [i, at] of (await shown()).entries()) assert.ok(Math.abs(at - before[i]) < 1e-9, `without the button: ${at}, not ${before[i]}`);
	await page.reload();
	await rest();
	for (const [i, at] of (await shown()).entries()) assert.ok(Math.abs(at - before[i]) < 0.01, 'the address has it');
}
