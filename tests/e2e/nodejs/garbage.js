// SPDX-License-Identifier: Apache-2.0
// Garbage that dies young and garbage that grows old. Arguments: seconds.
'use strict';

function young(n) {
	const made = [];
	for (let i = 0; i < 2000; i++)
		made.push({ i, text: 'a' + (i + n), next: made[i - 1] });
	return made;
}

function compute(n) {
	let s = 0;
	for (let i = 0; i < 100000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}

// From when on V8 counts the time, in ms since 1970.
console.log(`BEGAN ${Date.now() - require("perf_hooks").performance.now()}`);
const kept = [];
const end = Date.now() + 1000 * Number(process.argv[2]);
for (let n = 0, s = 0; Date.now() < end; n++) {
	kept[n % 60] = young(n);
	s += compute(n);
}
