// SPDX-License-Identifier: Apache-2.0
// Works for some seconds under Pyroscope's own SDK, which sends what it saw: node pyroscope.cjs URL SECONDS
"use strict";
const Pyroscope = require("@pyroscope/nodejs");

function knownLeaf(n) {
	let sum = 0;
	for (let i = 0; i < n; i++) sum += (i * i) % 7;
	return sum;
}

function knownCaller() {
	return knownLeaf(2e6) + 1;
}

async function main() {
	Pyroscope.init({
		serverAddress: process.argv[2], appName: "node.shop", tags: { region: "eu" }, flushIntervalMs: 1500,
		wall: { samplingIntervalMicros: 10000, samplingDurationMs: 1500, collectCpuTime: false },
		heap: { samplingIntervalBytes: 65536, stackDepth: 64 },
	});
	Pyroscope.start();
	const end = Date.now() + 1000 * Number(process.argv[3]);
	let sum = 0, rounds = 0;
	while (Date.now() < end) {
		Pyroscope.wrapWithLabels({ order: rounds++ % 2 ? "large" : "small" }, () => (sum += knownCaller()));
		await new Promise((done) => setTimeout(done, 1));
	}
	await Pyroscope.stop();
	console.log(sum > 0);
}
main();
