// SPDX-License-Identifier: Apache-2.0
// Says where it is, and waits there for ever, below interpreted functions and built-in ones; a worker thread does the same,
// unless an argument says "alone".
'use strict';
const fs = require('fs');
const { isMainThread, Worker } = require('worker_threads');
const never = new Int32Array(new SharedArrayBuffer(4));

function told() {
	const at = {};
	let place = ['', 0]; // a built-in function has that of its caller

	Error.stackTraceLimit = 100;
	Error.prepareStackTrace = (_, sites) =>
		sites.reverse().map(site => {
			place = site.getFileName() ? [site.getFileName(), site.getLineNumber()] : place;
			return [site.getFunctionName() || '(anonymous)', ...place];
		}).reverse();
	Error.captureStackTrace(at, told);
	fs.writeSync(1, `STACKS ${JSON.stringify({ [isMainThread ? 'main' : 'worker']: at.stack })}\n`);
}

function park(stop) {
	return stop ? (told(), Atomics.wait(never, 0, 0)) : 1;
}

function small(stop) {
	return park(stop);
}

function down(depth, stop) {
	return depth ? down(depth - 1, stop) + 1 : small(stop);
}

class Shop {
	open(stop) {
		return [isMainThread ? 20 : 25].map(depth => down(depth, stop));
	}
}

if (isMainThread && process.argv[2] !== 'alone')
	new Worker(__filename);
const shop = new Shop();
for (let i = 0; i < 100; i++)
	shop.open(false);
shop.open(true);
