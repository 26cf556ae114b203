// SPDX-License-Identifier: Apache-2.0
// A load whose stacks can be told from this text: "//> a b" behind a line says which functions can be called from it.
// Arguments: seconds.
'use strict';

function leaf(n) {
	let s = 0;
	for (let i = 0; i < 300; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}

function small(n) {
	return leaf(n) + 1; //> leaf
}

function middle(n) {
	const first = small(n); //> small
	return first + small(n + 1); //> small
}

function mapped(n) {
	return [1, 2, 3].map((x) => leaf(x + n)).length; //> map (anonymous) leaf
}

function deep(n, left) {
	if (!left)
		return middle(n); //> middle
	return deep(n, left - 1) + 1; //> deep
}

function caught(n) {
	try {
		throw new Error(String(n)); //> Error String
	} catch (e) {
		return leaf(e.message.length); //> leaf
	}
}

function texts(n) {
	const text = JSON.stringify({ n, list: [n, n + 1] }); //> stringify
	return text.replace(/[0-9]+/g, (digits) => digits + 'x').split(',').sort().join('|'); //> replace (regexp) (anonymous) split sort join
}

let made = 0;
function fresh(n) {
	const f = new Function('n', `return n + ${made++ % 50}`); //> Function (anonymous)
	return f(n); //> anonymous
}

function round(n) {
	let s = middle(n); //> middle
	s += mapped(n); //> mapped
	s += deep(n, n % 20); //> deep
	s += caught(n); //> caught
	for (let i = 0; i < 5; i++)
		s += texts(i).length; //> texts
	if (n % 16 === 0)
		s += fresh(n); //> fresh
	return s;
}

function work() {
	const end = Date.now() + 1000 * Number(process.argv[2]); //> now Number
	let s = 0;
	for (let n = 0; Date.now() < end; n++) //> now
		s += round(n % 1000); //> round
	return s;
}

work(); //> work
