// SPDX-License-Identifier: Apache-2.0
// The script inside a classic flame graph (src/render/svg.c): zoom, search, the line of details. It reads what the file
// has, asks for nothing from anywhere, and writes names only as text. It stands in a CDATA section, so it has no ']' twice
// before a '>'.
'use strict';
(() => {
	const svg = /** @type {SVGScriptElement} */ (document.currentScript).ownerSVGElement;
	const part = id => svg.querySelector('#' + id);
	const frames = part('frames'), details = part('details'), matched = part('matched');
	const searchButton = part('search'), caseButton = part('ignorecase'), unzoomButton = part('unzoom');
	const side = Number(frames.dataset.side);
	const charWidth = Number(frames.dataset.font), down = Number(frames.dataset.inverted) ? 1 : -1;
	const room = svg.viewBox.baseVal.width - 2 * side;
	const boxes = new Map();
	for (const group of frames.children) {
		const rect = group.querySelector('rect'), title = group.querySelector('title').textContent;
		boxes.set(group, {
			group, rect, title, name: title.replace(/ \([^(]*\)$/, ''), x: rect.getAttribute('x'),
			y: rect.getAttribute('y'), level: down * Number(rect.getAttribute('y')),
			at: Number(rect.dataset.at), count: Number(rect.dataset.n),
		});
	}
	const root = boxes.values().next().value;
	let shown = root, term = null, ignoreCase = false;

	/* What of the picture is kept in the address, as flamegraph.pl does: x and y of the frame zoomed to, s the search. */
	function keep(change) {
		const params = new URLSearchParams(window.location.search);
		for (const [key, value] of Object.entries(change)) {
			if (value === null)
				params.delete(key);
			else
				params.set(key, value);
		}
		const query = params.toString();
		try {
			window.history.replaceState(null, '', query ? '?' + query : window.location.pathname);
		} catch {
			/* a page that shows us may not allow it; everything else works */
		}
	}

	function fit(name, width) {
		const characters = Array.from(name), max = Math.floor(width / charWidth);
		if (max < 3)
			return '';
		return characters.length <= max ? name : characters.slice(0, max - 2).join('') + '..';
	}

	function place(box, x, width) {
		const text = fit(box.name, width);
		let label = box.group.querySelector('text');
		box.rect.setAttribute('x', x.toFixed(1));
		box.rect.setAttribute('width', width.toFixed(1));
		if (!label && text) {
			const y = Number(box.y) + 3 + Number(box.rect.getAttribute('height')) / 2;
			label = document.createElementNS('http://www.w3.org/2000/svg', 'text');
			label.setAttribute('y', y.toFixed(1));
			box.group.append(label);
		}
		if (!label)
			return;
		label.setAttribute('x', (x + 3).toFixed(2));
		label.textContent = text;
	}

	const end = box => box.at + box.count;

	function show(box) {
		const scale = room / box.count;
		for (const other of boxes.values()) {
			const above = other.level < box.level && other.at <= box.at && end(other) >= end(box);
			const within = other.level >= box.level && other.at >= box.at && end(other) <= end(box);
			other.group.classList.toggle('parent', above);
			other.group.classList.toggle('hide', !above && !within);
			if (above)
				place(other, side, room);
			else if (within)
				place(other, side + (other.at - box.at) * scale, other.count * scale);
		}
		shown = box;
		unzoomButton.classList.toggle('hide', box === root);
		showMatches();
	}

	function zoom(box) {
		if (!box.count)
			return;
		show(box);
		keep(box === root ? { x: null, y: null } : { x: box.x, y: box.y });
	}

	/* How much of what is shown the matches cover; one below another counts once. */
	function coverage(found) {
		const from = shown.at, to = end(shown);
		let sum = 0, last = from;
		for (const box of found.sort((a, b) => a.at - b.at || b.count - a.count)) {
			const begin = Math.max(box.at, last), stop = Math.min(end(box), to);
			if (stop > begin) {
				sum += stop - begin;
				last = stop;
			}
		}
		return 100 * sum / (to - from);
	}

	function say(text) {
		matched.textContent = text || ' ';
	}

	function pattern() {
		try {
			return new RegExp(term, ignoreCase ? 'i' : '');
		} catch {
			return null;
		}
	}

	function showMatches() {
		const wanted = term === null ? null : pattern(), found = [];
		for (const box of boxes.values()) {
			const hit = wanted !== null && box !== root && wanted.test(box.name);
			box.group.classList.toggle('match', hit);
			if (hit && !box.group.classList.contains('hide'))
				found.push(box);
		}
		searchButton.classList.toggle('show', term !== null);
		searchButton.textContent = term === null ? 'Search' : 'Reset Search';
		if (term === null) {
			say('');
		} else if (wanted === null) {
			say('Not a pattern');
		} else {
			const percent = coverage(found);
			say('Matched: ' + (percent === 100 ? '100' : percent.toFixed(1)) + '%');
		}
	}

	function search(text) {
		term = text;
		showMatches();
		keep({ s: term });
	}

	function ask() {
		const hint = 'Search for names (a regular expression, such as ^ext4_' + (ignoreCase ? ', letters of either case' : '') +
			')\nCtrl-I: letters of either case';
		const text = window.prompt(hint, '');
		if (text)
			search(text);
	}

	function toggleSearch() {
		if (term === null)
			ask();
		else
			search(null);
	}

	function toggleCase() {
		ignoreCase = !ignoreCase;
		caseButton.classList.toggle('show', ignoreCase);
		showMatches();
	}

	/** @type {Map<EventTarget, () => void>} */
	const buttons = new Map([[unzoomButton, () => zoom(root)], [searchButton, toggleSearch], [caseButton, toggleCase]]);
	/** @param {EventTarget} target what an event of the graph happened to */
	const boxOf = target => boxes.get(/** @type {Element} */ (target).closest('#frames > g'));

	svg.addEventListener('click', event => {
		const box = boxOf(event.target), press = buttons.get(event.target);
		if (box)
			zoom(box);
		else if (press)
			press();
	});
	svg.addEventListener('mouseover', event => {
		const box = boxOf(event.target);
		details.textContent = box ? frames.dataset.nametype + ' ' + box.title : ' ';
	});
	svg.addEventListener('mouseout', () => {
		details.textContent = ' ';
	});
	window.addEventListener('keydown', event => {
		const key = event.key.toLowerCase(), press = buttons.get(event.target);
		if (key === 'f3' || (event.ctrlKey && key === 'f'))
			ask();
		else if (event.ctrlKey && key === 'i')
			toggleCase();
		else if ((key === 'enter' || key === ' ') && press)
			press();
		else
			return;
		event.preventDefault();
	});

	const asked = new URLSearchParams(window.location.search);
	for (const box of boxes.values())
		if (box.count && asked.get('x') === box.x && asked.get('y') === box.y)
			show(box);
	if (asked.get('s'))
		search(asked.get('s'));
})();
