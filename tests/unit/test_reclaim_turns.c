/* SPDX-License-Identifier: Apache-2.0 */
/* Three namespaces want back what a fourth has borrowed, and one pod ends at a time. */
#include "fake_claims.h"
#include "objects.h"
#include "literals.h"
#include "suite.h"

#include "evict/eviction.h"
#include "json/source.h"
#include "reclaim/reclaimer.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define GPUS "gpuledger.io/gpus"
#define SECOND_MS 1000
#define CARDS 9 /* all borrowed */

static struct store *live;
static struct reclaimer *reclaimer;
static struct moment moment;

static enum outcome get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    *ret_pod = (struct pod_view){
        .ns = ns, .name = json_arena_dup(arena, name, strlen(name) + 1), .phase = "Running"};
    ret_pod->uid = ret_pod->name;
    return OUTCOME_OK;
}

static enum outcome annotate_node(struct cluster *cluster, const struct node_annotation *annotation,
                                  int64_t deadline_ms, GError **error)
{
    return OUTCOME_OK;
}

static const struct cluster_ops ops = {
    .name = "table", .get_pod = get_pod, .annotate_node = annotate_node};
static struct cluster cluster = {&ops};

static bool keeps; /* a budget keeps the pod that is to end first */
static char *kept; /* its UID */

/* It is gone at once. */
static enum eviction evict(void *data, const struct evictee *evictee, bool try, GError **error)
{
    if (keeps && !kept)
        kept = g_strdup(evictee->uid);
    if (g_strcmp0(kept, evictee->uid) == 0) {
        g_set_error_literal(error, g_quark_from_static_string("test"), 0, "no");
        return EVICTION_LATER;
    }
    if (!try)
        store_delete_pod(live, evictee->uid);
    return EVICTION_DONE;
}

static void hold(const char *uid, const char *card)
{
    store_apply_pod(
        live, &(struct pod_view){.ns = "borrows",
                                 .name = uid,
                                 .uid = uid,
                                 .node_name = "n",
                                 .phase = "Running",
                                 .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card},
                                                      {"ALIYUN_COM_GPU_MEM_POD", "10"},
                                                      {"ALIYUN_COM_GPU_MEM_DEV", "10"},
                                                      {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                                                      {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}),
                                 CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

static void await(const char *ns, const char *uid, int priority)
{
    store_apply_pod(live,
                    &(struct pod_view){.ns = ns,
                                       .name = uid,
                                       .uid = uid,
                                       .phase = "Pending",
                                       .priority = priority,
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

static void apply_quota(const char *ns, const char *min)
{
    store_put_quota(live, &(struct resource_quota_view){
                              .ns = ns, .name = "q", .elastic = true, .min = PAIRS({GPUS, min})});
}

static void setup(void)
{
    moment = (struct moment){.now_ns = INT64_C(1764100000000000000), .now_ms = 1000000};
    live = store_new(&(struct store_options){.policy = &policies[0],
                                             .patience_ms = 60000,
                                             .elastic_quotas = true,
                                             .reclaim = true,
                                             .reclaim_uncontrolled = true,
                                             .silent = true});
    store_set_moment(live, &moment);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(live, (enum feed)feed);
    apply_quota("borrows", "0");
    apply_quota("many", "3");
    apply_quota("few", "3");
    apply_quota("other", "3");
    store_apply_node(live, &(struct node_view){
                               .name = "n",
                               .capacity = PAIRS({MEM, "90"}, {"aliyun.com/gpu-count", "9"}),
                               .allocatable = PAIRS({MEM, "90"}, {"aliyun.com/gpu-count", "9"})});
    for (int i = 0; i < CARDS; i++) {
        g_autofree char *uid = g_strdup_printf("b%d", i), *card = g_strdup_printf("%d", i);
        hold(uid, card);
    }
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(live, (enum feed)feed);
    reclaimer = reclaimer_new(&(struct reclaimer_args){
        .store = live,
        .cluster = &cluster,
        .files = &fake_claims_files,
        .evict = evict,
        .options = {.delay_ms = 0, .at_once = 1, .per_minute = 1000},
    });
}

static void teardown(void)
{
    reclaimer_free(reclaimer);
    store_free(live);
    keeps = false;
    g_clear_pointer(&kept, g_free);
    fake_claims_reset();
}

static bool has_claim(const char *uid)
{
    store_lock(live);
    const bool has = nominations_claim(store_nominations(live), uid, NULL) != NULL;
    store_unlock(live);
    return has;
}

/* In which order the pods claimed. */
static char *order_of(const char *const *uids)
{
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    GString *order = g_string_new(NULL);

    for (int look = 0; look < 60; look++) {
        moment.now_ms += SECOND_MS;
        moment.now_ns += INT64_C(1000000) * SECOND_MS;
        reclaimer_look(reclaimer);
        for (guint i = 0; uids[i]; i++) {
            if (has_claim(uids[i]) && g_hash_table_add(told, (gpointer)uids[i]))
                g_string_append_printf(order, "%s%s", order->len ? " " : "", uids[i]);
        }
    }
    return g_string_free(order, FALSE);
}

/* Whatever priorities a namespace gives its own pods; among these they count. */
START_TEST(namespaces_take_turns)
{
    static const char *const uids[] = {"m0", "m1", "m2", "f0", "o0", "o1", NULL};

    await("many", "m0", 1000);
    await("many", "m1", 3000);
    await("many", "m2", 2000);
    await("few", "f0", 0);
    await("other", "o0", 0);
    await("other", "o1", 0);
    g_autofree char *order = order_of(uids);
    ck_assert_str_eq(order, "f0 m1 o0 m2 o1 m0");
}
END_TEST

/* As the store knows of no budget, it would be chosen again. */
START_TEST(a_pod_that_a_budget_has_kept_is_passed_over_once_the_claim_has_lapsed)
{
    static const char *const uids[] = {"f0", NULL};

    keeps = true;
    await("few", "f0", 0);
    for (int minute = 0; minute < 12; minute++)
        g_free(order_of(uids));
    ck_assert_ptr_nonnull(kept);
    store_lock(live);
    ck_assert_ptr_nonnull(ledger_get(store_ledger(live), kept));
    const guint n_left = ledger_node(store_ledger(live), "n")->allocations->len;
    store_unlock(live);
    ck_assert_uint_eq(n_left, CARDS - 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reclaim_turns");
    TCase *tests = tcase_create("turns");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, namespaces_take_turns);
    tcase_add_test(tests, a_pod_that_a_budget_has_kept_is_passed_over_once_the_claim_has_lapsed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
