// SPDX-License-Identifier: Apache-2.0
// known_outer > known_middle, eight times > known_leaf, where nearly all time goes. Writes a file when the first round is done.
"use strict";
const fs = require("fs");

function known_leaf() {
	let total = 0;
	for (let i = 0; i < 200000; i++)
		total += i & 7;
	return total;
}

function known_middle(depth) {
	return depth > 1 ? known_middle(depth - 1) : known_leaf();
}

function known_outer() {
	return known_middle(8);
}

known_outer();
fs.writeFileSync(process.argv[2], "");
while (known_outer());
