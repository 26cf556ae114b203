// SPDX-License-Identifier: Apache-2.0
// JavaScript that calls what computes natively: memory moved and compared by libc, cryptography, zlib, JSON and numbers as text.
// "//> a b" behind a line says which functions can be called from it. Arguments: seconds of CPU.
'use strict';
const crypto = require('crypto');
const zlib = require('zlib');

const from = Buffer.alloc(1 << 18, 'a text that is not very interesting; ');
const to = Buffer.alloc(1 << 18);
const numbers = Array.from({ length: 3000 }, (_, i) => ({ i, text: 'value ' + i, part: i / 7 })); //> from (anonymous)
const text = JSON.stringify(numbers); //> stringify

function moved(n) {
	let s = 0;
	for (let i = 0; i < 40; i++)
		s += from.copy(to, i); //> copy
	return s + n;
}

function compared(n) {
	let s = 0;
	from.copy(to); //> copy
	for (let i = 0; i < 60; i++)
		s += from.compare(to); //> compare
	return s + n;
}

function filled(n) {
	for (let i = 0; i < 40; i++)
		to.fill(n & 255); //> fill
	return to[n];
}

function hashed(n) {
	return crypto.createHash('sha256').update(from).digest()[n & 15]; //> createHash update digest
}

function packed(n) {
	return zlib.deflateRawSync(from.slice(0, 60000), { level: 6 }).length + n; //> slice deflateRawSync syncBufferWrapper
}

function unpacked(n) {
	return JSON.parse(text).length + n; //> parse
}

function written(n) {
	return JSON.stringify(numbers).length + n; //> stringify
}

function round(n) {
	let s = moved(n); //> moved
	s += compared(n); //> compared
	s += filled(n); //> filled
	s += hashed(n); //> hashed
	s += packed(n); //> packed
	s += unpacked(n); //> unpacked
	s += written(n); //> written
	return s;
}

function work() {
	let s = 0;
	for (let n = 0; process.cpuUsage().user < 1e6 * Number(process.argv[2]); n++) //> cpuUsage Number
		s += round(n % 1000); //> round
	return s;
}

work(); //> work
