/* SPDX-License-Identifier: Apache-2.0 */
/* All that ends pods in one process, put together as cmd/serve does it, each with a client of its own, whose token
 * says which it is. */
#include "../faults/sim.h"
#include "../killed/replica.h"
#include "../killed/scenarios.h"
#include "../killed/api.h"
#include "ends.h"
#include "literals.h"
#include "objects.h"

#include <string.h>

#include "evict/stop_key.h"
#include "kube/api_cluster.h"
#include "maintain/half_groups.h"
#include "maintain/plans/plan_service.h"
#include "reclaim/reclaimer.h"
#include "switch/switcher.h"

#define GPUS "gpuledger.io/gpus"

static const struct dialect_options no_options;
static int mins[NAMESPACES];
static GHashTable *budgets; /* "NAMESPACE/APP" -> how many may be evicted */

static struct api_client *client_of(const struct replica *replica, const char *what)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    config->source = g_strdup("test");
    config->ns = g_strdup(API_NS);
    config->server = g_strdup("https://server");
    config->token = g_strdup_printf("%s-%c", what, replica->name);
    return api_client_new(config, NULL);
}

static struct cluster *cluster_of(struct replica *replica, struct api_client *client)
{
    struct cluster *cluster = api_cluster_new(client);

    api_cluster_set_events(cluster, replica->events);
    return cluster;
}

static struct permits *permits_of(void)
{
    struct permits_options options = {
        .limits = {.per_minute = settings.per_minute,
                   .for_reclaim = settings.for_reclaim,
                   .per_namespace = settings.per_namespace,
                   .of = {[ENDER_RECLAIM] = {settings.reclaim_minute, settings.reclaim_at_once},
                          [ENDER_GANG_STRICT] = {.per_minute = settings.strict_minute}}},
        .observes = {[ENDER_RECLAIM] = settings.modes[RECLAIM] == MODE_OBSERVE,
                     [ENDER_PLAN] = settings.modes[PLANS] == MODE_OBSERVE,
                     [ENDER_SWITCH] = settings.modes[SWITCH] == MODE_OBSERVE,
                     [ENDER_GANG_STRICT] = settings.modes[STRICT] == MODE_OBSERVE},
        .stopped = true,
        .stale_ms = STOP_KEY_STALE_MS,
        .min_runtime_ms = settings.min_runtime_ms,
    };

    return permits_new(&options);
}

static enum eviction evict(void *data, const struct evictee *evictee, bool try, GError **error)
{
    return eviction_send(data, evictee, try, error);
}

static void begin_reclaim(struct replica *replica, struct permits *permits)
{
    struct api_client *client = client_of(replica, capability_names[RECLAIM]);
    struct claim_config_map *map = g_new(struct claim_config_map, 1);

    *map = (struct claim_config_map){client, API_NS};
    reclaimer_start(
        reclaimer_new(&(struct reclaimer_args){.store = replica->store,
                                               .cluster = cluster_of(replica, client),
                                               .files = &claim_config_map_files,
                                               .files_data = map,
                                               .leadership = &replica->leadership,
                                               .denials = replica->extender.denials,
                                               .permits = permits,
                                               .evict = evict,
                                               .data = client,
                                               .options = {.delay_ms = settings.delay_ms,
                                                           .at_once = settings.reclaim_at_once,
                                                           .per_minute = settings.reclaim_minute}}),
        NULL);
}

static void begin_plans(struct replica *replica, struct permits *permits)
{
    struct api_client *client = client_of(replica, capability_names[PLANS]);

    plan_service_start(&(struct plan_service_options){.client = client,
                                                      .cluster = cluster_of(replica, client),
                                                      .store = replica->store,
                                                      .dialects = &no_options,
                                                      .leadership = &replica->leadership,
                                                      .permits = permits,
                                                      .ns = API_NS},
                       NULL);
}

