/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each older pod is judged by what it finds itself: what is kept for a pod only that pod finds free, whoever
 * asks, and what is closed to a pod is not left to it.
 */
#include "literals.h"

#include "base/log.h"
#include "explain/trial.h"
#include "store/feasibility.h"
#include "suite.h"
#include "verbs/extender.h"
#include "gate/node_backoff/node_backoff.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define EARLIER "left to a pod that has waited for longer"
#define INSUFFICIENT "Insufficient GPU Memory"
#define REJECTING "has rejected pods that were bound to it"
#define HOUR_MS (3600 * 1000)
#define REJECTS 3

static struct extender extender;

struct pod {
    const char *uid, *controller;
    int age; /* in the order of ages */
    int units;
    const char *ns; /* NULL: "ml" */
};

/* A room for pods of "set" that ask for 8 units of 10. */
#define ROOM                                                                                       \
    "{\"id\":\"%s\",\"namespace\":\"ml\",\"controller\":\"set\",\"asks\":\"1 x 8 units\","         \
    "\"since\":1000,\"priority\":1,\"dialect\":\"gpushare\",\"shares\":[{\"memory\":8,"            \
    "\"units\":true,\"card\":%d}]}"

/* A node of so many cards of 10, with so many rooms, each of one of the first cards. */
static void tell_node(const char *name, int cards, int rooms)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autoptr(GDateTime) until = g_date_time_add_minutes(now, 10);
    g_autofree char *time = g_date_time_format(until, "%Y-%m-%dT%H:%M:%SZ");
    g_autoptr(GString) mark = g_string_new(NULL);
    g_autofree char *units = g_strdup_printf("%d0", cards);
    g_autofree char *count = g_strdup_printf("%d", cards);

    g_string_printf(mark, "{\"doing\":\"room\",\"by\":\"test\",\"until\":\"%s\",\"rooms\":[", time);
    for (int i = 0; i < rooms; i++) {
        g_autofree char *id = g_strdup_printf("%s-%d", name, i);
        g_string_append(mark, i ? "," : "");
        g_string_append_printf(mark, ROOM, id, i);
    }
    g_string_append(mark, "]}");
    const struct string_pair marks[] = {{"gpuledger.io/plan", mark->str}};
    store_apply_node(extender.store,
                     &(struct node_view){.name = name,
                                         .capacity = PAIRS({MEM, units}, {COUNT, count}),
                                         .annotations = {marks, rooms > 0}});
}

static void begin_with(int64_t n_places, int64_t hold_ms)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000,
                                                   .hold_ms = hold_ms,
                                                   .n_places = n_places,
                                                   .gang_room_ms = HOUR_MS,
                                                   NODE_BACKOFF_SETTINGS(REJECTS, HOUR_MS)}),
    };
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, feed);
        store_list_end(extender.store, feed);
    }
}

static void begin(int64_t n_places)
{
    begin_with(n_places, HOUR_MS);
}

static void teardown(void)
{
    store_free(extender.store);
}

static void run(const char *uid, const char *node, const char *card, const char *units)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "others",
                                       .name = uid,
                                       .uid = uid,
                                       .node_name = node,
                                       .phase = "Running",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, units})})});
}

static const char *ns_of(const struct pod *pod)
{
    return pod->ns ? pod->ns : "ml";
}

/* "" if the pod may go to the node, else what kube-scheduler is told. */
static char *ask(const struct pod *pod, const char *node)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\"},\"spec\":{"
        "\"priority\":1,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"%d\"}}}]}},\"NodeNames\":[\"%s\"]}",
        pod->uid, ns_of(pod), pod->uid, pod->units, node);
    g_autofree char *passed = g_strdup_printf("\"NodeNames\":[\"%s\"]", node);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    if (strstr(reply->str, passed))
        g_string_truncate(reply, 0);
    return g_string_free(reply, FALSE);
}

static void expect(const struct pod *pod, const char *node, const char *refusal)
{
    g_autofree char *got = ask(pod, node);

    ck_assert_msg(refusal ? strstr(got, refusal) != NULL : !*got, "%s on %s: %s", pod->uid, node,
                  got);
}

/* It waits, and has asked. */
static void come(const struct pod *pod, const char *node)
{
    g_autofree char *units = g_strdup_printf("%d", pod->units);
    g_autofree char *created = g_strdup_printf("2026-01-01T00:00:%02dZ", pod->age);

    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = ns_of(pod),
                                       .name = pod->uid,
                                       .uid = pod->uid,
                                       .controller = pod->controller,
                                       .created = created,
                                       .priority = 1,
                                       .phase = "Pending",
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, units})})});
    g_free(ask(pod, node));
}

static const struct pod old = {"old", NULL, 1, 8}, elder = {"elder", "set", 1, 8},
                        middle = {"middle", NULL, 2, 8}, successor = {"successor", "set", 3, 8};

