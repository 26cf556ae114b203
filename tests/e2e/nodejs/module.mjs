// SPDX-License-Identifier: Apache-2.0
// A module of ECMAScript: its functions, and what runs when it is loaded. Arguments: seconds of CPU.
export function inner(n) {
	let s = 0;
	for (let i = 0; i < 20000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}

export class Outer {
	call(n) {
		return inner(n) + 1;
	}
}

for (const outer = new Outer(); process.cpuUsage().user < 1e6 * Number(process.argv[2]);)
	outer.call(1);
