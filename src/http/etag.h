/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers that a client need not take twice. */
#include "http/server.h"

/* Marks an answer by its content. If the client has it already (If-None-Match), it is 304 without a
 * body. For an answer that is complete. */
void etag_settle(const struct http_request *request, struct http_response *response);
