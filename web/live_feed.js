// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/live for any number of listeners. A browser opens six connections to a collector and no more, for all its
// tabs: equal questions share one stream, and beyond a few streams one picture is asked for again and again instead.
import { API, ownWords, splitAnswer } from './api.js';
import { decodeBase64 } from './data.js';

const STREAMS_MAX = 3;
const RETRY_MS = 3000;
const POLL_MS = 3000;
const SILENT_MS = 40000; // the collector says something every 15 s
const EVENT_CHARS_MAX = 1 << 26;
const FINAL = new Set([400, 401, 403]);
const ROUND = new Set(['flame', 'empty', 'problem']); // the last event of a round is one of these

/** Server-sent events, from pieces of text that end anywhere. */
export class EventReader {
	constructor() {
		this.text = '';
	}

	/** [{event, data}...] that this piece completes. */
	push(piece) {
		const looked = Math.max(0, this.text.length - 1);
		this.text += piece;
		if (this.text.length > EVENT_CHARS_MAX) throw new Error('an event is too large');
		const events = [];
		if (this.text.indexOf('\n\n', looked) < 0) return events;
		for (let end = this.text.indexOf('\n\n'); end >= 0; end = this.text.indexOf('\n\n')) {
			const fields = {};
			for (const line of this.text.slice(0, end).split('\n')) {
				const at = line.indexOf(': ');
				if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
			}
			this.text = this.text.slice(end + 2);
			if (fields.event) events.push({ event: fields.event, data: fields.data ?? '' });
		}
		return events;
	}
}

function messageOf({ event, data }) {
	const json = JSON.parse(data);
	return event === 'flame' ? { event, ...splitAnswer(decodeBase64(json.bin).buffer) } : { event, json };
}

const rest = (ms, signal) => new Promise((done) => {
	const timer = setTimeout(done, ms);
	signal.addEventListener('abort', () => {
		clearTimeout(timer);
		done();
	}, { once: true });
});

const refusalOf = async (answer) => ({ status: answer.status, words: await ownWords(answer) });

export class LiveFeeds {
	constructor() {
		this.feeds = new Map();
	}

	/** query: of /api/v1/live; tell(message): { query, event, json } or { query, event: 'flame', meta, packed }, 'away',
	 * 'ended' with why, 'refused' with status and words. */
	watch(query, tell) {
		this.leave(tell);
		let feed = this.feeds.get(query);
		if (!feed) {
			feed = { query, polls: true, listeners: new Set(), last: new Map(), cancel: new AbortController() };
			this.feeds.set(query, feed);
			this.run(feed);
		}
		feed.listeners.add(tell);
		for (const message of feed.last.values()) tell(message);
	}

	leave(tell) {
		for (const feed of this.feeds.values()) {
			if (!feed.listeners.delete(tell) || feed.listeners.size) continue;
			this.feeds.delete(feed.query);
			feed.cancel.abort();
		}
	}

	tell(feed, answer) {
		const message = { query: feed.query, ...answer };
		if (message.event === 'flame' || message.event === 'empty') for (const event of ROUND) feed.last.delete(event);
		if (ROUND.has(message.event) || message.event === 'totals' || message.event === 'refused') feed.last.set(message.event, message);
		for (const listener of feed.listeners) listener(message);
	}

	/** A feed that is asked again and again becomes a stream as soon as there is a place for it. */
	mayStream(feed) {
		return !feed.polls || [...this.feeds.values()].filter((f) => !f.polls).length < STREAMS_MAX;
	}

	async run(feed) {
		const { signal } = feed.cancel;
		while (!signal.aborted) {
			feed.polls = !this.mayStream(feed);
			try {
				const refused = await this.ask(feed, signal);
				if (refused) this.tell(feed, { event: 'refused', ...refused });
				if (FINAL.has(refused?.status)) break;
			} catch {
				if (!signal.aborted) this.tell(feed, { event: 'away' });
			}
			await rest(feed.polls ? POLL_MS : RETRY_MS, signal);
		}
		if (this.feeds.get(feed.query) === feed) this.feeds.delete(feed.query); // who asks now may get another answer
	}

	/** Reads until the stream ends, or the one picture is there. Returns null, or how it was refused. */
	async ask(feed, signal) {
		const own = new AbortController();
		const stop = () => own.abort();
		signal.addEventListener('abort', stop, { once: true });
		let timer = 0;
		const heard = () => {
			clearTimeout(timer);
			timer = setTimeout(stop, SILENT_MS);
		};
		try {
			heard();
			const answer = await fetch(`${API}live?${feed.query}${feed.polls ? '&once=1' : ''}`, { signal: own.signal, credentials: 'same-origin', cache: 'no-store' });
			if (!answer.ok) return await refusalOf(answer);
			feed.last.delete('refused');
			const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
			const events = new EventReader();
			let end = { event: 'away' };
			for (;;) {
				const { done, value } = await reader.read();
				if (done) break;
				heard();
				for (const message of events.push(value).map(messageOf)) {
					if (message.event === 'bye') end = { event: 'ended', why: String(message.json.why ?? '') };
					else this.tell(feed, message);
					if (feed.polls && ROUND.has(message.event)) end = null;
				}
			}
			if (end) this.tell(feed, end);
			return null;
		} finally {
			clearTimeout(timer);
			signal.removeEventListener('abort', stop);
		}
	}
}
