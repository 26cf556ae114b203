// SPDX-License-Identifier: Apache-2.0
// Functions in the shapes that JavaScript has for them, for source maps: in front of each stands another name that is not its own.
// Arguments: seconds.
'use strict';

function neighbour(n) {
	return n;
}

const api = {};
api.run = function (n) {
	let s = neighbour(0);
	for (let i = 0; i < 3000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
};

class Shop {
	constructor(stock, price) {
		this.stock = stock + price;
	}
	stop(n) {
		return api.run(n) + this.stock;
	}
	static open(n) {
		return new Shop(n, n).stop(n);
	}
}

const arrow = (n) => Shop.open(n);
const list = {
	each: function (n) {
		return arrow(n);
	},
};

function called(given, back) {
	return back(given);
}

function turn(n) {
	return called(n, function (m) {
		return list.each(m);
	}) + [n, n].map((m) => arrow(m)).length;
}

const end = Date.now() + 1000 * Number(process.argv[2]);
for (let n = 0; Date.now() < end; n++)
	turn(n % 1000);
