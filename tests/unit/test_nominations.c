/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room is kept for pods that kube-scheduler has nominated to a node, from those that are not more
 * important.
 */
#include "core/ledger.h"
#include "preempting_extender.h"
#include "gang/gangs.h"
#include "store/feasibility.h"
#include "suite.h"
#include "wire/claim_sheet.h"
#include "world.h"

#include <string.h>

#define INSUFFICIENT "Insufficient GPU Memory"

static bool passes(const char *uid, const char *mem, int priority, const char *node)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},\"spec\":{"
        "\"priority\":%d,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"%s\"}}}]}},\"NodeNames\":[\"%s\"]}",
        uid, uid, priority, mem, node);
    g_autofree char *passing = g_strdup_printf("\"NodeNames\":[\"%s\"]", node);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, "\"Error\":\"\""), "%s", reply->str);
    ck_assert(strstr(reply->str, passing) || strstr(reply->str, INSUFFICIENT));
    return strstr(reply->str, passing);
}

/* A card of n1 has 4 left, the other one nothing; 8 are asked for by one that may end "low". */
static void preempt(int64_t priority)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"low", "6", .node = "n1", .card = "1", .priority = 1});
    apply((struct pod){"urgent", "8", .nominated = "n1", .priority = priority});
}

START_TEST(others_do_not_take_the_room)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"low", "6", .node = "n1", .card = "1", .priority = 1});
    ck_assert(passes("small", "3", 1, "n1"));
    apply((struct pod){"urgent", "8", .nominated = "n1", .priority = 100});
    ck_assert(!passes("small", "3", 1, "n1")); /* "low" is there still */
    apply((struct pod){"low", "6", .node = "n1", .card = "1", .priority = 1, .terminating = true});
    ck_assert(!passes("small", "3", 1, "n1"));
    store_delete_pod(extender.store, "low");
    ck_assert(!passes("small", "3", 1, "n1"));
    ck_assert(!passes("small", "3", 100, "n1")); /* equally important */
    ck_assert(passes("small", "2", 1, "n1"));    /* beside it */
    ck_assert(passes("small", "10", 1, "n2"));
}
END_TEST

START_TEST(the_pod_does_not_compete_with_itself)
{
    preempt(100);
    store_delete_pod(extender.store, "low");
    ck_assert(passes("urgent", "8", 100, "n1"));
}
END_TEST

START_TEST(the_more_important_pay_no_heed)
{
    preempt(100);
    store_delete_pod(extender.store, "low");
    ck_assert(passes("small", "3", 101, "n1"));
    ck_assert(passes("large", "10", 101, "n1"));
}
END_TEST

START_TEST(a_nomination_ends)
{
    const uint64_t freed = (preempt(100), ledger_freed(store_lock(extender.store)));
    store_unlock(extender.store);
    switch (_i) {
    case 0: /* it is taken back */
        apply((struct pod){"urgent", "8", .priority = 100});
        break;
    case 1: /* it names another node */
        apply((struct pod){"urgent", "8", .nominated = "n2", .priority = 100});
        break;
    case 2: /* the pod goes elsewhere */
        apply((struct pod){"urgent", "8", .node = "n2", .card = "0", .nominated = "n1", .priority = 100});
        break;
    case 3:
        store_delete_pod(extender.store, "urgent");
        break;
    case 4:
        apply((struct pod){"urgent", "8", .nominated = "n1", .priority = 100, .terminating = true});
        break;
    case 5: /* a list does not name it */
        store_list_begin(extender.store, FEED_PODS);
        apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
        apply((struct pod){"low", "6", .node = "n1", .card = "1", .priority = 1});
        store_list_end(extender.store, FEED_PODS);
        break;
    }
    ck_assert(passes("small", "3", 1, "n1"));
    ck_assert_uint_gt(ledger_freed(store_lock(extender.store)), freed); /* who waits may be woken */
    store_unlock(extender.store);
}
END_TEST

