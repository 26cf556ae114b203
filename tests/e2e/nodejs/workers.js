// SPDX-License-Identifier: Apache-2.0
// Sixteen worker threads: four at once, the others one by one while somebody looks. Each has an isolate of its own. Its outer
// functions are called once, so the interpreter runs them to the end; burn() is compiled within its loop. Arguments: seconds.
'use strict';

const { isMainThread, Worker, workerData } = require('worker_threads');
const WORKERS = 16, AT_ONCE = 4, LATE_MS = 3000, STEP_MS = 200;

function burn(end) {
	let s = 0;
	while (Date.now() < end)
		for (let i = 0; i < 1000; i++)
			s = (s * 31 + i) % 1000003;
	return s;
}

function inner(end) {
	return burn(end) + 1;
}

function outer(end) {
	return inner(end) + 1;
}

if (isMainThread) {
	const end = Date.now() + 1000 * Number(process.argv[2]);
	for (let i = 0; i < WORKERS; i++)
		setTimeout(() => new Worker(__filename, { workerData: end }), i < AT_ONCE ? 0 : LATE_MS + (i - AT_ONCE) * STEP_MS);
} else {
	outer(workerData);
}
