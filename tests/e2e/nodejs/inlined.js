// SPDX-License-Identifier: Apache-2.0
// Small functions that compilers inline into their callers, each with a share of its own, and built-in ones that functions call.
// "//> a b" behind a line says which functions can be called from it. Arguments: seconds of CPU.
'use strict';

function scramble(n) {
	let h = n | 0;
	for (let i = 0; i < 200; i++)
		h = Math.imul(h ^ (h >>> 13), 0x5bd1e995) + i; //> imul
	return h >>> 1;
}

function keyOf(n) {
	return scramble(n) % 512; //> scramble
}

function bucket(n) {
	return keyOf(n + 7) + 1; //> keyOf
}

function polynomial(x) {
	let s = 0.5;
	for (let i = 0; i < 150; i++)
		s = s * x + 1 / (i + 1);
	return s;
}

function curve(x) {
	return polynomial(x) - x; //> polynomial
}

// Chosen while it runs: of arrays that it knows a compiler leaves checks out.
const rows = [1, 2, 3, 4].map((n) => new Float64Array(256).map((_, i) => n - i / 256)); //> map (anonymous)

function dot(a, b) {
	let s = 0;
	for (let i = 0; i < 256; i++)
		s += a[i] * b[255 - i];
	return s;
}

function angle(n) {
	return dot(rows[n & 3], rows[(n + 1) & 3]) / 256; //> dot
}

function numbers(n) {
	let s = bucket(n); //> bucket
	s += curve((n % 100) / 101); //> curve
	s += angle(n); //> angle
	return s;
}

class Circle {
	constructor(n) {
		this.radius = n;
	}
	area() {
		let s = 0;
		for (let i = 1; i < 40; i++)
			s += this.radius / i;
		return s;
	}
}

class Box {
	constructor(n) {
		this.width = n;
		this.height = n + 1;
	}
	area() {
		let s = this.width;
		for (let i = 1; i < 40; i++)
			s = (s * this.height + i) % 1021;
		return s;
	}
}

const shapes = [];
for (let i = 0; i < 6; i++)
	shapes.push(i % 2 ? new Circle(i) : new Box(i)); //> Circle Box push

function areas(list) {
	let s = 0;
	for (let i = 0; i < list.length; i++)
		s += list[i].area(); //> area
	return s;
}

function makeChain(length) {
	let chain = null;
	for (let i = 0; i < length; i++)
		chain = { value: i, next: chain };
	return chain;
}

const chain = makeChain(200); //> makeChain

function longest(node, wanted) {
	let most = 0;
	for (; node; node = node.next)
		most = (most ^ node.value) > wanted ? most + 1 : most + node.value;
	return most;
}

function searches(n) {
	return longest(chain, n) + 1; //> longest
}

function makeCounter(step) {
	let sum = 0;
	return function counted(n) {
		for (let i = 0; i < 200; i++)
			sum = (sum + step * n + i) & 0xffffff;
		return sum;
	};
}

const byThree = makeCounter(3); //> makeCounter

function objects(n) {
	return areas(shapes) + searches(n) + byThree(n); //> areas searches counted
}

function blend(x) {
	let s = x;
	for (let i = 0; i < 40; i++)
		s = (s * 5 + i) % 8191;
	return s;
}

function fold(a, b) {
	for (let i = 0; i < 20; i++)
		a = (a ^ b * i) & 0xffff;
	return a;
}

function sums(list) {
	return list.map(blend).reduce(fold, 0); //> map blend reduce fold
}

function compare(a, b) {
	return a.key - b.key;
}

function sorted(n) {
	const list = [];
	for (let i = 0; i < 18; i++)
		list.push({ key: (n * (i + 3)) % 23 }); //> push
	return list.sort(compare)[0].key; //> sort compare
}

const list = Array.from({ length: 16 }, (_, i) => i); //> from (anonymous)

function lists(n) {
	list[n % 16] = n % 11;
	return sums(list) + sorted(n); //> sums sorted
}

function letters(text) {
	let s = 0;
	for (let i = 0; i < text.length; i++)
		s = (s + text.charCodeAt(i) * i) & 0xffff; //> charCodeAt
	return s;
}

const words = 'the quick brown fox jumps over the lazy dog '.repeat(3); //> repeat

function encoded(n) {
	return JSON.stringify({ n, names: ['a', 'b', n, n + 1], flag: n > 3, text: 'value', more: { list: [n, 2, 3], last: null } }); //> stringify
}

function decoded(text) {
	return JSON.parse(text).names.length; //> parse
}

function marked(text) {
	return text.replace(/[0-9]+/g, '#').length; //> replace (regexp)
}

const known = new Map();

function remembered(n) {
	const key = 'word' + (n % 64);
	known.set(key, (known.get(key) || 0) + 1); //> set get
	return known.size; //> size
}

function texts(n) {
	let s = letters(words); //> letters
	const text = encoded(n % 1000); //> encoded
	s += decoded(text) + marked(text); //> decoded marked
	for (let i = 0; i < 2; i++)
		s += remembered(n + i); //> remembered
	return s;
}

function fib(n) {
	return n < 2 ? n : fib(n - 1) + fib(n - 2); //> fib
}

function round(n) {
	let s = 0;
	for (let i = 0; i < 6; i++)
		s += numbers(n + i) + objects(n + i); //> numbers objects
	s += lists(n) + texts(n); //> lists texts
	return s + fib(8); //> fib
}

function work(seconds) {
	let s = 0;
	for (let n = 0, used = 0; used < 1e6 * seconds; n++) {
		s += round(n & 0xffff); //> round
		if (n % 256 === 0) {
			const { user, system } = process.cpuUsage(); //> cpuUsage get
			used = user + system;
		}
	}
	return s;
}

console.log(work(Number(process.argv[2])) > 0); //> work Number log
