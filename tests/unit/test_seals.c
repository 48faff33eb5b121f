/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger believes after a restart, of pods whose annotations were changed while nobody looked. */
#include "sealed_cluster.h"
#include "suite.h"
#include "gate/gate.h"

START_TEST(a_binding_carries_a_seal)
{
    run_p();
    g_autofree char *seal = fake_cluster_annotation(cluster, "p", SEAL_ANNOTATION);
    g_autofree char *sent = fake_cluster_sent(cluster, 0);

    ck_assert(g_str_has_prefix(seal, "v1:0000000a:"));
    ck_assert_ptr_nonnull(strstr(sent, SEAL_ANNOTATION));
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 0);
}
END_TEST

START_TEST(without_a_key_there_is_none)
{
    set_keys("");
    run_p();
    g_autofree char *seal = fake_cluster_annotation(cluster, "p", SEAL_ANNOTATION);
    ck_assert_ptr_null(seal);
}
END_TEST

START_TEST(an_edited_pod_is_where_it_was_bound)
{
    run_p();
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    restart();
    ck_assert_int_eq(world_card(&now, "uid-p"), 0);
    expect_used(&now, 3, 0, 0);
    ck_assert_int_eq(distrust_of(&now, "uid-p"), DISTRUST_EDITED);
}
END_TEST

START_TEST(the_order_of_lists_does_not_matter)
{
    run_p();
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    now = first;
    now.store = store_new(store_options(first.store));
    now.extender.store = now.store;
    fake_cluster_list(cluster, now.store, FEED_PODS);
    fake_cluster_list(cluster, now.store, FEED_NODES);
    expect_used(&now, 3, 0, 0);
}
END_TEST

START_TEST(who_has_lost_all_words_is_where_it_was_bound)
{
    run_p();
    fake_cluster_annotate(cluster, "p", INDEX, NULL);
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_POD", NULL);
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_DEV", NULL);
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_ASSIGNED", NULL);
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", NULL);
    restart();
    expect_used(&now, 3, 0, 0);
}
END_TEST

static const char *const bad_seals[] = {NULL, "", "x", "v1:0000000a:00:{}"};

START_TEST(who_has_lost_its_seal_counts_on_every_card)
{
    run_p();
    fake_cluster_annotate(cluster, "p", SEAL_ANNOTATION, bad_seals[_i]);
    restart();
    expect_used(&now, 0, 0, 3);
    ck_assert_int_eq(distrust_of(&now, "uid-p"), DISTRUST_UNSEALED);
    /* And goes on to, whatever it says from then on. */
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    const int64_t time_ns = time_of(&now, "uid-p");
    world_catch_up(&now);
    expect_used(&now, 0, 0, 3);
    ck_assert_int_eq(distrust_of(&now, "uid-p"), DISTRUST_UNSEALED);
    ck_assert_int_eq(time_of(&now, "uid-p"), time_ns); /* or an audit would find what is known old */
    ck_assert_uint_eq(sealer_run(now.store, now.extender.cluster), 0);
}
END_TEST

START_TEST(the_seal_of_another_pod_is_none)
{
    run_p();
    world_expect_bind(&first, "q", "duo", "");
    world_catch_up(&first);
    g_autofree char *seal = fake_cluster_annotation(cluster, "q", SEAL_ANNOTATION);
    fake_cluster_annotate(cluster, "p", SEAL_ANNOTATION, seal);
    restart();
    ck_assert_int_eq(distrust_of(&now, "uid-p"), DISTRUST_UNSEALED);
    ck_assert_int_eq(distrust_of(&now, "uid-q"), DISTRUST_NONE);
}
END_TEST

/* Not even of an earlier pod of that name. */
START_TEST(a_seal_is_of_one_pod_on_one_node)
{
    char key[KEYRING_ID_SIZE];

    run_p();
    g_autofree char *seal = fake_cluster_annotation(cluster, "p", SEAL_ANNOTATION);
    const struct string_pair pair = {SEAL_ANNOTATION, seal};
    const struct pod_view pod = {
        .uid = "uid-p", .ns = "ml", .name = "p", .node_name = "duo", .annotations = {&pair, 1}};
    struct pod_view others[] = {pod, pod, pod, pod};

    others[0].uid = "uid-of-another";
    others[1].ns = "other";
    others[2].name = "other";
    others[3].node_name = "mono";
    g_autoptr(allocation) known = seals_read(seals, &pod, NULL, key);
    ck_assert_ptr_nonnull(known);
    ck_assert_str_eq(key, "0000000a");
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        ck_assert_ptr_null(seals_read(seals, &others[i], NULL, key));
}
END_TEST

