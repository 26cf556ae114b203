// SPDX-License-Identifier: Apache-2.0
// New functions all the time, of one shape and different names: each is compiled where others were, and forgotten.
// Only fn_N calls in_N, and only the two of one round are alive. Arguments: seconds.
'use strict';

const zlib = require('zlib');

function spin(n) {
	let s = 0;
	for (let i = 0; i < 60; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}

function thrown(n) {
	try {
		throw new Error('x' + n);
	} catch (e) {
		return e.message.length;
	}
}

const code = [
	0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 27, 1, 25, 1, 1, 127,
	3, 64, 32, 1, 32, 0, 106, 33, 1, 32, 0, 65, 1, 107, 34, 0, 13, 0, 11, 32, 1, 11,
];
// The section "name": the module is mill, its function grind.
const names = [0, 22, 4, 110, 97, 109, 101, 0, 5, 4, 109, 105, 108, 108, 1, 8, 1, 0, 5, 103, 114, 105, 110, 100];
const [wasm, grind] = [code, [...code, ...names]].map(
	bytes => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports.f);

function regexps(n) {
	return 'a1b22c333d'.repeat(20).replace(/[0-9]+(?=[a-d])/g, (d) => d + n).length;
}

function round(number) {
	const made = new Function('spin', `
		function in_${number}(n) {
			let s = 0;
			for (let i = 0; i < 60; i++)
				s = (s + spin(i + n)) | 0;
			return s;
		}
		return function fn_${number}(n) {
			let s = 0;
			for (let i = 0; i < 20; i++)
				s = (s + in_${number}(i + n)) | 0;
			return s;
		};`)(spin);
	let s = 0;
	for (let i = 0; i < 3; i++)
		s += made(i);
	return s;
}

function work(seconds) {
	const end = Date.now() + 1000 * seconds;
	let s = 0;
	for (let number = 0; Date.now() < end; number++) {
		s += round(number);
		for (let i = 0; i < 20; i++)
			s += thrown(i) + regexps(i) + wasm(40000) + grind(40000);
		if (number % 8 === 0)
			s += zlib.deflateSync(Buffer.alloc(50000, number)).length;
	}
	return s;
}

const { isMainThread, workerData, Worker } = require('worker_threads');
if (isMainThread) {
	const seconds = Number(process.argv[2]);
	new Worker(__filename, { workerData: seconds });
	work(seconds);
} else {
	work(workerData);
}
