/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether anybody is still on a node that is drained for a switch: by the API server's pods, and by a ledger
 * that may not have heard of the switch yet: then somebody may be on the way there.
 */
#include "scripted_api.h"

#include "kube/api_cluster.h"
#include "literals.h"
#include "suite.h"
#include "switch/node_switch.h"

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define CUT "nvidia.com/mig.config=all-1g.10gb@"
#define SLOTS "gpuledger.io/slots=1@"
#define PAST "2026-01-01T00:00:00Z"
#define FUTURE "2199-01-01T00:00:00Z"

static struct cluster *cluster;
static struct store *known;
static const char *listed; /* pods of the node, as the API server lists them */

static void setup(void)
{
    api_begin();
    cluster = api_cluster_new(client);
    known = store_new(&(struct store_options){.policy = policies});
    listed = "{\"items\":[]}";
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    store_free(known);
    api_cluster_free(cluster);
    api_end();
}

/* What the store has heard of the node, of two cards: that it is switched, or NULL. */
static void hear(const char *mark)
{
    const struct string_pair marks[] = {{"gpuledger.io/switch", mark}};

    store_apply_node(known, &(struct node_view){.name = "n1",
                                                .capacity = PAIRS({MEM, "20"}, {COUNT, "2"}),
                                                .annotations = {marks, mark ? 1 : 0}});
}

/* Holders of the node, which has been drained for long, and of which the API server shows that it is
 * switched, and these pods. */
static guint count_holders(const char *mark)
{
    g_autofree char *node = g_strdup_printf(
        "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"1\",\"annotations\":{"
        "\"gpuledger.io/switch\":\"%s\",\"gpuledger.io/switch-state\":\"draining@" PAST "/\"}},"
        "\"status\":{\"capacity\":{\"" MEM "\":\"20\",\"" COUNT "\":\"2\"}}}",
        mark);
    const struct dialect_options dialects = {0};
    const struct node_switch with = {.client = client,
                                     .cluster = cluster,
                                     .store = known,
                                     .dialects = &dialects,
                                     .dry_run = true};
    g_autoptr(GError) error = NULL;
    struct node_look look;

    script(&(struct fake_reply){.match = "/api/v1/nodes/n1", .chunks = {node}});
    script(&(struct fake_reply){.match = "/api/v1/pods?", .chunks = {listed}});
    ck_assert_msg(node_switch_look(&with, "n1", NULL, &look, &error) == OUTCOME_OK, "%s",
                  error ? error->message : "");
    ck_assert_int_eq(look.phase, SWITCH_DRAINING);
    const guint n = look.n_holders;
    node_look_clear(&look);
    return n;
}

static void book_on(const char *uid, const char *node)
{
    store_apply_pod(known,
                    &(struct pod_view){.ns = "ml",
                                       .name = uid,
                                       .uid = uid,
                                       .node_name = node,
                                       .phase = "Running",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "4"})})});
}

static void book(const char *uid)
{
    book_on(uid, "n1");
}

static const char *const marks[] = {CUT PAST, SLOTS PAST};
static const char *const later[] = {CUT FUTURE, SLOTS FUTURE};

START_TEST(who_has_not_heard_of_the_switch_may_be_granting_what_is_there)
{
    hear(NULL);
    ck_assert_uint_gt(count_holders(marks[_i]), 0);
}
END_TEST

START_TEST(nor_has_who_takes_it_to_be_later)
{
    hear(later[_i]);
    ck_assert_uint_gt(count_holders(marks[_i]), 0);
}
END_TEST

START_TEST(once_it_has_heard_an_empty_node_is_empty)
{
    hear(marks[_i]);
    ck_assert_uint_eq(count_holders(marks[_i]), 0);
}
END_TEST

START_TEST(whom_the_ledger_has_there_is_there)
{
    hear(marks[0]);
    book("a");
    book("b");
    ck_assert_uint_eq(count_holders(marks[0]), 2);
}
END_TEST

/* Nobody knows on which of its cards. */
START_TEST(whom_the_ledger_has_elsewhere_is_there_all_the_same)
{
    listed = "{\"items\":[{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"a\","
             "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n1\","
             "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
             "\":\"4\"}}}]},\"status\":{\"phase\":\"Running\"}}]}";
    hear(marks[1]);
    if (_i == 0)
        book_on("a", "n2");
    else if (_i == 1)
        book("a"); /* one holder may stay */
    ck_assert_uint_eq(count_holders(marks[1]), _i == 1 ? 0 : 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_switch");
    TCase *tcase = tcase_create("node_switch");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, who_has_not_heard_of_the_switch_may_be_granting_what_is_there, 0, 2);
    tcase_add_loop_test(tcase, nor_has_who_takes_it_to_be_later, 0, 2);
    tcase_add_loop_test(tcase, once_it_has_heard_an_empty_node_is_empty, 0, 2);
    tcase_add_test(tcase, whom_the_ledger_has_there_is_there);
    tcase_add_loop_test(tcase, whom_the_ledger_has_elsewhere_is_there_all_the_same, 0, 3);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
