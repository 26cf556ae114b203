// SPDX-License-Identifier: Apache-2.0
// For each line that comes the same work; says the CPU seconds it took, and how many paces that was, as repeat() of
// tests/e2e/python/recorder.py does. work.mjs ROUNDS
import { createInterface } from "node:readline";

const PIECE_SECONDS = 0.001;
const count = Number(process.argv[2]);
let kept = 0;

function cpuSeconds() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
}

function depth(n, seen) {
    return n ? depth(n - 1, seen) + 1 : seen.size;
}

// Some 10 us: text, a map, calls 20 deep.
function round(n) {
    let text = "";
    for (let i = 0; i < 40; i++)
        text += i * n + ",";
    const seen = new Map();
    for (let i = 0; i < 60; i++)
        seen.set((i * n) % 17, (seen.get((i * n) % 17) ?? 0) + 1);
    kept += text.length + depth(20, seen);
}

function rounds(count) {
    for (let i = 0; i < count; i++)
        round(i);
}

// CPU seconds of the fastest of a few short pieces: how fast the machine is at this moment. A sample reaches one of them at most.
function pace() {
    let best = 1;
    for (let i = 0; i < 5; i++) {
        const begin = cpuSeconds();
        rounds(16);
        best = Math.min(best, cpuSeconds() - begin);
    }
    return best;
}

for (const begin = cpuSeconds(); cpuSeconds() - begin < 3;) // until the compilers are done
    rounds(1000);
const atOnce = Math.max(10, Math.floor((16 * PIECE_SECONDS) / pace()));
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
    if (!line)
        break;
    let seconds = 0, paces = 0, before = pace();
    for (let first = 0; first < count; first += atOnce) {
        const begin = cpuSeconds();
        rounds(Math.min(atOnce, count - first));
        const taken = cpuSeconds() - begin, after = pace();
        seconds += taken;
        paces += (2 * taken) / (before + after);
        before = after;
    }
    console.log(seconds.toFixed(6), paces.toFixed(3));
}
console.error(kept > 0);
