/* SPDX-License-Identifier: Apache-2.0 */
#include "http/answers.h"

#include <microhttpd.h>
#include <string.h>

bool answer_accepts(const struct http_request *request, const char *type)
{
    const char *accept = http_request_header(request, MHD_HTTP_HEADER_ACCEPT);

    return accept && strstr(accept, type);
}

bool answer_choose(const struct http_request *request, struct http_response *response,
                   bool can_be_wide, enum answer *ret_answer)
{
    const char *wish = http_request_query(request, "output");

    if (!wish) {
        *ret_answer = answer_accepts(request, "text/plain") &&
                              !answer_accepts(request, "application/json")
                          ? ANSWER_TABLE
                          : ANSWER_JSON;
    } else if (strcmp(wish, "json") == 0) {
        *ret_answer = ANSWER_JSON;
    } else if (strcmp(wish, "table") == 0) {
        *ret_answer = ANSWER_TABLE;
    } else if (can_be_wide && strcmp(wish, "wide") == 0) {
        *ret_answer = ANSWER_WIDE;
    } else {
        http_response_fail(response, MHD_HTTP_BAD_REQUEST, "output '%s' is not known; use %s", wish,
                           can_be_wide ? "'json', 'table' or 'wide'" : "'json' or 'table'");
        return false;
    }
    if (*ret_answer != ANSWER_JSON)
        response->content_type = "text/plain; charset=utf-8";
    return true;
}
