/* SPDX-License-Identifier: Apache-2.0 */
/* The Connect protocol over HTTP/1.1, unary, with protobuf or JSON: what push.v1 and querier.v1 have in common.
 * Source: connectrpc.com/docs/protocol. */
#pragma once

#include "collector/collector_int.h"
#include "query/proto.h"

/** connect_form - whether the body is JSON. Return: whether it went well; otherwise the call is answered. */
bool connect_form(struct call *call, bool *is_json);

/**
 * connect_body - a small body without its Content-Encoding
 * @unwrapped: what *out may borrow from
 *
 * Also takes the client's deadline. Return: as above.
 */
bool connect_body(struct call *call, struct buf *unwrapped, struct str *out);

/** connect_answer - @message, taken, in the form that is asked for. JSON of a large one is made while it is taken. */
void connect_answer(struct call *call, bool is_json, const struct proto_message *m, struct buf *message);

/** connect_error - an error of ours becomes one of Connect's: {"code": ..., "message": ...}, always JSON. One that is
 * Connect's already stays. */
void connect_error(struct http_response *rs);
