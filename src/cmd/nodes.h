/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The nodes of a running extender, or of a cluster that is looked at alone. One thread. */
#include "cmd/client.h"

struct nodes_question {
    const char *node;      /* NULL: all */
    struct client *client; /* NULL: the cluster that the command line names */
    bool table;            /* for terminals, instead of JSON */
};

/* Appends what GET /api/v1/nodes[/node] answers. Errors are those of client_get and local_open, and
 * GPULEDGER_ERROR_NOT_FOUND. */
bool nodes_get(const struct config *config, const struct nodes_question *question,
               GString *ret_body, GError **error);
