/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter as the only verb: it books, writes and passes one node.
 */
#include "literals.h"

#include "verbs/extender.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

#define CORE "tencent.com/vcuda-core"
#define MEM "tencent.com/vcuda-memory"
#define ELSEWHERE "The pod holds a GPU on another node"

/* A cluster that keeps what it was told to write. */
struct scribe {
    struct cluster cluster;
    enum outcome outcome;
    GString *written; /* "uid key=value key=value\n" */
};

static struct scribe scribe;
static struct extender extender;

static enum outcome annotate_pod(struct cluster *cluster, const struct pod_annotation *annotation,
                                 int64_t deadline_ms, GError **error)
{
    if (scribe.outcome != OUTCOME_OK) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNKNOWN, "the API server said no");
        return scribe.outcome;
    }
    g_string_append(scribe.written, annotation->uid);
    for (size_t i = 0; i < annotation->all->n; i++) {
        if (!g_str_has_suffix(annotation->all->items[i].key, "time"))
            g_string_append_printf(scribe.written, " %s=%s",
                                   strchr(annotation->all->items[i].key, '/') + 1,
                                   annotation->all->items[i].value);
    }
    return OUTCOME_OK;
}

static const struct cluster_ops ops = {.name = "scribe", .annotate_pod = annotate_pod};

static void add_node(const char *name, const char *core, const char *blocks)
{
    store_apply_node(extender.store, &(struct node_view){.name = name,
                                                         .capacity = PAIRS({CORE, core},
                                                                           {MEM, blocks})});
}

static void setup(void)
{
    scribe = (struct scribe){.cluster = {&ops}, .written = g_string_new(NULL)};
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000}),
        .cluster = &scribe.cluster,
        .filter_books = true,
    };
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    add_node("n1", "200", "120");
    add_node("n2", "200", "120");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(ledger_verify(store_lock(extender.store), &error), "%s",
                  error ? error->message : "");
    store_unlock(extender.store);
    store_free(extender.store);
    g_string_free(scribe.written, TRUE);
}

static char *filter(const char *uid, const char *core, const char *blocks, const char *names)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" CORE "\":\"%s\",\"" MEM
        "\":\"%s\"}}}]}},\"NodeNames\":[%s]}",
        uid, uid, core, blocks, names);
    GString *reply = g_string_new(NULL);

    g_string_truncate(scribe.written, 0);
    extender_filter(&extender, body, strlen(body), reply);
    return g_string_free(reply, FALSE);
}

static void expect(const char *uid, const char *core, const char *names, const char *reply,
                   const char *written)
{
    g_autofree char *got = filter(uid, core, "4", names);

    ck_assert_msg(strstr(got, reply) != NULL, "'%s' not in '%s'", reply, got);
    ck_assert_str_eq(scribe.written->str, written);
}

static int state_of(const char *uid)
{
    const struct allocation *held = ledger_get(store_lock(extender.store), uid);
    const int state = held ? (int)held->state : -1;

    store_unlock(extender.store);
    return state;
}

static void bind(const char *uid, const char *node, bool started)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = uid,
                                       .uid = uid,
                                       .node_name = node,
                                       .phase = "Pending",
                                       .started = started,
                                       .annotations = PAIRS({"tencent.com/predicate-gpu-idx-0", "0"},
                                                            {"tencent.com/predicate-time", "1"},
                                                            {"tencent.com/gpu-assigned", "false"}),
                                       CONTAINERS({.name = "c",
                                                   .limits = PAIRS({CORE, "30"}, {MEM, "4"})})});
}

#define BOTH "\"n2\",\"n1\""
#define ON(node, cards)                                                                            \
    " predicate-node=" node " gpu-assigned=false predicate-gpu-idx-0=" cards

START_TEST(one_node_is_booked_and_passed)
{
    expect("a", "30", BOTH, "\"NodeNames\":[\"n1\"]", "a" ON("n1", "0"));
    ck_assert_int_eq(state_of("a"), ALLOCATION_UNKNOWN);
    g_autofree char *again = filter("a", "30", "4", BOTH);
    ck_assert_ptr_nonnull(strstr(again, "\"n2\":\"" ELSEWHERE "\""));
}
END_TEST

START_TEST(asking_again_keeps_the_node_while_it_is_offered)
{
    expect("a", "30", BOTH, "[\"n1\"]", "a" ON("n1", "0"));
    expect("a", "30", BOTH, "[\"n1\"]", "a" ON("n1", "0"));
    expect("a", "30", "\"n2\"", "[\"n2\"]", "a" ON("n2", "0"));
    ck_assert_int_eq(state_of("a"), ALLOCATION_UNKNOWN);
    expect("a", "30", "\"n9\"", "\"NodeNames\":[]", "");
    ck_assert_int_eq(state_of("a"), -1);
}
END_TEST

