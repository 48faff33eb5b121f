/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers for clients that take gzip (RFC 9110, 12.5.3). The thread that handles the request. */
#include "http/server.h"

#include <stdbool.h>

/* What is added to the tag within an ETag: compressed, it is another representation. */
#define GZIP_TAG_SUFFIX "-gzip"

/* Whether a value of Accept-Encoding, NULL for none, allows gzip. */
bool gzip_is_taken(const char *accepted);

/* Compresses a complete answer if the client takes gzip and it is worth it. Says by Vary that the answer
 * depends on Accept-Encoding. */
void gzip_settle(const struct http_request *request, struct http_response *response);
