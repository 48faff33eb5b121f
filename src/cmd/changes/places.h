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

/* Takes each out of service, or back, as maintain/card_service.h has it. Array of struct service_change;
 * NULL, with an error: those before it have been carried out. */
GPtrArray *places_set(const struct config *config, const struct places_order *order,
                      GError **error);
