/* SPDX-License-Identifier: Apache-2.0 */
/* What querier.v1 answers: tables of the messages. */
#pragma once

#include "query/querier_request.h"

/** querier_answer - the message that a method answers with. */
const struct proto_message *querier_answer(enum querier_method method);

/** querier_profile - google.v1.Profile, as Pyroscope has it: without columns of lines and addresses of documentation.
 */
extern const struct proto_message *const querier_profile;
