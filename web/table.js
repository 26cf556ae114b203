// SPDX-License-Identifier: Apache-2.0
// All functions in a grid; only the rows in view exist.
import { formatAmount, formatCount, formatShare, visibleText } from './format.js';

const TABLE_ROW_HEIGHT = 26;
const TABLE_HEAD_HEIGHT = 28;
const NAME_CHARS_MAX = 300;

export class FunctionGrid {
	/**
	 * @param {HTMLElement} root
	 * @param {{ activate(frame: number): void, sort(key: string): void }} hooks
	 */
	constructor(root, hooks) {
		this.root = root;
		this.body = root.querySelector('.rows');
		this.scroller = root.querySelector('.grid-body');
		this.count = root.querySelector('.grid-count');
		this.heads = [...root.querySelectorAll('[data-sort]')];
		this.hooks = hooks;
		this.rows = [];
		this.shownRows = new Uint32Array(0);
		this.sortKey = 'self';
		this.ascending = false;
		this.active = 0;
		this.scroller.addEventListener('scroll', () => this.render(), { passive: true });
		this.scroller.addEventListener('keydown', (event) => this.key(event));
		this.body.addEventListener('click', (event) => this.clickRow(event));
		for (const head of this.heads) {
			head.addEventListener('click', () => this.hooks.sort(head.dataset.sort));
		}
		new ResizeObserver(() => this.render()).observe(this.scroller);
	}

	/**
	 * @param {import('./data.js').FrameTable} frames
	 * @param {Totals} totals
	 * @param {number} whole
	 * @param {Uint8Array | null} hits
	 * @param {ShownMeta} meta
	 */
	setData(frames, totals, whole, hits, meta) {
		this.meta = meta;
		this.frames = frames;
		this.totals = totals;
		this.whole = whole;
		this.hits = hits;
		this.arrange();
	}

	setSort(key, ascending) {
		this.sortKey = key;
		this.ascending = ascending;
		if (this.frames) this.arrange();
	}

	arrange() {
		const { frames, totals, hits, sortKey } = this;
		const list = [];
		for (let f = 0; f < frames.count; f++) {
			if (totals.total[f] > 0 && (!hits || hits[f])) list.push(f);
		}
		const column = totals[sortKey];
		const sign = this.ascending ? -1 : 1;
		// Frames are in the order of their names, so equal values and the sort by name need no comparison of text.
		list.sort(column ? (a, b) => sign * (column[b] - column[a]) || a - b : (a, b) => sign * (b - a));
		this.shownRows = Uint32Array.from(list);
		this.active = Math.max(0, Math.min(this.active, list.length - 1));
		this.body.style.height = list.length * TABLE_ROW_HEIGHT + 'px';
		this.scroller.setAttribute('aria-rowcount', String(list.length + 1));
		this.count.textContent = formatCount(list.length) + (list.length === 1 ? ' function' : ' functions');
		for (const head of this.heads) {
			const mine = head.dataset.sort === sortKey;
			head.closest('[role=columnheader]').setAttribute('aria-sort',
				mine ? (this.ascending ? 'ascending' : 'descending') : 'none');
		}
		this.render();
	}

	makeRow() {
		const row = document.createElement('div');
		row.className = 'row';
		row.setAttribute('role', 'row');
		for (const name of ['name', 'self', 'self-share', 'total', 'total-share', 'kind']) {
			const cell = document.createElement('div');
			cell.className = 'cell ' + name;
			cell.setAttribute('role', 'gridcell');
			row.append(cell);
		}
		this.body.append(row);
		return row;
	}

	fillRow(row, at) {
		const frame = this.shownRows[at];
		const [name, self, selfShare, total, totalShare, kind] = row.children;
		const { totals, whole, frames, meta } = this;
		row.id = 'grid-row-' + at;
		row.dataset.at = String(at);
		row.style.top = at * TABLE_ROW_HEIGHT + 'px';
		row.setAttribute('aria-rowindex', String(at + 2));
		row.setAttribute('aria-selected', String(at === this.active));
		const raw = frames.name(frame);
		name.textContent = visibleText(raw.slice(0, NAME_CHARS_MAX)) || '(empty name)';
		name.title = visibleText(raw.slice(0, 4 * NAME_CHARS_MAX));
		self.textContent = formatAmount(totals.self[frame], meta);
		selfShare.textContent = formatShare(totals.self[frame], whole);
		selfShare.style.setProperty('--share', totals.self[frame] / whole);
		total.textContent = formatAmount(totals.total[frame], meta);
		totalShare.textContent = formatShare(totals.total[frame], whole);
		totalShare.style.setProperty('--share', totals.total[frame] / whole);
		kind.textContent = frames.moduleName(frame) ? visibleText(frames.moduleName(frame)) : frames.kind(frame);
	}

	render() {
		if (!this.frames || this.root.hidden) return;
		const first = Math.max(0, Math.floor(this.scroller.scrollTop / TABLE_ROW_HEIGHT) - 2);
		const last = Math.min(this.shownRows.length,
			Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / TABLE_ROW_HEIGHT) + 2);
		while (this.rows.length < last - first) this.rows.push(this.makeRow());
		this.rows.forEach((row, i) => {
			row.hidden = first + i >= last;
			if (!row.hidden) this.fillRow(row, first + i);
			else row.removeAttribute('id');
		});
		const grid = this.scroller;
		const inView = this.active >= first && this.active < last;
		if (inView) grid.setAttribute('aria-activedescendant', 'grid-row-' + this.active);
		else grid.removeAttribute('aria-activedescendant');
	}

	clickRow(event) {
		const row = event.target.closest('.row');
		if (!row) return;
		this.active = Number(row.dataset.at);
		this.hooks.activate(this.shownRows[this.active]);
	}

	moveTo(at) {
		this.active = Math.max(0, Math.min(at, this.shownRows.length - 1));
		const top = this.active * TABLE_ROW_HEIGHT;
		const { scroller } = this;
		if (top < scroller.scrollTop) scroller.scrollTop = top;
		const room = scroller.clientHeight - TABLE_HEAD_HEIGHT - TABLE_ROW_HEIGHT;
		if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
		this.render();
	}

	/** Returns true when the key was used. */
	key(event) {
		const page = Math.max(1, Math.floor(this.scroller.clientHeight / TABLE_ROW_HEIGHT) - 1);
		const moves = {
			ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page,
			PageUp: this.active - page, Home: 0, End: this.shownRows.length - 1,
		};
		if (event.ctrlKey || event.altKey || event.metaKey || event.target !== this.scroller) return;
		if (event.key in moves) this.moveTo(moves[event.key]);
		else if (event.key === 'Enter' && this.shownRows.length) this.hooks.activate(this.shownRows[this.active]);
		else return;
		event.preventDefault();
		event.stopPropagation();
	}
}
