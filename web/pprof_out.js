// SPDX-License-Identifier: Apache-2.0
// Writes pprof (profile.proto of github.com/google/pprof) of a tree: docs/formats/pprof.md says what becomes of a frame.
import { KINDS, mappingOfKind } from './colour.js';

const PPROF_PIECE = 1 << 16;
const KIND_NUMBERS = new Map(Object.keys(KINDS).map((name, i) => [name, i + 1]));
const textBytes = new TextEncoder();

/** Fields of a message, in a buffer that grows. */
class Message {
	constructor() {
		this.bytes = new Uint8Array(256);
		this.size = 0;
	}

	room(size) {
		if (this.size + size <= this.bytes.length) return;
		const { bytes } = this;
		this.bytes = new Uint8Array(Math.max(2 * bytes.length, this.size + size));
		this.bytes.set(bytes);
	}

	/** value: a whole number that is not negative */
	varint(value) {
		this.room(10);
		let left = value;
		for (; left >= 128; left = Math.floor(left / 128)) this.bytes[this.size++] = (left % 128) | 128;
		this.bytes[this.size++] = left;
	}

	number(field, value) {
		if (!value) return;
		this.varint(8 * field);
		this.varint(value);
	}

	/** @param {Uint8Array} bytes */
	block(field, bytes) {
		this.varint(8 * field + 2);
		this.varint(bytes.length);
		this.room(bytes.length);
		this.bytes.set(bytes, this.size);
		this.size += bytes.length;
	}

	/** @param {(message: Message) => void} fill */
	message(field, fill) {
		const inner = new Message();
		fill(inner);
		this.block(field, inner.taken());
	}

	numbers(field, values) {
		this.message(field, (m) => values.forEach((value) => m.varint(value)));
	}

	/** What was written; valid until more is. */
	taken() {
		return this.bytes.subarray(0, this.size);
	}
}

export class PprofWriter {
	/**
	 * @param {import('./data.js').FrameTable} frames
	 * @param {ShownMeta} meta
	 */
	constructor(frames, meta) {
		this.frames = frames;
		this.meta = meta;
		this.strings = new Map([['', 0]]);
		this.ids = new Map(); // of the locations by frame, and of their functions
		this.files = new Map();
		this.out = new Message();
		this.parts = [];
		const unit = meta.unit === 'samples' ? 'count' : meta.unit;
		this.types = [{ name: meta.name ?? 'samples', unit, scale: meta.scale }];
		if (meta.nanoseconds > 0) this.types.push({ name: 'cpu', unit: 'nanoseconds', scale: meta.nanoseconds });
		for (const type of this.types) this.out.message(1, (m) => this.valueType(m, type));
	}

	text(text) {
		const known = this.strings.get(text);
		if (known === undefined) this.strings.set(text, this.strings.size);
		return known ?? this.strings.size - 1;
	}

	valueType(message, { name, unit }) {
		message.number(1, this.text(name));
		message.number(2, this.text(unit));
	}

	idOf(frame) {
		if (!this.ids.has(frame)) this.ids.set(frame, this.ids.size + 1);
		return this.ids.get(frame);
	}

	/** @param {number[]} path frames root first */
	sample(path, value) {
		this.out.message(2, (m) => {
			m.numbers(1, path.map((frame) => this.idOf(frame)).reverse());
			m.numbers(2, this.types.map(({ scale }) => Math.round(value * scale)));
		});
		if (this.out.size < PPROF_PIECE) return;
		this.parts.push(this.out.taken());
		this.out = new Message();
	}

	/** Of each frame that the samples have, once, behind them. */
	location(frame, id) {
		const { frames, out } = this;
		const kind = frames.kind(frame);
		const module = frame < frames.count ? frames.moduleName(frame) : '';
		const file = mappingOfKind(kind, module);
		if (file && !this.files.has(file)) {
			this.files.set(file, this.files.size + 1);
			out.message(3, (m) => {
				m.number(1, this.files.get(file));
				m.number(5, this.text(file));
				m.number(7, 1); // has functions
			});
		}
		out.message(4, (m) => {
			m.number(1, id);
			m.number(2, this.files.get(file));
			m.message(4, (line) => line.number(1, id));
		});
		out.message(5, (m) => {
			m.number(1, id);
			m.number(2, this.text(frames.name(frame) || '[unknown]'));
			m.number(100, KIND_NUMBERS.get(kind));
		});
	}

	/** The parts of the file, complete. */
	end() {
		const { out, types: [first, time] } = this;
		if (time) {
			out.message(11, (m) => this.valueType(m, time));
			out.number(12, Math.round(time.scale));
		}
		out.number(14, this.text(first.name));
		for (const text of this.strings.keys()) out.block(6, textBytes.encode(text));
		return [...this.parts, out.taken()];
	}
}