START_TEST(a_successor_need_not_leave_its_room_to_who_cannot_take_it)
{
    begin(_i);
    tell_node("n1", 1, 1);
    come(&old, "n1");
    come(&successor, "n1");
    expect(&old, "n1", INSUFFICIENT);
    expect(&successor, "n1", NULL);
    tell_node("n1", 1, 0);
    expect(&successor, "n1", EARLIER);
}
END_TEST

/* It goes to the fuller card, where its room is not; nobody has that then, and the older pod fits there. */
START_TEST(a_room_is_kept_no_longer_once_its_pod_has_come)
{
    begin(_i);
    tell_node("n1", 2, 1);
    run("runs", "n1", "1", "1");
    come(&old, "n1");
    come(&successor, "n1");
    expect(&successor, "n1", NULL);
}
END_TEST

/* Of two successors each has its own room, and there is one. */
START_TEST(one_room_is_for_one_successor)
{
    begin(_i);
    tell_node("n1", 1, 1);
    come(&elder, "n1");
    come(&successor, "n1");
    expect(&successor, "n1", EARLIER);
    expect(&elder, "n1", NULL);
}
END_TEST

/* "elder" waits for the end of a pod on card 1 when it gets a room on card 0. From then on it may come, so
 * its time passes once another pod had to leave it card 1. */
START_TEST(whoever_may_come_to_its_room_is_waited_for_no_longer_than_others)
{
    const struct pod young = {"young", NULL, 2, 3};
    struct moment moment = {.now_ns = g_get_real_time() * 1000, .now_ms = 1000};

    begin_with(1, 60000);
    store_set_moment(extender.store, &moment);
    tell_node("n1", 2, 0);
    run("large", "n1", "0", "10");
    run("small", "n1", "1", "3");
    come(&elder, "n1");
    store_delete_pod(extender.store, "large");
    tell_node("n1", 2, 1);
    expect(&young, "n1", EARLIER);
    moment.now_ms += 59999;
    expect(&young, "n1", EARLIER);
    moment.now_ms += 1;
    expect(&young, "n1", NULL);
    store_set_moment(extender.store, NULL);
}
END_TEST

/* "elder" takes its room, "middle" the other card, and 2 are left beside either. Whose namespace the one
 * is of who asks does not matter. */
START_TEST(an_older_pod_finds_its_own_room)
{
    static const struct pod young[] = {{"young", NULL, 3, 2}, {"young", "set", 3, 2, "elsewhere"}};
    const struct pod large = {"large", NULL, 4, 3};

    begin(_i / 2);
    tell_node("n1", 2, 1);
    come(&elder, "n1");
    come(&middle, "n1");
    come(&young[_i % 2], "n1");
    expect(&young[_i % 2], "n1", NULL);
    expect(&large, "n1", EARLIER);
}
END_TEST

/* Both go to cards where their rooms are not, or not both, and "middle" to what they leave. */
START_TEST(older_pods_leave_their_own_rooms)
{
    static const struct pod twin = {"twin", "set", 1, 8}, young = {"young", NULL, 3, 1};

    begin(_i);
    tell_node("n1", 3, 2);
    run("runs", "n1", "2", "1");
    come(&elder, "n1");
    come(&twin, "n1");
    come(&middle, "n1");
    come(&young, "n1");
    expect(&young, "n1", NULL);
}
END_TEST

/* The pod for which a place is looked for finds the nodes as it will find them, whoever asks first. */
START_TEST(no_place_is_kept_for_who_has_a_room)
{
    begin(4);
    tell_node("n1", 1, 0);
    tell_node("n2", 1, 1);
    run("runs", "n1", "0", "5");
    come(&elder, "n1");
    const struct pod large = {"large", NULL, 4, 5};
    expect(&large, "n1", NULL);
}
END_TEST

START_TEST(a_place_is_kept_for_who_has_no_room)
{
    begin(4);
    tell_node("n1", 1, 0);
    tell_node("n2", 1, 1);
    run("runs", "n1", "0", "5");
    come(&old, "n1");
    come(&successor, "n1"); /* it asks first, since then: the room is its own */
    const struct pod large = {"large", NULL, 4, 5};
    expect(&large, "n1", EARLIER);
    expect(&successor, "n2", NULL);
}
END_TEST

static void nominate(const char *uid, const char *node)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = uid,
                                       .uid = uid,
                                       .nominated_node = node,
                                       .priority = 1,
                                       .phase = "Pending",
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "8"})})});
}

/* "old" may go to n2 until its room is kept for another, and has a place from then on. */
START_TEST(a_place_is_looked_for_again_once_room_is_kept)
{
    const struct pod large = {"large", NULL, 4, 5};

    begin(4);
    tell_node("n1", 1, 0);
    tell_node("n2", 1, 0);
    run("runs", "n1", "0", "5");
    come(&old, "n1");
    expect(&large, "n1", NULL);
    if (_i == 0)
        tell_node("n2", 1, 1);
    else
        nominate("urgent", "n2");
    expect(&large, "n1", EARLIER);
}
END_TEST

