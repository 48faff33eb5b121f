/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asking a running extender. One thread. */
#include <glib.h>
#include <stdbool.h>

#define CLIENT_ANSWER_MAX ((size_t)256 << 20)

/* The body of GET `path` below `server`, of the media type `accept`. `token_file` holds what to
 * show as a bearer token; "": nothing. Errors are GPULEDGER_ERROR_UNAVAILABLE if nobody answers,
 * _NOT_FOUND for 404, _INVALID for any other answer than 200 and 202, _LIMIT beyond
 * CLIENT_ANSWER_MAX and those of small_file_read; the text names URL or file. */
struct client_request {
    const char *server;
    const char *path;
    const char *accept;
    const char *token_file;
    const char *ca_file; /* whose signatures count; "": those that the system trusts */
    bool post; /* POST instead: `body`, or nothing */
    const char *body;
    size_t length;
};
bool client_get(const struct client_request *request, GString *ret_body, GError **error);
