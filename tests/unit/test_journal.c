/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one replica leaves to the next: two stores on one cluster, and a journal between them.
 */
#include "literals.h"
#include "objects.h"
#include "recorded_calls.h"
#include "world.h"

#include "store/booking.h"
#include "suite.h"

#include <string.h>

#define MODEL "gpu-model"
#define NO_ROOM "Insufficient GPU Memory in one device"
#define NOT_KNOWN "it is not known whether the pod was bound: fake: timed out"

static struct world old, new;
static struct fake_cluster *cluster;
static struct journal *left, *taken;

/* Another replica on the same cluster, which has listed it. */
static void join(struct world *world)
{
    const struct store_options options = {.policy = &policies[0],
                                          .patience_ms = 60000,
                                          .model_label = MODEL};

    world->store = store_new(&options);
    world->cluster = cluster;
    world->extender = (struct extender){
        .store = world->store,
        .cluster = fake_cluster_base(cluster),
        .bind_timeout_ms = 400,
    };
    world_sync(world);
}

/* "mono" has one card of 10 units, "duo" two; "p" and "q" want 6 and are pending. */
static void setup(void)
{
    world_init(&old);
    cluster = old.cluster;
    fake_cluster_put_node(cluster, "mono", 10, 1);
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 6});
    world_sync(&old);
    join(&new);
    left = old.extender.journal = journal_new(old.store);
    taken = new.extender.journal = journal_new(new.store);
}

static void teardown(void)
{
    world_verify(&old);
    world_verify(&new);
    journal_free(left);
    journal_free(taken);
    store_free(new.store);
    world_release(&old);
}

static void expect_no_violation(void)
{
    g_autofree char *violation = fake_cluster_violation(cluster);
    ck_assert_msg(!violation, "%s", violation);
}

static char *text_of(struct journal *journal)
{
    GString *text = g_string_new(NULL);

    journal_encode(journal, text);
    return g_string_free(text, FALSE);
}

static unsigned hand_over(void)
{
    g_autofree char *text = text_of(left);
    int bad = 0;
    unsigned booked = journal_decode(taken, text, &bad);

    ck_assert_int_eq(bad, 0);
    return booked;
}

/* The old replica sends a Binding of "p" that arrives late, and dies. */
static void die_with_a_binding_on_the_wire(const char *node)
{
    old.extender.bind_timeout_ms = 100;
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_DELAY_EFFECT, OUTCOME_UNKNOWN});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    world_expect_bind(&old, "p", node, NOT_KNOWN);
}

START_TEST(a_booking_whose_fate_is_open_is_kept_by_the_next)
{
    die_with_a_binding_on_the_wire("mono");
    ck_assert_uint_eq(hand_over(), 1);
    ck_assert_int_eq(world_state(&new, "uid-p"), ALLOCATION_UNKNOWN);
    ck_assert_int_eq(world_used(&new, "mono", 0), 6);
    world_expect_bind(&new, "q", "mono", NO_ROOM);
    fake_cluster_carry_out(cluster);
    world_settle_down(&new);
    ck_assert_int_eq(world_state(&new, "uid-p"), ALLOCATION_CONFIRMED);
    ck_assert_int_eq(world_used(&new, "mono", 0), 6);
    expect_no_violation();
}
END_TEST

/* The check itself: what the journal is there to prevent does happen without it. */
START_TEST(without_it_a_card_is_given_twice)
{
    die_with_a_binding_on_the_wire("mono");
    world_expect_bind(&new, "q", "mono", "");
    fake_cluster_carry_out(cluster);
    g_autofree char *violation = fake_cluster_violation(cluster);
    ck_assert_ptr_nonnull(violation);
}
END_TEST

START_TEST(the_next_repeats_the_same_binding)
{
    die_with_a_binding_on_the_wire("duo");
    hand_over();
    world_expect_bind(&new, "p", "duo", "");
    g_autofree char *first = fake_cluster_sent(cluster, 0);
    g_autofree char *second = fake_cluster_sent(cluster, 1);
    ck_assert_str_eq(first, second);
    fake_cluster_carry_out(cluster);
    ck_assert_uint_eq(fake_cluster_n_bound(cluster), 1);
    expect_no_violation();
}
END_TEST

