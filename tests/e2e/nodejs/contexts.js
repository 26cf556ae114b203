// SPDX-License-Identifier: Apache-2.0
// Functions of contexts of module vm: a script that runs in a new one calls its own functions and one of outside; a function that was
// made in one is called from outside. Arguments: seconds of CPU.
'use strict';
const vm = require('vm');

const SCRIPT = `
function spin(n) {
	let s = 0;
	for (let i = 0; i < 20000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}
function inside(end) {
	let s = 0;
	while (now() < end)
		s += spin(1) + outside(2);
	return s;
}
inside(end);
`;
const KEPT = `(function kept(n) {
	let s = 0;
	for (let i = 0; i < 20000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
})`;

function outside(n) {
	let s = 0;
	for (let i = 0; i < 20000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}

function enter(end) {
	return vm.runInNewContext(SCRIPT, { end, outside, now: Date.now }, '/inside/script.js');
}

function later(made, end) {
	let s = 0;
	while (Date.now() < end)
		s += made(3);
	return s;
}

while (process.cpuUsage().user < 1e6 * Number(process.argv[2])) {
	enter(Date.now() + 200);
	later(vm.runInNewContext(KEPT, {}, '/inside/kept.js'), Date.now() + 100);
}
