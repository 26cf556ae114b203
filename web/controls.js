// SPDX-License-Identifier: Apache-2.0
// What the buttons, fields and keys of a profile's page do: each is an action of its viewer.
import { WIDE, byId } from './around.js';
import { TREE_KEY } from './halves.js';
import { actionForKey, fillHelp } from './keys.js';
import { COLOUR_MODES } from './state.js';

const SEARCH_DELAY_MS = 60;
const STEP_ACTIONS = ['focus', 'only', 'drop', 'hide', 'merge', 'recursion', 'module', 'hidemodule'];

export class Controls {
	/** @param {import('./viewer.js').Viewer} viewer */
	constructor(viewer) {
		this.viewer = viewer;
		this.listen();
	}

	listen() {
		const { viewer } = this;
		const on = (id, run) => byId(id).addEventListener('click', run);
		for (const tab of document.querySelectorAll('[data-view]')) {
			tab.addEventListener('click', () => this.run('view' + tab.dataset.view[0].toUpperCase() + tab.dataset.view.slice(1)));
		}
		on('next', () => viewer.stepMatch(1));
		on('previous', () => viewer.stepMatch(-1));
		on('regex', () => viewer.go({ regex: !viewer.state.regex }, true));
		for (const [id, action] of [['flip', 'toggleFlip'], ['collapse', 'toggleCollapse'], ['theme', 'toggleTheme'],
			['reset', 'reset'], ['help', 'help']]) on(id, () => this.run(action));
		on('help-close', () => byId('help-sheet').close());
		on('copy-focus', () => viewer.copyName());
		on('copy-stack', () => viewer.copyStack());
		byId('type')?.addEventListener('change', () => viewer.go({ type: viewer.types[Number(byId('type').value)].name }));
		byId('export').addEventListener('change', () => viewer.export());
		byId('colour').addEventListener('change', () => viewer.go({ colour: byId('colour').value }, true));
		byId('query').addEventListener('input', () => {
			clearTimeout(this.searchTimer);
			this.searchTimer = setTimeout(() => viewer.go({ query: byId('query').value }, true), SEARCH_DELAY_MS);
		});
		byId('query').addEventListener('keydown', (event) => this.queryKeys(event));
		byId('mirror').addEventListener('keydown', (event) => this.treeKeys(event));
		document.addEventListener('keydown', (event) => this.pageKeys(event));
		addEventListener('popstate', () => {
			viewer.readAddress();
			viewer.apply(true);
		});
		addEventListener('beforeprint', () => this.printTheme(true));
		addEventListener('afterprint', () => this.printTheme(false));
		fillHelp(byId('help-keys'));
		const wide = matchMedia(WIDE);
		const fold = () => byId('facts') && (byId('facts').open = wide.matches);
		fold();
		wide.addEventListener('change', fold);
	}

	/** The controls say what the state is. */
	update() {
		const { viewer: { state } } = this;
		for (const tab of document.querySelectorAll('[data-view]')) {
			tab.setAttribute('aria-pressed', String(tab.dataset.view === state.view));
		}
		byId('flip').setAttribute('aria-pressed', String(state.flip));
		byId('collapse').setAttribute('aria-pressed', String(state.collapse));
		byId('regex').setAttribute('aria-pressed', String(state.regex));
		byId('colour').value = state.colour;
		if (byId('type')) byId('type').value = String(this.viewer.typeIndex());
	}

	/** Paper is light, and takes the whole tree instead of what the window shows. */
	printTheme(printing) {
		const { viewer } = this;
		if (printing) {
			document.documentElement.dataset.theme = 'light';
			for (const flame of viewer.flames) flame.layOutForPrint();
		} else {
			viewer.theme.apply();
			for (const flame of viewer.flames) flame.resize();
		}
	}

	queryKeys(event) {
		const { viewer } = this;
		if (event.key === 'Enter') {
			event.preventDefault();
			this.flushQuery();
			viewer.stepMatch(event.shiftKey ? -1 : 1);
		} else if (event.key === 'Escape') {
			event.stopPropagation();
			byId('query').value = '';
			this.flushQuery();
			byId('mirror').focus();
		}
	}

	flushQuery() {
		const { viewer } = this;
		clearTimeout(this.searchTimer);
		if (byId('query').value !== viewer.state.query) viewer.go({ query: byId('query').value }, true);
	}

	treeKeys(event) {
		const { viewer } = this;
		if (event.ctrlKey || event.altKey || event.metaKey || !viewer.graph.tree) return;
		if (!TREE_KEY.test(event.key)) return;
		event.preventDefault();
		viewer.moveCurrent(event.key);
	}

	pageKeys(event) {
		if (document.querySelector('dialog[open]') || !byId('stage').clientWidth) return;
		const inText = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
		const action = actionForKey(event, inText, event.target === byId('mirror'));
		if (!action) return;
		event.preventDefault();
		this.run(action);
	}

	/** Does what a key or a button stands for (keys.js). */
	run(action) {
		const { viewer } = this;
		const { state } = viewer;
		const actions = {
			search: () => byId('query').select(),
			nextMatch: () => viewer.stepMatch(1),
			previousMatch: () => viewer.stepMatch(-1),
			zoomSelected: () => viewer.zoomNode(Math.max(0, viewer.current)),
			zoomOut: () => viewer.zoomOut(),
			reset: () => viewer.go({ zoom: 0, path: [], query: '' }),
			sandwichSelected: () => viewer.currentFrame() >= 0 && !viewer.provisional &&
				viewer.go({ view: 'sandwich', focus: viewer.currentFrame() }),
			copyName: () => viewer.copyName(),
			copyStack: () => viewer.copyStack(),
			viewGraph: () => viewer.go({ view: 'graph' }),
			viewInverted: () => viewer.go({ view: 'inverted' }),
			viewSandwich: () => viewer.go({ view: 'sandwich', focus: state.focus >= 0 ? state.focus : viewer.currentFrame() }),
			viewTable: () => viewer.go({ view: 'table' }),
			viewCalls: () => viewer.go({ view: 'calls' }),
			toggleFlip: () => viewer.go({ flip: !state.flip }, true),
			toggleCollapse: () => viewer.go({ collapse: !state.collapse }),
			toggleColour: () => viewer.go({ colour: COLOUR_MODES[(COLOUR_MODES.indexOf(state.colour) + 1) % COLOUR_MODES.length] }, true),
			undo: () => viewer.undoStep(),
			menu: () => viewer.steps.openAtCurrent(),
			...Object.fromEntries(STEP_ACTIONS.map((op) => ['step-' + op, () => viewer.stepOn(op)])),
			nextType: () => viewer.go({ type: viewer.types[(viewer.typeIndex() + 1) % viewer.types.length].name }),
			toggleTheme: () => viewer.theme.toggle(),
			help: () => byId('help-sheet').showModal(),
		};
		if (viewer.tree) actions[action]();
	}
}
