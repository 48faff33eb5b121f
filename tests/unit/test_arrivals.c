/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room goes to the pod that has waited longest, whoever asks first.
 */
#include "literals.h"

#include "verbs/extender.h"
#include "core/constraints.h"
#include "suite.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define EARLIER "left to a pod that has waited for longer"
#define INSUFFICIENT "Insufficient GPU Memory"
#define HOUR_MS (3600 * 1000)

static struct extender extender;

static void begin_with_places(int64_t hold_ms, int64_t n_places)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){
            .patience_ms = 60000, .hold_ms = hold_ms, .n_places = n_places}),
    };
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    store_apply_node(extender.store, &(struct node_view){.name = "n1",
                                                         .capacity = PAIRS({MEM, "10"},
                                                                           {COUNT, "1"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void begin(int64_t hold_ms)
{
    begin_with_places(hold_ms, 0);
}

static void teardown(void)
{
    store_free(extender.store);
}

struct told {
    const char *uid, *ns, *created, *mem, *node, *scheduler;
    const struct constraints *constraints;
    int64_t priority;
};

/* What the watch says; filter has not been asked. */
static void tell(const struct told *told)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = told->ns ? told->ns : "ml",
                                       .name = told->uid,
                                       .uid = told->uid,
                                       .created = told->created,
                                       .priority = told->priority,
                                       .node_name = told->node,
                                       .scheduler_name = told->scheduler,
                                       .constraints = told->constraints,
                                       .phase = told->node ? "Running" : "Pending",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                                       CONTAINERS({.name = "c",
                                                   .limits = PAIRS({MEM, told->mem})})});
}

/* "" if the pod may go to the node, else what kube-scheduler is told. */
static char *ask(const char *uid, int priority, const char *mem)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},\"spec\":{"
        "\"priority\":%d,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"%s\"}}}]}},\"NodeNames\":[\"n1\"]}",
        uid, uid, priority, mem);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    if (strstr(reply->str, "\"NodeNames\":[\"n1\"]"))
        g_string_truncate(reply, 0);
    return g_string_free(reply, FALSE);
}

/* A pod that waits has asked. */
static void apply(const char *uid, const char *created, int64_t priority, const char *mem,
                  const char *node)
{
    tell(&(struct told){.uid = uid, .created = created, .priority = priority, .mem = mem,
                        .node = node});
    if (!node)
        g_free(ask(uid, (int)priority, mem));
}

static void expect(const char *uid, int priority, const char *mem, const char *refusal)
{
    g_autofree char *got = ask(uid, priority, mem);

    ck_assert_msg(refusal ? strstr(got, refusal) != NULL : !*got, "%s: %s", uid, got);
}

/* Whoever may call filter for pods of its own namespace leaves room for the names of others. */
START_TEST(a_namespace_brings_half_of_the_schedulers)
{
    begin(HOUR_MS);
    for (int i = 0; i <= 2 * ARRIVALS_SCHEDULERS_MAX; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        tell(&(struct told){.uid = uid,
                            .ns = "evil",
                            .created = "2026-01-01T00:00:01Z",
                            .mem = "1",
                            .scheduler = uid});
        g_free(ask(uid, 0, "1"));
    }
    for (int i = 0; i < ARRIVALS_SCHEDULERS_MAX / 2; i++) {
        g_autofree char *uid = g_strdup_printf("mine-%d", i);
        tell(&(struct told){
            .uid = uid, .created = "2026-01-01T00:00:01Z", .mem = "1", .scheduler = uid});
        g_free(ask(uid, 0, "1"));
        GHashTable *names = arrivals_schedulers(store_arrivals(extender.store));
        ck_assert_msg(g_hash_table_contains(names, uid), "%s", uid);
        ck_assert_uint_eq(g_hash_table_size(names), (guint)(ARRIVALS_SCHEDULERS_MAX / 2 + i + 1));
    }
}
END_TEST

