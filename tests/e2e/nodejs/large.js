// SPDX-License-Identifier: Apache-2.0
// A heap of hundreds of MiB, which is there before anybody looks. Arguments: objects in thousands. Says "ready", and computes for a minute at most.
'use strict';

const kept = [];
for (let i = 0; i < 1000 * Number(process.argv[2]); i++)
	kept.push({ i, text: 'a' + i, next: kept[i - 1], pair: [i, i + 1] });

function inner(n) {
	let s = 0;
	for (let i = 0; i < 40000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}

function outer(n) {
	return inner(n) + 1;
}

console.log(`ready ${Math.round(process.memoryUsage().heapTotal / 1048576)}`);
for (let end = Date.now() + 60000, s = 0; Date.now() < end;)
	s += outer(s);
