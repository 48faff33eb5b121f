/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the commands that take cards out of service share. One thread. */
#include "kube/api_client.h"
#include "options/config.h"

/* The API server that the options name. */
struct api_client *cordon_open_client(const struct config *config, GError **error);

struct cordon_order {
    struct api_client *client;
    bool open; /* back into service */
};

/* Carries out the order for each word of the command line. Array of struct service_change, the caller's;
 * NULL, with an error: those before it have been carried out. */
GPtrArray *cordon_places(const struct config *config, const struct cordon_order *order,
                         GError **error);
