/* SPDX-License-Identifier: Apache-2.0 */
/* What an audit finds. */
#include "audited_world.h"
#include "suite.h"

/* --- the cluster itself ---------------------------------------------------------------------- */

START_TEST(nothing_is_wrong_with_a_sound_cluster)
{
    add_known("a", "duo", 6, "0");
    add_known("b", "duo", 6, "1");
    add_known("c", "mono", 10, "0");
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(report->rows->len, 0);
    ck_assert_uint_eq(audit_report_differences(report), 0);
    ck_assert_uint_eq(report->pods, 3);
    ck_assert_uint_eq(report->nodes, 2);
}
END_TEST

START_TEST(pods_of_other_schedulers_are_found)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "a", .mem = 4});
    fake_cluster_bind_bare(cluster, "a", "duo");
    add_known("b", "mono", 4, NULL);
    expect("foreign a duo | no card, 4GiB | nothing: its node side gives it no card\n"
           "foreign b mono | no card, 4GiB | counted on its only card\n");
}
END_TEST

START_TEST(a_lost_index_is_found)
{
    add_known("a", "duo", 4, "1");
    annotate("a", IDX, NULL);
    expect("annotation_lost a duo | card 1, 4GiB | on the card that it was bound to\n");
    annotate("a", POD, NULL);
    annotate("a", ASSIGNED, NULL);
    expect("annotation_lost a duo | card 1, 4GiB | on the card that it was bound to\n");
    annotate("a", IDX, "1");
    expect("");
}
END_TEST

/* After a restart nobody remembers the card, but the other annotations are there. */
START_TEST(an_index_lost_before_our_time_is_found)
{
    add("a", "duo", 4, "1");
    fake_cluster_annotate(cluster, "a", IDX, NULL);
    world_sync(&world);
    expect("annotation_lost a duo | no card, 4GiB | counted on every card\n");
}
END_TEST

START_TEST(a_malformed_index_is_found)
{
    add_known("a", "duo", 4, "0,1");
    expect("annotation_malformed a duo | no card, 4GiB | counted on every card\n");
}
END_TEST

START_TEST(an_edited_index_is_found)
{
    add_known("a", "duo", 4, "1");
    annotate("a", IDX, "0");
    expect("annotation_edited a duo | card 0 | card 1, 4GiB; card 0, 4GiB\n");
    fake_cluster_set_phase(cluster, "a", "Running");
    world_catch_up(&world);
    expect("annotation_edited a duo | card 0 | card 1, 4GiB\n");
}
END_TEST

START_TEST(an_edited_amount_is_found)
{
    add_known("a", "duo", 4, "1");
    annotate("a", POD, "1");
    expect("annotation_edited a duo | card 1, 4GiB | the larger, if it runs with what the "
           "annotation states\n");
}
END_TEST

START_TEST(a_card_that_is_gone_is_found)
{
    add_known("a", "duo", 4, "1");
    fake_cluster_put_node(cluster, "duo", 10, 1);
    world_catch_up(&world);
    expect("card_gone a duo | card 1, 4GiB | the node has 1 cards\n");
    fake_cluster_delete_node(cluster, "duo"); /* its pods will follow */
    world_catch_up(&world);
    expect("");
}
END_TEST

/* Which cards it has, nobody can say before its plugin is back. */
START_TEST(no_card_is_gone_from_a_node_whose_plugin_is_away)
{
    fake_cluster_put_node(cluster, "late", 0, 2);
    add_known("a", "late", 4, "1");
    expect("");
    fake_cluster_put_node(cluster, "late", 10, 1);
    world_catch_up(&world);
    expect("card_gone a late | card 1, 4GiB | the node has 1 cards\n");
}
END_TEST

START_TEST(who_came_last_to_a_full_card_is_found)
{
    add_known("first", "duo", 6, "0");
    annotate("first", ASSUME_TIME, "1");
    add_known("second", "duo", 6, "0");
    annotate("second", ASSUME_TIME, "2");
    add_known("some-time", "duo", 1, "0");
    add_known("beside", "duo", 6, "1");
    fake_cluster_set_phase(cluster, "first", "Running");
    fake_cluster_set_phase(cluster, "second", "Running");
    world_catch_up(&world);
    expect("card_overbooked second duo | card 0, 6GiB | card 0 holds 13GiB of 10GiB\n"
           "card_overbooked some-time duo | card 0, 1GiB | card 0 holds 13GiB of 10GiB\n");
}
END_TEST

START_TEST(a_pod_that_waits_for_long_is_found)
{
    add("a", "duo", 4, "1");
    fake_cluster_annotate(cluster, "a", ASSUME_TIME, LONG_AGO);
    fake_cluster_annotate(cluster, "a", ASSIGNED, "false");
    world_sync(&world);
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(report->counts[AUDIT_UNASSIGNED], 1);
    const struct audit_row *row = g_ptr_array_index(report->rows, 0);
    ck_assert_msg(g_str_has_prefix(row->ledger, "waiting for "), "%s", row->ledger);
    fake_cluster_set_phase(cluster, "a", "Running");
    world_catch_up(&world);
    expect("");
}
END_TEST

START_TEST(one_side_alone_can_be_looked_at)
{
    add_known("a", "duo", 4, NULL);
    g_autoptr(audit_report) report = audit_look(world.store, &options);
    g_autofree char *rows = rows_text(report);
    ck_assert_str_eq(rows, "foreign a duo | no card, 4GiB | nothing: its node side gives it no card\n");
    ck_assert(!report->compared);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
}
END_TEST

/* --- the ledger against the cluster ----------------------------------------------------------- */

