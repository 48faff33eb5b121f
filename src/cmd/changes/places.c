/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changes/places.h"

#include "maintain/autoscalers.h"
#include "maintain/card_service.h"
#include "options/command.h"

#include "core/fail.h"
#include "dialect/dialects_section.h"
#include "options/cluster_section.h"
#include "options/maintenance_section.h"

#include <signal.h>
#include <stdio.h>

struct api_client *places_client(const struct config *config, GError **error)
{
    const struct cluster_settings *cluster = config_section(config, cluster);
    struct kube_config *kube =
        kube_config_load_default(cluster->kubeconfig, cluster->context, error);

    signal(SIGPIPE, SIG_IGN);
    if (!kube && *cluster->kubeconfig)
        g_prefix_error(error, "option '--kubeconfig': ");
    return kube ? api_client_new(kube, error) : NULL;
}

GPtrArray *places_changes_new(void)
{
    return g_ptr_array_new_with_free_func(service_change_free);
}

static bool set_one(const struct config *config, const struct places_order *order, const char *word,
                    GPtrArray *changes, GError **error)
{
    g_auto(card_place) place = {0};
    const struct service_query query = {order->client, &place,
                                        &config_section(config, dialects)->options, order->open,
                                        config_section(config, maintenance)->dry_run};
    GPtrArray *own = card_place_parse(word, &place, error) ? card_service_set(&query, error) : NULL;

    if (own)
        g_ptr_array_extend_and_steal(changes, own);
    return own != NULL;
}

bool places_set(const struct config *config, const struct places_order *order, GPtrArray *changes,
                GError **error)
{
    for (const char *const *word = order->words; *word; word++) {
        g_auto(card_place) place = {0};
        if (!card_place_parse(*word, &place, error))
            return false;
    }
    for (const char *const *word = order->words; *word; word++) {
        if (!set_one(config, order, *word, changes, error))
            return false;
    }
    return true;
}

static void print_progress(void *data, const char *text)
{
    say("%s", text);
}

bool places_await_nodes(const struct config *config, const char *ns, const char *name,
                        GError **error)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);

    if (maintenance->wait_for_nodes_ms == 0)
        return true;
    g_autoptr(api_client) client = places_client(config, error);
    return client && (autoscalers_await(
                          &(struct autoscalers_wait){
                              .query = {client, ns, name},
                              .most_ms = maintenance->wait_for_nodes_ms,
                              .progress = print_progress,
                          },
                          error) ||
                      fail_within(error, "whether nodes are on their way: "));
}
