// SPDX-License-Identifier: Apache-2.0
// JIT-compiled functions, named by the perf map of --perf-basic-prof.
const until = Date.now() + 1000 * Number(process.argv[2] || 2);

function hotLoopOfNode(n) {
	let x = 1;
	for (let i = 0; i < n; i++) x = (x * 31 + i) | 0;
	return x;
}

function callsHotLoop() {
	return hotLoopOfNode(3000000) + 1;
}

let sum = 0;
while (Date.now() < until) sum += callsHotLoop();
process.exitCode = Number.isNaN(sum) ? 1 : 0;