/* n1 with two cards of 10, as before, and an annotation or none. */
static void mark(const char *text)
{
    struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "20"}, {"aliyun.com/gpu-count", "2"}};
    struct string_pair marks[] = {{"gpuledger.io/plan", text}};

    store_apply_node(extender.store, &(struct node_view){.name = "n1",
                                                         .capacity = {capacity, 2},
                                                         .annotations = {marks, text ? 1 : 0}});
}

/* `who` are fields; a room of 8 of the second card, until so many seconds from now. */
static void keep_for(const char *who, int64_t seconds)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autoptr(GDateTime) until = g_date_time_add_seconds(now, (double)seconds);
    g_autofree char *time = g_date_time_format(until, "%Y-%m-%dT%H:%M:%SZ");
    g_autofree char *text = g_strdup_printf(
        "{\"doing\":\"room\",\"by\":\"test\",\"until\":\"%s\",\"rooms\":[{\"id\":\"room\",%s,"
        "\"priority\":1,\"dialect\":\"gpushare\",\"shares\":[{\"memory\":8,\"units\":true,\"card\":"
        "1}]}]}",
        time, who);

    mark(text);
}

static struct claim_sheet *sheet; /* what there is */

static void begin_sheet(void)
{
    sheet = claim_sheet_new();
}

static void end_sheet(void)
{
    claim_sheet_free(sheet);
}

/* NULL: it has no claims. What cannot be read changes nothing. */
static void set_claims(const char *node, const char *text)
{
    g_autoptr(GPtrArray) claims = claims_decode(text, NULL);

    if (claims)
        g_hash_table_remove(sheet->nodes, node);
    for (guint i = 0; claims && i < claims->len; i++)
        claim_sheet_add(sheet, node, claim_dup(claims->pdata[i]));
    store_apply_claims(extender.store, sheet);
}

/* What a Node shows keeps no room. */
static void show_claims(const char *node, const char *text)
{
    struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "20"}, {"aliyun.com/gpu-count", "2"}};
    const struct string_pair notes[] = {{CLAIM_KEY, text}};

    store_apply_node(extender.store, &(struct node_view){.name = node,
                                                         .capacity = {capacity, 2},
                                                         .annotations = {notes, text != NULL}});
}

/* A claim for "urgent", so many seconds old; less than 0: there is none. */
static void claim(const char *node, int64_t age_s)
{
    g_autofree char *text =
        g_strdup_printf("[{\"for\":\"urgent\",\"since\":%" G_GINT64_FORMAT ",\"ends\":[]}]",
                        g_get_real_time() / G_USEC_PER_SEC - age_s);

    set_claims(node, age_s >= 0 ? text : NULL);
}

/* Whichever Node is told first. */
START_TEST(of_two_claims_the_latest_counts)
{
    apply((struct pod){"whole", "10", .node = "n1", .card = "0"});
    apply((struct pod){"whole-too", "10", .node = "n2", .card = "0"});
    apply((struct pod){"urgent", "8", .nominated = "n2"});
    claim(_i == 0 ? "n1" : "n2", _i == 0 ? 5 : 20);
    claim(_i == 0 ? "n2" : "n1", _i == 0 ? 20 : 5);
    ck_assert(!passes("small", "3", 9, "n1"));
    ck_assert(passes("small", "3", 9, "n2"));
    claim("n1", -1); /* then the other one does */
    ck_assert(passes("small", "3", 9, "n1"));
    ck_assert(!passes("small", "3", 9, "n2"));
    claim("n2", -1);                          /* and then what the pod's status says */
    ck_assert(passes("small", "3", 9, "n2")); /* to those that are more important, nothing */
    ck_assert(!passes("small", "3", 0, "n2"));
}
END_TEST