START_TEST(the_oldest_goes_first_whoever_asks_first)
{
    static const char *const uids[] = {"a", "b", "c", "d", "e"};

    begin(HOUR_MS);
    /* Told of in another order than created in; within a second, in that of being told of. */
    apply("c", "2026-01-01T00:00:02Z", 0, "8", NULL);
    apply("a", "2026-01-01T00:00:01Z", 0, "8", NULL);
    apply("d", "2026-01-01T00:00:02Z", 0, "8", NULL);
    apply("b", "2026-01-01T00:00:01Z", 0, "8", NULL);
    apply("e", "2026-01-01T00:00:03Z", 0, "8", NULL);
    for (size_t first = 0; first < 5; first++) {
        for (size_t i = 4; i > first; i--)
            expect(uids[i], 0, "8", EARLIER);
        expect(uids[first], 0, "8", NULL);
        apply(uids[first], "2026-01-01T00:00:00Z", 0, "8", "n1");
        for (size_t i = first + 1; i < 5; i++)
            expect(uids[i], 0, "8", INSUFFICIENT);
        store_delete_pod(extender.store, uids[first]);
    }
}
END_TEST

START_TEST(who_does_not_fit_is_passed)
{
    begin(HOUR_MS);
    apply("running", "2026-01-01T00:00:00Z", 0, "5", "n1");
    apply("large", "2026-01-01T00:00:01Z", 0, "8", NULL);
    apply("small", "2026-01-01T00:00:02Z", 0, "3", NULL);
    expect("small", 0, "3", NULL);
    store_delete_pod(extender.store, "running");
    expect("small", 0, "3", EARLIER);
    store_delete_pod(extender.store, "large");
    expect("small", 0, "3", NULL);
}
END_TEST

START_TEST(who_fits_beside_the_older_ones_need_not_wait)
{
    begin(HOUR_MS);
    apply("a", "2026-01-01T00:00:01Z", 0, "3", NULL);
    apply("b", "2026-01-01T00:00:02Z", 0, "3", NULL);
    apply("c", "2026-01-01T00:00:03Z", 0, "4", NULL);
    apply("d", "2026-01-01T00:00:04Z", 0, "1", NULL);
    expect("c", 0, "4", NULL);
    expect("d", 0, "1", EARLIER);
    expect("b", 0, "3", NULL);
}
END_TEST

START_TEST(importance_counts_before_age)
{
    begin(HOUR_MS);
    apply("old", "2026-01-01T00:00:01Z", 5, "8", NULL);
    apply("new", "2026-01-01T00:00:02Z", 9, "8", NULL);
    expect("new", 9, "8", NULL);
    expect("new", 5, "8", EARLIER);
    expect("old", 5, "8", NULL);
}
END_TEST

START_TEST(a_pod_that_the_watch_has_not_shown_is_the_youngest)
{
    begin(HOUR_MS);
    apply("old", "2026-01-01T00:00:01Z", 0, "8", NULL);
    expect("unknown", 0, "8", EARLIER);
}
END_TEST

START_TEST(who_does_not_come_is_not_waited_for)
{
    begin(HOUR_MS);
    struct moment moment = {g_get_real_time() * 1000, g_get_monotonic_time() / 1000, 0};
    store_set_moment(extender.store, &moment);
    apply("old", "2026-01-01T00:00:01Z", 0, "8", NULL);
    apply("new", "2026-01-01T00:00:02Z", 0, "8", NULL);
    expect("new", 0, "8", EARLIER);
    moment.now_ms += HOUR_MS;
    moment.now_ns += HOUR_MS * INT64_C(1000000);
    expect("new", 0, "8", NULL);
    /* It has asked and may come: from now on it is waited for again. */
    expect("old", 0, "8", NULL);
    expect("new", 0, "8", EARLIER);
}
END_TEST

START_TEST(in_no_order_unless_asked_for)
{
    begin(0);
    apply("old", "2026-01-01T00:00:01Z", 0, "8", NULL);
    apply("new", "2026-01-01T00:00:02Z", 0, "8", NULL);
    expect("new", 0, "8", NULL);
}
END_TEST

/* What a fresh list does not name is waited for no longer. */
START_TEST(a_pod_that_is_gone_leaves_the_queue)
{
    begin(HOUR_MS);
    apply("old", "2026-01-01T00:00:01Z", 0, "8", NULL);
    apply("new", "2026-01-01T00:00:02Z", 0, "8", NULL);
    expect("new", 0, "8", EARLIER);
    store_list_begin(extender.store, FEED_PODS);
    apply("new", "2026-01-01T00:00:02Z", 0, "8", NULL);
    store_list_end(extender.store, FEED_PODS);
    expect("new", 0, "8", NULL);
}
END_TEST