START_TEST(the_fullest_node_with_room_is_taken)
{
    expect("a", "30", "\"n2\"", "[\"n2\"]", "a" ON("n2", "0"));
    bind("a", "n2", true);
    ck_assert_int_eq(state_of("a"), ALLOCATION_CONFIRMED);
    expect("b", "80", BOTH, "[\"n2\"]", "b" ON("n2", "1"));
}
END_TEST

START_TEST(nodes_that_wait_for_kubelet_are_passed_over)
{
    expect("a", "30", BOTH, "[\"n1\"]", "a" ON("n1", "0"));
    expect("b", "30", BOTH, "[\"n2\"]", "b" ON("n2", "0"));
    expect("c", "30", BOTH, "still waits for its GPU", "");
    bind("a", "n1", false);
    expect("c", "30", BOTH, "still waits for its GPU", "");
    bind("a", "n1", true);
    expect("c", "30", BOTH, "[\"n1\"]", "c" ON("n1", "0"));
}
END_TEST

START_TEST(what_is_not_written_is_not_booked)
{
    scribe.outcome = OUTCOME_CONFLICT;
    expect("a", "30", BOTH, "the API server said no", "");
    ck_assert_int_eq(state_of("a"), -1);
    scribe.outcome = OUTCOME_UNKNOWN;
    expect("a", "30", BOTH, "the API server said no", "");
    ck_assert_int_eq(state_of("a"), ALLOCATION_UNKNOWN);
}
END_TEST

START_TEST(others_are_filtered_as_ever)
{
    extender.filter_books = false;
    expect("a", "30", BOTH, "\"NodeNames\":[\"n2\",\"n1\"]", "");
    extender.filter_books = true;
    expect("a", "0", BOTH, "asks for GPU memory only", "");
    ck_assert_int_eq(state_of("a"), -1);
}
END_TEST

static void expect_cards(const char *uid, const char *cards, const char *named)
{
    const struct allocation *held = ledger_get(store_lock(extender.store), uid);
    g_autoptr(GString) text = g_string_new(NULL);

    for (uint32_t i = 0; i < held->n_shares; i++)
        g_string_append_printf(text, "%s%d", i ? "," : "", held->shares[i].card);
    ck_assert_str_eq(text->str, cards);
    ck_assert_msg(g_strcmp0(store_named_cards(extender.store, uid), named) == 0, "%s",
                  store_named_cards(extender.store, uid));
    store_unlock(extender.store);
}

/* gpu-manager says which whole cards it has given out only when it has taken the pod. */
START_TEST(cards_written_by_the_node_side_are_no_move)
{
    struct string_pair annotations[] = {{"tencent.com/predicate-gpu-idx-0", "0"},
                                        {"tencent.com/predicate-time", "1"},
                                        {"tencent.com/gpu-assigned", "false"}};
    const struct container_view container = {.name = "c", .limits = PAIRS({CORE, "100"})};
    struct pod_view pod = {.ns = "ml", .name = "w", .uid = "w", .node_name = "n1",
                           .phase = "Pending", .started = true, .annotations = {annotations, 3},
                           .containers = &container, .n_containers = 1};

    store_apply_pod(extender.store, &pod);
    annotations[0].value = "1";
    annotations[2].value = "true";
    store_apply_pod(extender.store, &pod);
    expect_cards("w", "0,1", NULL); /* its word or a tenant's: both, until the containers run */
    pod.phase = "Running";
    store_apply_pod(extender.store, &pod);
    expect_cards("w", "1", NULL);
    annotations[0].value = "0";
    store_apply_pod(extender.store, &pod);
    expect_cards("w", "1", "0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("predicate");
    TCase *tcase = tcase_create("predicate");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_node_is_booked_and_passed);
    tcase_add_test(tcase, asking_again_keeps_the_node_while_it_is_offered);
    tcase_add_test(tcase, the_fullest_node_with_room_is_taken);
    tcase_add_test(tcase, nodes_that_wait_for_kubelet_are_passed_over);
    tcase_add_test(tcase, what_is_not_written_is_not_booked);
    tcase_add_test(tcase, others_are_filtered_as_ever);
    tcase_add_test(tcase, cards_written_by_the_node_side_are_no_move);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
