/* SPDX-License-Identifier: Apache-2.0 */
/* A node whose cards are to take one holder each: of the four on its first card three have to go. */
#include "../prop/chance.h"
#include "life.h"
#include "scenarios.h"

#include "switch/switcher.h"

#define NODE_PATH "/api/v1/nodes/n0"
#define HOUR_US (INT64_C(3600) * 1000000)
#define HOLDERS 4
#define PER_HOUR 2

static const struct dialect_options no_options;
static bool hourly;

static void build(void)
{
    hourly = false;
    life_put_node("n0", 2, 8);
    life_put_node("n1", 1, 8);
    for (int i = 0; i < HOLDERS; i++) {
        const char name[] = {'w', (char)('0' + i), '\0'}, owner[] = {'o', (char)('0' + i), '\0'};
        life_put_pod("ml", name, 2, "n0", 0, owner, "");
    }
    life_put_pod("ml", "alone", 2, "n0", 1, "o9", "");
    api_annotate(NODE_PATH, SWITCH_KEY, "gpuledger.io/slots=1@2026-01-01T00:00:05Z");
}

static void build_hourly(void)
{
    build();
    hourly = true;
}

static void begin(struct replica *replica)
{
    switcher_start(
        &(struct switcher_options){.with = {.client = replica->client,
                                            .cluster = replica->cluster,
                                            .store = replica->store,
                                            .moves_ns = API_NS,
                                            .limits = {.notice_s = 3600,
                                                       .drain_s = 3 * 3600,
                                                       .deadline_s = 900,
                                                       .max_per_hour = hourly ? PER_HOUR : 0},
                                            .dialects = &no_options},
                                   .leadership = &replica->leadership},
        NULL);
}

static const char *look(void)
{
    HOLDS(api.evictions->len < HOLDERS, "%u pods are evicted", api.evictions->len);
    for (guint i = 0; hourly && i + PER_HOUR < api.evictions->len; i++)
        HOLDS(g_array_index(api.evictions, struct api_eviction, i + PER_HOUR).at_us -
                      g_array_index(api.evictions, struct api_eviction, i).at_us >=
                  HOUR_US,
              "more than %d in an hour", PER_HOUR);
    return api_annotation(NODE_PATH, SWITCH_KEY) || api_annotation(NODE_PATH, SWITCH_STATE_KEY)
               ? "the node is switched"
               : NULL;
}

static void check(bool calm)
{
    cJSON *node = api_get(NODE_PATH);

    HOLDS(cJSON_GetArraySize(api_at(node, "spec", "taints")) == 0, "the taint stays");
    HOLDS(g_strcmp0(api_annotation(NODE_PATH, "gpuledger.io/slots"), "1") == 0,
          "it is not switched");
    HOLDS(api.evictions->len == HOLDERS - 1, "%u pods are evicted", api.evictions->len);
    HOLDS(life_n_ready("ml", NULL) == HOLDERS + 1, "who is not Ready?");
    for (guint i = 0; i < api.evictions->len; i++) {
        const struct api_eviction *eviction = &g_array_index(api.evictions, struct api_eviction, i);
        HOLDS(eviction->again == 0, "%s is evicted again", eviction->name);
    }
}

const struct scenario switch_scenario = {.name = "switch",
                                         .build = build,
                                         .begin = begin,
                                         .look = look,
                                         .check = check,
                                         .patience_s = 3600};
const struct scenario switch_hourly_scenario = {.name = "switch-hourly",
                                                .build = build_hourly,
                                                .begin = begin,
                                                .look = look,
                                                .check = check,
                                                .patience_s = 3 * 3600,
                                                .most = 14,
                                                .deaths_only = true};
