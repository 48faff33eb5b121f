/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room is kept for pods that kube-scheduler has nominated to a node, from those that are not more
 * important.
 */
#include "core/ledger.h"
#include "preempting_extender.h"
#include "suite.h"
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
static void keep_for(const char *uid)
{
    struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "20"}, {"aliyun.com/gpu-count", "2"}};
    struct string_pair marks[] = {{"gpuledger.io/kept-for", uid}};

    store_apply_node(extender.store, &(struct node_view){.name = "n1",
                                                         .capacity = {capacity, 2},
                                                         .annotations = {marks, uid ? 1 : 0}});
}

START_TEST(room_is_kept_while_the_node_says_so)
{
    g_autofree char *huge = g_strnfill(1000, 'u');

    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    if (_i == 0)
        keep_for("urgent"); /* who is not known yet */
    apply((struct pod){"urgent", "8", .priority = 1});
    keep_for("urgent");
    ck_assert(!passes("small", "3", 1, "n1"));
    ck_assert(passes("urgent", "8", 1, "n1"));
    ck_assert(passes("small", "2", 1, "n1"));
    ck_assert(passes("small", "3", 2, "n1"));          /* more important */
    apply((struct pod){"urgent", "8", .priority = 1}); /* its own status says nothing of it */
    ck_assert(!passes("small", "3", 1, "n1"));
    keep_for(_i == 0 ? NULL : huge);
    ck_assert(passes("small", "3", 1, "n1"));
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
    tcase_add_test(tests, others_do_not_take_the_room);
    tcase_add_test(tests, the_pod_does_not_compete_with_itself);
    tcase_add_test(tests, the_more_important_pay_no_heed);
    tcase_add_loop_test(tests, a_nomination_ends, 0, 6);
    tcase_add_loop_test(tests, room_is_kept_while_the_node_says_so, 0, 2);
    tcase_add_test(tests, several_on_one_node);
    tcase_add_test(tests, who_cannot_come_keeps_nothing);
    tcase_add_test(tests, a_copy_of_the_store_keeps_the_room_too);
    tcase_add_loop_test(tests, a_bind_leaves_the_card_alone, -1, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
