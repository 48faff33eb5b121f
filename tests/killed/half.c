/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that stay half: their last pod needs the whole card on which the others are, who have room elsewhere. */
#include "../prop/chance.h"
#include "life.h"
#include "scenarios.h"

#include "maintain/half_groups.h"

#define MINUTE_US (INT64_C(60) * 1000000)

static int n_members; /* but the last */
static bool many;

static void build_of(int members)
{
    n_members = members;
    many = members > HALF_GROUPS_MINUTE_MAX;
    life_put_node("n0", 1, 4 * members);
    life_put_node("n1", members, 4);
    for (int i = 0; i <= members; i++) {
        const bool last = i == members;
        g_autofree char *name = g_strdup_printf("h-%d", i);
        g_autofree char *words = g_strdup_printf(
            ",\"gang.scheduling.koordinator.sh/name\":\"h\","
            "\"gang.scheduling.koordinator.sh/min-available\":\"%d\","
            "\"gang.scheduling.koordinator.sh/waiting-time\":\"%ds\"%s",
            members + 1, 5 * members, last ? "" : ",\"gpuledger.io/gang\":\"ml/h\"");
        life_put_pod("ml", name, last ? 4 * members : 4, last ? NULL : "n0", 0, "h", words);
    }
}

static void build(void)
{
    build_of(2);
}

static void build_many(void)
{
    build_of(HALF_GROUPS_MINUTE_MAX + 3);
}

static void options(struct store_options *options)
{
    options->gangs = options->gang_strict = true;
}

static void begin(struct replica *replica)
{
    const struct permits_options options = {
        .limits = {.of[ENDER_GANG_STRICT].per_minute = HALF_GROUPS_MINUTE_MAX}};

    half_groups_start(&(struct half_groups_options){.client = replica->client,
                                                    .store = replica->store,
                                                    .leadership = &replica->leadership,
                                                    .permits = permits_new(&options)},
                      NULL);
}

static const char *look(void)
{
    /* It may be half once more: killed between two Bindings. */
    HOLDS(api.evictions->len <= 2 * (guint)n_members, "%u pods are evicted", api.evictions->len);
    for (guint i = 0; i + HALF_GROUPS_MINUTE_MAX < api.evictions->len; i++)
        HOLDS(g_array_index(api.evictions, struct api_eviction, i + HALF_GROUPS_MINUTE_MAX).at_us -
                      g_array_index(api.evictions, struct api_eviction, i).at_us >=
                  MINUTE_US,
              "%u in less than a minute", HALF_GROUPS_MINUTE_MAX + 1);
    if (many)
        return api.evictions->len == (guint)n_members ? NULL : "not all are evicted";
    return life_n_ready("ml", "h") == n_members + 1 ? NULL : "the group is not whole";
}

static void check(bool calm)
{
    for (guint i = 0; i < api.evictions->len; i++) {
        const struct api_eviction *eviction = &g_array_index(api.evictions, struct api_eviction, i);
        HOLDS(eviction->again == 0, "%s is evicted again", eviction->name);
    }
}

const struct scenario half_scenario = {.name = "half",
                                       .build = build,
                                       .options = options,
                                       .begin = begin,
                                       .look = look,
                                       .check = check,
                                       .patience_s = 1800};
const struct scenario half_many_scenario = {.name = "half-many",
                                            .build = build_many,
                                            .options = options,
                                            .begin = begin,
                                            .look = look,
                                            .check = check,
                                            .patience_s = 1800,
                                            .stride = 41,
                                            .deaths_only = true};
