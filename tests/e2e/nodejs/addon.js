// SPDX-License-Identifier: Apache-2.0
// JavaScript that calls a native add-on (addon.c), which computes and then calls JavaScript. Arguments: seconds of CPU, the add-on.
'use strict';
const { work } = require(process.argv[3]);

function called() {
	let s = 0;
	for (let i = 0; i < 20000; i++)
		s = (s * 31 + i) % 1000003;
	return s;
}

function middle(n) {
	return work(n, called) + 1;
}

function outer(n) {
	return middle(n) + 1;
}

while (process.cpuUsage().user < 1e6 * Number(process.argv[2]))
	outer(20000);