/* The node that is kept for a pod, or "". */
static const char *place_of(const char *uid)
{
    store_lock(extender.store);
    const struct reservation *place = arrivals_place(store_arrivals(extender.store), uid);
    store_unlock(extender.store);
    return place ? place->node : "";
}

START_TEST(a_place_is_kept_for_who_does_not_fit)
{
    begin_with_places(HOUR_MS, 8);
    apply("a", "2026-01-01T00:00:00Z", 0, "5", "n1");
    apply("b", "2026-01-01T00:00:00Z", 0, "2", "n1");
    apply("large", "2026-01-01T00:00:01Z", 0, "7", NULL);
    apply("small", "2026-01-01T00:00:02Z", 0, "2", NULL);
    apply("tiny", "2026-01-01T00:00:03Z", 0, "1", NULL);
    /* large comes after a: 2 of b, 7 of large, and 1 is left then. */
    expect("small", 0, "2", EARLIER);
    expect("tiny", 0, "1", NULL);
    expect("small", 1, "2", NULL);
    ck_assert_str_eq(place_of("large"), "n1");
    apply("tiny", "2026-01-01T00:00:03Z", 0, "1", "n1");
    store_delete_pod(extender.store, "a");
    expect("small", 0, "2", EARLIER);
    expect("large", 0, "7", NULL);
    store_delete_pod(extender.store, "large");
    expect("small", 0, "2", NULL);
}
END_TEST

/* A pod without a node may be changed, as when it is resized. */
START_TEST(who_asks_for_something_else_has_no_place_for_it)
{
    begin_with_places(HOUR_MS, 8);
    apply("a", "2026-01-01T00:00:00Z", 0, "5", "n1");
    apply("b", "2026-01-01T00:00:00Z", 0, "2", "n1");
    apply("large", "2026-01-01T00:00:01Z", 0, "7", NULL);
    apply("small", "2026-01-01T00:00:02Z", 0, "2", NULL);
    expect("small", 0, "2", EARLIER);
    ck_assert_str_eq(place_of("large"), "n1");
    tell(&(struct told){.uid = "large", .created = "2026-01-01T00:00:01Z", .mem = "20"});
    ck_assert_str_eq(place_of("large"), "");
    expect("small", 0, "2", NULL);
}
END_TEST

/* Its own place becomes free with that of the older one. */
START_TEST(who_comes_after_the_end_that_an_older_one_waits_for_has_a_place)
{
    begin_with_places(HOUR_MS, 3);
    apply("runs", "2026-01-01T00:00:00Z", 0, "5", "n1");
    apply("ends", "2026-01-01T00:00:00Z", 0, "4", "n1");
    apply("a", "2026-01-01T00:00:01Z", 0, "2", NULL);
    apply("b", "2026-01-01T00:00:02Z", 0, "3", NULL);
    expect("c", 0, "1", EARLIER); /* after the end of "ends" 5, 2 and 3 are 10 */
    store_delete_pod(extender.store, "ends");
    apply("a", "2026-01-01T00:00:01Z", 0, "2", "n1");
    expect("c", 0, "1", EARLIER);
    expect("b", 0, "3", NULL);
}
END_TEST

START_TEST(the_place_that_needs_least_is_kept)
{
    begin_with_places(HOUR_MS, 8);
    store_apply_node(extender.store, &(struct node_view){.name = "n2",
                                                         .capacity = PAIRS({MEM, "20"},
                                                                           {COUNT, "2"})});
    apply("whole", "2026-01-01T00:00:00Z", 0, "9", "n1");
    apply("most", "2026-01-01T00:00:00Z", 0, "7", "n2");
    apply("less", "2026-01-01T00:00:00Z", 0, "3", "n2");
    apply("large", "2026-01-01T00:00:01Z", 0, "11", NULL); /* larger than any card */
    apply("waits", "2026-01-01T00:00:02Z", 0, "10", NULL);
    expect("new", 0, "1", NULL); /* the second card of n2 is free for who waits */
    ck_assert_str_eq(place_of("waits"), "");
    store_apply_node(extender.store, &(struct node_view){.name = "n2",
                                                         .capacity = PAIRS({MEM, "10"},
                                                                           {COUNT, "1"})});
    expect("new", 0, "1", EARLIER); /* 9 of n1 must become free, or 10 of n2 */
    ck_assert_str_eq(place_of("waits"), "n1");
    store_delete_pod(extender.store, "less");
    expect("new", 0, "1", EARLIER); /* a promise stands, though there may be a better one now */
    ck_assert_str_eq(place_of("waits"), "n1");
    ck_assert_str_eq(place_of("large"), "");
    store_apply_node(extender.store, &(struct node_view){.name = "n1",
                                                         .capacity = PAIRS({MEM, "9"},
                                                                           {COUNT, "1"})});
    expect("new", 0, "1", INSUFFICIENT);
    ck_assert_str_eq(place_of("waits"), "n2");
}
END_TEST

