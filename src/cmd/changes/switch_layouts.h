/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How "switch NODE mig.config=auto" finds out what a node's cards should be cut into, and shows it. One
 * thread. */
#include "kube/api_client.h"
#include "options/config.h"
#include "switch/calendar.h"
#include "switch/layout_advice.h"

struct layouts_query {
    const struct config *config;
    struct api_client *client;
    struct calendar
        *calendar; /* whose layouts are compared; those of --mig-configs are added to it */
    const char *node;
};

/* Reads the cluster as serve would. */
bool layouts_advise(const struct layouts_query *query, struct layout_advice *ret_advice,
                    GError **error);

/* Appends it as columns, or as a document. */
void layouts_write_table(const struct layout_advice *advice, const char *node, GString *text);
void layouts_write_document(const struct layout_advice *advice, const char *node, GString *text);