/* What a Node shows keeps no room: its kubelet may have written it. */
START_TEST(what_a_node_shows_keeps_nothing)
{
    g_autofree char *text =
        g_strdup_printf("[{\"for\":\"urgent\",\"since\":%" G_GINT64_FORMAT ",\"ends\":[]}]",
                        g_get_real_time() / G_USEC_PER_SEC);

    apply((struct pod){"whole", "10", .node = "n1", .card = "0"});
    apply((struct pod){"urgent", "8"});
    show_claims("n1", text);
    ck_assert(passes("small", "3", 9, "n1"));
    claim("n1", 5);
    ck_assert(!passes("small", "3", 9, "n1"));
    show_claims("n1", NULL);
    ck_assert(!passes("small", "3", 9, "n1"));
}
END_TEST

/* Of two claims on one node each is of its own card, also where one waits for somebody whom neither
 * names. */
START_TEST(a_claim_waits_for_who_ends_anyway)
{
    const gint64 now_s = g_get_real_time() / G_USEC_PER_SEC;
    g_autofree char *text = g_strdup_printf(
        "[{\"for\":\"urgent\",\"since\":%" G_GINT64_FORMAT ",\"card\":1,\"ends\":[]},"
        "{\"for\":\"large\",\"since\":%" G_GINT64_FORMAT ",\"card\":0,\"ends\":[]}]",
        now_s, now_s);

    apply(
        (struct pod){"old", "8", .node = "n1", .card = "1", .priority = 1000, .terminating = true});
    apply((struct pod){"urgent", "3", .priority = 1});
    apply((struct pod){"large", "8"});
    set_claims("n1", text);
    ck_assert(!passes("small", "3", 9, "n1"));
    ck_assert(passes("small", "2", 9, "n1"));
}
END_TEST

#define FOR_URGENT "\"pod\":\"urgent\""

START_TEST(room_is_kept_while_the_node_says_so)
{
    static const char *const ends[] = {"", "{\"until\":\"soon\"}", "room for ml/big (since 12:00)"};

    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    if (_i == 0)
        keep_for(FOR_URGENT, 60); /* who is not known yet */
    apply((struct pod){"urgent", "8", .priority = 1});
    keep_for(FOR_URGENT, 60);
    ck_assert(!passes("small", "3", 1, "n1"));
    ck_assert(passes("urgent", "8", 1, "n1"));
    ck_assert(passes("small", "2", 1, "n1"));
    ck_assert(passes("small", "3", 2, "n1"));          /* more important */
    apply((struct pod){"urgent", "8", .priority = 1}); /* its own status says nothing of it */
    ck_assert(!passes("small", "3", 1, "n1"));
    mark(ends[_i]); /* or says what cannot be understood */
    ck_assert(passes("small", "3", 1, "n1"));
}
END_TEST

/* Nor from who would wait until those have gone who are to leave it. */
START_TEST(what_others_still_hold_is_kept_as_well)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"leaves", "6", .node = "n1", .card = "1", .priority = 1});
    keep_for(FOR_URGENT, 60);
    ck_assert(!passes("small", "1", 1, "n1"));
    ck_assert(!passes("urgent", "8", 1, "n1")); /* it has to wait */
    store_delete_pod(extender.store, "leaves");
    ck_assert(!passes("small", "3", 1, "n1"));
    ck_assert(passes("small", "2", 1, "n1"));
    ck_assert(passes("urgent", "8", 1, "n1"));
}
END_TEST

/* Whoever wrote it may have been killed; and nobody is believed who says that it lasts for ever. */
START_TEST(room_is_kept_for_a_bounded_time)
{
    static const int64_t seconds[] = {-1, 3600, 14 * 60};

    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    keep_for(FOR_URGENT, seconds[_i]);
    const uint64_t freed = ledger_freed(store_lock(extender.store));
    store_unlock(extender.store);
    ck_assert_int_eq(passes("small", "3", 1, "n1"), _i != 2);
    store_end_waits(extender.store);
    ck_assert_int_eq(ledger_freed(store_lock(extender.store)) > freed,
                     _i == 0); /* who waits may be woken */
    store_unlock(extender.store);
}
END_TEST

/* --- successors ----------------------------------------------------------------------------- */

#define FOR_SUCCESSOR                                                                              \
    "\"namespace\":\"ml\",\"controller\":\"set\",\"asks\":\"1 x 8 units\",\"since\":1000"