START_TEST(a_pod_that_the_ledger_lacks_is_found)
{
    add("a", "duo", 4, "1");
    expect("missing a duo | card 1, 4 units | -\n");
}
END_TEST

START_TEST(a_pod_that_is_left_over_is_found)
{
    add_known("gone", "duo", 4, "1");
    add_known("ended", "duo", 4, "0");
    add_known("another", "mono", 4, "0");
    fake_cluster_delete_pod(cluster, "gone");
    fake_cluster_set_phase(cluster, "ended", "Failed");
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "another", .uid = "new", .mem = 1});
    expect("left_over another mono | - | card 0, 4GiB\n"
           "left_over ended duo | - | card 0, 4GiB\n"
           "left_over gone duo | - | card 1, 4GiB\n");
}
END_TEST

START_TEST(devices_are_named_by_their_resource)
{
    feed_event(world.store, FEED_PODS, false,
               "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"uid-a\"},"
               "\"spec\":{\"nodeName\":\"mono\",\"containers\":[{\"name\":\"c\","
               "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"3\"}}}]},"
               "\"status\":{\"phase\":\"Running\"}}");
    expect("left_over a mono | - | 3 of nvidia.com/gpu\n");
}
END_TEST

START_TEST(a_pod_in_another_place_is_found)
{
    add_known("card", "duo", 4, "1");
    add_known("node", "duo", 4, "0");
    fake_cluster_annotate(cluster, "card", IDX, "0");
    add("node", "mono", 4, "0");
    expect("place card duo | duo: card 0, 4GiB | duo: card 1, 4GiB\n"
           "place node mono | mono: card 0, 4GiB | duo: card 0, 4GiB\n");
}
END_TEST

START_TEST(another_amount_is_found)
{
    add_known("a", "duo", 4, "1");
    add("a", "duo", 5, "1");
    expect("amount a duo | card 1, 5GiB | card 1, 4GiB\n");
}
END_TEST

START_TEST(an_older_state_is_found)
{
    add_known("a", "duo", 4, "1");
    fake_cluster_annotate(cluster, "a", ASSIGNED, "false");
    fake_cluster_annotate(cluster, "a", ASSUME_TIME, "7");
    expect("stale a duo | card 1, 4GiB, not assigned, waiting, placed at 7 | "
           "card 1, 4GiB, assigned, waiting, placed at 0\n");
}
END_TEST

START_TEST(nodes_with_other_cards_are_found)
{
    fake_cluster_put_node(cluster, "duo", 20, 1);
    fake_cluster_put_unhealthy(cluster, "mono", "0");
    fake_cluster_put_node(cluster, "new", 8, 1);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    expect("topology - duo | 20GiB | 10GiB, 10GiB\n"
           "topology - mono | 10GiB unhealthy | 10GiB\n"
           "topology - new | 8GiB | -\n"
           "topology - plain | no cards | -\n");
    fake_cluster_delete_node(cluster, "duo");
    fake_cluster_deliver_all(cluster, world.store);
    expect("");
}
END_TEST

START_TEST(a_card_that_was_closed_meanwhile_is_found)
{
    fake_cluster_annotate_node(cluster, "duo", "gpuledger.io/cordoned-cards", "1");
    expect("topology - duo | 10GiB, 10GiB closed | 10GiB, 10GiB\n");
    world_catch_up(&world);
    expect("");
}
END_TEST

/* The ledger knows what the node had before its plugin went, and a fresh list does not tell. */
START_TEST(a_node_whose_plugin_is_away_is_no_difference)
{
    fake_cluster_put_node(cluster, "duo", 0, 2);
    expect("topology - duo | no cards | 10GiB, 10GiB\n");
    world_catch_up(&world);
    expect("");
}
END_TEST

START_TEST(a_bind_under_way_is_no_difference)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    world_catch_up(&world);
    world_expect_bind(&world, "p", "mono", "");
    expect("unconfirmed p mono | card 0, 6GiB | card 0, 6GiB\n");
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(audit_report_differences(report), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit");
    TCase *tests = tcase_create("audit");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, nothing_is_wrong_with_a_sound_cluster);
    tcase_add_test(tests, pods_of_other_schedulers_are_found);
    tcase_add_test(tests, a_lost_index_is_found);
    tcase_add_test(tests, an_index_lost_before_our_time_is_found);
    tcase_add_test(tests, a_malformed_index_is_found);
    tcase_add_test(tests, an_edited_index_is_found);
    tcase_add_test(tests, an_edited_amount_is_found);
    tcase_add_test(tests, a_card_that_is_gone_is_found);
    tcase_add_test(tests, no_card_is_gone_from_a_node_whose_plugin_is_away);
    tcase_add_test(tests, who_came_last_to_a_full_card_is_found);
    tcase_add_test(tests, a_pod_that_waits_for_long_is_found);
    tcase_add_test(tests, one_side_alone_can_be_looked_at);
    tcase_add_test(tests, a_pod_that_the_ledger_lacks_is_found);
    tcase_add_test(tests, a_pod_that_is_left_over_is_found);
    tcase_add_test(tests, devices_are_named_by_their_resource);
    tcase_add_test(tests, a_pod_in_another_place_is_found);
    tcase_add_test(tests, another_amount_is_found);
    tcase_add_test(tests, an_older_state_is_found);
    tcase_add_test(tests, nodes_with_other_cards_are_found);
    tcase_add_test(tests, a_card_that_was_closed_meanwhile_is_found);
    tcase_add_test(tests, a_node_whose_plugin_is_away_is_no_difference);
    tcase_add_test(tests, a_bind_under_way_is_no_difference);

    return suite_run(suite);
}
