/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/evicting.h"

#include "evict/stop_key.h"
#include "kube/api_cluster.h"
#include "maintain/half_groups.h"
#include "store/limited_cluster.h"
#include "gang/gangs_section.h"
#include "quota/elastic/reclaim_section.h"
#include "evict/evictions_section.h"
#include "maintain/plans/plans_section.h"
#include "switch/switch_section.h"
#include "options/cluster_section.h"

struct evicting {
    struct api_client *client;
    struct cluster *cluster, *limited; /* the former, each call cut short */
    struct api_client *reading;        /* of the key */
    struct permits *permits;
    struct stop_key *key;
};

static struct permits *make_permits(const struct config *config)
{
    const struct evictions_settings *evictions = config_section(config, evictions);
    const struct reclaim_settings *reclaim = config_section(config, reclaim);
    struct permits_options options = {
        .limits = {.per_minute = (uint32_t)evictions->per_minute,
                   .for_reclaim = reclaim->on ? (uint32_t)evictions->for_reclaim : 0,
                   .per_namespace = (uint32_t)evictions->per_namespace},
        .stopped = true, /* until the key was read */
        .stale_ms = STOP_KEY_STALE_MS,
        .min_runtime_ms = evictions->min_runtime_ms,
    };

    options.limits.of[ENDER_RECLAIM].per_minute = (uint32_t)reclaim->per_minute;
    options.limits.of[ENDER_RECLAIM].at_once = (uint32_t)reclaim->at_once;
    options.limits.of[ENDER_GANG_STRICT].per_minute = HALF_GROUPS_MINUTE_MAX;
    item_list_read(&item_list_capabilities, evictions->observe, options.observes,
                   NULL); /* was checked */
    return permits_new(&options);
}

static bool open_calls(struct evicting *evicting, const struct config *config,
                       struct backend *backend, GError **error)
{
    evicting->client = backend_new_client(backend, error);
    evicting->reading = evicting->client ? backend_new_client(backend, error) : NULL;
    if (!evicting->reading)
        return false;
    evicting->cluster = api_cluster_new(evicting->client);
    api_cluster_set_events(evicting->cluster, backend_events(backend));
    evicting->limited =
        limited_cluster_new(evicting->cluster, config_section(config, cluster)->api_timeout_ms);
    return true;
}

struct evicting *evicting_start(const struct config *config, struct backend *backend,
                                GError **error)
{
    const struct gangs_settings *gangs = config_section(config, gangs);
    const bool none = !config_section(config, reclaim)->on && !config_section(config, plans)->on &&
                      !*config_section(config, switch)->calendar && !(gangs->on && gangs->strict);
    struct evicting *evicting = g_new0(struct evicting, 1);

    if (none || *config_section(config, cluster)->snapshot)
        return evicting;
    evicting->permits = make_permits(config);
    if (open_calls(evicting, config, backend, error))
        evicting->key = stop_key_start(evicting->reading, api_client_config(evicting->reading)->ns,
                                       evicting->permits, error);
    if (!evicting->key)
        g_clear_pointer(&evicting, evicting_free);
    return evicting;
}

void evicting_abort(struct evicting *evicting)
{
    if (!evicting || !evicting->client)
        return;
    permits_stop(evicting->permits, "this process ends");
    api_client_abort(evicting->client);
    api_client_abort(evicting->reading);
    api_cluster_stop(evicting->cluster);
}

void evicting_free(struct evicting *evicting)
{
    if (!evicting)
        return;
    stop_key_free(evicting->key);
    permits_free(evicting->permits);
    g_free(evicting->limited);
    api_cluster_free(evicting->cluster);
    api_client_free(evicting->client);
    api_client_free(evicting->reading);
    g_free(evicting);
}

struct permits *evicting_permits(const struct evicting *evicting)
{
    return evicting->permits;
}

struct api_client *evicting_client(const struct evicting *evicting)
{
    return evicting->client;
}

struct cluster *evicting_cluster(const struct evicting *evicting)
{
    return evicting->limited;
}
