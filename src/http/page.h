/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The page for browsers: files that are part of the program (src/page). They hold nothing of the
 * cluster, so nobody needs a token for them; what they show they ask the API for.
 */
#include "http/server.h"

/* Answers with the file of that name, packed if the client takes that; false: there is none. */
bool page_answer(const struct http_request *request, const char *name,
                 struct http_response *response);
