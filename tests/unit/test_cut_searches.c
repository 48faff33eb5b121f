/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No pod ends on a search that was cut short: of whatever is left of cards, of the pods that could end, or of
 * the places for successors, only a part was looked at.
 */
#include "explained_cluster.h"
#include "maintain/relocation.h"
#include "suite.h"
#include "verbs/extender.h"

#define CARDS 7 /* of a node, mostly, of 10,000 MiB each */
#define CONTAINERS                                                                                 \
    25 /* of 2,400 MiB each: four go on a card, so it takes seven cards, and six are in vain */
#define QUOTA(ns, n)                                                                               \
    "{'metadata':{'name':'q','namespace':'" ns "'},'spec':{'min':{'gpuledger.io/gpus':'" n "'}}}"

static void add_cards(const char *name, int n)
{
    g_autoptr(GString) cards = g_string_new("'" REGISTER "':'");

    for (int i = 0; i < n; i++)
        g_string_append_printf(cards, "GPU-%s-%d,10,10000,100,NVIDIA-Tesla T4,0,true:", name, i);
    g_string_append_c(cards, '\'');
    add_node((struct said_node){
        name, .annotations = cards->str,
        .amounts = "'nvidia.com/gpu':'70','cpu':'30','memory':'1Ti','pods':'100'"});
}

/* Whole cards, from one on. */
static void add_holder(const char *ns, const char *name, const char *node, int first, int n)
{
    g_autofree char *limits =
        g_strdup_printf("'nvidia.com/gpu':'%d','nvidia.com/gpumem':'10000','cpu':'4'", n);
    g_autoptr(GString) devices = g_string_new(NULL);

    g_string_printf(devices,
                    "'hami.io/vgpu-node':'%s','hami.io/bind-phase':'success',"
                    "'hami.io/vgpu-devices-allocated':'",
                    node);
    for (int i = first; i < first + n; i++)
        g_string_append_printf(devices, "GPU-%s-%d,NVIDIA,10000,0:", node, i);
    g_string_append(devices, ";'");
    add_pod((struct said_pod){name, ns, .node = node, .meta = REPLICA_SET,
                              .annotations = devices->str, .limits = limits});
}

static char *many_containers(void)
{
    GString *text = g_string_new(NULL);

    for (int i = 0; i < CONTAINERS; i++)
        g_string_append_printf(text,
                               "%s{'name':'c%d','resources':{'limits':{'nvidia.com/gpu':'1',"
                               "'nvidia.com/gpumem':'2400','cpu':'1'}}}",
                               i > 0 ? "," : "", i);
    return g_string_free(text, FALSE);
}

/* One that is as hard to place, on the node if there is one. */
static void add_hard(const char *ns, const char *node)
{
    g_autofree char *containers = many_containers();
    g_autoptr(GString) devices = g_string_new(NULL);

    g_string_printf(devices,
                    "'hami.io/vgpu-node':'%s','hami.io/bind-phase':'success',"
                    "'hami.io/vgpu-devices-allocated':'",
                    or_nothing(node));
    for (int i = 0; i < CONTAINERS; i++)
        g_string_append_printf(devices, "GPU-%s-%d,NVIDIA,2400,0:;", or_nothing(node), i / 4);
    g_string_append_c(devices, '\'');
    add_pod((struct said_pod){"hard", ns, .node = node, .containers = containers,
                              .meta = node ? REPLICA_SET : NULL,
                              .annotations = node ? devices->str : NULL, .priority = 100});
}

/* --- preempt ------------------------------------------------------------------------------------ */

static void expect_victims(const char *victims)
{
    struct extender extender = {.store = told, .bind_timeout_ms = 3000};
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":\"ml/a\"}],"
        "\"NumPDBViolations\":0}}}",
        (const char *)g_hash_table_lookup(pods, "ml/hard"));
    g_autofree char *wanted = g_strdup_printf("{\"NodeNameToMetaVictims\":{%s}}", victims);

    ck_assert_msg(extender_preempt(&extender, body, strlen(body), reply, &error), "%s",
                  error ? error->message : "");
    expect_text(reply->str, wanted);
}

