/* SPDX-License-Identifier: Apache-2.0 */
/* For how long a node is being changed to another configuration of its plugin. */
#include "nvidia_words.h"
#include "store/changes/node_changes.h"
#include "suite.h"

static struct changes *changes;
static char table[] = "whole=1,shared=4";

static void begin(void)
{
    setup();
    options.nvidia_config_replicas = table;
    changes = changes_new();
}

static void end(void)
{
    changes_free(changes);
    teardown();
}

static int64_t show(const char *name, const char *capacity, const char *labels, int64_t now_ms)
{
    NODE(name, capacity, .labels = labels);
    return changes_see(changes, book, name, now_ms);
}

#define TO(name) "nvidia.com/device-plugin.config=" name " "
#define OF(count, replicas) "nvidia.com/gpu.count=" count " nvidia.com/gpu.replicas=" replicas

START_TEST(a_change_ends_when_plugin_and_labels_agree)
{
    ck_assert_int_eq(show("n", GPUS "=8", TO("shared") OF("8", "1"), 100), 100);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_CHANGING);
    ck_assert_int_eq(show("n", GPUS "=32", TO("shared") OF("8", "1"), 200), 100);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_CHANGING);
    ck_assert_int_eq(show("n", GPUS "=32", TO("shared") OF("8", "4"), 300), 0);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    ck_assert(!changes_end(changes, book, 1000000));
    ck_assert(ledger_verify(book, NULL));
}
END_TEST

START_TEST(a_contradiction_that_lasts_is_no_change)
{
    show("n", GPUS "=4", TO("shared") OF("2", "1"), 100);
    show("later", GPUS "=4", TO("shared") OF("2", "1"), 20100);
    ck_assert(!changes_end(changes, book, 100 + CHANGE_MS - 1));
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_CHANGING);
    ck_assert(changes_end(changes, book, 100 + CHANGE_MS));
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    ck_assert_int_eq(pool_of("n", GPUS)->isolation, ISOLATION_NONE);
    ck_assert_reason(ASK("later", GPUS "=1"), REASON_CHANGING);
    ck_assert(!changes_end(changes, book, 20100 + CHANGE_MS - 1));
    ck_assert(changes_end(changes, book, 20100 + CHANGE_MS));
    ck_assert_reason(ASK("later", GPUS "=1"), REASON_NONE);
    /* Nor does it begin again with each word of the node, but for another configuration. */
    ck_assert_int_eq(show("n", GPUS "=4", TO("shared") OF("2", "1"), 900000), 100);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    ck_assert_int_eq(show("n", GPUS "=4", TO("whole") OF("2", "1"), 900000), 900000);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_CHANGING);
}
END_TEST

/* Policies look at what there is anew. */
START_TEST(what_is_given_again_is_supply)
{
    g_autoptr(ledger) other = ledger_new();
    struct ledger *whole = book;

    show("n", GPUS "=4", TO("shared") OF("2", "1"), 1);
    const uint64_t before = ledger_supply(book);
    changes_end(changes, book, 1 + CHANGE_MS);
    ck_assert_uint_ne(ledger_supply(book), before);
    book = other;
    NODE("n", GPUS "=4", .labels = OF("2", "1"));
    ck_assert_uint_eq(ledger_supply(other), ledger_supply(whole));
    book = whole;
}
END_TEST

/* What is given then is no more than at other times. */
START_TEST(what_is_withheld_besides_stays_so)
{
    NODE("n", GPUS "=4", .labels = TO("shared") OF("2", "2"),
         .annotations = "gpuledger.io/slots=1");
    changes_see(changes, book, "n", 1);
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 0);
    ck_assert(changes_end(changes, book, 1 + CHANGE_MS));
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 1);
    ck_assert_int_eq(pool_of("n", GPUS)->withheld, WITHHELD_SLOTS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_changes");
    TCase *tests = tcase_create("changes");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_change_ends_when_plugin_and_labels_agree);
    tcase_add_test(tests, a_contradiction_that_lasts_is_no_change);
    tcase_add_test(tests, what_is_given_again_is_supply);
    tcase_add_test(tests, what_is_withheld_besides_stays_so);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