/* A pod that waits, and whether filter lets it on n1. */
static bool finds_room(const char *uid, const char *ns, const char *controller, const char *units)
{
    g_autofree char *owners =
        controller
            ? g_strdup_printf(",\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"uid\":\"%s\","
                              "\"controller\":true}]",
                              controller)
            : g_strdup("");
    g_autofree char *text = g_strdup_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\","
                                            "\"uid\":\"%s\"%s},\"spec\":{\"priority\":1,"
                                            "\"containers\":[{\"name\":\"c\",\"resources\":{"
                                            "\"limits\":{\"aliyun.com/gpu-mem\":\"%s\"}}}]}}",
                                            ns, uid, uid, owners, units);
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view pod;

    ck_assert(pod_view_decode(arena, json_parse(arena, text, strlen(text), NULL), &pod, NULL));
    store_apply_pod(extender.store, &pod);
    g_autofree char *asked = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", text);
    g_autoptr(GString) reply = g_string_new(NULL);
    extender_filter(&extender, asked, strlen(asked), reply);
    const bool passed = strstr(reply->str, "\"NodeNames\":[\"n1\"]");
    store_delete_pod(extender.store, uid);
    return passed;
}

START_TEST(room_is_kept_for_a_successor)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    keep_for(FOR_SUCCESSOR, 60);
    ck_assert(!finds_room("a", "ml", NULL, "8"));
    ck_assert(!finds_room("b", "ml", "other", "8"));
    ck_assert(!finds_room("c", "elsewhere", "set", "8"));
    ck_assert(!finds_room("d", "ml", "set", "9")); /* it asks for something else */
    ck_assert(!finds_room("e", "ml", "set", "3"));
    ck_assert(finds_room("f", "ml", "set", "8"));
    ck_assert(finds_room("g", "ml", NULL, "2"));
}
END_TEST

/* A room is of a certain card, so who is nominated there is found a place beside it, and not the other way
 * round: 2 are left of each card. */
START_TEST(who_is_nominated_finds_what_rooms_leave)
{
    apply((struct pod){"base", "2", .node = "n1", .card = "1", .priority = 1000});
    apply((struct pod){"equal", "8", .nominated = "n1", .priority = 1});
    keep_for(FOR_SUCCESSOR, 60);
    ck_assert(!passes("small", "3", 1, "n1"));
    ck_assert(passes("small", "2", 1, "n1"));
}
END_TEST

static void apply_bound(const char *uid, const char *created)
{
    g_autofree char *text = g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"%s\",\"creationTimestamp\":"
        "\"%s\","
        "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_POD\":\"8\","
        "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1\"},"
        "\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"uid\":\"set\",\"controller\":true}]},"
        "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
        "{\"aliyun.com/gpu-mem\":\"8\"}}}]},\"status\":{\"phase\":\"Running\"}}",
        uid, uid, created);
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view pod;

    ck_assert(pod_view_decode(arena, json_parse(arena, text, strlen(text), NULL), &pod, NULL));
    store_apply_pod(extender.store, &pod);
}

/* One pod takes it, whoever wrote that it is the successor; those that were there before have not. */
START_TEST(a_room_is_taken_once)
{
    keep_for(FOR_SUCCESSOR, 60);
    apply_bound("sibling", "1970-01-01T00:00:10Z");
    ck_assert(!finds_room("a", "ml", NULL, "3")); /* 2 beside the room, and 2 beside the sibling */
    ck_assert(finds_room("b", "ml", "set", "8"));
    store_delete_pod(extender.store, "sibling");
    apply_bound("successor", "2026-01-01T00:00:00Z");
    ck_assert(finds_room("c", "ml", NULL, "10"));
    ck_assert(finds_room("d", "ml", "set", "8"));
    keep_for(FOR_SUCCESSOR, 90); /* the plan goes on and does not know yet */
    ck_assert(finds_room("e", "ml", NULL, "10"));
    store_delete_pod(extender.store, "successor"); /* it has not come about after all */
    ck_assert(finds_room("f", "ml", NULL, "10"));  /* on the other card */
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    ck_assert(!finds_room("g", "ml", NULL, "3"));
}
END_TEST

