// SPDX-License-Identifier: Apache-2.0
// Each 5 ms of its life another function runs, slot_0 first: the first one that is seen says how soon that was. Arguments: when it was
// started, in ms since 1970.
'use strict';
const STEP_MS = 5, COUNT = 120;
const slots = Array.from({ length: COUNT }, (_, i) => new Function('end', `return function slot_${i}(end) {
	let s = 0;
	while (Date.now() < end)
		for (let k = 0; k < 1000; k++)
			s = (s * 31 + k) % 1000003;
	return s;
}`)());

const began = Number(process.argv[2]);
for (let now = Date.now(); now - began < STEP_MS * COUNT; now = Date.now()) {
	const i = Math.floor((now - began) / STEP_MS);
	slots[i](began + STEP_MS * (i + 1));
}
