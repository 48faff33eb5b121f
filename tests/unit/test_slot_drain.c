/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to go where cards are to have fewer holders. */
#include "suite.h"

#include "switch/slot_drain.h"

#include <gpuledger/dialect.h>

#define CARDS 2

static struct ledger *book;
static struct topology *hardware;
static GHashTable *leaving;

static void setup(void)
{
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "32"},
                                           {"aliyun.com/gpu-count", "2"}};
    const struct node_view view = {.name = "n", .capacity = {capacity, 2}};
    const struct dialect_options options = {0};

    hardware = topology_new();
    book = ledger_new();
    ck_assert(dialect_read_topology(&view, &options, hardware, NULL, NULL));
    ledger_set_topology(book, "n", hardware);
}

static void teardown(void)
{
    g_clear_pointer(&leaving, g_hash_table_unref);
    ledger_free(book);
    topology_free(hardware);
}

struct pod {
    const char *uid;
    int32_t cards[CARDS]; /* CARD_UNKNOWN may be among them */
    uint32_t n;
    int64_t priority, created_s;
    bool terminating;
};

static void put(const struct pod *pod)
{
    struct allocation *allocation = allocation_new(pod->uid, "ml", pod->uid, pod->n);

    allocation->dialect = hardware->dialect;
    allocation->priority = pod->priority;
    allocation->created_s = pod->created_s;
    allocation->terminating = pod->terminating;
    for (uint32_t i = 0; i < pod->n; i++)
        allocation->shares[i] =
            (struct share){.memory = {1, AMOUNT_NODE_UNITS}, .card = pod->cards[i]};
    ledger_put(book, "n", allocation);
}

static void expect(int32_t most, GHashTable *staying, const char *uids)
{
    g_auto(GStrv) wanted = g_strsplit(uids, " ", -1);

    g_clear_pointer(&leaving, g_hash_table_unref);
    leaving = slot_drain_find(ledger_node(book, "n"), most, staying);
    const guint n = *uids ? g_strv_length(wanted) : 0;
    ck_assert_uint_eq(g_hash_table_size(leaving), n);
    for (guint i = 0; i < n; i++)
        ck_assert_msg(g_hash_table_contains(leaving, wanted[i]), "%s", wanted[i]);
}

START_TEST(only_those_go_who_are_too_many)
{
    put(&(struct pod){"a", {0}, 1, .created_s = 1});
    put(&(struct pod){"b", {0}, 1, .created_s = 2});
    put(&(struct pod){"c", {0}, 1, .created_s = 3});
    put(&(struct pod){"d", {1}, 1, .created_s = 4});
    expect(0, NULL, "");
    expect(3, NULL, "");
    expect(2, NULL, "c");
    expect(1, NULL, "b c");
}
END_TEST

START_TEST(who_ends_anyway_goes_first_then_lower_priorities_then_the_youngest)
{
    put(&(struct pod){"old", {0}, 1, .priority = 5, .created_s = 1});
    put(&(struct pod){"low", {0}, 1, .priority = 4, .created_s = 0});
    put(&(struct pod){"young", {0}, 1, .priority = 5, .created_s = 3});
    put(&(struct pod){"ending", {0}, 1, .priority = 9, .created_s = 0, .terminating = true});
    expect(3, NULL, "ending");
    expect(2, NULL, "ending low");
    expect(1, NULL, "ending low young");
}
END_TEST

START_TEST(whom_nobody_can_evict_goes_last)
{
    g_autoptr(GHashTable) staying = g_hash_table_new(g_str_hash, g_str_equal);

    g_hash_table_add(staying, (gpointer) "agent");
    put(&(struct pod){"agent", {0}, 1, .priority = -1, .created_s = 9});
    put(&(struct pod){"a", {0}, 1, .created_s = 1});
    expect(1, NULL, "agent");
    expect(1, staying, "a");
}
END_TEST

/* Whose card nobody knows has a slot of each. */
START_TEST(who_may_be_anywhere_counts_everywhere)
{
    put(&(struct pod){"a", {0}, 1, .created_s = 1});
    put(&(struct pod){"b", {1}, 1, .created_s = 2});
    put(&(struct pod){"lost", {CARD_UNKNOWN}, 1, .created_s = 3});
    expect(2, NULL, "");
    expect(1, NULL, "lost");
}
END_TEST

/* A pod on two cards makes room on both. */
START_TEST(nobody_goes_once_there_is_room)
{
    put(&(struct pod){"both", {0, 1}, 2, .created_s = 9});
    put(&(struct pod){"a", {0}, 1, .created_s = 2});
    put(&(struct pod){"b", {1}, 1, .created_s = 1});
    expect(1, NULL, "both");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slot_drain");
    TCase *tcase = tcase_create("slot_drain");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, only_those_go_who_are_too_many);
    tcase_add_test(tcase, who_ends_anyway_goes_first_then_lower_priorities_then_the_youngest);
    tcase_add_test(tcase, whom_nobody_can_evict_goes_last);
    tcase_add_test(tcase, who_may_be_anywhere_counts_everywhere);
    tcase_add_test(tcase, nobody_goes_once_there_is_room);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
