/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asking a running extender. One thread. */
#include "options/config.h"

#define CLIENT_ANSWER_MAX ((size_t)256 << 20)

struct client;

/* Whom --server names, or --service. NULL, with an error, if the Service cannot be reached. */
struct client *client_open(const struct config *config, GError **error);
void client_close(struct client *client); /* NULL is ignored */
typedef struct client client;             /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(client, client_close)

/* How the user calls it, for messages. Lives as long as the configuration. */
const char *client_name(const struct client *client);

/* The body of GET `path`, of the media type `accept`. Errors are GPULEDGER_ERROR_UNAVAILABLE if nobody answers,
 * _NOT_FOUND for 404, _INVALID for any other answer than 200 and 202, _LIMIT beyond
 * CLIENT_ANSWER_MAX and those of small_file_read; the text names URL or file. */
struct client_request {
    const char *path;
    const char *accept;
    bool post;        /* POST instead: `body`, or nothing */
    const char *body; /* YAML, which JSON is, too */
    size_t length;
};
bool client_get(struct client *client, const struct client_request *request, GString *ret_body,
                GError **error);
