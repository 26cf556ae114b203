// SPDX-License-Identifier: Apache-2.0
// The tree as rows that open and close, beside the table of functions; only the rows in view exist.
import { nodeChildren, nodePath } from './layout.js';
import { formatShare, formatValue, visibleText } from './format.js';

const CALL_ROW_HEIGHT = 26;
const CALL_HEAD_HEIGHT = 28;
const CALL_NAME_MAX = 300;
const INDENT_MAX = 24;
const INDENT_PIXELS = 14;
const OPENED_SHARE = 0.5;

/** The row that an event is about, or null. */
function callRow(event) {
	return event.target.closest('.row');
}

export class CallTree {
	/**
	 * @param {HTMLElement} root
	 * @param {{ choose(node: number): void, menu(node: number, event: MouseEvent): void }} hooks a row was chosen to be shown in the graph
	 */
	constructor(root, hooks) {
		this.root = root;
		this.body = root.querySelector('.rows');
		this.scroller = root.querySelector('.grid-body');
		this.hooks = hooks;
		this.rows = [];
		this.nodes = [];
		this.active = 0;
		/** @type {Tree | null} */
		this.tree = null;
		this.scroller.addEventListener('scroll', () => this.render(), { passive: true });
		this.scroller.addEventListener('keydown', (event) => this.key(event));
		this.body.addEventListener('click', (event) => this.clickRow(event));
		this.body.addEventListener('dblclick', (event) => callRow(event) && hooks.choose(this.current()));
		this.body.addEventListener('contextmenu', (event) => {
			const row = callRow(event);
			if (!row) return;
			event.preventDefault();
			this.moveTo(Number(row.dataset.at));
			hooks.menu(this.current(), event);
		});
		new ResizeObserver(() => this.render()).observe(this.scroller);
	}

	/**
	 * Shows a tree opened along its heaviest path; the same one again keeps what is open.
	 * @param {Tree} tree
	 * @param {import('./data.js').FrameTable} frames
	 * @param {ShownMeta} meta
	 * @param {Uint8Array | null} hits
	 * @param {number} at the node to be on, or 0
	 */
	setData(tree, frames, meta, hits, at) {
		const isNew = this.tree !== tree;
		this.tree = tree;
		this.frames = frames;
		this.meta = meta;
		this.hits = hits;
		if (isNew) {
			this.open = new Set([0]);
			for (let node = 0; ;) {
				const [first] = nodeChildren(tree, node, 1);
				if (first === undefined || tree.total[first] < OPENED_SHARE * tree.total[node]) break;
				this.open.add(first);
				node = first;
			}
			this.active = 0;
		}
		if (at > 0 && at !== this.at) for (const above of [0, ...nodePath(tree, at)]) this.open.add(above);
		this.arrange();
		if (at > 0 && (isNew || at !== this.at)) this.moveTo(this.nodes.indexOf(at));
		this.at = at;
	}

	current() {
		return this.nodes[this.active] ?? 0;
	}

	/** The rows: each open node, its children behind it. */
	arrange() {
		const { tree } = this;
		this.nodes = [];
		for (let node = 0; node < tree.count;) {
			this.nodes.push(node);
			node += this.open.has(node) ? 1 : tree.size[node];
		}
		this.active = Math.max(0, Math.min(this.active, this.nodes.length - 1));
		this.body.style.height = this.nodes.length * CALL_ROW_HEIGHT + 'px';
		this.scroller.setAttribute('aria-rowcount', String(this.nodes.length + 1));
		this.render();
	}

	makeRow() {
		const row = document.createElement('div');
		row.className = 'row';
		row.setAttribute('role', 'row');
		for (const name of ['name', 'total', 'total-share', 'self', 'self-share', 'kind']) {
			const cell = document.createElement('div');
			cell.className = 'cell ' + name;
			cell.setAttribute('role', 'gridcell');
			row.append(cell);
		}
		const [mark, text] = [document.createElement('span'), document.createElement('bdi')];
		mark.className = 'mark';
		row.firstElementChild.append(mark, text);
		this.body.append(row);
		return row;
	}

	place(node) {
		const { tree } = this;
		if (!node) return [1, 1];
		const siblings = nodeChildren(tree, tree.parent[node]);
		return [siblings.indexOf(node) + 1, siblings.length];
	}

