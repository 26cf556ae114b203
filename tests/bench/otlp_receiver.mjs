// SPDX-License-Identifier: Apache-2.0
// otlp_receiver.mjs FILE: takes OTLP exports over gRPC without TLS on 127.0.0.1 and appends each message to FILE, behind
// eight bytes of time of arrival (ms) and four of size, big-endian. Prints its port. Ends with its standard input.
import { appendFileSync } from 'node:fs';
import http2 from 'node:http2';
import { gunzipSync } from 'node:zlib';

const file = process.argv[2];

function store(message) {
	const head = Buffer.alloc(12);
	head.writeBigUInt64BE(BigInt(Date.now()));
	head.writeUInt32BE(message.length, 8);
	appendFileSync(file, Buffer.concat([head, message]));
}

// A gRPC message: compressed or not (1), size (4), bytes. https://github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md
function take(body) {
	for (let at = 0; at + 5 <= body.length;) {
		const size = body.readUInt32BE(at + 1);
		const bytes = body.subarray(at + 5, at + 5 + size);
		store(body[at] ? gunzipSync(bytes) : bytes);
		at += 5 + size;
	}
}

const server = http2.createServer();
server.on('stream', (stream) => {
	const parts = [];
	stream.on('data', (part) => parts.push(part));
	stream.on('error', () => {});
	stream.on('end', () => {
		take(Buffer.concat(parts));
		stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
		stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
		stream.end(Buffer.alloc(5));
	});
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
