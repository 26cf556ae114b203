// SPDX-License-Identifier: Apache-2.0
// Asks querier.v1.QuerierService as a Connect client of npm does (@connectrpc/connect-node over HTTP/1.1).
//
//	node ask.mjs URL proto|json DESCRIPTORS < lines of "METHOD REQUEST-AS-JSON"	a line of JSON for each
//
// DESCRIPTORS is what the Go program beside this writes. The packages are found in the folder that NODE_MODULES names.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const modules = createRequire(`${process.env.NODE_MODULES}/x.cjs`)
const { createFileRegistry, fromBinary, fromJson, toJson } = modules('@bufbuild/protobuf')
const { FileDescriptorSetSchema } = modules('@bufbuild/protobuf/wkt')
const { Code, ConnectError, createClient } = modules('@connectrpc/connect')
const { createConnectTransport } = modules('@connectrpc/connect-node')

const [baseUrl, form, descriptors] = process.argv.slice(2)
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)))
const service = registry.getService('querier.v1.QuerierService')
const client = createClient(service, createConnectTransport({ baseUrl, httpVersion: '1.1', useBinaryFormat: form === 'proto' }))

/** Fields that the message's definition does not have, at any depth. */
function unknown (value) {
  if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return 0
  let count = value.$unknown?.length ?? 0
  for (const [key, inner] of Object.entries(value)) if (key !== '$unknown') count += unknown(inner)
  return count
}

for await (const line of createInterface({ input: process.stdin })) {
  const [name, text] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]
  const method = service.methods.find(m => m.name === name)
  try {
    const answer = await client[method.localName](fromJson(method.input, JSON.parse(text)))
    const count = unknown(answer)
    console.log(JSON.stringify(count ? { error: 'unknown fields', message: String(count) } : toJson(method.output, answer)))
  } catch (e) {
    const told = ConnectError.from(e)
    console.log(JSON.stringify({ error: Code[told.code].replace(/[A-Z]/g, (c, i) => (i ? '_' : '') + c.toLowerCase()), message: told.rawMessage }))
  }
}