static void begin_switch(struct replica *replica, struct permits *permits)
{
    struct api_client *client = client_of(replica, capability_names[SWITCH]);

    switcher_start(
        &(struct switcher_options){
            .with = {.client = client,
                     .cluster = cluster_of(replica, client),
                     .store = replica->store,
                     .permits = permits,
                     .moves_ns = API_NS,
                     .limits = {.notice_s = 3600,
                                .drain_s = 600,
                                .deadline_s = 300,
                                .max_per_hour = settings.switch_hour,
                                .max_per_namespace = settings.switch_namespace},
                     .dialects = &no_options},
            .leadership = &replica->leadership},
        NULL);
}

static void begin_strict(struct replica *replica, struct permits *permits)
{
    half_groups_start(
        &(struct half_groups_options){.client = client_of(replica, capability_names[STRICT]),
                                      .store = replica->store,
                                      .leadership = &replica->leadership,
                                      .permits = permits},
        NULL);
}

/* They are lost with the replica. */
void capabilities_begin(struct replica *replica)
{
    static void (*const begins[CAPABILITIES])(struct replica *, struct permits *) = {
        [RECLAIM] = begin_reclaim,
        [PLANS] = begin_plans,
        [SWITCH] = begin_switch,
        [STRICT] = begin_strict,
    };
    struct permits *permits = permits_of();

    stop_key_start(client_of(replica, "key"), API_NS, permits, NULL);
    for (int i = 0; i < CAPABILITIES; i++) {
        if (settings.modes[i] != MODE_OFF)
            begins[i](replica, permits);
    }
}

/* --- quotas and budgets ------------------------------------------------------------------------------ */

static void tell_min(struct store *store, int ns)
{
    g_autofree char *name = g_strdup_printf("t%d", ns), *cards = g_strdup_printf("%d", mins[ns]);

    store_put_quota(store,
                    &(struct resource_quota_view){
                        .ns = name, .name = "q", .elastic = true, .min = PAIRS({GPUS, cards})});
}

static void tell_budget(struct store *store, const char *key, int allowed)
{
    g_auto(GStrv) parts = g_strsplit(key, "/", 2);
    const struct string_pair label = {"app", parts[1]};

    store_put_budget(store, &(struct budget_view){.ns = parts[0],
                                                  .name = parts[1],
                                                  .allowed = allowed,
                                                  .selects = true,
                                                  .labels = {(void *)&label, 1}});
}

static void feed(struct store *store)
{
    GHashTableIter iter;
    gpointer key, allowed;

    for (int i = 0; i < NAMESPACES; i++)
        tell_min(store, i);
    g_hash_table_iter_init(&iter, budgets);
    while (g_hash_table_iter_next(&iter, &key, &allowed))
        tell_budget(store, key, GPOINTER_TO_INT(allowed));
}

static struct store *store_of(char name)
{
    struct replica *replica = replica_find(name);

    return replica ? replica->store : NULL;
}

void capabilities_put_min(int ns, int cards)
{
    mins[ns] = cards;
    for (char name = 'a'; name <= 'z'; name++) {
        struct store *store = store_of(name);
        if (store)
            tell_min(store, ns);
    }
}

int capabilities_min(int ns)
{
    return mins[ns];
}

void capabilities_put_budget(const char *ns, const char *app, int allowed)
{
    char *key = g_strdup_printf("%s/%s", ns, app);

    g_hash_table_insert(budgets, key, GINT_TO_POINTER(allowed));
    for (char name = 'a'; name <= 'z'; name++) {
        struct store *store = store_of(name);
        if (store)
            tell_budget(store, key, allowed);
    }
}

static void options(struct store_options *options)
{
    options->elastic_quotas = true;
    options->reclaim = settings.modes[RECLAIM] != MODE_OFF;
    options->reclaim_delay_ms = settings.delay_ms;
    options->gangs = true;
    options->gang_strict = settings.modes[STRICT] != MODE_OFF;
}

static const struct scenario all_scenario = {
    .name = "all", .options = options, .feed = feed, .begin = capabilities_begin};

void capabilities_reset(void)
{
    scenario = &all_scenario;
    memset(mins, 0, sizeof mins);
    g_clear_pointer(&budgets, g_hash_table_unref);
    budgets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}