/* Each node is seen with the place that is kept on it, until the next one is: the winner's name is the
 * node's own. A place is kept where least has to end. */
START_TEST(the_best_of_nodes_with_places_is_known_by_its_name)
{
    static const struct pod small = {"small", NULL, 3, 5};
    struct placement placement;
    struct moment now;

    begin(4);
    tell_node("n1", 2, 0);
    tell_node("n2", 2, 0);
    run("a", "n1", "0", "4");
    run("b", "n1", "1", "5");
    run("c", "n2", "0", "4");
    run("d", "n2", "1", "5");
    come(&(struct pod){"first", NULL, 1, 8}, "n2");
    come(&(struct pod){"second", NULL, 2, 8}, "n1");
    come(&small, "n1");
    expect(&small, "n1", NULL);
    expect(&small, "n2", NULL);
    const struct pod_view pod = {.ns = "ml", .name = small.uid, .uid = small.uid, .priority = 1};
    store_decide(extender.store, &now);
    const struct trial_pod trial = {&pod, store_pending(extender.store, small.uid), &now, NULL};
    const struct node *best = trial_choose(extender.store, &trial, &placement);
    ck_assert_str_eq(best ? best->name : "none", "n1");
    store_unlock(extender.store);
}
END_TEST

/* --- nodes that are closed ---------------------------------------------------------------------- */

/* kubelet has failed as many pods of "ml" as close the node to it, and to nobody else. */
static void reject(const char *node)
{
    for (int i = 0; i < REJECTS; i++) {
        g_autofree char *uid = g_strdup_printf("rejected-%d", i);
        struct pod_view pod = {.ns = "ml",
                               .name = uid,
                               .uid = uid,
                               .node_name = node,
                               .phase = "Pending",
                               .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                               CONTAINERS({.name = "c", .limits = PAIRS({MEM, "1"})})};
        pod.node_name = NULL;
        store_apply_pod(extender.store, &pod);
        pod.node_name = node;
        store_apply_pod(extender.store, &pod);
        pod.phase = "Failed";
        pod.status_reason = "UnexpectedAdmissionError";
        pod.status_message = "Allocate failed due to no healthy devices present; cannot allocate "
                             "unhealthy devices " MEM ", which is unexpected";
        store_apply_pod(extender.store, &pod);
    }
}

/* Whoever else asks for the same is judged for himself. */
START_TEST(nobody_leaves_a_node_to_who_may_not_go_there)
{
    static const struct pod other = {"other", NULL, 3, 8, "elsewhere"},
                            like = {"like", NULL, 2, 8, "another"};

    begin(_i);
    tell_node("n1", 1, 0);
    reject("n1");
    come(&old, "n1");
    come(&other, "n1");
    expect(&old, "n1", REJECTING);
    expect(&other, "n1", NULL);
    come(&like, "n1");
    expect(&other, "n1", EARLIER);
    run("runs", "n1", "0", "5");
    const struct pod small = {"small", NULL, 4, 3, "elsewhere"};
    expect(&small, "n1", _i ? EARLIER : NULL); /* "like" has a place there */
}
END_TEST

static uint64_t take_none(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    return 1;
}

static uint64_t choose_n1(void *data, const struct gang_need *need, struct gang_choice *ret_choice)
{
    *ret_choice = (struct gang_choice){g_ptr_array_new_with_free_func(g_free), 1};
    g_ptr_array_add(ret_choice->take_nodes, g_strdup("n1"));
    return 1;
}

/* A group of two waits for so long that n1 is closed to all others. */
static void close_for_group(const char *uid)
{
    const struct pod_group_claim claim = {.name = "train", .min = 2, .timeout_ms = HOUR_MS};
    struct gangs *gangs = store_gangs(extender.store);

    store_lock(extender.store);
    ck_assert(gangs_join(gangs, "ml", &claim, uid, GANG_PENDING, &(struct gang_source){0}));
    ck_assert(gangs_join(gangs, "ml", &claim, "mate", GANG_PENDING, &(struct gang_source){0}));
    for (int64_t ms = 10000; ms <= 10000 + 2 * GANG_ROOM_AFTER_MS; ms += 10000) {
        gangs_expire(gangs, ms);
        gangs_ask(
            gangs,
            &(struct gang_ask){
                .uid = uid, .pool = "pool", .now_ms = ms, .take = take_none, .choose = choose_n1});
    }
    ck_assert(gangs_kept_on(gangs, "n1", "old", 1, NULL));
    store_unlock(extender.store);
}