START_TEST(a_seal_that_comes_back_counts)
{
    run_p();
    g_autofree char *seal = fake_cluster_annotation(cluster, "p", SEAL_ANNOTATION);
    fake_cluster_annotate(cluster, "p", SEAL_ANNOTATION, NULL);
    restart();
    expect_used(&now, 0, 0, 3);
    fake_cluster_annotate(cluster, "p", SEAL_ANNOTATION, seal);
    world_catch_up(&now);
    expect_used(&now, 3, 0, 0);
    ck_assert_int_eq(distrust_of(&now, "uid-p"), DISTRUST_NONE);
}
END_TEST

START_TEST(a_seal_that_is_taken_away_while_somebody_watches_is_written_again)
{
    run_p();
    fake_cluster_annotate(cluster, "p", SEAL_ANNOTATION, NULL);
    world_catch_up(&first);
    expect_used(&first, 3, 0, 0);
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 1);
    world_catch_up(&first);
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    restart();
    expect_used(&now, 3, 0, 0);
}
END_TEST

/* Whose Binding was seen. */
START_TEST(who_is_bound_by_others_is_sealed_as_first_seen)
{
    others_run_r();
    world_catch_up(&first);
    expect_used(&first, 0, 3, 0);
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 1);
    world_catch_up(&first);
    fake_cluster_annotate(cluster, "r", INDEX, "0");
    restart();
    expect_used(&now, 0, 3, 0);
}
END_TEST

START_TEST(who_was_bound_while_nobody_watched_counts_on_every_card)
{
    others_run_r();
    restart();
    expect_used(&now, 0, 0, 3);
    world_expect_bind(&now, "p", "duo", "");
    world_catch_up(&now);
    expect_used(&now, 3, 0, 3);
}
END_TEST

START_TEST(who_was_there_before_the_key_is_adopted)
{
    others_run_r();
    set_keys(KEY);
    restart();
    expect_used(&now, 0, 3, 0);
    ck_assert_uint_eq(sealer_run(now.store, now.extender.cluster), 1);
    set_keys(KEY ADOPTED);
    world_catch_up(&now);
    fake_cluster_annotate(cluster, "r", INDEX, "0");
    restart();
    expect_used(&now, 0, 3, 0);
}
END_TEST

/* A pod that names nvidia.com/gpu alone, as HAMi's pods of whole cards do: without their words it would be
 * one of NVIDIA's own plugin, of which the node has nothing to give. */
START_TEST(who_may_be_of_several_dialects_counts_in_that_of_the_node)
{
    fake_cluster_put_other_node(
        cluster, "h",
        "{\"capacity\":{\"nvidia.com/gpu\":\"20\"},\"allocatable\":{\"nvidia.com/gpu\":\"20\"}}");
    fake_cluster_annotate_node(cluster, "h", "hami.io/node-nvidia-register",
                               "GPU-0,10,24576,100,NVIDIA-A10,0,true:"
                               "GPU-1,10,24576,100,NVIDIA-A10,0,true:");
    fake_cluster_add_pod(
        cluster, &(struct fake_pod){.name = "w", .node = "h",
                                    .containers = "[{\"name\":\"c\",\"resources\":{\"limits\":{"
                                                  "\"nvidia.com/gpu\":\"1\"}}}]"});
    restart();
    const struct node *node = ledger_node(store_lock(now.store), "h");
    ck_assert_int_eq(node->unplaced_memory, INT64_C(24576) << 20);
    store_unlock(now.store);
}
END_TEST

#define IDX "tencent.com/predicate-gpu-idx-0"
#define WHOLE                                                                                      \
    "[{\"name\":\"c\",\"resources\":{\"limits\":{\"tencent.com/vcuda-core\":\"100\","              \
    "\"tencent.com/vcuda-memory\":\"16\"}}}]"

/* "w" has a whole one of gpu-manager's two cards on "t", which is still to say which. Returns the seal of
 * its Binding. */
static char *bind_whole(void)
{
    fake_cluster_put_other_node(cluster, "t",
                                "{\"capacity\":{\"tencent.com/vcuda-core\":\"200\","
                                "\"tencent.com/vcuda-memory\":\"32\"},"
                                "\"allocatable\":{\"tencent.com/vcuda-core\":\"200\","
                                "\"tencent.com/vcuda-memory\":\"32\"}}");
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "w", .containers = WHOLE});
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "v", .containers = WHOLE});
    world_catch_up(&first);
    world_expect_bind(&first, "w", "t", "");
    g_autofree char *card = fake_cluster_annotation(cluster, "w", IDX);
    ck_assert_str_eq(card, "0");
    return fake_cluster_annotation(cluster, "w", SEAL_ANNOTATION);
}