static void add_model_node(struct world *world, const char *name)
{
    store_apply_node(world->store,
                     &(struct node_view){.name = name,
                                         .labels = PAIRS({MODEL, "M40"}),
                                         .capacity = PAIRS({"tencent.com/vcuda-core", "200"},
                                                           {"tencent.com/vcuda-memory", "64"})});
}

/* A namespace whose GPUs are limited gets no more of them by a change of replicas. */
START_TEST(the_next_counts_it_for_quotas)
{
    static const char *const pods[] = {"w", "x"}, *const nodes[] = {"m1", "m2"};

    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++)
        fake_cluster_add_pod(
            cluster, &(struct fake_pod){.name = pods[i],
                                        .containers = "[{\"name\":\"c\",\"resources\":{\"limits\":"
                                                      "{\"tencent.com/vcuda-core\":\"100\"}}}]"});
    world_sync(&old);
    world_sync(&new);
    for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++) {
        add_model_node(&old, nodes[i]);
        add_model_node(&new, nodes[i]);
    }
    store_put_configmap(
        new.store,
        &(struct configmap_view){.ns = "kube-system",
                                 .name = "gpuquota",
                                 .data = PAIRS({"gpu_quota", "{\"ml\":{\"quota\":{\"M40\":1}}}"})});
    old.extender.bind_timeout_ms = 100;
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_DELAY_EFFECT, OUTCOME_UNKNOWN});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    world_expect_bind(&old, "w", "m1", NOT_KNOWN);
    ck_assert_uint_eq(hand_over(), 1);
    world_expect_bind(&new, "x", "m2",
                      "The namespace may not have that much of the node's GPUs: ExceedsGPUQuota");
    store_delete_pod(new.store, "uid-w");
    world_expect_bind(&new, "x", "m2", "");
}
END_TEST

START_TEST(the_next_leaves_it_to_the_one_after)
{
    die_with_a_binding_on_the_wire("mono");
    g_autofree char *text = text_of(left);
    hand_over();
    g_autofree char *again = text_of(taken);
    ck_assert_str_eq(text, again);
    fake_cluster_carry_out(cluster);
    world_settle_down(&new);
    g_autofree char *after = text_of(taken);
    ck_assert_str_eq(after, "");
}
END_TEST

START_TEST(what_is_known_is_not_left)
{
    world_expect_bind(&old, "p", "mono", "");
    ck_assert_int_eq(world_state(&old, "uid-p"), ALLOCATION_BOUND);
    g_autofree char *text = text_of(left);
    ck_assert_str_eq(text, "");
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
    world_expect_bind(&old, "q", "duo", "fake: refused");
    g_autofree char *after = text_of(left);
    ck_assert_str_eq(after, "");
}
END_TEST

START_TEST(what_the_watch_has_shown_counts_more)
{
    die_with_a_binding_on_the_wire("duo");
    fake_cluster_bind_bare(cluster, "p", "mono"); /* somebody else was faster */
    world_sync(&new);
    ck_assert_uint_eq(hand_over(), 0);
    ck_assert_int_eq(world_state(&new, "uid-p"), ALLOCATION_CONFIRMED);
    ck_assert_int_eq(world_used(&new, "mono", 0), 6);
    ck_assert_int_eq(world_used(&new, "duo", 0), 0);
}
END_TEST

START_TEST(a_booking_survives_the_list_that_does_not_show_it_bound)
{
    die_with_a_binding_on_the_wire("mono");
    hand_over();
    world_sync(&new);
    ck_assert_int_eq(world_state(&new, "uid-p"), ALLOCATION_UNKNOWN);
    ck_assert_int_eq(world_used(&new, "mono", 0), 6);
    fake_cluster_carry_out(cluster);
    world_sync(&new);
    ck_assert_int_eq(world_state(&new, "uid-p"), ALLOCATION_CONFIRMED);
}
END_TEST

START_TEST(a_node_that_is_not_known_yet_is_no_obstacle)
{
    struct world early;

    die_with_a_binding_on_the_wire("mono");
    fake_cluster_delete_node(cluster, "mono");
    join(&early);
    early.extender.journal = journal_new(early.store);
    g_autofree char *text = text_of(left);
    int bad;
    ck_assert_uint_eq(journal_decode(early.extender.journal, text, &bad), 1);
    fake_cluster_put_node(cluster, "mono", 10, 1);
    world_sync(&early);
    ck_assert_int_eq(world_used(&early, "mono", 0), 6);
    journal_free(early.extender.journal);
    store_free(early.store);
}
END_TEST

