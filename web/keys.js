// SPDX-License-Identifier: Apache-2.0
// One table of keys: what they do and what the help sheet says.

export const KEYS = [
	{ keys: ['/', 'F3', 'ctrl+f'], action: 'search', help: 'search' },
	{ keys: ['n'], action: 'nextMatch', help: 'next match' },
	{ keys: ['N', 'shift+n'], action: 'previousMatch', help: 'previous match' },
	{ keys: ['Enter'], action: 'zoomSelected', help: 'zoom to the current frame', tree: true },
	{ keys: ['Backspace', 'u'], action: 'zoomOut', help: 'zoom out by one frame' },
	{ keys: ['0', 'Escape'], action: 'reset', help: 'reset zoom and search' },
	{ keys: ['s'], action: 'sandwichSelected', help: 'callers and callees of the current frame' },
	{ keys: ['c'], action: 'copyName', help: 'copy the name of the current frame' },
	{ keys: ['y'], action: 'copyStack', help: 'copy the stack of the current frame as text' },
	{ keys: ['1'], action: 'viewGraph', help: 'graph' },
	{ keys: ['2'], action: 'viewInverted', help: 'inverted: hottest functions first, callers below' },
	{ keys: ['3'], action: 'viewSandwich', help: 'sandwich' },
	{ keys: ['4'], action: 'viewTable', help: 'table of functions' },
	{ keys: ['5'], action: 'viewCalls', help: 'call tree: rows that open and close' },
	{ keys: ['f'], action: 'toggleFlip', help: 'root on top or at the bottom' },
	{ keys: ['r'], action: 'toggleCollapse', help: 'collapse recursion' },
	{ keys: ['m'], action: 'menu', help: 'steps of the view for the current frame' },
	{ keys: ['F'], action: 'step-focus', help: 'only what the current function does' },
	{ keys: ['O'], action: 'step-only', help: 'only stacks with the current function' },
	{ keys: ['D'], action: 'step-drop', help: 'drop the stacks of the current function' },
	{ keys: ['H'], action: 'step-hide', help: 'hide the current function' },
	{ keys: ['M'], action: 'step-merge', help: 'merge what is below the current function into it' },
	{ keys: ['R'], action: 'step-recursion', help: 'collapse the recursion of the current function' },
	{ keys: ['C'], action: 'step-module', help: 'collapse the module of the current function' },
	{ keys: ['z', 'ctrl+z'], action: 'undo', help: 'take back the last step' },
	{ keys: ['k'], action: 'toggleColour', help: 'colour by kind, by module or by value' },
	{ keys: ['v'], action: 'nextType', help: 'show the next of the profile\'s values, such as waiting' },
	{ keys: ['t'], action: 'toggleTheme', help: 'light or dark' },
	{ keys: ['?'], action: 'help', help: 'this sheet' },
];

export const POINTER_HELP = [
	['arrow keys', 'move through the graph when it has the focus'],
	['right click', 'steps of the view for that frame: focus, hide, drop and more'],
	['click', 'zoom; in the sandwich and the table: show that function'],
	['Ctrl + wheel', 'zoom freely around the pointer'],
	['Back, Forward', 'the history of views'],
];

/** The action a key event asks for, or null. `inText`: typing goes on there. */
export function actionForKey(event, inText, inTree) {
	if (event.altKey || event.metaKey) return null;
	const name = event.ctrlKey ? 'ctrl+' + event.key.toLowerCase() : event.key;
	const entry = KEYS.find((k) => k.keys.includes(name));
	if (!entry || (entry.tree && !inTree)) return null;
	if (inText && name !== 'Escape' && name !== 'F3' && name !== 'ctrl+f') return null;
	return entry.action;
}

export function fillHelp(list) {
	const rows = [...KEYS.map((k) => [k.keys.filter((key) => !key.startsWith('shift')).join(', '), k.help]), ...POINTER_HELP];
	for (const [keys, help] of rows) {
		const term = document.createElement('dt');
		const text = document.createElement('dd');
		term.textContent = keys;
		text.textContent = help;
		const row = document.createElement('div');
		row.append(term, text);
		list.append(row);
	}
}
