// SPDX-License-Identifier: Apache-2.0
// Node as it is used: objects, text, sorting, regular expressions, the garbage collector. Runs for about 10 s.
const order = (number) => ({ number, lines: Array.from({ length: 40 }, (_, i) => [`item ${i % 17}`, (i * 3) % 11]) });
const sum = (o) => o.lines.reduce((all, [, count]) => all + count, 0);

function turn(seed) {
	const orders = Array.from({ length: 100 }, (_, i) => order(seed * 7 + i));
	const text = JSON.stringify(orders.map((o) => ({ ...o, sum: sum(o) })));
	const words = new Map();
	for (const [word] of text.matchAll(/[a-z]+ \d+/g)) words.set(word, (words.get(word) ?? 0) + 1);
	return [...words].sort((a, b) => b[1] - a[1]).length + JSON.parse(text).length;
}

const end = performance.now() + 10000;
for (let seed = 0, all = 0; performance.now() < end; seed++) all += turn(seed);