/* --- groups --------------------------------------------------------------------------------- */

static bool takes(struct store *store, const char *uid, const char *ns)
{
    const struct pod_view pod = {.uid = uid, .ns = ns, .name = uid, .priority = 1};
    struct feasibility question;
    struct moment moment;
    const struct node *node = ledger_node(store_decide(store, &moment), "n1");

    feasibility_init(&question, store,
                     &(struct feasibility_about){.asker = GATE_BY_FILTER,
                                                 .pod = &pod,
                                                 .request = store_pending(store, uid),
                                                 .moment = &moment});
    const bool yes = feasibility_ask(&question, node, NULL) == REASON_NONE;
    feasibility_clear(&question);
    store_unlock(store);
    return yes;
}

static void join(const char *uid, const char *ns)
{
    const struct pod_group_claim claim = {.name = "train"};

    store_lock(extender.store);
    ck_assert(gangs_join(store_gangs(extender.store), ns, &claim, uid, GANG_PENDING,
                         &(struct gang_source){0}));
    store_unlock(extender.store);
}

/* Whatever pod of it each room is for; others find none of them, nor do those whose group has the same name
 * elsewhere. A copy knows it too. */
START_TEST(a_group_finds_what_is_kept_for_any_of_it)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    keep_for("\"pod\":\"one\",\"namespace\":\"ml\",\"group\":\"train\"", 60);
    static const char *const uids[] = {"one", "mate", "stranger", "namesake"};
    for (size_t i = 0; i < G_N_ELEMENTS(uids); i++)
        apply((struct pod){uids[i], "8", .priority = 1});
    join("one", "ml");
    join("mate", "ml");
    join("namesake", "elsewhere");
    g_autoptr(store) copy = store_copy(extender.store);
    struct store *const stores[] = {extender.store, copy};
    for (size_t i = 0; i < 2; i++) {
        ck_assert(takes(stores[i], "one", "ml"));
        ck_assert(takes(stores[i], "mate", "ml"));
        ck_assert(!takes(stores[i], "stranger", "ml"));
        ck_assert(!takes(stores[i], "namesake", "elsewhere"));
    }
    apply((struct pod){"one", "2", .node = "n1", .card = "1", .priority = 1}); /* it has a place */
    ck_assert(takes(extender.store, "stranger", "ml"));
}
END_TEST

START_TEST(several_on_one_node)
{
    apply((struct pod){"one", "8", .nominated = "n1", .priority = 100});
    ck_assert(passes("small", "9", 1, "n1"));
    apply((struct pod){"two", "8", .nominated = "n1", .priority = 50});
    ck_assert(!passes("small", "9", 1, "n1"));
    ck_assert(passes("small", "9", 60, "n1")); /* heeds the first only */
    ck_assert(passes("two", "8", 50, "n1"));
    ck_assert(passes("one", "8", 100, "n1"));
}
END_TEST

START_TEST(who_cannot_come_keeps_nothing)
{
    apply((struct pod){"a", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"b", "6", .node = "n1", .card = "1", .priority = 1000});
    apply((struct pod){"urgent", "8", .nominated = "n1", .priority = 100});
    ck_assert(passes("small", "4", 1, "n1"));
    apply((struct pod){"huge", "11", .nominated = "n2", .priority = 100});
    ck_assert(passes("small", "10", 1, "n2"));
}
END_TEST

/* Somebody more important has come to the card since, and is being deleted: nobody else has to end. */
START_TEST(who_waits_for_the_end_of_a_more_important_one_keeps_its_room)
{
    apply((struct pod){"a", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"b", "6", .node = "n1", .card = "1", .priority = 1000, .terminating = true});
    apply((struct pod){"urgent", "8", .nominated = "n1", .priority = 100});
    ck_assert(!passes("small", "3", 1, "n1"));
    ck_assert(passes("small", "4", 101, "n1"));
    store_delete_pod(extender.store, "b");
    ck_assert(!passes("small", "3", 1, "n1"));
    ck_assert(passes("small", "2", 1, "n1"));
    ck_assert(passes("urgent", "8", 100, "n1"));
}
END_TEST

