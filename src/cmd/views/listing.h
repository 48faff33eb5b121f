/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Commands that list objects: they ask for the nodes, or for what they say, once or with --watch again and again, and print
 * what they make of the answer as rows, as a document or as names. One thread.
 */
#include "client/client.h"
#include "store/store.h"
#include "options/command.h"
#include "options/print.h"
#include "options/table.h"

struct listing {
    /* The rows of a body of /api/v1/nodes; the caller frees them. NULL: it is not understood. */
    struct table *(*make_rows)(const struct config *config, const GString *body, GError **error);
    /* The same as a document; NULL: the body itself. */
    bool (*make_document)(const struct config *config, const GString *body, GString *text,
                          GError **error);
    const char *names; /* of the document: as jsonpath_write has it */
    /* What stands above the rows; NULL: nothing. With it, --watch draws all anew instead of adding rows. */
    bool (*write_summary)(const struct config *config, const GString *body, GString *text,
                          GError **error);
    /* NULL: /api/v1/nodes. Else the path to be asked for, and what a cluster alone says instead. */
    const char *path;
    void (*view)(struct store *store, const struct config *config, GString *reply);
};

/* `node` NULL: all. The exit status; what went wrong has been complained about. */
enum exit_code listing_run(const struct config *config, const char *node,
                           const struct listing *listing);

struct node_query {
    const char *node;              /* NULL: all */
    struct client *client;         /* NULL: the cluster that the command line names */
    bool table;                    /* for terminals, instead of JSON */
    const struct listing *listing; /* NULL: nodes */
};

/* Appends what GET /api/v1/nodes[/node] answers. Errors are those of client_get and local_open, and
 * GPULEDGER_ERROR_NOT_FOUND. */
bool node_query_ask(const struct config *config, const struct node_query *query, GString *ret_body,
                    GError **error);