/* It suffices that two end; whether the one does that kube-scheduler has named is not found out. */
START_TEST(preempt_ends_no_pod)
{
    begin();
    add_cards("n", CARDS);
    add_holder("ml", "a", "n", 5, 1);
    add_holder("ml", "b", "n", 6, 1);
    add_hard("ml", NULL);
    expect_victims("");
    g_autoptr(explanation) explanation = explain("ml/hard");
    ck_assert_ptr_nonnull(explanation->preview);
    ck_assert_ptr_null(explanation->preview->node);
    expect_text(explanation->preview->why,
                "a search for room was cut short, and no pod ends on that");
}
END_TEST

/* --- reclaim ------------------------------------------------------------------------------------ */

static void expect_kept(void)
{
    g_autoptr(explanation) explanation = explain("ml/hard");

    ck_assert_ptr_nonnull(explanation->reclaim);
    expect_text(reclaim_code(explanation->reclaim->plan->answer), "work_limit");
    ck_assert_uint_eq(explanation->reclaim->plan->ends->len, 0);
}

/* `_i`: the search that is cut is not the one of which pods end, but whether there is room on another node. */
START_TEST(reclaim_ends_no_pod)
{
    begin_with((struct store_options){.elastic_quotas = true, .reclaim = true});
    feed(FEED_ELASTIC_QUOTAS, false, "%s", QUOTA("ml", "20"));
    feed(FEED_ELASTIC_QUOTAS, false, "%s", QUOTA("web", "0"));
    add_cards("n", CARDS);
    if (_i) {
        add_holder("web", "w", "n", 0, CARDS);
        add_cards("other", CARDS);
        add_holder("ml", "x", "other", 6, 1);
    } else {
        add_holder("web", "v", "n", 5, 1);
        add_holder("web", "w", "n", 6, 1);
    }
    add_hard("ml", NULL);
    expect_kept();
}
END_TEST

/* --- plan and drain ----------------------------------------------------------------------------- */

static struct relocation *find(const struct pod_view *admit, const struct card_place *empty)
{
    g_autoptr(GError) error = NULL;
    struct relocation *found = relocation_find(
        &(struct relocation_query){
            .store = told, .cluster = &cluster, .admit = admit, .empty = empty, .moves_max = 4},
        &error);

    ck_assert_msg(found != NULL, "%s", error ? error->message : "");
    return found;
}

static void expect_no_plan(const struct relocation *found)
{
    ck_assert(!found->reached);
    ck_assert(!found->fewest);
    ck_assert_uint_eq(found->steps->len, 0);
    ck_assert_msg(g_str_has_prefix(found->why, "no order was found"), "%s", found->why);
}

/* The move of one pod would leave seven cards free; whether six would do is not found out. */
START_TEST(plan_moves_no_pod)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view admit;

    begin();
    add_cards("n", CARDS);
    add_cards("other", CARDS);
    add_holder("ml", "a", "n", 6, 1);
    for (int i = 0; i < CARDS - 1; i++) {
        g_autofree char *name = g_strdup_printf("x%d", i);
        add_holder("ml", name, "other", i, 1);
    }
    add_hard("ml", NULL);
    read_pod(arena, g_hash_table_lookup(pods, "ml/hard"), &admit);
    g_autoptr(relocation) found = find(&admit, NULL);
    expect_no_plan(found);
}
END_TEST

/* Nor is it said that no node would do where that was not found out. */
START_TEST(no_node_is_ruled_out)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view admit;

    begin();
    add_cards("n", CARDS - 1);
    add_hard("ml", NULL);
    read_pod(arena, g_hash_table_lookup(pods, "ml/hard"), &admit);
    g_autoptr(relocation) found = find(&admit, NULL);
    expect_no_plan(found);
}
END_TEST

/* The pod would find room on one of two other nodes; of the first it is not known. */
START_TEST(drain_moves_no_pod)
{
    const struct card_place place = {.node = (char *)"n", .card = CARD_UNKNOWN};

    begin();
    add_cards("n", CARDS);
    add_cards("maybe", CARDS);
    add_cards("room", CARDS);
    add_hard("ml", "n");
    add_holder("ml", "x", "maybe", 6, 1);
    g_autoptr(relocation) found = find(NULL, &place);
    expect_no_plan(found);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cut_searches");
    TCase *tests = tcase_create("cut_searches");

    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_test(tests, preempt_ends_no_pod);
    tcase_add_loop_test(tests, reclaim_ends_no_pod, 0, 2);
    tcase_add_test(tests, plan_moves_no_pod);
    tcase_add_test(tests, no_node_is_ruled_out);
    tcase_add_test(tests, drain_moves_no_pod);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