/* --- text ----------------------------------------------------------------------------------- */

#define SHARE "{\"memory\":6,\"units\":true,\"card\":0,\"container\":-1}"
#define BOOKING(uid, dialect, time, shares)                                                        \
    "{\"uid\":" uid ",\"namespace\":\"ml\",\"name\":\"x\",\"node\":\"mono\",\"dialect\":" dialect    \
    ",\"amount\":6,\"time\":" time ",\"shares\":[" shares "],\"later\":{\"version\":2}}"
#define GOOD BOOKING("\"uid-x\"", "\"gpushare\"", "\"5\"", SHARE)
#define DOCUMENT(bookings) "{\"bookings\":[" bookings "],\"later\":1}"

static const struct foreign {
    const char *text;
    unsigned booked;
    int bad;
} foreign[] = {
    {DOCUMENT(""), 0, 0},
    {DOCUMENT(GOOD), 1, 0},
    {DOCUMENT(GOOD "," GOOD), 1, 0},
    {"", 0, -1},
    {"[]", 0, -1},
    {"{}", 0, -1},
    {"{\"bookings\":{}}", 0, -1},
    {"{\"bookings\":[", 0, -1},
    {DOCUMENT("7," GOOD ",null"), 1, 2},
    {DOCUMENT(BOOKING("\"\"", "\"gpushare\"", "\"5\"", SHARE)), 0, 1},
    {DOCUMENT(BOOKING("1", "\"gpushare\"", "\"5\"", SHARE)), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"klingon\"", "\"5\"", SHARE)), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"gpushare\"", "\"x\"", SHARE)), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"gpushare\"", "\"-5\"", SHARE)), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"gpushare\"", "\"5\"", "")), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"gpushare\"", "\"5\"", "{}")), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"gpushare\"", "\"5\"", "{\"memory\":-1,\"card\":0}")), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"gpushare\"", "\"5\"", "{\"memory\":1,\"card\":-2}")), 0, 1},
    {DOCUMENT(BOOKING("\"u\"", "\"gpushare\"", "\"5\"", "{\"memory\":1,\"card\":4294967296}")), 0,
     1},
};

START_TEST(text_of_others_is_read_as_far_as_it_can_be)
{
    const struct foreign *row = &foreign[_i];
    int bad = 99;

    ck_assert_uint_eq(journal_decode(taken, row->text, &bad), row->booked);
    ck_assert_int_eq(bad, row->bad);
    ck_assert_int_eq(world_used(&new, "mono", 0), row->booked ? 6 : 0);
}
END_TEST

START_TEST(a_booking_of_more_shares_than_a_pod_can_have_is_bad)
{
    g_autoptr(GString) shares = g_string_new(SHARE);
    int bad;

    for (int i = 0; i < REQUEST_ASKS_MAX; i++)
        g_string_append(shares, "," SHARE);
    g_autofree char *text = g_strdup_printf(
        "{\"bookings\":[{\"uid\":\"u\",\"namespace\":\"ml\",\"name\":\"x\",\"node\":\"mono\","
        "\"dialect\":\"gpushare\",\"amount\":6,\"time\":\"5\",\"shares\":[%s]}]}",
        shares->str);
    ck_assert_uint_eq(journal_decode(taken, text, &bad), 0);
    ck_assert_int_eq(bad, 1);
}
END_TEST

/* What a pod wants of a time-sliced card counts for the next holder as well. */
START_TEST(what_a_pod_wants_of_a_shared_card_is_kept)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    struct node node = {.name = "n1"};
    g_autoptr(allocation) booking = allocation_new("u", "ml", "p", 1);
    struct json_writer writer;
    const char *on;

    booking->node = &node;
    booking->dialect = dialect_find("nvidia");
    booking->terms = terms_new();
    booking->terms->memory_wanted = INT64_C(10) << 30;
    booking->shares[0] =
        (struct share){.card = CARD_UNKNOWN, .device = "nvidia.com/gpu", .devices = 1};
    json_writer_init(&writer, text);
    booking_encode(&writer, booking);
    g_autoptr(allocation) read =
        booking_decode(arena, json_parse(arena, text->str, text->len, NULL), NULL, &on);
    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(read->terms->memory_wanted, INT64_C(10) << 30);
    ck_assert_str_eq(read->shares[0].device, "nvidia.com/gpu");
    ck_assert(!strstr(text->str, "null"));
}
END_TEST

