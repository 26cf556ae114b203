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

globalThis.onconnect = ({ ports: [port] }) => {
	port.onmessage = ({ data }) => {
		if (data.watch === undefined) {
			if (data.leave) leave(port);
			else if (ports.has(port)) ports.get(port).heard = performance.now();
			return;
		}
		const tell = (message) => port.postMessage(message);
		leave(port);
		ports.set(port, { tell, heard: performance.now() });
		feeds.watch(data.watch, tell);
	};
};

setInterval(() => {
	for (const [port, { heard }] of ports) if (performance.now() - heard > GONE_MS) leave(port);
}, GONE_MS / 3);