static enum reason judge(const struct pod *pod)
{
    const struct pod_view view = {
        .uid = pod->uid, .ns = ns_of(pod), .name = pod->uid, .priority = 1};
    struct feasibility question;
    struct moment moment;
    const struct node *node = ledger_node(store_decide(extender.store, &moment), "n1");

    feasibility_init(&question, extender.store,
                     &(struct feasibility_about){GATE_BY_FILTER, &view,
                                                 store_pending(extender.store, pod->uid), &moment});
    const enum reason reason = feasibility_ask(&question, node, NULL);
    feasibility_clear(&question);
    store_unlock(extender.store);
    return reason;
}

START_TEST(a_group_does_not_leave_its_room_to_who_waits_longer)
{
    static const struct pod member = {"member", NULL, 3, 8};

    begin(_i);
    tell_node("n1", 1, 0);
    come(&old, "n1");
    come(&member, "n1");
    ck_assert_int_eq(judge(&member), REASON_EARLIER_POD);
    close_for_group("member");
    ck_assert_int_eq(judge(&old), gate_reason_find("gang_room"));
    ck_assert_int_eq(judge(&member), REASON_NONE);
}
END_TEST

/* A plan's room for "old" on the node, by the node's annotation alone, as a kubelet can write it for any pod. */
static void keep_for_old(const char *name, const char *units)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autoptr(GDateTime) until = g_date_time_add_minutes(now, 10);
    g_autofree char *time = g_date_time_format(until, "%Y-%m-%dT%H:%M:%SZ");
    g_autofree char *mark = g_strdup_printf(
        "{\"doing\":\"room\",\"by\":\"test\",\"until\":\"%s\",\"rooms\":[{\"id\":"
        "\"old\",\"pod\":\"old\",\"priority\":1,\"dialect\":\"gpushare\",\"shares\":"
        "[{\"memory\":1,\"units\":true,\"card\":0}]}]}",
        time);

    store_apply_node(extender.store,
                     &(struct node_view){.name = name,
                                         .capacity = PAIRS({MEM, units}, {COUNT, "1"}),
                                         .annotations = PAIRS({"gpuledger.io/plan", mark})});
}

/* With places, n1 is too full for "old" as well. */
START_TEST(what_another_node_says_loses_nobody_its_turn)
{
    static const struct pod small = {"small", NULL, 2, 5};

    begin(_i ? 4 : 0);
    tell_node("n1", 1, 0);
    if (_i)
        run("runs", "n1", "0", "5");
    keep_for_old("far", "4");
    come(&old, "n1");
    expect(&small, "n1", EARLIER);
}
END_TEST

START_TEST(what_a_node_says_opens_no_other_node_that_is_kept_for_a_group)
{
    static const struct pod member = {"member", NULL, 3, 8};

    begin(_i);
    tell_node("n1", 1, 0);
    keep_for_old("far", "10");
    come(&old, "n1");
    come(&member, "n1");
    close_for_group("member");
    ck_assert_int_eq(judge(&old), gate_reason_find("gang_room"));
    ck_assert_int_eq(judge(&member), REASON_NONE);
    keep_for_old("n1", "10");
    ck_assert_int_eq(judge(&old), REASON_NONE);
    ck_assert_int_eq(judge(&member), REASON_EARLIER_POD); /* "old" may go there */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arrivals_views");
    TCase *tcase = tcase_create("arrivals_views");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, a_successor_need_not_leave_its_room_to_who_cannot_take_it, 0, 2);
    tcase_add_loop_test(tcase, a_room_is_kept_no_longer_once_its_pod_has_come, 0, 2);
    tcase_add_loop_test(tcase, one_room_is_for_one_successor, 0, 2);
    tcase_add_test(tcase, whoever_may_come_to_its_room_is_waited_for_no_longer_than_others);
    tcase_add_loop_test(tcase, an_older_pod_finds_its_own_room, 0, 4);
    tcase_add_loop_test(tcase, older_pods_leave_their_own_rooms, 0, 2);
    tcase_add_test(tcase, no_place_is_kept_for_who_has_a_room);
    tcase_add_test(tcase, a_place_is_kept_for_who_has_no_room);
    tcase_add_loop_test(tcase, a_place_is_looked_for_again_once_room_is_kept, 0, 2);
    tcase_add_test(tcase, the_best_of_nodes_with_places_is_known_by_its_name);
    tcase_add_loop_test(tcase, nobody_leaves_a_node_to_who_may_not_go_there, 0, 2);
    tcase_add_loop_test(tcase, a_group_does_not_leave_its_room_to_who_waits_longer, 0, 2);
    tcase_add_loop_test(tcase, what_another_node_says_loses_nobody_its_turn, 0, 2);
    tcase_add_loop_test(tcase, what_a_node_says_opens_no_other_node_that_is_kept_for_a_group, 0, 2);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