/* As gpu-manager writes it, last, and kubelet. */
static void say_card(const char *card)
{
    fake_cluster_annotate(cluster, "w", IDX, card);
    fake_cluster_annotate(cluster, "w", "tencent.com/gpu-assigned", "true");
    fake_cluster_set_phase(cluster, "w", "Running");
}

static int holders_on(struct world *world, const char *node, int32_t card)
{
    const int holders = ledger_node(store_lock(world->store), node)->cards[card].holders;

    store_unlock(world->store);
    return holders;
}

/* Whichever card it is, nobody else gets one. */
static void expect_anywhere(void)
{
    ck_assert_int_eq(distrust_of(&now, "uid-w"), DISTRUST_UNSEALED);
    ck_assert_int_eq(holders_on(&now, "t", 0), 0);
    ck_assert_int_eq(holders_on(&now, "t", 1), 0);
    g_autofree char *error = world_bind(&now, "v", "t");
    ck_assert_str_ne(error, "");
}

/* gpu-manager says last which whole card it has given. What it was bound with is sealed until then, and a
 * tenant may put that seal back, and name any card, once nobody looks. */
START_TEST(the_seal_of_before_the_last_word_frees_no_card)
{
    g_autofree char *seal = bind_whole();

    say_card("1");
    world_catch_up(&first);
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 1);
    world_catch_up(&first);
    ck_assert_int_eq(holders_on(&first, "t", 1), 1);
    g_autofree char *last = fake_cluster_annotation(cluster, "w", SEAL_ANNOTATION);
    end(&first);

    fake_cluster_annotate(cluster, "w", SEAL_ANNOTATION, seal);
    fake_cluster_annotate(cluster, "w", IDX, _i ? "0" : "7");
    restart();
    expect_anywhere();
    /* Nothing that it says from then on changes that, and nothing of it is sealed. */
    fake_cluster_annotate(cluster, "w", "tencent.com/gpu-assigned", "false");
    world_catch_up(&now);
    fake_cluster_annotate(cluster, "w", "tencent.com/gpu-assigned", "true");
    world_catch_up(&now);
    expect_anywhere();
    ck_assert_uint_eq(sealer_run(now.store, now.extender.cluster), 0);
    /* The last seal does. */
    fake_cluster_annotate(cluster, "w", SEAL_ANNOTATION, last);
    world_catch_up(&now);
    ck_assert_int_eq(holders_on(&now, "t", 0), 0);
    ck_assert_int_eq(holders_on(&now, "t", 1), 1);
}
END_TEST

/* Its containers have not started, so the last word is still to come, and is heard. */
START_TEST(who_waits_for_the_last_word_is_known_by_its_seal)
{
    g_free(bind_whole());
    restart();
    ck_assert_int_eq(distrust_of(&now, "uid-w"), DISTRUST_NONE);
    ck_assert_int_eq(holders_on(&now, "t", 0), 1);
    say_card("1");
    world_catch_up(&now);
    ck_assert_int_eq(holders_on(&now, "t", 0), 0);
    ck_assert_int_eq(holders_on(&now, "t", 1), 1);
}
END_TEST

/* Nobody would place it on a node of NVIDIA's plugin, but kubelet gives it a device there. */
START_TEST(who_names_devices_besides_counts_on_them)
{
    fake_cluster_put_other_node(
        cluster, "g",
        "{\"capacity\":{\"nvidia.com/gpu\":\"2\"},\"allocatable\":{\"nvidia.com/gpu\":\"2\"}}");
    fake_cluster_add_pod(
        cluster, &(struct fake_pod){.name = "w", .node = "g",
                                    .containers = "[{\"name\":\"c\",\"resources\":{\"limits\":{"
                                                  "\"nvidia.com/gpu\":\"1\","
                                                  "\"nvidia.com/gpumem\":\"16384\"}}}]"});
    restart();
    const struct node *node = ledger_node(store_lock(now.store), "g");
    ck_assert_int_eq(node->n_pools, 1);
    ck_assert_int_eq(node->pools[0].used, 1);
    store_unlock(now.store);
}
END_TEST