/* It is waited for until it could have come, and for so long after that. */
START_TEST(a_place_is_kept_for_a_while_only_once_it_is_free)
{
    begin_with_places(1, 8);
    tell(&(struct told){.uid = "a", .ns = "other", .mem = "5", .node = "n1"});
    apply("large", "2026-01-01T00:00:01Z", 0, "8", NULL);
    apply("small", "2026-01-01T00:00:02Z", 0, "3", NULL);
    for (int i = 0; i < 1000; i++)
        expect("small", 0, "3", EARLIER);
    store_delete_pod(extender.store, "a");
    for (;;) {
        g_autofree char *got = ask("small", 0, "3");
        if (!*got)
            break;
        ck_assert_ptr_nonnull(strstr(got, EARLIER));
    }
}
END_TEST

START_TEST(more_than_so_many_places_are_not_kept)
{
    begin_with_places(HOUR_MS, 1);
    store_apply_node(extender.store, &(struct node_view){.name = "n2",
                                                         .capacity = PAIRS({MEM, "10"},
                                                                           {COUNT, "1"})});
    apply("a", "2026-01-01T00:00:00Z", 0, "4", "n1");
    apply("b", "2026-01-01T00:00:00Z", 0, "5", "n2");
    apply("first", "2026-01-01T00:00:01Z", 0, "9", NULL);
    apply("second", "2026-01-01T00:00:02Z", 0, "9", NULL);
    expect("new", 0, "3", EARLIER);
    ck_assert_str_eq(place_of("first"), "n1");
    ck_assert_str_eq(place_of("second"), "");
    store_delete_pod(extender.store, "first");
    expect("new", 0, "3", EARLIER);
    ck_assert_str_eq(place_of("second"), "n1");
}
END_TEST

/* 50 pods, room for 10, one ends after the other, and everybody asks in turns. */
START_TEST(fifty_pods_come_in_the_order_of_their_arrival)
{
    char uids[50][8];
    int granted = 0, ended = 0;

    begin_with_places(HOUR_MS, 8);
    for (int i = 49; i >= 0; i--) {
        g_autofree char *created = g_strdup_printf("2026-01-01T00:00:%02dZ", i);
        g_snprintf(uids[i], sizeof uids[i], "p%d", i);
        apply(uids[i], created, 0, "1", NULL);
    }
    while (granted < 50) {
        for (int i = 49; i > granted; i--) { /* the youngest are the fastest */
            g_autofree char *got = ask(uids[i], 0, "1");
            const bool room_for_all = i - granted < 10 - (granted - ended);
            ck_assert_msg(*got ? !room_for_all : room_for_all, "%s after %d: %s", uids[i],
                          granted, got);
        }
        expect(uids[granted], 0, "1", granted - ended < 10 ? NULL : INSUFFICIENT);
        if (granted - ended < 10)
            apply(uids[granted++], "2026-01-01T00:00:00Z", 0, "1", "n1");
        else
            store_delete_pod(extender.store, uids[ended++]);
    }
}
END_TEST

/* --- who asks ---------------------------------------------------------------------------------- */

static struct moment now;

/* The clock stands until it is moved. */
static void begin_at_one(int64_t n_places)
{
    begin_with_places(HOUR_MS, n_places);
    now = (struct moment){.now_ns = 1000000000, .now_ms = 1000};
    store_set_moment(extender.store, &now);
}

