// SPDX-License-Identifier: Apache-2.0
// One worker for all tabs that watch: they share the streams of live_feed.js.
import { LiveFeeds } from './live_feed.js';

// By a clock that nobody sets: tabs say every few seconds that they are there; no event tells when one is closed.
const GONE_MS = 30000;
const feeds = new LiveFeeds();
const ports = new Map();

function leave(port) {
	const known = ports.get(port);
	ports.delete(port);
	if (known) feeds.leave(known.tell);
}

function watch(port, query) {
	const tell = (message) => port.postMessage(message);
	leave(port);
	ports.set(port, { tell, heard: performance.now() });
	feeds.watch(query, tell);
}

// A tab says { watch: query }, { leave: true }, or { here: query }, which is '' when it watches nothing.
globalThis.onconnect = ({ ports: [port] }) => {
	port.onmessage = ({ data }) => {
		if (data.watch !== undefined) watch(port, data.watch);
		else if (data.leave) leave(port);
		else if (ports.has(port)) ports.get(port).heard = performance.now();
		else if (data.here) watch(port, data.here); // its timers stood still for so long that it was forgotten
	};
};

setInterval(() => {
	for (const [port, { heard }] of ports) if (performance.now() - heard > GONE_MS) leave(port);
}, GONE_MS / 3);