	fillRow(row, at) {
		const { tree, frames, meta } = this;
		const node = this.nodes[at];
		const frame = tree.frame[node];
		const [name, total, totalShare, self, selfShare, kind] = row.children;
		const [mark, text] = name.children;
		const whole = tree.total[0];
		const level = tree.level[node];
		const hasChildren = tree.size[node] > 1;
		row.id = 'call-row-' + at;
		row.dataset.at = String(at);
		row.style.top = at * CALL_ROW_HEIGHT + 'px';
		row.setAttribute('aria-rowindex', String(at + 2));
		row.setAttribute('aria-level', String(level + 1));
		row.setAttribute('aria-selected', String(at === this.active));
		row.classList.toggle('matched', Boolean(this.hits?.[frame]));
		if (hasChildren) row.setAttribute('aria-expanded', String(this.open.has(node)));
		else row.removeAttribute('aria-expanded');
		const [place, count] = this.place(node);
		row.setAttribute('aria-posinset', String(place));
		row.setAttribute('aria-setsize', String(count));
		// Deep levels stay on the screen: only the first ones move to the right.
		name.style.paddingLeft = Math.min(level, INDENT_MAX) * INDENT_PIXELS + 'px';
		mark.textContent = hasChildren ? (this.open.has(node) ? '▾' : '▸') : '';
		const raw = frames.name(frame);
		text.textContent = visibleText(raw.slice(0, CALL_NAME_MAX)) || '(empty name)';
		text.title = visibleText(raw.slice(0, 4 * CALL_NAME_MAX));
		total.textContent = formatValue(tree.total[node], meta);
		totalShare.textContent = formatShare(tree.total[node], whole);
		totalShare.style.setProperty('--share', whole ? tree.total[node] / whole : 0);
		self.textContent = formatValue(tree.self[node], meta);
		selfShare.textContent = formatShare(tree.self[node], whole);
		selfShare.style.setProperty('--share', whole ? tree.self[node] / whole : 0);
		kind.textContent = frames.moduleName(frame) ? visibleText(frames.moduleName(frame)) : frames.kind(frame);
	}

	render() {
		if (!this.tree || this.root.hidden) return;
		const first = Math.max(0, Math.floor(this.scroller.scrollTop / CALL_ROW_HEIGHT) - 2);
		const last = Math.min(this.nodes.length, Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / CALL_ROW_HEIGHT) + 2);
		while (this.rows.length < last - first) this.rows.push(this.makeRow());
		for (const [i, row] of this.rows.entries()) {
			row.hidden = first + i >= last;
			if (!row.hidden) this.fillRow(row, first + i);
			else row.removeAttribute('id');
		}
		if (this.active >= first && this.active < last) this.scroller.setAttribute('aria-activedescendant', 'call-row-' + this.active);
		else this.scroller.removeAttribute('aria-activedescendant');
	}

	clickRow(event) {
		const row = callRow(event);
		if (!row) return;
		this.active = Number(row.dataset.at);
		if (event.detail < 2) this.turn(this.current(), !this.open.has(this.current()));
	}

	turn(node, isOpen) {
		if (isOpen && this.tree.size[node] > 1) this.open.add(node);
		else this.open.delete(node);
		this.arrange();
	}

	moveTo(at) {
		this.active = Math.max(0, Math.min(at, this.nodes.length - 1));
		const top = this.active * CALL_ROW_HEIGHT;
		const { scroller } = this;
		if (top < scroller.scrollTop) scroller.scrollTop = top;
		const room = scroller.clientHeight - CALL_HEAD_HEIGHT - CALL_ROW_HEIGHT;
		if (top > scroller.scrollTop + room) scroller.scrollTop = top - Math.max(0, room);
		this.render();
	}

	key(event) {
		if (event.ctrlKey || event.altKey || event.metaKey || event.target !== this.scroller || !this.tree) return;
		const node = this.current();
		const isOpen = this.open.has(node) && this.tree.size[node] > 1;
		const page = Math.max(1, Math.floor(this.scroller.clientHeight / CALL_ROW_HEIGHT) - 2);
		const acts = {
			ArrowDown: () => this.moveTo(this.active + 1), ArrowUp: () => this.moveTo(this.active - 1),
			PageDown: () => this.moveTo(this.active + page), PageUp: () => this.moveTo(this.active - page),
			Home: () => this.moveTo(0), End: () => this.moveTo(this.nodes.length - 1),
			ArrowRight: () => (isOpen ? this.moveTo(this.active + 1) : this.turn(node, true)),
			ArrowLeft: () => (isOpen ? this.turn(node, false) : node && this.moveTo(this.nodes.indexOf(this.tree.parent[node]))),
			Enter: () => this.hooks.choose(node),
		};
		if (!Object.hasOwn(acts, event.key)) return;
		event.preventDefault();
		event.stopPropagation();
		acts[event.key]();
	}
}
