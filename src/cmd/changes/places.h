/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Cards and nodes that the command line names, in the cluster that it names. One thread. */
#include "kube/api_client.h"
#include "options/config.h"

/* NULL, with an error: there is no way to reach the API server. */
struct api_client *places_client(const struct config *config, GError **error);

struct places_order {
    struct api_client *client;
    const char *const *words; /* NODE or NODE/CARD; ends with NULL */
    bool open;                /* back into service */
};

/* Waits while nodes are on their way for that pod, or if `ns` is NULL for anybody, as --wait-for-nodes
 * says. False, with an error: nobody can know. */
bool places_await_nodes(const struct config *config, const char *ns, const char *name,
                        GError **error);

/* Array of struct service_change. */
GPtrArray *places_changes_new(void);

/* Takes each out of service, or back, as maintain/card_service.h has it, once all words are understood. False, with an
 * error: the changes are those of the places before the one that it is about. */
bool places_set(const struct config *config, const struct places_order *order, GPtrArray *changes,
                GError **error);
