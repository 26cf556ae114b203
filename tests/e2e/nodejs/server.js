// SPDX-License-Identifier: Apache-2.0
// A service made with fastify: says its port, then answers /items/N with a list and /render/N with a page.
// Arguments: the folder that fastify is in.
'use strict';

const path = require('path');
const fastify = require(path.join(process.argv[2], 'node_modules', 'fastify'));

const item = { type: 'object', properties: { id: { type: 'integer' }, name: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } } };
const app = fastify();

function itemsOf(n) {
	return Array.from({ length: 30 }, (_, i) => ({ id: n * 100 + i, name: `item ${i}`, tags: ['a', 'b', String(n)] }));
}

app.get('/items/:n', { schema: { response: { 200: { type: 'array', items: item } } } }, async function items(request) {
	return itemsOf(Number(request.params.n));
});
app.get('/render/:n', async function render(request, reply) {
	const rows = itemsOf(Number(request.params.n)).map(i => `<li>${i.name.replace(/item/g, 'thing')}: ${JSON.stringify(i)}</li>`);
	reply.type('text/html');
	return `<ul>${rows.join('')}</ul>`;
});
app.listen({ port: 0, host: '127.0.0.1' }).then(() => console.log(app.server.address().port));
