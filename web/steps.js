// SPDX-License-Identifier: Apache-2.0
// The steps of the view for people: chips that say what was done, each taken back by itself, and a menu that adds more.
import { STEP_KINDS, groupText, groupsOf, stepText } from './transforms.js';
import { byId, makeElement, shownName } from './around.js';
import { KEYS } from './keys.js';

const CHIP_CHARS_MAX = 60;
const MENU_MARGIN = 6;
const MENU_TEXTS = {
	focus: 'Only what it does', only: 'Only stacks with it', drop: 'Drop its stacks', hide: 'Hide it', merge: 'Merge what is below into it',
	recursion: 'Collapse its recursion', module: 'Collapse its module', hidemodule: 'Hide its module',
};

export class StepMenu {
	/** @param {import('./viewer.js').Viewer} viewer */
	constructor(viewer) {
		this.viewer = viewer;
		this.box = byId('step-menu');
		byId('undo').addEventListener('click', () => viewer.undoStep());
		byId('menu').addEventListener('click', () => this.openAtCurrent());
		this.box.addEventListener('keydown', (event) => this.keys(event));
		document.addEventListener('pointerdown', (event) => this.box.hidden || this.has(event.target) || this.close(false));
		this.box.addEventListener('focusout', (event) => event.relatedTarget && !this.has(event.relatedTarget) && this.close(false));
	}

	has(target) {
		return this.box.contains(target);
	}

	/** The chips of the state's steps. */
	update() {
		const { steps } = this.viewer.state;
		const chips = steps.map((step, i) => {
			const kind = STEP_KINDS[step.op];
			const text = step.text.startsWith('~') ? '(a long name)' : shownName(step.op === 'group' ? groupText(step.text) : step.text, CHIP_CHARS_MAX);
			const button = makeElement('button', '', `${kind.label} ${text}`);
			button.type = 'button';
			button.title = `${kind.help}. Click to take it back.`;
			button.addEventListener('click', () => this.viewer.go({ steps: steps.filter((_, k) => k !== i) }));
			return makeElement('li', '', button);
		});
		byId('chips').replaceChildren(...chips);
		byId('steps').hidden = !chips.length;
	}

	openAtCurrent() {
		const at = byId('menu').getBoundingClientRect();
		this.openFor(this.viewer.currentFrame(), at.left, at.bottom);
	}

	item(text, action, run) {
		const entry = KEYS.find((k) => k.action === action);
		const item = makeElement('button', '', makeElement('span', '', text));
		if (entry) item.append(makeElement('kbd', '', entry.keys[0]));
		item.type = 'button';
		item.tabIndex = -1;
		item.setAttribute('role', 'menuitem');
		item.addEventListener('click', () => {
			this.close(true);
			run();
		});
		return item;
	}

	/** The menu for a frame; -1: only what is about no frame. */
	openFor(frame, x, y) {
		const { viewer, box } = this;
		const { frames } = viewer;
		if (!frames || viewer.provisional) return;
		const items = [];
		if (frame >= 0 && frame < frames.count) {
			const moduleName = frames.moduleName(frame);
			items.push(makeElement('p', '', makeElement('bdi', '', shownName(frames.name(frame), CHIP_CHARS_MAX))));
			for (const [op, text] of Object.entries(MENU_TEXTS)) {
				const isModule = STEP_KINDS[op].about === 'module';
				if (isModule && !moduleName) continue;
				const about = stepText(isModule ? moduleName : frames.name(frame));
				items.push(this.item(text, 'step-' + op, () => viewer.addStep(op, about)));
			}
			items.push(this.item('Callers and callees', 'sandwichSelected', () => viewer.go({ view: 'sandwich', focus: frame })));
			items.push(makeElement('hr'));
		}
		for (const by of groupsOf(frames, viewer.source?.offered)) items.push(this.item('Group by ' + shownName(groupText(by), CHIP_CHARS_MAX), '', () => viewer.addStep('group', by)));
		if (!viewer.state.steps.some(({ op }) => op === 'order')) items.push(this.item('Order by name', '', () => viewer.addStep('order', 'name')));
		if (viewer.state.steps.length) items.push(this.item('Undo', 'undo', () => viewer.undoStep()));
		this.before = /** @type {HTMLElement | null} */ (document.activeElement);
		box.replaceChildren(...items);
		box.querySelector('hr')?.setAttribute('role', 'separator');
		box.hidden = false;
		box.style.left = Math.max(MENU_MARGIN, Math.min(x, innerWidth - box.offsetWidth - MENU_MARGIN)) + 'px';
		box.style.top = Math.max(MENU_MARGIN, Math.min(y, innerHeight - box.offsetHeight - MENU_MARGIN)) + 'px';
		box.querySelector('[role=menuitem]').focus();
	}

	close(refocus) {
		this.box.hidden = true;
		if (refocus && this.before?.isConnected) this.before.focus();
	}

	keys(event) {
		const items = [...this.box.querySelectorAll('[role=menuitem]')];
		const at = items.findIndex((item) => item === document.activeElement);
		const moves = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 };
		event.stopPropagation();
		if (event.key in moves) items[moves[event.key] % items.length].focus();
		else if (event.key === 'Escape') this.close(true);
		else return;
		event.preventDefault();
	}
}