/* No dialect claims it without marks, and the one whose node it is on cannot even read what it asks for. */
START_TEST(who_asks_for_more_than_can_be_read_holds_every_card)
{
    g_autoptr(GString) containers = g_string_new("[");

    fake_cluster_put_other_node(
        cluster, "g",
        "{\"capacity\":{\"nvidia.com/gpu\":\"20\"},\"allocatable\":{\"nvidia.com/gpu\":\"20\"}}");
    fake_cluster_annotate_node(cluster, "g", "4pd.io/node-nvidia-register",
                               "GPU-g-0,10,8192,100,T4,0,true:GPU-g-1,10,8192,100,T4,0,true:");
    for (int i = 0; i < 66; i++)
        g_string_append_printf(containers,
                               "%s{\"name\":\"c%d\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}",
                               i ? "," : "", i);
    g_string_append(containers, "]");
    fake_cluster_add_pod(
        cluster, &(struct fake_pod){.name = "w", .node = "g", .containers = containers->str});
    restart();
    const struct node *node = ledger_node(store_lock(now.store), "g");
    ck_assert_int_eq(node->n_cards, 2);
    ck_assert_int_eq(node->unplaced_exclusive, 1);
    ck_assert_int_eq(node->unplaced_memory, 8192 * MIB);
    store_unlock(now.store);
}
END_TEST

/* So many pods without a seal are listed beside "q", so many of them of the namespace. */
static void list_unsealed(int n, int n_own, const char *ns)
{
    g_autofree char *q = fake_cluster_pod_json(cluster, "q");

    store_list_begin(now.store, FEED_PODS);
    feed_event(now.store, FEED_PODS, false, q);
    for (int i = 0; i < n; i++) {
        g_autofree char *pod = g_strdup_printf(
            "{\"metadata\":{\"name\":\"u%d\",\"namespace\":\"%s\",\"uid\":\"uid-u%d\"},"
            "\"spec\":{\"nodeName\":\"duo\",\"containers\":[{\"name\":\"c\",\"resources\":"
            "{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}}",
            i, i < n_own ? ns : "others", i);
        feed_event(now.store, FEED_PODS, false, pod);
    }
    store_list_end(now.store, FEED_PODS);
    expect_used(&now, 0, 0, n);
}

static const struct {
    int n, n_own;
    bool closed;
} crowds[] = {{4, 4, false}, {5, 5, true}, {5, 4, false}, {5, 0, false}};

START_TEST(a_node_is_closed_to_a_namespace_with_too_many)
{
    g_autofree char *object = fake_cluster_pod_json(cluster, "q");
    const char *at = strstr(object, "\"namespace\":\"") + strlen("\"namespace\":\"");
    g_autofree char *own = g_strndup(at, strcspn(at, "\""));

    restart();
    list_unsealed(crowds[_i].n, crowds[_i].n_own, own);
    world_expect_bind(&now, "q", "duo",
                      crowds[_i].closed ? reason_info(gate_reason_find("unsealed"))->text : "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("seals");
    TCase *tests = tcase_create("seals");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_binding_carries_a_seal);
    tcase_add_test(tests, without_a_key_there_is_none);
    tcase_add_test(tests, an_edited_pod_is_where_it_was_bound);
    tcase_add_test(tests, the_order_of_lists_does_not_matter);
    tcase_add_test(tests, who_has_lost_all_words_is_where_it_was_bound);
    tcase_add_loop_test(tests, who_has_lost_its_seal_counts_on_every_card, 0,
                        G_N_ELEMENTS(bad_seals));
    tcase_add_test(tests, the_seal_of_another_pod_is_none);
    tcase_add_test(tests, a_seal_is_of_one_pod_on_one_node);
    tcase_add_test(tests, a_seal_that_comes_back_counts);
    tcase_add_test(tests, a_seal_that_is_taken_away_while_somebody_watches_is_written_again);
    tcase_add_test(tests, who_is_bound_by_others_is_sealed_as_first_seen);
    tcase_add_test(tests, who_was_bound_while_nobody_watched_counts_on_every_card);
    tcase_add_test(tests, who_was_there_before_the_key_is_adopted);
    tcase_add_test(tests, who_may_be_of_several_dialects_counts_in_that_of_the_node);
    tcase_add_loop_test(tests, the_seal_of_before_the_last_word_frees_no_card, 0, 2);
    tcase_add_test(tests, who_waits_for_the_last_word_is_known_by_its_seal);
    tcase_add_test(tests, who_names_devices_besides_counts_on_them);
    tcase_add_test(tests, who_asks_for_more_than_can_be_read_holds_every_card);
    tcase_add_loop_test(tests, a_node_is_closed_to_a_namespace_with_too_many, 0,
                        G_N_ELEMENTS(crowds));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
