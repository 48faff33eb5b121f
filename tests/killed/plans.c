/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that ConfigMaps order: two pods have to leave n0, so that one of 8 units finds room there. */
#include "../prop/chance.h"
#include "life.h"
#include "scenarios.h"

#include "maintain/plans/plan_service.h"
#include "wire/plan_mark.h"

#include <string.h>

#define ORDER "/api/v1/namespaces/" API_NS "/configmaps/order"
#define STATUS "gpuledger.io/plan-status"
#define HOUR_US (INT64_C(3600) * 1000000)

static const struct dialect_options no_options;
static bool hourly;

static void build_with(const char *data)
{
    static const int sizes[] = {8, 4, 4, 2};

    for (int i = 0; i < 4; i++) {
        const char name[] = {'n', (char)('0' + i), '\0'};
        life_put_node(name, 1, sizes[i]);
    }
    life_put_pod("ml", "web-1", 3, "n0", 0, "web", "");
    life_put_pod("ml", "db-2", 3, "n0", 0, "db", "");
    life_put_pod("ml", "big", 8, NULL, 0, NULL, "");
    api_put(ORDER,
            "{\"metadata\":{\"namespace\":\"" API_NS
            "\",\"name\":\"order\",\"labels\":{\"" PLAN_MARK "\":\"run\"}},\"data\":{%s}}",
            data);
}

static void build(void)
{
    hourly = false;
    build_with("\"pod\":\"ml/big\"");
}

static void build_hourly(void)
{
    hourly = true;
    build_with("\"pod\":\"ml/big\",\"max-per-hour\":\"1\"");
}

static void build_empty(void)
{
    build_with("\"empty\":\"n0\"");
    g_autofree char *big = api_pod_path("ml", "big");
    api_remove(big);
    hourly = false;
}

static void build_group(void)
{
    hourly = false;
    build_with("\"group\":\"ml/train\"");
    g_autofree char *big = api_pod_path("ml", "big");
    api_remove(big);
    for (int i = 0; i < 2; i++) {
        g_autofree char *name = g_strdup_printf("train-%d", i);
        life_put_pod("ml", name, i == 0 ? 8 : 2, NULL, 0, NULL,
                     ",\"gang.scheduling.koordinator.sh/name\":\"train\","
                     "\"gang.scheduling.koordinator.sh/min-available\":\"2\"");
    }
}

static void with_gangs(struct store_options *options)
{
    options->gangs = true;
}

static void begin(struct replica *replica)
{
    plan_service_start(&(struct plan_service_options){.client = replica->client,
                                                      .cluster = replica->cluster,
                                                      .store = replica->store,
                                                      .dialects = &no_options,
                                                      .leadership = &replica->leadership,
                                                      .ns = API_NS},
                       NULL);
}

static bool says(const char *phase)
{
    const char *status = api_annotation(ORDER, STATUS);
    g_autofree char *word = g_strdup_printf("\"phase\":\"%s\"", phase);

    return status && strstr(status, word);
}

static const char *look(void)
{
    HOLDS(api.evictions->len <= 2, "%u pods are evicted", api.evictions->len);
    for (guint i = 0; hourly && i + 1 < api.evictions->len; i++)
        HOLDS(g_array_index(api.evictions, struct api_eviction, i + 1).at_us -
                      g_array_index(api.evictions, struct api_eviction, i).at_us >=
                  HOUR_US,
              "two in an hour");
    return says("done") || says("stopped") ? NULL : "the plan goes on";
}

static bool exists(const char *name)
{
    g_autofree char *path = api_pod_path("ml", name);

    return api_get(path) != NULL;
}

static void check(bool calm)
{
    g_autoptr(GPtrArray) nodes = api_paths("/api/v1/nodes/");

    for (guint i = 0; i < nodes->len; i++)
        HOLDS(!api_annotation(nodes->pdata[i], PLAN_MARK), "%s keeps its mark: %s",
              (char *)nodes->pdata[i], api_annotation(nodes->pdata[i], PLAN_MARK));
    for (guint i = 0; i < api.evictions->len; i++) {
        const struct api_eviction *eviction = &g_array_index(api.evictions, struct api_eviction, i);
        HOLDS(eviction->again == 0, "%s is evicted again", eviction->name);
    }
    HOLDS(!calm || says("done"), "%s", api_annotation(ORDER, STATUS));
    HOLDS(!calm || !exists("big") || g_strcmp0(life_node("ml", "big"), "n0") == 0,
          "big has no room");
    HOLDS(!calm || !exists("train-0") || (life_node("ml", "train-0") && life_node("ml", "train-1")),
          "the group has no room");
    HOLDS(life_n_ready("ml", "web") == 1 && life_n_ready("ml", "db") == 1, "who is not Ready?");
}

const struct scenario plan_scenario = {.name = "plan",
                                       .build = build,
                                       .begin = begin,
                                       .look = look,
                                       .check = check,
                                       .patience_s = 1800};
const struct scenario plan_hourly_scenario = {.name = "plan-hourly",
                                              .build = build_hourly,
                                              .begin = begin,
                                              .look = look,
                                              .check = check,
                                              .deaths_only = true,
                                              .stride = 2,
                                              .patience_s = 3 * 3600};
const struct scenario plan_empty_scenario = {.name = "plan-empty",
                                             .build = build_empty,
                                             .begin = begin,
                                             .look = look,
                                             .check = check,
                                             .deaths_only = true,
                                             .patience_s = 1800};
const struct scenario plan_group_scenario = {.name = "plan-group",
                                             .build = build_group,
                                             .options = with_gangs,
                                             .begin = begin,
                                             .look = look,
                                             .check = check,
                                             .deaths_only = true,
                                             .patience_s = 1800};