/* Whether the journal of `old` takes a booking in, with a name of that length. */
static bool enter(const char *ns, const char *uid, size_t length)
{
    g_autofree char *name = g_strnfill(length, 'x');
    struct allocation *booking = allocation_new(uid, ns, name, 1);

    booking->dialect = dialects[0];
    booking->state = ALLOCATION_UNKNOWN;
    booking = ledger_put(store_lock(old.store), "elsewhere", booking);
    const bool entered = journal_add(left, booking);
    store_unlock(old.store);
    return entered;
}

#define FULL "too many binds of the namespace are not settled; try again"

/* A journal that is full keeps what it has, and has room again once fates are known. */
START_TEST(a_full_journal_turns_binds_away)
{
    ck_assert(enter("ml", "uid-filler", JOURNAL_MAX / 2 - 300));
    world_expect_bind(&old, "p", "mono", FULL);
    ck_assert_int_eq(world_used(&old, "mono", 0), 0);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);

    ledger_drop(store_lock(old.store), "uid-filler");
    store_unlock(old.store);
    world_expect_bind(&old, "p", "mono", "");
}
END_TEST

START_TEST(a_namespace_leaves_others_room_in_the_journal)
{
    ck_assert(!enter("evil", "uid-big", JOURNAL_MAX / 2));
    ck_assert(enter("evil", "uid-long", JOURNAL_MAX / 2 - 300));
    ck_assert(!enter("evil", "uid-next", 450));
    ck_assert(enter("other", "uid-other", JOURNAL_MAX / 4 - 450));
    world_expect_bind(&old, "p", "mono", "");
}
END_TEST

static void expect_looks(uint64_t looks, uint64_t different)
{
    g_autoptr(GError) error = NULL;
    struct replay *replay = play_lines(store_options(old.store), &error);

    ck_assert_msg(replay != NULL, "%s", error ? error->message : "");
    ck_assert_uint_eq(replay_summary(replay)->looks, looks);
    ck_assert_uint_eq(replay_summary(replay)->compared, looks);
    ck_assert_uint_eq(replay_summary(replay)->different, different);
    replay_free(replay);
}

/* A record keeps no journal, but what it had no room for: played again, that is not booked either. */
START_TEST(what_the_journal_turned_away_is_not_booked_in_a_replay)
{
    static const char told[] = ",\"journal-full\":true";

    record_begin(old.store);
    world_sync(&old);
    ck_assert(enter("ml", "uid-filler", JOURNAL_MAX / 2 - 300));
    world_expect_bind(&old, "p", "mono", FULL);
    world_expect_bind(&old, "q", "mono", FULL); /* the card is free */
    ledger_drop(store_lock(old.store), "uid-filler");
    store_unlock(old.store);
    world_expect_bind(&old, "q", "mono", "");
    expect_looks(3, 0);
    ck_assert_uint_eq(g_string_replace(lines, told, "", 0), 2);
    expect_looks(3, 2); /* it cannot be known otherwise */
    record_end(old.store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("journal");
    TCase *tcase = tcase_create("journal");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_booking_whose_fate_is_open_is_kept_by_the_next);
    tcase_add_test(tcase, without_it_a_card_is_given_twice);
    tcase_add_test(tcase, the_next_repeats_the_same_binding);
    tcase_add_test(tcase, the_next_counts_it_for_quotas);
    tcase_add_test(tcase, the_next_leaves_it_to_the_one_after);
    tcase_add_test(tcase, what_is_known_is_not_left);
    tcase_add_test(tcase, what_the_watch_has_shown_counts_more);
    tcase_add_test(tcase, a_booking_survives_the_list_that_does_not_show_it_bound);
    tcase_add_test(tcase, a_node_that_is_not_known_yet_is_no_obstacle);
    tcase_add_loop_test(tcase, text_of_others_is_read_as_far_as_it_can_be, 0,
                        G_N_ELEMENTS(foreign));
    tcase_add_test(tcase, a_booking_of_more_shares_than_a_pod_can_have_is_bad);
    tcase_add_test(tcase, what_a_pod_wants_of_a_shared_card_is_kept);
    tcase_add_test(tcase, a_full_journal_turns_binds_away);
    tcase_add_test(tcase, what_the_journal_turned_away_is_not_booked_in_a_replay);
    tcase_add_test(tcase, a_namespace_leaves_others_room_in_the_journal);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