/* filter remembers what it has found out, but not beside those who came before. */
START_TEST(what_was_free_while_nobody_waited_is_left_to_the_older)
{
    begin_at_one(8);
    expect("z", 0, "8", NULL);
    now.now_ms += HINT_LASTS_MS + 1;
    apply("a", "2026-01-01T00:00:01Z", 0, "8", NULL);
    now.now_ms += HINT_LASTS_MS + 1;
    apply("b", "2026-01-01T00:00:02Z", 0, "8", NULL);
    expect("b", 0, "8", EARLIER);
    expect("a", 0, "8", NULL);
}
END_TEST

START_TEST(who_has_not_asked_is_not_waited_for)
{
    begin_at_one(8);
    tell(&(struct told){.uid = "old", .created = "2026-01-01T00:00:01Z", .mem = "8"});
    expect("new", 0, "8", NULL);
    expect("old", 0, "8", NULL);
    expect("new", 0, "8", EARLIER);
}
END_TEST

START_TEST(who_goes_on_asking_keeps_its_turn_and_no_other)
{
    begin_at_one(8);
    apply("old", "2026-01-01T00:00:01Z", 0, "8", NULL);
    for (int i = 0; i < 20; i++) {
        now.now_ms += ARRIVALS_ASKING_MS - 1;
        expect("new", 0, "8", EARLIER);
        expect("old", 0, "8", NULL);
    }
    now.now_ms += ARRIVALS_ASKING_MS;
    expect("new", 0, "8", NULL);
}
END_TEST

/* 10 units, of which kube-scheduler sees 4 in use: it does not ask about a pod of 8. */
static void fill_sums(void)
{
    static const struct string_pair units[] = {{MEM, "10"}, {COUNT, "1"}};

    store_apply_node(extender.store, &(struct node_view){.name = "n1",
                                                         .capacity = {units, 2},
                                                         .allocatable = {units, 2}});
    tell(&(struct told){.uid = "running", .ns = "other", .mem = "4", .node = "n1"});
    apply("tiny", "2026-01-01T00:00:09Z", 0, "1", NULL); /* somebody has asked */
}

START_TEST(who_cannot_ask_keeps_its_turn)
{
    begin_at_one(8);
    fill_sums();
    tell(&(struct told){.uid = "old", .created = "2026-01-01T00:00:01Z", .mem = "8"});
    expect("new", 0, "3", EARLIER);
    ck_assert_str_eq(place_of("old"), "n1");
    now.now_ms += HOUR_MS;
    expect("new", 0, "3", EARLIER);
    store_delete_pod(extender.store, "running"); /* now it can */
    now.now_ms += 11000;
    expect("new", 0, "3", EARLIER);
    now.now_ms += ARRIVALS_ASKING_MS;
    expect("new", 0, "3", NULL);
}
END_TEST

static const struct constraints gated = {.overlooked = 1U << OVERLOOKED_SCHEDULING_GATES},
                                selecting = {.selector = {(const struct string_pair[]){{"a", "b"}},
                                                          1}};
static const struct told never_asked[] = {
    {.uid = "old", .mem = "8", .constraints = &gated},
    {.uid = "old", .mem = "8", .constraints = &selecting},
    {.uid = "old", .mem = "8", .scheduler = "another"},
};

START_TEST(who_may_have_another_reason_not_to_ask_has_to_ask)
{
    begin_at_one(8);
    fill_sums();
    struct told told = never_asked[_i];
    told.created = "2026-01-01T00:00:01Z";
    tell(&told);
    expect("new", 0, "3", NULL);
    ck_assert_str_eq(place_of("old"), "");
    /* Once it has asked, only sums can be why it does not. */
    expect("old", 0, "8", INSUFFICIENT);
    now.now_ms += HOUR_MS;
    expect("new", 0, "3", EARLIER);
}
END_TEST

START_TEST(gates_go)
{
    begin_at_one(8);
    fill_sums();
    tell(&(struct told){.uid = "old", .created = "2026-01-01T00:00:01Z", .mem = "8",
                        .constraints = &gated});
    expect("new", 0, "3", NULL);
    tell(&(struct told){.uid = "old", .created = "2026-01-01T00:00:01Z", .mem = "8"});
    expect("new", 0, "3", EARLIER);
}
END_TEST

/* --- namespaces -------------------------------------------------------------------------------- */

