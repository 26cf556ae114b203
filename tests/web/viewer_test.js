// SPDX-License-Identifier: Apache-2.0
// The page in a real browser, the network off, against counting the same stacks by hand. Needs what browser.js says.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assertSilent, axePath, launchBrowser, missingBrowser, openPage } from './browser.js';
import {
	collapsedPaths, countFunctions, foldedText, invertedPaths, knownStacks, plainTree, pprofOf, sandwichPaths, shareMatching,
	steppedStacks, totalOf,
} from './known.js';
import { assertColumns, assertDrag, graphAtRest } from './overview.js';

const reason = missingBrowser();
const SEEDS = [1, 2, 3];

describe('viewer', { skip: reason || false }, () => {
	let browser;
	let folder;

	before(async () => {
		folder = mkdtempSync(join(tmpdir(), 'viewer-'));
		browser = await launchBrowser();
	});
	after(async () => {
		await browser?.close();
		rmSync(folder, { recursive: true, force: true });
	});

	function makePage(name, text, title = 'known profile') {
		writeFileSync(join(folder, name + '.folded'), text);
		execFileSync(process.env.HTML_FOLDED, [join(folder, name + '.folded'), join(folder, name + '.html'), title],
			{ stdio: 'pipe' });
		return join(folder, name + '.html');
	}

	// Runs in the page: a tree as [[path, total]...].
	const treeEntries = (page, which) => page.evaluate((name) => {
		const v = window.__viewer;
		const tree = v[name].tree;
		const open = [];
		const out = [];
		for (let i = 1; i < tree.count; i++) {
			open.length = tree.level[i] - 1;
			open.push(v.frames.name(tree.frame[i]));
			out.push([open.join(';'), tree.total[i]]);
		}
		return out;
	}, which);

	// The page's own drawing is 1/width exact; the tests ask for everything.
	const exact = (page) => page.evaluate(() => {
		window.__viewer.share = () => 0;
	});

	const sortedEntries = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
	const assertTree = (got, want) => assert.deepEqual(sortedEntries(new Map(got)), sortedEntries(want));

	for (const seed of SEEDS) {
		test(`equals a count by hand, seed ${seed}`, async () => {
			const stacks = knownStacks(seed);
			const opened = await openPage(browser, makePage('known' + seed, foldedText(stacks)));
			const { page } = opened;
			await exact(page);
			assertTree(await treeEntries(page, 'graph'), plainTree(stacks));

			await page.keyboard.press('2');
			assertTree(await treeEntries(page, 'graph'), invertedPaths(stacks));

			await page.keyboard.press('1');
			await page.keyboard.press('r');
			assertTree(await treeEntries(page, 'graph'), collapsedPaths(stacks));
			await page.keyboard.press('r');

			const functions = countFunctions(stacks);
			const names = [...functions.keys()].slice(0, 5);
			for (const name of names) {
				await page.evaluate((wanted) => {
					const v = window.__viewer;
					let frame = 0;
					while (v.frames.name(frame) !== wanted) frame++;
					v.go({ view: 'sandwich', focus: frame });
				}, name);
				const want = sandwichPaths(stacks, name);
				assertTree(await treeEntries(page, 'callers'), want.callers);
				assertTree(await treeEntries(page, 'callees'), want.callees);
			}

			await page.keyboard.press('4');
			const rows = await page.evaluate(() => {
				const v = window.__viewer;
				const { self, total } = v.functionTotals();
				return [...v.grid.shownRows].map((f) => [v.frames.name(f), self[f], total[f]]);
			});
			assert.equal(rows.length, functions.size);
			for (const [name, self, total] of rows) assert.deepEqual({ self, total }, functions.get(name), name);
			const selves = rows.map((r) => r[1]);
			assert.deepEqual(selves, [...selves].sort((a, b) => b - a));

			for (const [query, regex, match] of [['fn_1', false, (n) => n.includes('fn_1')], ['FN_', false, () => false],
				['ns[01]::', true, (n) => /ns[01]::/.test(n)], ['fn_(2|5)$', true, (n) => /fn_(2|5)$/.test(n)]]) {
				await page.evaluate((change) => window.__viewer.go(change), { view: 'graph', query, regex });
				await page.waitForFunction(() => document.getElementById('matched').textContent !== 'searching');
				const share = await page.evaluate(() => window.__viewer.matchedShare);
				assert.ok(Math.abs(share - shareMatching(stacks, match)) < 1e-12, query);
			}
			await assertSilent(opened);
		});
	}

	test('zoom, history and the address', async () => {
		const stacks = knownStacks(7);
		const file = makePage('zoom', foldedText(stacks));
		const opened = await openPage(browser, file);
		const { page } = opened;
		const zoomed = () => page.evaluate(() => window.__viewer.graph.zoomed);
		const settle = () => page.waitForFunction(() => !window.__viewer.graph.animation && !window.__viewer.graph.pending);
		const box = await page.locator('#graph canvas').boundingBox();
		await page.mouse.click(box.x + 30, box.y + 2 * 19 + 8);
		await settle();
		const first = await zoomed();
		assert.ok(first > 0);
		const window1 = await page.evaluate(() => [window.__viewer.graph.from, window.__viewer.graph.to]);
		assert.deepEqual(window1, await page.evaluate((n) => {
			const { tree } = window.__viewer.graph;
			return [tree.x[n], tree.x[n] + tree.total[n]];
		}, first));
		await page.mouse.click(box.x + 30, box.y + 3 * 19 + 8);
		const second = await zoomed();
		assert.notEqual(second, first);
		await page.goBack();
		await page.waitForFunction((n) => window.__viewer.graph.zoomed === n, first);
		await page.goForward();
		await page.waitForFunction((n) => window.__viewer.graph.zoomed === n, second);
		await page.locator('#crumbs button').first().click();
		assert.equal(await zoomed(), 0);
		const hash = '#view=inverted&q=fn_1&flame=1&colour=module';
		const again = await openPage(browser, file, { hash });
		assert.equal(await again.page.evaluate(() => window.__viewer.state.view), 'inverted');
		assert.equal(await again.page.inputValue('#query'), 'fn_1');
		assert.equal(await again.page.evaluate(() => window.__viewer.graph.flip), true);
		await assertSilent(again);
		await assertSilent(opened);
	});

	test('steps of the view: chips, undo, the address, the menu by keys', async () => {
		const stacks = knownStacks(8);
		const file = makePage('steps', foldedText(stacks));
		const opened = await openPage(browser, file);
		const { page } = opened;
		const name = 'ns1::fn_1';
		const setCurrent = (wanted) => page.evaluate((text) => {
			const v = window.__viewer;
			v.setCurrent(v.tree.frame.findIndex((f, i) => i && v.frames.name(f) === text));
		}, wanted);
		await setCurrent(name);
		await page.keyboard.press('H');
		assert.deepEqual(await page.locator('#chips button').allTextContents(), ['hide ' + name]);
		assertTree(await treeEntries(page, 'graph'), plainTree(steppedStacks(stacks, 'hide', name)));
		await setCurrent('ns2::fn_2');
		await page.keyboard.press('m');
		await page.locator('#step-menu [role=menuitem]').nth(2).waitFor();
		assert.ok(await page.evaluate(() => document.activeElement.getAttribute('role') === 'menuitem'));
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter'); // drop
		const both = steppedStacks(steppedStacks(stacks, 'hide', name), 'drop', 'ns2::fn_2');
		assertTree(await treeEntries(page, 'graph'), plainTree(both));
		assert.equal(await page.evaluate(() => window.__viewer.tree.total[0]), totalOf(both));
		await page.keyboard.press('2');
		await exact(page);
		await page.evaluate(() => window.__viewer.apply(false));
		assertTree(await treeEntries(page, 'graph'), invertedPaths(both));
		const again = await openPage(browser, file, { hash: await page.evaluate(() => location.hash) });
		assert.equal(await again.page.locator('#chips button').count(), 2);
		assert.equal(await again.page.evaluate(() => window.__viewer.tree.total[0]), totalOf(both));
		await page.keyboard.press('1');
		await page.keyboard.press('z');
		assertTree(await treeEntries(page, 'graph'), plainTree(steppedStacks(stacks, 'hide', name)));
		await page.locator('#chips button').first().click();
		assertTree(await treeEntries(page, 'graph'), plainTree(stacks));
		assert.ok(await page.locator('#steps').isHidden());
		await page.goBack();
		assert.equal(await page.locator('#chips button').count(), 1);
		const box = await page.locator('#graph canvas').boundingBox();
		await page.mouse.click(box.x + 30, box.y + 19 + 8, { button: 'right' });
		assert.ok(await page.locator('#step-menu').isVisible());
		await page.keyboard.press('Escape');
		assert.ok(await page.locator('#step-menu').isHidden());
		const odd = await openPage(browser, file, { hash: '#t=group:runtime&t=module:nowhere&t=focus:&t=__proto__:x&view=table' });
		await odd.page.keyboard.press('1');
		for (const one of [opened, again, odd]) await assertSilent(one);
	});

	test('a large profile is worked on beside the page', async () => {
		const lines = [];
		for (let i = 0; i < 60000; i++) lines.push(`main;part_${i % 37};step_${i % 1999};leaf_${i % 9000} ${1 + (i % 11)}\n`);
		const opened = await openPage(browser, makePage('large', lines.join('')));
		const { page } = opened;
		const idle = () => page.waitForFunction(() => !window.__viewer.pending.size && !window.__viewer.graph.pending);
		assert.ok(await page.evaluate(() => window.__viewer.tree.count > 20000));
		await page.keyboard.press('2');
		await idle();
		assert.equal(await page.evaluate(() => Boolean(window.__viewer.bench.worker)), true);
		assert.equal(await page.evaluate(() => window.__viewer.graph.tree === window.__viewer.shownTree()), true);
		await page.evaluate(() => window.__viewer.addStep('focus', 'step_5'));
		await page.waitForFunction(() => window.__viewer.stepsKey);
		await idle();
		const want = lines.map((l) => l.trim().split(/[; ]/)).filter((f) => f[2] === 'step_5').reduce((sum, f) => sum + Number(f[4]), 0);
		assert.equal(await page.evaluate(() => window.__viewer.tree.total[0]), want);
		assert.equal(await page.evaluate(() => window.__viewer.graph.tree.total[0]), want);
		await page.evaluate(() => window.__viewer.addStep('group', 'runtime'));
		await page.keyboard.press('4');
		await idle();
		await page.waitForFunction(() => window.__viewer.grid.shownRows.length > 0);
		await page.keyboard.press('z');
		await page.keyboard.press('z');
		await page.keyboard.press('1');
		await idle();
		assert.equal(await page.evaluate(() => window.__viewer.stepsKey), '');
		await assertSilent(opened);
	});

	test('an inverted part that was too small appears when zoomed into', async () => {
		const lines = ['main;big;leaf 100000\n'];
		for (let i = 0; i < 300; i++) lines.push(`main;small_${i};other 3\n`);
		const opened = await openPage(browser, makePage('cut', lines.join('')));
		const { page } = opened;
		const count = () => page.evaluate(() => window.__viewer.graph.tree.count);
		await page.keyboard.press('2');
		// leaf, big, main, other, and one frame for its callers, which are below a pixel each
		assert.equal(await count(), 6);
		await page.evaluate(() => {
			const v = window.__viewer;
			const { tree } = v.graph;
			v.zoomNode(tree.frame.findIndex((f, i) => i && v.frames.name(f) === 'other'));
		});
		assert.equal(await count(), 2 + 2 * 300);
		assert.equal(await page.evaluate(() => window.__viewer.graph.zoomed), 1);
		await page.keyboard.press('u');
		assert.equal(await count(), 6);
		await assertSilent(opened);
	});

	test('the inverted view has no blank part, and a frame for what is too narrow', async () => {
		const lines = ['main;hot 2000\n'];
		for (let i = 0; i < 4000; i++) lines.push(`main;cold_${i} 1\n`);
		const opened = await openPage(browser, makePage('narrow-ones', lines.join('')), { hash: '#view=inverted' });
		const { page } = opened;
		const row = await page.evaluate(() => {
			const { tree } = window.__viewer.graph;
			const first = Array.from({ length: tree.count }, (_, i) => i).filter((i) => tree.level[i] === 1);
			return { sum: first.reduce((sum, i) => sum + tree.total[i], 0), total: tree.total[0], last: first.at(-1),
				name: window.__viewer.frames.name(tree.frame[first.at(-1)]) };
		});
		assert.equal(row.sum, row.total);
		assert.equal(row.name, '(too narrow to show)');
		await page.evaluate((node) => window.__viewer.setCurrent(node), row.last);
		await page.locator('#mirror').focus();
		await page.keyboard.press('Enter');
		const opened_ = () => page.evaluate(() => {
			const { graph, frames, current } = window.__viewer;
			const { tree } = graph;
			const shown = Array.from({ length: tree.count }, (_, i) => i).filter((i) => tree.level[i] === 1 && frames.name(tree.frame[i]).startsWith('cold_'));
			return { count: shown.length, range: [graph.from, graph.to], zoomed: graph.zoomed, current: frames.name(tree.frame[current]), said: document.getElementById('live').textContent };
		});
		await page.waitForFunction(() => window.__viewer.graph.tree.count > 4000);
		assert.deepEqual(await opened_(), { count: 4000, range: [2000, 6000], zoomed: 0, current: 'cold_0', said: '66.67 % that was too narrow to show, over the whole width. Back returns' });
		assert.equal(await page.locator('#details-name').textContent(), 'cold_0');
		await page.goBack();
		await page.waitForFunction(() => window.__viewer.graph.to === 6000 && window.__viewer.graph.from === 0);
		await page.keyboard.press('s');
		await assertSilent(opened);
	});

	test('boxes drawn as one have no name of their own, and a click zooms to them', async () => {
		const lines = ['main;hot 4000\n'];
		for (let i = 0; i < 4000; i++) lines.push(`main;cold_${i} 1\n`);
		const opened = await openPage(browser, makePage('runs', lines.join('')));
		const { page } = opened;
		const tip = () => page.evaluate(() => ['tip-name', 'tip-kind', 'tip-total'].map((id) => document.getElementById(id).textContent));
		const { x, y } = await page.locator('#graph').boundingBox();
		await page.mouse.move(x + 900, y + 48);
		const [name, kind, amount] = await tip();
		const count = Number(/^(\d+) functions$/.exec(name)[1]);
		assert.ok(count > 100 && count < 250, name);
		assert.equal(kind, 'Each is narrower than a pixel: a click zooms to them');
		assert.equal(amount, `${count} samples · ${(count / 80).toFixed(2)} %`);
		assert.ok(await page.locator('#tip-self').isHidden());
		await page.mouse.click(x + 900, y + 48);
		const [from, to] = await page.evaluate(() => window.__viewer.state.range);
		assert.equal(to - from, count);
		assert.ok(await page.locator('#tip').isHidden());
		await page.mouse.move(x + 901, y + 48);
		assert.match((await tip())[0], /^cold_\d+$/);
		assert.ok(await page.locator('#tip-self').isVisible());
		await page.mouse.move(x + 300, y + 48);
		await page.goBack();
		await page.waitForFunction(() => !window.__viewer.state.range && !window.__viewer.graph.animation && !window.__viewer.graph.pending);
		await page.mouse.move(x + 301, y + 48);
		assert.equal((await tip())[0], 'hot');
		await assertSilent(opened);
	});

	test('a legend for all colourings, and Rust is Rust', async () => {
		const names = ['core::fmt::write', '<alloc::vec::Vec<T> as core::ops::Drop>::drop', 'app::run::{{closure}}', 'std::vector<int>::push_back(int)',
			'ns::work(char const*)', 'main'];
		const types = [['samples', 'count']];
		const opened = await openPage(browser, makeTypesPage('legend', types, names.map((n, i) => [['root', n], [10 + i]])));
		const { page } = opened;
		const legend = () => page.locator('#legend').innerText();
		await page.waitForFunction(() => document.getElementById('legend').children.length === 3);
		assert.match(await legend(), /Rust 44\.00 %/);
		assert.match(await legend(), /C\+\+ 36\.00 %/);
		assert.doesNotMatch(await page.locator('html').innerText(), /python/i); // nor any other runtime that is not there
		await page.keyboard.press('k');
		await page.waitForFunction(() => /program 100 %/.test(document.getElementById('legend').innerText));
		assert.ok(await page.locator('#legend').isVisible());
		await page.keyboard.press('k');
		await page.waitForFunction(() => /from 50 %\s+from 25 %/.test(document.getElementById('legend').innerText));
		assert.match(await page.evaluate(() => location.hash), /colour=value/);
		// A box has the colour of what it costs: main has 15 of 75, the root of all stacks has all.
		const colours = await page.evaluate(() => {
			const { colours: of, tree, frames, palette } = window.__viewer;
			const swatches = [...document.querySelectorAll('#legend .swatch')].map((s) => getComputedStyle(s).backgroundColor);
			const probe = document.body.appendChild(document.createElement('span'));
			return ['root', 'main'].map((name) => {
				const node = tree.frame.findIndex((f) => f < frames.count && frames.name(f) === name);
				probe.style.backgroundColor = palette[of.of(tree.frame[node], node, tree)];
				return swatches.indexOf(getComputedStyle(probe).backgroundColor);
			});
		});
		assert.deepEqual(colours, [0, 2], 'from 50 %, from 12.5 %');
		await page.keyboard.press('k');
		await page.waitForFunction(() => /Rust/.test(document.getElementById('legend').innerText));
		await assertSilent(opened);
	});

	test('siblings by their names: a step of the menu, which is taken back', async () => {
		const opened = await openPage(browser, makePage('by-name', 'root;b 5\nroot;c;y 1\nroot;c;x 2\nroot;a 1\n'));
		const { page } = opened;
		const boxes = () => page.evaluate(() => {
			const { tree, frames } = window.__viewer;
			return [...tree.order].slice(2).map((node) => frames.name(tree.frame[node])).join('');
		});
		assert.equal(await boxes(), 'bcaxy');
		await page.click('#menu');
		await page.getByRole('menuitem', { name: 'Order by name' }).click();
		await page.waitForFunction(() => window.__viewer.stepsKey === 'order:name');
		assert.equal(await boxes(), 'abcxy');
		assert.match(await page.evaluate(() => location.hash), /t=order%3Aname/);
		await page.click('#menu');
		assert.equal(await page.getByRole('menuitem', { name: 'Order by name' }).count(), 0);
		await page.keyboard.press('Escape');
		await page.reload();
		await page.waitForFunction(() => window.__viewer?.stepsKey === 'order:name');
		assert.equal(await boxes(), 'abcxy');
		await page.locator('#chips button', { hasText: 'order by name' }).click();
		await page.waitForFunction(() => !window.__viewer.stepsKey);
		assert.equal(await boxes(), 'bcaxy');
		await assertSilent(opened);
	});

	test('a label is never cut inside a bracket', async () => {
		const opened = await openPage(browser, makePage('labels', 'a 1\n'));
		const { page } = opened;
		const names = ['[libstdc++.so.6+0x123456]', 'std::map<int, std::pair<long, char>>::find', 'operator<', '<module>',
			'main.(*Engine).Turn', 'ns::(anonymous namespace)::work', '(anonymous)', 'f<g(h[i])>'];
		const wrong = await page.evaluate((all) => {
			const { fitter } = window.__viewer.graph;
			const bad = [];
			for (const name of all) {
				for (let room = 8; room < 400; room += 3) {
					const cut = fitter.cut(name, room);
					if (!cut || cut === name) continue;
					const count = (re) => (cut.match(re) ?? []).length;
					if (count(/\(/g) !== count(/\)/g) || count(/\[/g) !== count(/\]/g) || count(/\{/g) !== count(/\}/g) ||
						(name.startsWith('<') && count(/</g) !== count(/>/g)) || !fitter.fits(cut, room)) bad.push([room, cut]);
				}
			}
			return bad;
		}, names);
		assert.deepEqual(wrong, []);
		await assertSilent(opened);
	});

	test('paper has the whole tree, on white, and no controls', async () => {
		const frames = Array.from({ length: 120 }, (_, i) => 'level_' + i);
		const opened = await openPage(browser, makePage('paper', frames.join(';') + ' 3\n'), { colorScheme: 'dark' });
		const { page } = opened;
		await page.emulateMedia({ media: 'print' });
		await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
		const printed = await page.evaluate(() => ({ theme: document.documentElement.dataset.theme,
			ratio: document.querySelector('#graph canvas').height / document.querySelector('#graph canvas').width,
			cut: document.getElementById('graph').scrollHeight > document.getElementById('graph').clientHeight + 1 }));
		assert.equal(printed.theme, 'light');
		assert.ok(printed.ratio > 121 * 19 / 1040 - 0.01, String(printed.ratio));
		assert.ok(!printed.cut);
		for (const id of ['query', 'flip', 'theme']) assert.ok(!(await page.locator('#' + id).isVisible()), id);
		assert.ok(await page.locator('.shows').isVisible());
		const pages = (await page.pdf({ format: 'A4' })).toString('latin1').match(/\/Type\s*\/Page\b/g).length;
		assert.ok(pages >= 2, 'pages ' + pages);
		await page.emulateMedia({ media: 'screen' });
		await page.evaluate(() => dispatchEvent(new Event('afterprint')));
		assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
		assert.equal(await page.evaluate(() => document.querySelector('#graph canvas').width), await page.evaluate(() => window.__viewer.graph.width));
		await assertSilent(opened);
	});

	test('names stay text', async () => {
		const names = [
			'</script><script>window.__hit=1</script>', '<img src=x onerror=window.__hit=1>', '\u2028line\u2029',
			'nul\u0000byte', '\u202egnp.exe', '{{script}}', '"&quot\'', 'a'.repeat(1 << 20), '', '-->', '\\u003c/script>',
		];
		const bytes = [Buffer.from(names.map((n, i) => `main;${n};x ${i + 1}\n`).join('')), Buffer.from('main;'),
			Buffer.from([0xff, 0xfe, 0xc0, 0x80]), Buffer.from(' 5\n')];
		const title = '</title><script>window.__hit=1</script>';
		const opened = await openPage(browser, makePage('hostile', Buffer.concat(bytes), title));
		const { page } = opened;
		assert.equal(await page.title(), title);
		for (const key of ['2', '4', '5', '1', 'f', 'k', '3']) await page.keyboard.press(key);
		await page.evaluate(() => {
			const v = window.__viewer;
			for (let f = 0; f < v.frames.count; f++) v.go({ view: 'sandwich', focus: f });
		});
		const found = await page.evaluate(() => {
			const v = window.__viewer;
			return Array.from({ length: v.frames.count }, (_, f) => v.frames.name(f));
		});
		for (const name of names) assert.ok(found.includes(name), JSON.stringify(name.slice(0, 40)));
		assert.ok(found.includes('\ufffd'.repeat(4)));
		assert.equal(await page.evaluate(() => window.__hit), undefined);
		assert.equal(await page.locator('img').count(), 0);
		assert.ok(!(await page.locator('body').innerText()).includes('\u202e'));
		await assertSilent(opened);
	});

	test('frames of Python', async () => {
		const root = 'python;_start;<module> (/srv/app.py:1)_[p];shop.cart.Cart.pack (/srv/shop/cart.py:9)_[p]';
		const dumps = 'json.dumps (/usr/lib/python3.11/json/__init__.py:183 [standard-library==3.11.2])_[p]';
		const lambda = 'shop.cart.Cart.pack.<locals>.<lambda> (/srv/shop/cart.py:12)_[p]';
		const opened = await openPage(browser, makePage('python', [`${root};${dumps};encode.isra.0 60\n`,
			`${root};${lambda} 30\n`, `${root};[Truncated Python Stack]_[pe] 6\n`, `${root};vfs_read_[k] 4\n`].join('')));
		const { page } = opened;
		const frames = await page.evaluate(() => {
			const { graph, frames: all } = window.__viewer;
			const { width, height } = graph.context.canvas;
			const pixels = graph.context.getImageData(0, 0, width, height).data;
			const scale = width / graph.width;
			return Object.fromEntries(Array.from(graph.tree.frame).slice(1).map((frame, i) => {
				const { x, y, w, h } = graph.boxOf(i + 1);
				const at = 4 * (Math.floor((y + h - 3) * scale) * width + Math.floor((x + w - 3) * scale));
				return [all.name(frame), { kind: all.kind(frame), blue: pixels[at + 2] > pixels[at],
					forms: graph.labelForms(frame), at: [x + w / 2, y + h / 2] }];
			}));
		});
		const names = { module: '<module> (/srv/app.py:1)', lambda: lambda.slice(0, -4), dumps: dumps.slice(0, -4) };
		for (const name of Object.values(names)) {
			assert.equal(frames[name]?.kind, 'python', name);
			assert.ok(frames[name].blue, name);
		}
		assert.deepEqual(frames[names.dumps].forms.slice(1), ['json.dumps', 'dumps']);
		assert.deepEqual(frames[names.lambda].forms.slice(1), ['shop.cart.Cart.pack.<locals>.<lambda>', '<lambda>']);
		assert.deepEqual(frames[names.module].forms.slice(1), ['<module>', '<module>']);
		assert.equal(frames['encode.isra.0'].forms[2], 'encode');
		assert.equal(frames['encode.isra.0'].kind, 'native');
		assert.ok(!frames['encode.isra.0'].blue);
		assert.equal(frames['[Truncated Python Stack]'].kind, 'python-error');
		assert.match(await page.locator('#legend').innerText(), /Python \d/);

		const box = await page.locator('#graph canvas').boundingBox();
		await page.mouse.move(box.x + frames[names.dumps].at[0], box.y + frames[names.dumps].at[1]);
		await page.waitForSelector('#tip:not([hidden])');
		assert.equal(await page.locator('#tip-name').innerText(), names.dumps);
		assert.equal(await page.locator('#tip-kind').innerText(), 'python');
		assert.match(await page.locator('#tip-total').innerText(), /^60 samples.*60\.00? %$/);
		for (const [query, share] of [['cart.py', 1], ['cart.py:12', 0.3], ['standard-library', 0.6], ['json.dumps', 0.6]]) {
			await page.evaluate((change) => window.__viewer.go(change), { query });
			assert.ok(Math.abs(await page.evaluate(() => window.__viewer.matchedShare) - share) < 1e-12, query);
		}
		await assertSilent(opened);
	});

	test('5,000 frames deep', async () => {
		const frames = Array.from({ length: 5000 }, (_, i) => 'level_' + (i % 700));
		const opened = await openPage(browser, makePage('deep', frames.join(';') + ' 3\n'));
		const { page } = opened;
		assert.equal(await page.evaluate(() => window.__viewer.tree.deepest), 5000);
		await page.evaluate(() => {
			document.getElementById('graph').scrollTop = 1e9;
		});
		await page.waitForFunction(() => window.__viewer.graph.rowAt(window.__viewer.graph.height - 4) >= 4999);
		await page.evaluate(() => window.__viewer.zoomNode(5000));
		assert.equal(await page.evaluate(() => window.__viewer.graph.zoomed), 5000);
		assert.ok((await page.locator('#mirror [role=treeitem]').count()) <= 90);
		assert.equal(await page.locator('#mirror [aria-selected=true]').getAttribute('aria-level'), '5001');
		for (const key of ['2', '3', '4', '5', '1', 'r']) await page.keyboard.press(key);
		await assertSilent(opened);
	});

	test('the call tree: rows that open and close, by keys', async () => {
		const stacks = knownStacks(12);
		const tree = plainTree(stacks);
		const opened = await openPage(browser, makePage('calls', foldedText(stacks)), { hash: '#view=calls' });
		const { page } = opened;
		const rows = () => page.evaluate(() => {
			const { calls, frames } = window.__viewer;
			const path = (node) => (node ? [...path(calls.tree.parent[node]), frames.name(calls.tree.frame[node])] : []);
			return calls.nodes.map((node) => [path(node).join(';'), calls.tree.total[node]]);
		});
		await page.locator('#calls .grid-body').focus();
		await page.keyboard.press('Home');
		await page.keyboard.press('ArrowLeft');
		assert.deepEqual(await rows(), [['', totalOf(stacks)]]);
		await page.keyboard.press('ArrowRight');
		const top = [...tree].filter(([path]) => !path.includes(';')).sort((a, b) => b[1] - a[1]);
		assert.deepEqual((await rows()).slice(1).map(([, total]) => total), top.map(([, total]) => total));
		assert.equal(await page.locator('#calls .row[aria-selected=true]').getAttribute('aria-expanded'), 'true');
		await page.keyboard.press('ArrowRight');
		await page.keyboard.press('ArrowRight');
		const [first] = (await rows())[1];
		const below = [...tree].filter(([path]) => path.startsWith(first + ';') && path.split(';').length === 2);
		const opens = (await rows()).filter(([path]) => path.startsWith(first + ';'));
		assert.deepEqual(opens.map(([, total]) => total), below.map(([, total]) => total).sort((a, b) => b - a));
		for (const [path, total] of await rows()) assert.equal(total, path ? tree.get(path) : totalOf(stacks));
		assert.equal(await page.locator('#calls .grid-body').getAttribute('aria-rowcount'), String((await rows()).length + 1));
		await page.keyboard.press('ArrowDown');
		const [chosen] = (await rows())[2];
		await page.keyboard.press('Enter');
		const zoomed = await page.evaluate(() => {
			const { state, tree: t, frames } = window.__viewer;
			return [state.view, frames.name(t.frame[state.zoom]), t.level[state.zoom]];
		});
		assert.deepEqual(zoomed, ['graph', chosen.split(';').at(-1), 2]);
		await page.keyboard.press('5');
		assert.equal((await rows())[await page.evaluate(() => window.__viewer.calls.active)][0], chosen);
		await page.locator('#calls .row').nth(1).click({ button: 'right' });
		assert.ok(await page.locator('#step-menu').isVisible());
		await page.keyboard.press('Escape');
		await assertSilent(opened);
	});

	test('a page of one file exports pprof', async () => {
		const stacks = knownStacks(10);
		const opened = await openPage(browser, makePage('to-pprof', foldedText(stacks)));
		const download = opened.page.waitForEvent('download');
		await opened.page.selectOption('#export', 'pprof');
		const saved = join(folder, (await download).suggestedFilename());
		assert.match(saved, /known_profile\.pb\.gz$/);
		await (await download).saveAs(saved);
		const folded = execFileSync(process.env.HEARTH, ['convert', '-q', saved, '--value', 'samples', '--format', 'folded', '-o', '-'], { encoding: 'utf8' });
		assert.deepEqual(folded.trim().split('\n').sort(), foldedText(stacks).trim().split('\n').sort());
		await assertSilent(opened);
	});

	test('a job that fails ends what waits for it, and runs once', async () => {
		const opened = await openPage(browser, makePage('fails', foldedText(knownStacks(12))));
		const { page } = opened;
		const runs = () => page.evaluate(() => window.__runs);
		await page.waitForFunction(() => window.__viewer.derived.has('totals')); // the legend has asked
		await page.evaluate(() => {
			const { bench } = window.__viewer;
			window.__viewer.derived.clear();
			window.__runs = 0;
			const run = bench.run;
			bench.run = (...args) => {
				window.__runs++;
				if (window.__runs > 2) bench.run = run;
				return Promise.reject(new Error('made to fail'));
			};
		});
		for (const [i, [format, words]] of [['csv', 'saved'], ['copy-table', 'copied']].entries()) {
			await page.selectOption('#export', format);
			await page.waitForFunction((text) => document.getElementById('toast').textContent === text, `This could not be ${words}: made to fail`);
			assert.equal(await runs(), i + 1);
		}
		await page.waitForTimeout(100);
		assert.equal(await runs(), 2);
		await assertSilent(opened);
	});

	test('a page of one file exports values as they are, not divided as it keeps them', async () => {
		const path = join(folder, 'divided.html');
		execFileSync(process.env.HEARTH, ['convert', '-q', '-o', path, '-'], { input: 'main;a 500\nmain;b 1500\n' });
		const opened = await openPage(browser, path);
		const { page } = opened;
		assert.equal(await page.evaluate(() => window.__viewer.meta.scale), 500);
		for (const [format, wanted] of [['folded', 'main;b 1500\nmain;a 500\n'], ['csv', /"main",[^\n]*,2000,/], ['svg', /<title>all \(2000, 100\.00 %\)</], ['speedscope', /"endValue":2000,/]]) {
			const download = page.waitForEvent('download');
			await page.selectOption('#export', format);
			const text = readFileSync(await (await download).path(), 'utf8');
			assert.ok(typeof wanted === 'string' ? text === wanted : wanted.test(text), `${format}: ${text}`);
		}
		await assertSilent(opened);
	});

	test('the keyboard alone', async () => {
		const stacks = knownStacks(9);
		const opened = await openPage(browser, makePage('keys', foldedText(stacks)));
		const { page } = opened;
		await page.locator('#mirror').focus();
		const current = () => page.evaluate(() => window.__viewer.current);
		await page.keyboard.press('ArrowDown');
		assert.equal(await current(), 1);
		await page.keyboard.press('ArrowRight');
		const sibling = await current();
		assert.equal(await page.evaluate((n) => window.__viewer.tree.parent[n], sibling), 0);
		assert.notEqual(sibling, 1);
		await page.keyboard.press('Enter');
		assert.equal(await page.evaluate(() => window.__viewer.graph.zoomed), sibling);
		await page.keyboard.press('Backspace');
		assert.equal(await page.evaluate(() => window.__viewer.graph.zoomed), 0);
		await page.keyboard.press('/');
		await page.keyboard.type('fn_2');
		await page.keyboard.press('Enter');
		assert.match(await page.locator('#live').textContent(), /^match 1 of \d+: .*fn_2/);
		await page.keyboard.press('Escape');
		assert.equal(await page.inputValue('#query'), '');
		await page.keyboard.press('?');
		assert.equal(await page.locator('#help-sheet').evaluate((d) => d.open), true);
		await page.keyboard.press('Escape');
		await page.keyboard.press('4');
		await page.locator('#table .grid-body').focus();
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('Enter');
		assert.equal(await page.evaluate(() => window.__viewer.state.view), 'sandwich');
		// Both halves are trees for keys: to a neighbour of the function, then there.
		const deepHalf = await page.evaluate(() => window.__viewer.halves.find((h) => h.flame.tree.count > 2).mirror.root.id);
		await page.locator('#' + deepHalf).focus();
		await page.keyboard.press(deepHalf === 'callers-mirror' ? 'ArrowUp' : 'ArrowDown');
		const named = await page.locator(`#${deepHalf} [aria-selected=true]`).textContent();
		assert.equal(await page.locator(`#${deepHalf} [aria-selected=true]`).getAttribute('aria-level'), '2');
		await page.keyboard.press('Enter');
		assert.ok(named.startsWith(await page.locator('#focus-name').textContent() + ','));
		// Tab must lead through and out of everything.
		await page.keyboard.press('1');
		await page.locator('#mirror').focus();
		await page.keyboard.press('Tab');
		assert.notEqual(await page.evaluate(() => document.activeElement.id), 'mirror');
		await assertSilent(opened);
	});

	test('a strip says of the current box what the tooltip says, and nothing moves', async () => {
		const long = 'ns::' + 'very_long_name_'.repeat(40);
		const file = makePage('strip', `start;main;${long};leaf\u202eab 60\nstart;main;short 20\nstart;other_[k] 20\n`);
		for (const [width, height] of [[1400, 46], [400, 84]]) {
			const opened = await openPage(browser, file, { viewport: { width, height: 800 } });
			const { page, context } = opened;
			await context.grantPermissions(['clipboard-read', 'clipboard-write']);
			const strip = () => page.evaluate(() => ['name', 'kind', 'total', 'parent', 'self'].map((part) => document.getElementById('details-' + part).textContent));
			const place = () => page.evaluate(() => JSON.stringify(['stage', 'details', 'legend', 'copy-stack'].map((id) => document.getElementById(id).getBoundingClientRect())));
			const copied = async (act) => {
				await page.evaluate(() => (document.getElementById('toast').textContent = ''));
				await act();
				await page.waitForFunction(() => document.getElementById('toast').textContent === 'Stack copied');
				return page.evaluate(() => navigator.clipboard.readText());
			};
			const before = await place();
			assert.equal(JSON.parse(before)[1].height, height);
			assert.deepEqual(await strip(), ['all', '', '100 samples · 100 %', '–', '0 samples · 0.00 %']);
			assert.ok(await page.locator('#copy-stack').isDisabled());
			await page.locator('#mirror').focus();
			for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
			assert.deepEqual(await strip(), [long, 'native', '60 samples · 60.00 %', '75.00 %', '0 samples · 0.00 %']);
			assert.equal(await page.locator('#details-text').getAttribute('aria-live'), 'polite');
			await page.evaluate(() => window.__viewer.apply(false));
			assert.equal(await page.locator('#details-text').getAttribute('aria-live'), 'off', 'what moves by itself is not read aloud');
			assert.equal(await place(), before);
			await page.keyboard.press('ArrowRight');
			assert.deepEqual(await strip(), ['short', 'native', '20 samples · 20.00 %', '25.00 %', '20 samples · 20.00 %']);
			await page.keyboard.press('ArrowLeft');
			await page.keyboard.press('ArrowDown');
			const stack = ['start', 'main', long, 'leaf\\u{202e}ab', ''];
			assert.equal(await copied(() => page.locator('#copy-stack').click()), stack.join('\n'));
			await page.keyboard.press('2');
			assert.deepEqual((await strip()).slice(0, 3), ['all', '', '100 samples · 100 %']);
			await page.locator('#graph').click({ position: { x: 30, y: 30 } }); // the hottest function: its callers come
			assert.deepEqual((await strip()).slice(0, 4), ['leaf\\u{202e}ab', 'native', '60 samples · 60.00 %', '60.00 %']);
			assert.deepEqual(JSON.parse(await place()).slice(1), JSON.parse(before).slice(1)); // the way to what is zoomed into has come above
			await page.mouse.move(0, 0);
			await page.locator('#mirror').focus();
			for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
			assert.equal(await copied(() => page.keyboard.press('y')), stack.join('\n'), 'in the order of calls');
			await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error('none'))));
			await page.keyboard.press('ArrowUp');
			assert.equal(await copied(() => page.keyboard.press('y')), stack.slice(1).join('\n'), 'without a clipboard of the page');
			assert.equal(await page.evaluate(() => document.activeElement.id), 'mirror');
			await page.evaluate(() => {
				const v = window.__viewer;
				v.go({ view: 'sandwich', focus: v.frames.named('main')[0] });
			});
			assert.deepEqual((await strip()).slice(0, 4), ['main', 'native', '80 samples · 80.00 %', '100 %']);
			await page.locator('#callees-mirror').focus();
			await page.keyboard.press('ArrowDown');
			assert.deepEqual((await strip()).slice(0, 4), [long, 'native', '60 samples · 60.00 %', '75.00 %']);
			for (const key of ['4', '5']) {
				await page.keyboard.press(key);
				assert.ok(await page.locator('#details').isHidden());
			}
			await assertSilent(opened);
		}
	});

	test('a free zoom is part of the history', async () => {
		const opened = await openPage(browser, makePage('wheel', foldedText(knownStacks(2))));
		const { page } = opened;
		const shown = () => page.evaluate(() => [window.__viewer.graph.from, window.__viewer.graph.to]);
		const whole = await shown();
		await page.mouse.move(500, 300);
		await page.keyboard.down('Control');
		await page.mouse.wheel(0, -240);
		await page.keyboard.up('Control');
		await page.waitForFunction(() => window.__viewer.state.range);
		const near = await shown();
		assert.ok(near[1] - near[0] < 0.5 * (whole[1] - whole[0]));
		await page.fill('#query', 'fn_1');
		await page.waitForFunction(() => window.__viewer.hits);
		for (const [i, value] of (await shown()).entries()) assert.ok(Math.abs(value - near[i]) < 0.001);
		await page.goBack();
		await page.waitForFunction((to) => window.__viewer.graph.to === to, whole[1]);
		assert.deepEqual(await shown(), whole);
		await assertSilent(opened);
	});

	// A program that works and waits: what hearth record --off-cpu gives.
	const WAITING_TYPES = [['samples', 'count'], ['cpu', 'nanoseconds'], ['waits', 'count'], ['off_cpu', 'nanoseconds']];
	const SCHEDULER = ['schedule_timeout_[k]', 'schedule_[k]', '__schedule.isra.0_[k]'];
	const WAITING = [
		[['main', 'work'], [30, 300000000, 0, 0]],
		[['main', 'work', ...SCHEDULER], [1, 10000000, 0, 0]],
		[['main', 'sleep', 'do_nanosleep_[k]', ...SCHEDULER], [0, 0, 5, 4000000001]],
		[['main', 'lock', 'futex_wait_[k]', ...SCHEDULER], [0, 0, 90, 70000000]],
	];

	function makeTypesPage(name, types, samples, ...options) {
		writeFileSync(join(folder, name + '.pb'), pprofOf(types, samples));
		execFileSync(process.env.HEARTH, ['convert', '-q', ...options, join(folder, name + '.pb'), '-o', join(folder, name + '.html')],
			{ stdio: 'pipe' });
		return join(folder, name + '.html');
	}

	const showsType = (page, text) => page.waitForFunction((wanted) => {
		const select = document.getElementById('type');
		const v = window.__viewer;
		return select.selectedOptions[0].textContent === wanted && v.shownType === Number(select.value) && !v.graph.pending;
	}, text);

	test('a switch between the values of a profile', async () => {
		const file = makeTypesPage('types', WAITING_TYPES, WAITING, '--value', 'cpu');
		const opened = await openPage(browser, file);
		const { page } = opened;
		await exact(page);
		const names = ['CPU time (cpu)', 'time waiting, off the CPU (off_cpu)', 'number of waits (waits)'];
		assert.deepEqual(await page.locator('#type option').allTextContents(), names);
		await showsType(page, names[0]);
		assertTree(await treeEntries(page, 'graph'), new Map([['main', 31], ['main;work', 31], ['main;work;schedule_timeout', 1],
			['main;work;schedule_timeout;schedule', 1], ['main;work;schedule_timeout;schedule;__schedule.isra.0', 1]]));
		assert.equal(await page.locator('#fact-total').textContent(), '31 samples, 310 ms');

		await page.selectOption('#type', { label: names[1] });
		await showsType(page, names[1]);
		await exact(page);
		// What waited is the leaf; the scheduler below it says nothing.
		const waited = new Map([['main', 4070000001], ['main;sleep', 4000000001], ['main;sleep;do_nanosleep', 4000000001],
			['main;lock', 70000000], ['main;lock;futex_wait', 70000000]]);
		assertTree(await treeEntries(page, 'graph'), waited);
		assert.equal(await page.locator('#fact-total').textContent(), '4.07 s');
		assert.match(await page.evaluate(() => location.hash), /type=off_cpu/);

		// The function in the sandwich stays, though its number is another one.
		await page.evaluate(() => {
			const v = window.__viewer;
			v.go({ view: 'sandwich', focus: Array.from({ length: v.frames.count }, (_, f) => v.frames.name(f)).indexOf('lock') });
		});
		await page.keyboard.press('v');
		await showsType(page, names[2]);
		assert.equal(await page.locator('#focus-name').textContent(), 'lock');
		assert.match(await page.locator('#focus-facts').textContent(), /^total 90 waits/);
		await page.goBack();
		await showsType(page, names[1]);
		await page.goBack();
		await page.goBack();
		await showsType(page, names[0]);
		const again = await openPage(browser, file, { hash: '#type=waits&view=inverted' });
		await showsType(again.page, names[2]);
		await exact(again.page);
		assert.equal(await again.page.evaluate(() => window.__viewer.graph.tree.total[0] * window.__viewer.meta.scale), 95);
		const odd = await openPage(browser, file, { hash: '#type=__proto__' });
		await showsType(odd.page, names[0]);
		for (const one of [opened, again, odd]) await assertSilent(one);
	});

	test('a page of one value says which', async () => {
		const opened = await openPage(browser, makeTypesPage('one', [['goroutine', 'count']], [[['main', 'run'], [7]]]));
		assert.equal(await opened.page.locator('.shows').innerText(), 'Shows goroutines (goroutine)');
		assert.equal(await opened.page.locator('#type').count(), 0);
		await opened.page.keyboard.press('v');
		await assertSilent(opened);
		const odd = [['</script><b>', 'count'], ['x'.repeat(5000), '"><i>']];
		const hostile = await openPage(browser, makeTypesPage('odd', odd, [[['a'], [3, 1]], [['a', 'b'], [1, 5]]]));
		assert.equal(await hostile.page.locator('b, i').count(), 0);
		await hostile.page.keyboard.press('v');
		await hostile.page.waitForFunction(() => window.__viewer.shownType === 1);
		await assertSilent(hostile);
	});

	for (const colorScheme of ['light', 'dark']) {
		test(`axe-core finds nothing, ${colorScheme}`, async () => {
			const stacks = knownStacks(4).map(([frames, count], i) => [frames, [count, i + 1]]);
			const file = makeTypesPage('axe', [['waits', 'count'], ['off_cpu', 'nanoseconds']], stacks);
			const opened = await openPage(browser, file, { colorScheme });
			const { page } = opened;
			assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
			await page.evaluate(readFileSync(axePath(), 'utf8'));
			const states = [{ view: 'graph', zoom: 3, query: 'fn_1' }, { view: 'graph', steps: [{ op: 'hide', text: 'ns1::fn_1' }] }, { view: 'inverted' }, { view: 'sandwich', focus: 1 },
				{ view: 'table' }, { view: 'calls', query: 'fn_1' }];
			for (const state of states) {
				await page.evaluate((s) => window.__viewer.go(s), state);
				const found = await page.evaluate(async () => {
					const result = await window.axe.run();
					return result.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | '));
				});
				assert.deepEqual(found, [], JSON.stringify(state));
			}
			await page.keyboard.press('1');
			await page.keyboard.press('m');
			assert.ok(await page.locator('#step-menu').isVisible());
			const menu = await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id));
			assert.deepEqual(menu, []);
			await page.keyboard.press('Escape');
			await page.keyboard.press('?');
			const help = await page.evaluate(async () => (await window.axe.run()).violations.map((v) => v.id));
			assert.deepEqual(help, []);
			await opened.context.close();
		});
	}

	test('one row of controls at 1400 pixels, all within reach at 400', async () => {
		const stacks = knownStacks(9).map(([frames, count], i) => [frames, [count, i + 1]]);
		const many = makeTypesPage('bar', [['waits', 'count'], ['off_cpu', 'nanoseconds']], stacks);
		const long = makeTypesPage('bar_long', [['x'.repeat(300), 'count']], [[['a'], [3]]]);
		for (const file of [many, long, makePage('bar_one', foldedText(knownStacks(9)))]) {
			const opened = await openPage(browser, file);
			const { page } = opened;
			for (const query of ['', 'fn_', '(']) {
				await page.evaluate((q) => window.__viewer.go({ query: q, regex: true }), query);
				await page.waitForFunction(() => document.getElementById('matched').textContent !== 'searching');
				const { height, outside, narrow } = await page.evaluate(() => {
					const controls = [...document.querySelectorAll('.toolbar :is(button, select, input, output)')].map((e) => e.getBoundingClientRect());
					return { height: document.querySelector('.toolbar').offsetHeight, outside: controls.filter((r) => r.right > innerWidth || r.left < 0).length,
						narrow: document.getElementById('query').offsetWidth };
				});
				assert.ok(height < 48 && !outside && narrow >= 70, `${file} ${query}: ${height} pixels high, ${outside} outside, search ${narrow}`);
			}
			await page.setViewportSize({ width: 400, height: 800 });
			const lost = await page.evaluate(() => [...document.querySelectorAll('header button, .toolbar :is(button, select, input)')].filter((e) => {
				const { left, right, top, bottom } = e.getBoundingClientRect();
				return left < 0 || right > innerWidth || document.elementFromPoint((left + right) / 2, (top + bottom) / 2)?.closest('button, select, input') !== e;
			}).map((e) => e.id || e.textContent));
			assert.deepEqual(lost, []);
			assert.ok(await page.evaluate(() => document.querySelector('.options').offsetHeight) < 40, 'what changes the view is one row');
			await assertSilent(opened);
		}
	});

	test('400 pixels wide', async () => {
		const opened = await openPage(browser, makePage('narrow', foldedText(knownStacks(5))),
			{ viewport: { width: 400, height: 800 } });
		const { page } = opened;
		for (const key of ['1', '2', '3', '4', '5']) {
			await page.keyboard.press(key);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'view ' + key);
			assert.ok(await page.evaluate(() => document.getElementById('stage').clientHeight >= 300), 'stage ' + key);
		}
		await assertSilent(opened);
	});

	test('without scripts there is a table', async () => {
		const stacks = knownStacks(6);
		const context = await browser.newContext({ javaScriptEnabled: false });
		const page = await context.newPage();
		await page.goto('file://' + makePage('plain', foldedText(stacks)));
		const text = await page.locator('noscript').evaluateAll((all) => all.map((n) => n.innerText).join(''));
		const [name, { self }] = [...countFunctions(stacks)].sort(([, a], [, b]) => b.self - a.self)[0];
		assert.ok(text.includes(name) && text.includes(String(self)));
		await context.close();
	});

	test('the overview beside the graph: its columns, a drag, the root at the bottom; none on a narrow window', async () => {
		const file = makePage('minimap', foldedText(knownStacks(71)));
		const opened = await openPage(browser, file);
		const { page } = opened;
		const rest = async () => {
			await page.waitForFunction(() => document.body?.dataset.ready === 'full');
			await graphAtRest(page);
		};
		await rest();
		await assertColumns(page);
		await page.keyboard.press('f');
		await rest();
		assert.equal(await page.evaluate(() => window.__viewer.graph.flip), true);
		await assertColumns(page);
		await page.keyboard.press('f');
		await rest();
		await assertDrag(page, rest);
		await page.emulateMedia({ colorScheme: 'dark' });
		await page.keyboard.press('0');
		await rest();
		await assertColumns(page);
		opened.noise = opened.noise.filter((line) => !/willReadFrequently/.test(line)); // advice for the test
		await assertSilent(opened);
		const narrow = await openPage(browser, file, { viewport: { width: 400, height: 800 } });
		assert.ok(await narrow.page.locator('#minimap').isHidden());
		await assertSilent(narrow);
	});

	test('the overview comes first and lies where the whole will', async () => {
		const lines = [];
		for (let i = 0; i < 40000; i++) lines.push(`main;part_${i % 37};step_${i % 1999};leaf_${i} ${1 + (i % 11)}\n`);
		const file = makePage('overview', lines.join(''));
		const context = await browser.newContext();
		const page = await context.newPage();
		await page.addInitScript(() => {
			new MutationObserver(() => {
				if (document.body?.dataset.ready !== 'overview' || window.__early) return;
				const { tree, frames } = window.__viewer;
				window.__early = Array.from(tree.origin, (of, i) => [of, tree.x[i], tree.total[i], frames.name(tree.frame[i])]);
			}).observe(document, { subtree: true, attributes: true });
		});
		await page.goto('file://' + file);
		await page.waitForFunction(() => document.body.dataset.ready === 'full');
		const wrong = await page.evaluate(() => {
			const { tree, frames } = window.__viewer;
			return window.__early?.filter(([of, x, total, name]) => tree.x[of] !== x || tree.total[of] !== total ||
				frames.name(tree.frame[of]) !== name).length;
		});
		assert.equal(wrong, 0);
		assert.equal(await page.evaluate(() => window.__early.length), 20000);
		assert.equal(await page.evaluate(() => window.__viewer.tree.total[0]), totalOf(lines.map((l) => [[], Number(l.split(' ')[1])])));
		await context.close();
	});
});
