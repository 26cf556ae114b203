// SPDX-License-Identifier: Apache-2.0
// Reads pprof (profile.proto of github.com/google/pprof): sample types, and stacks with names.
import { KINDS, distributionOfMapping } from './colour.js';

const RANGE = 'the pprof file ends early';
const KIND_NAMES = Object.keys(KINDS); // in the order of src/model/model.h, as files count them

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}

	get more() {
		return this.at < this.bytes.length;
	}

	/** A number of 64 bits; the tenth byte has the sign. Below zero its bits are counted turned round: 2^64 - 1 has no place in a number. */
	number() {
		let value = 0;
		let turned = 0;
		let unit = 1;
		for (let i = 0; i < 10; i++) {
			const b = this.bytes[this.at++];
			if (b === undefined) throw new RangeError(RANGE);
			if (i === 9 && b === 1) return -turned - 1;
			value += (b & 127) * unit;
			turned += (~b & 127) * unit;
			if (b < 128) return value;
			unit *= 128;
		}
		throw new RangeError('a number of the pprof file is too long');
	}

	/** The next field: { field, value } with a number, or bytes. */
	field() {
		const key = this.number();
		const field = Math.floor(key / 8);
		const kind = key % 8;
		if (kind === 0) return { field, value: this.number() };
		const size = kind === 2 ? this.number() : kind === 1 ? 8 : kind === 5 ? 4 : -1;
		if (size < 0 || this.at + size > this.bytes.length) throw new RangeError(RANGE);
		const value = this.bytes.subarray(this.at, this.at + size);
		this.at += size;
		return { field, value };
	}
}

function fieldsOf(bytes) {
	const reader = new Reader(bytes);
	const out = {};
	while (reader.more) {
		const { field, value } = reader.field();
		(out[field] ??= []).push(value);
	}
	return out;
}

/** Repeated numbers, packed or not. */
function numbersOf(values) {
	const out = [];
	for (const value of values ?? []) {
		if (typeof value === 'number') {
			out.push(value);
			continue;
		}
		const reader = new Reader(value);
		while (reader.more) out.push(reader.number());
	}
	return out;
}

function kindOfFile(file) {
	if (/^\[kernel|(?:^|\/)vmlinux[^/]*$|\.ko(?:\.(?:xz|gz|zst))?$/.test(file)) return 'kernel';
	const name = /^\[([\w-]+)[:\]]/.exec(file)?.[1]; // "[java-c1]", "[NAME:what was installed]"
	return name !== undefined && Object.hasOwn(KINDS, name) ? name : 'native';
}

/** What was installed together; of a runtime's code that stands in its stead. */
function moduleOf(kind, file) {
	if (kind === 'native' || kind === 'kernel') return file.slice(file.lastIndexOf('/') + 1);
	return distributionOfMapping(file);
}

/** The type that the file wants to be shown; else the type "cpu"; else the last, as `go tool pprof` has it. */
function firstType(types, wanted) {
	const at = [wanted, 'cpu'].map((name) => types.findIndex((type) => name && type.name === name)).find((i) => i >= 0);
	return at ?? Math.max(0, types.length - 1);
}

/**
 * readPprof - the samples of an unpacked pprof file
 *
 * Returns { types: [{name, unit}...], first: the type that is shown first, samples: [{frames: numbers root first, values}...], frameOf(number) => {name, kind, module} }.
 */
export function readPprof(bytes) {
	const top = fieldsOf(bytes);
	const utf8 = new TextDecoder();
	const strings = (top[6] ?? []).map((text) => utf8.decode(text));
	if (strings.length === 0) throw new Error('it is no pprof file');
	const text = (at) => strings[at ?? 0] ?? '';
	const types = (top[1] ?? []).map((bytesOf) => {
		const f = fieldsOf(bytesOf);
		return { name: text(f[1]?.[0]), unit: text(f[2]?.[0]) };
	});
	const functions = new Map();
	for (const one of top[5] ?? []) {
		const f = fieldsOf(one);
		functions.set(f[1]?.[0], { name: text(f[2]?.[0]) || text(f[3]?.[0]), kind: KIND_NAMES[f[100]?.[0] - 1] });
	}
	const files = new Map();
	for (const one of top[3] ?? []) {
		const f = fieldsOf(one);
		files.set(f[1]?.[0], text(f[5]?.[0]));
	}
	const frames = [];
	const locations = new Map(); // id -> frames, outermost first
	for (const one of top[4] ?? []) {
		const f = fieldsOf(one);
		const file = files.get(f[2]?.[0]) ?? '';
		const names = (f[4] ?? []).map((line) => functions.get(fieldsOf(line)[1]?.[0]) ?? { name: '' });
		if (!names.length) names.push({ name: '0x' + (f[3]?.[0] ?? 0).toString(16) });
		const numbers = names.reverse().map(({ name, kind = kindOfFile(file) }) => frames.push({ name, kind, module: moduleOf(kind, file) }) - 1);
		locations.set(f[1]?.[0], numbers);
	}
	const samples = (top[2] ?? []).map((one) => {
		const f = fieldsOf(one);
		return { frames: numbersOf(f[1]).reverse().flatMap((id) => locations.get(id) ?? []), values: numbersOf(f[2]) };
	});
	return { types, first: firstType(types, text(top[14]?.[0])), samples, frameOf: (number) => frames[number] };
}