START_TEST(who_waits_for_its_own_namespace_keeps_others_away_for_a_while_only)
{
    begin_at_one(8);
    tell(&(struct told){.uid = "own", .mem = "1", .node = "n1"});
    tell(&(struct told){.uid = "other", .ns = "other", .mem = "2", .node = "n1"});
    apply("large", "2026-01-01T00:00:01Z", 0, "10", NULL);
    expect("new", 0, "3", EARLIER);
    for (int i = 0; i < 20; i++) { /* both have to end */
        now.now_ms += ARRIVALS_ASKING_MS - 1;
        expect("large", 0, "10", INSUFFICIENT);
        expect("new", 0, "3", EARLIER);
    }
    store_delete_pod(extender.store, "other");
    expect("new", 0, "3", EARLIER);
    now.now_ms += HOUR_MS;
    expect("large", 0, "10", INSUFFICIENT);
    expect("new", 0, "3", NULL);
}
END_TEST

START_TEST(a_namespace_has_half_of_the_places_while_another_waits)
{
    static const char *const nodes[] = {"n1", "n2", "n3"};

    begin_at_one(2);
    for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autofree char *uid = g_strdup_printf("on-%s", nodes[i]);
        store_apply_node(extender.store,
                         &(struct node_view){.name = nodes[i],
                                             .capacity = PAIRS({MEM, "10"}, {COUNT, "1"})});
        tell(&(struct told){.uid = uid, .ns = "other", .mem = "5", .node = nodes[i]});
    }
    apply("m1", "2026-01-01T00:00:01Z", 0, "9", NULL);
    apply("m2", "2026-01-01T00:00:02Z", 0, "9", NULL);
    g_free(ask("new", 0, "1"));
    ck_assert_str_eq(place_of("m2"), "n2"); /* nobody else waits */
    tell(&(struct told){.uid = "b1", .ns = "b", .created = "2026-01-01T00:00:03Z", .mem = "9"});
    g_free(ask("b1", 0, "9"));
    ck_assert_str_eq(place_of("m1"), "n1");
    ck_assert_str_eq(place_of("m2"), "");
    ck_assert_str_eq(place_of("b1"), "n2");
    store_delete_pod(extender.store, "b1");
    g_free(ask("new", 0, "1"));
    ck_assert_str_eq(place_of("m2"), "n2");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arrivals");
    TCase *tcase = tcase_create("arrivals");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, a_namespace_brings_half_of_the_schedulers);
    tcase_add_test(tcase, the_oldest_goes_first_whoever_asks_first);
    tcase_add_test(tcase, who_does_not_fit_is_passed);
    tcase_add_test(tcase, who_fits_beside_the_older_ones_need_not_wait);
    tcase_add_test(tcase, importance_counts_before_age);
    tcase_add_test(tcase, a_pod_that_the_watch_has_not_shown_is_the_youngest);
    tcase_add_test(tcase, who_does_not_come_is_not_waited_for);
    tcase_add_test(tcase, in_no_order_unless_asked_for);
    tcase_add_test(tcase, a_pod_that_is_gone_leaves_the_queue);
    tcase_add_test(tcase, a_place_is_kept_for_who_does_not_fit);
    tcase_add_test(tcase, who_asks_for_something_else_has_no_place_for_it);
    tcase_add_test(tcase, who_comes_after_the_end_that_an_older_one_waits_for_has_a_place);
    tcase_add_test(tcase, the_place_that_needs_least_is_kept);
    tcase_add_test(tcase, a_place_is_kept_for_a_while_only_once_it_is_free);
    tcase_add_test(tcase, more_than_so_many_places_are_not_kept);
    tcase_add_test(tcase, fifty_pods_come_in_the_order_of_their_arrival);
    tcase_add_test(tcase, what_was_free_while_nobody_waited_is_left_to_the_older);
    tcase_add_test(tcase, who_has_not_asked_is_not_waited_for);
    tcase_add_test(tcase, who_goes_on_asking_keeps_its_turn_and_no_other);
    tcase_add_test(tcase, who_cannot_ask_keeps_its_turn);
    tcase_add_loop_test(tcase, who_may_have_another_reason_not_to_ask_has_to_ask, 0,
                        G_N_ELEMENTS(never_asked));
    tcase_add_test(tcase, gates_go);
    tcase_add_test(tcase, who_waits_for_its_own_namespace_keeps_others_away_for_a_while_only);
    tcase_add_test(tcase, a_namespace_has_half_of_the_places_while_another_waits);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
