/* SPDX-License-Identifier: Apache-2.0 */
/* Namespace a has borrowed all of the cards; b wants its min back, one card after the other. */
#include "../prop/chance.h"
#include "../unit/objects.h"
#include "life.h"
#include "literals.h"
#include "scenarios.h"

#include "reclaim/reclaimer.h"
#include "wire/claim_sheet.h"

#include <string.h>

#define GPUS "gpuledger.io/gpus"
#define CARDS 4
#define WANTED 3
#define PER_MINUTE 2
#define SHEET "/api/v1/namespaces/" API_NS "/configmaps/" CLAIM_SHEET_NAME
#define MINUTE_US (INT64_C(60) * 1000000)

static void build(void)
{
    life_put_node("n0", CARDS, 8);
    for (int i = 0; i < CARDS; i++) {
        g_autofree char *name = g_strdup_printf("a%d", i);
        life_put_pod("a", name, 8, "n0", i, "owner", "");
    }
    for (int i = 0; i < WANTED; i++) {
        g_autofree char *name = g_strdup_printf("b%d", i);
        life_put_pod("b", name, 8, NULL, 0, NULL, "");
    }
}

static void options(struct store_options *options)
{
    options->elastic_quotas = options->reclaim = true;
    options->reclaim_delay_ms = 3000;
}

static void feed(struct store *store)
{
    store_put_quota(store, &(struct resource_quota_view){
                               .ns = "a", .name = "q", .elastic = true, .min = PAIRS({GPUS, "1"})});
    store_put_quota(store, &(struct resource_quota_view){
                               .ns = "b", .name = "q", .elastic = true, .min = PAIRS({GPUS, "3"})});
}

static enum eviction evict(void *data, const struct evictee *evictee, bool try, GError **error)
{
    return eviction_send(data, evictee, try, error);
}

static void begin(struct replica *replica)
{
    /* It is lost with the replica. */
    struct claim_config_map *map = g_new(struct claim_config_map, 1);

    *map = (struct claim_config_map){replica->client, API_NS};
    reclaimer_start(reclaimer_new(&(struct reclaimer_args){
                        .store = replica->store,
                        .cluster = replica->cluster,
                        .files = &claim_config_map_files,
                        .files_data = map,
                        .leadership = &replica->leadership,
                        .evict = evict,
                        .data = replica->client,
                        .options = {.delay_ms = 3000, .at_once = 10, .per_minute = PER_MINUTE}}),
                    NULL);
}

static const char *look(void)
{
    HOLDS(api.evictions->len <= WANTED, "%u pods are evicted", api.evictions->len);
    for (guint i = 0; i + PER_MINUTE < api.evictions->len; i++)
        HOLDS(g_array_index(api.evictions, struct api_eviction, i + PER_MINUTE).at_us -
                      g_array_index(api.evictions, struct api_eviction, i).at_us >=
                  MINUTE_US,
              "more than %d in a minute", PER_MINUTE);
    return life_n_ready("b", NULL) == WANTED ? NULL : "somebody wants his min";
}

static void check(bool calm)
{
    const char *shown = api_annotation("/api/v1/nodes/n0", CLAIM_KEY);
    const char *claims = api_text(api_get(SHEET), "data", "claims");

    HOLDS(claims && g_str_has_prefix(claims, "{\"nodes\":{},"), "claims stay: %s", claims);
    HOLDS(!shown, "claims are shown: %s", shown);
    for (guint i = 0; i < api.evictions->len; i++) {
        const struct api_eviction *eviction = &g_array_index(api.evictions, struct api_eviction, i);
        HOLDS(eviction->again == 0, "%s is evicted again", eviction->name);
    }
}

const struct scenario reclaim_scenario = {.name = "reclaim",
                                          .build = build,
                                          .options = options,
                                          .feed = feed,
                                          .begin = begin,
                                          .look = look,
                                          .check = check,
                                          .patience_s = 1800};
