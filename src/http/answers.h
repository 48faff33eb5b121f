/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What handlers of the operations listener have in common. */
#include "http/server.h"

enum answer { ANSWER_JSON, ANSWER_TABLE, ANSWER_WIDE };

/* ?output= decides, else Accept, else it is JSON; false has answered. */
bool answer_choose(const struct http_request *request, struct http_response *response,
                   bool can_be_wide, enum answer *ret_answer);

/* Whether a header that lists media types names this one. */
bool answer_accepts(const struct http_request *request, const char *type);