/* Where the pod ends somebody itself it waits for nobody else: the room there is its own. */
START_TEST(who_ends_somebody_waits_for_nobody_else)
{
    apply((struct pod){"a", "6", .node = "n1", .card = "0", .priority = 1000, .terminating = true});
    apply((struct pod){"b", "6", .node = "n1", .card = "1", .priority = 1});
    apply((struct pod){"urgent", "8", .nominated = "n1", .priority = 100});
    store_delete_pod(extender.store, "b");
    ck_assert(!passes("small", "5", 1, "n1"));
    ck_assert(passes("small", "4", 1, "n1"));
}
END_TEST

/* The same for a pod of a group, for which preempt names nobody. */
START_TEST(a_pod_of_a_group_keeps_its_room_as_others_do)
{
    apply((struct pod){"a", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"b", "6", .node = "n1", .card = "1", .priority = 1000, .terminating = true});
    apply((struct pod){"urgent", "8", .nominated = "n1", .priority = 100});
    join("urgent", "ml");
    ck_assert(!passes("small", "3", 1, "n1"));
}
END_TEST

START_TEST(a_copy_of_the_store_keeps_the_room_too)
{
    preempt(100);
    struct store *original = extender.store;
    extender.store = store_copy(original);
    ck_assert(!passes("small", "3", 1, "n1"));
    store_free(extender.store);
    extender.store = original;
}
END_TEST

/* The node has room for both, but not on one card. */
START_TEST(a_bind_leaves_the_card_alone)
{
    struct world world;

    world_init(&world);
    world_populate(&world);
    world_add_pending(&world, "small", 3);
    struct extender other = extender;
    extender = world.extender;
    apply((struct pod){"urgent", "8", .nominated = "duo", .priority = _i});
    extender = other;
    world_expect_bind(&world, "small", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-small"), _i < 0 ? 0 : 1);
    world_expect_bind(&world, "small", "duo", "");
    world_verify(&world);
    world_release(&world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nominations");
    TCase *tests = tcase_create("nominations");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_checked_fixture(tests, begin_sheet, end_sheet);
    tcase_add_test(tests, others_do_not_take_the_room);
    tcase_add_test(tests, the_pod_does_not_compete_with_itself);
    tcase_add_test(tests, the_more_important_pay_no_heed);
    tcase_add_loop_test(tests, of_two_claims_the_latest_counts, 0, 2);
    tcase_add_test(tests, what_a_node_shows_keeps_nothing);
    tcase_add_test(tests, a_claim_waits_for_who_ends_anyway);
    tcase_add_loop_test(tests, a_nomination_ends, 0, 6);
    tcase_add_loop_test(tests, room_is_kept_while_the_node_says_so, 0, 3);
    tcase_add_test(tests, what_others_still_hold_is_kept_as_well);
    tcase_add_loop_test(tests, room_is_kept_for_a_bounded_time, 0, 3);
    tcase_add_test(tests, room_is_kept_for_a_successor);
    tcase_add_test(tests, who_is_nominated_finds_what_rooms_leave);
    tcase_add_test(tests, a_room_is_taken_once);
    tcase_add_test(tests, a_group_finds_what_is_kept_for_any_of_it);
    tcase_add_test(tests, several_on_one_node);
    tcase_add_test(tests, who_cannot_come_keeps_nothing);
    tcase_add_test(tests, who_waits_for_the_end_of_a_more_important_one_keeps_its_room);
    tcase_add_test(tests, who_ends_somebody_waits_for_nobody_else);
    tcase_add_test(tests, a_pod_of_a_group_keeps_its_room_as_others_do);
    tcase_add_test(tests, a_copy_of_the_store_keeps_the_room_too);
    tcase_add_loop_test(tests, a_bind_leaves_the_card_alone, -1, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
