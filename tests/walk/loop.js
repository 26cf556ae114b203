// SPDX-License-Identifier: Apache-2.0
// Work in code of V8 itself, in code it compiles, and in libraries, until it is ended from outside.
"use strict";
const zlib = require("zlib");
const text = Buffer.from("hello world ".repeat(400));
const seen = {};

function fibonacci(n) {
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

for (;;) {
	fibonacci(18);
	JSON.parse(JSON.stringify({ a: [1, 2, { b: "x".repeat(100) }] }));
	zlib.deflateSync(text);
	[5, 3, 1, 9].sort((a, b) => a - b);
	/a+b?c*/.test("aaabbbc" + Math.random());
	seen["k" + Math.floor(Math.random() * 1000)] = 1;
}
