/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that vanish before their node side has taken them, and who waits for them. */
#include "gate/waits/departures.h"
#include "store/feasibility.h"
#include "gate/waits/waits.h"
#include "literals.h"
#include "stored_world.h"
#include "suite.h"

#define AWAITED "A pod of the same size on the node still waits for its GPU"

static struct moment moment;

static void begin(void)
{
    setup();
    moment = (struct moment){.now_ns = 1, .now_ms = g_get_monotonic_time() / 1000};
    world.extender.bind_timeout_ms = 60;
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = {"p", "q"};
        world_add_pending(&world, names[i], 5);
    }
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
}

/* A decision is made, so long after the last one. */
static void pass(int64_t ms)
{
    store_set_moment(world.store, &moment);
    moment.now_ms += ms;
    store_decide_recorded(world.store, &moment);
    store_unlock(world.store);
    store_set_moment(world.store, NULL);
}

static guint departed(struct store *store)
{
    const struct node *node = ledger_node(store_lock(store), "duo");
    const guint n = node && node->departed ? node->departed->len : 0;

    store_unlock(store);
    return n;
}

START_TEST(who_vanishes_waiting_counts_for_a_while)
{
    store_vanish_pod(world.store, "uid-p");
    expect_used("duo", 0, 0, 0); /* it holds nothing */
    pass(0);
    world_expect_bind(&world, "q", "duo", AWAITED);
    world_add_pending(&world, "r", 4); /* another size */
    world_expect_bind(&world, "r", "duo", "");
    pass(DEPARTURE_MAX_MS - 1);
    ck_assert_int_eq(departed(world.store), 1);
    pass(1);
    ck_assert_int_eq(departed(world.store), 0);
    world_expect_bind(&world, "q", "duo", "");
}
END_TEST

/* So that a moment that nobody has decided in is none of the wait. */
START_TEST(its_time_begins_with_a_decision)
{
    store_vanish_pod(world.store, "uid-p");
    pass(5 * DEPARTURE_MAX_MS);
    ck_assert_int_eq(departed(world.store), 1);
    pass(DEPARTURE_MAX_MS);
    ck_assert_int_eq(departed(world.store), 0);
}
END_TEST

static uint64_t n_numbers, n_moments;

static uint64_t count_number(struct observer *observer)
{
    return ++n_numbers;
}

static void count_moment(struct observer *observer, const struct observation *observation)
{
    n_moments += observation->what == OBSERVED_TIME;
}

/* A record has the moment in which its time begins, and that in which it ends, and no other. */
START_TEST(or_with_a_look_of_housekeeping)
{
    struct observer observer = {count_number, count_moment};

    n_moments = 0;
    store_vanish_pod(world.store, "uid-p");
    store_set_moment(world.store, &moment);
    store_set_observer(world.store, &observer);
    store_end_waits(world.store);
    ck_assert_uint_eq(n_moments, 1);
    store_end_waits(world.store);
    ck_assert_uint_eq(n_moments, 1);
    moment.now_ms += DEPARTURE_MAX_MS;
    store_end_waits(world.store);
    ck_assert_uint_eq(n_moments, 2);
    store_set_observer(world.store, NULL);
    store_set_moment(world.store, NULL);
    ck_assert_int_eq(departed(world.store), 0);
}
END_TEST

START_TEST(who_has_ended_does_not)
{
    store_delete_pod(world.store, "uid-p");
    ck_assert_int_eq(departed(world.store), 0);
    world_expect_bind(&world, "q", "duo", "");
}
END_TEST

START_TEST(nor_who_was_taken)
{
    fake_cluster_assign(cluster, "p");
    fake_cluster_start(cluster, "p");
    world_catch_up(&world);
    store_vanish_pod(world.store, "uid-p");
    ck_assert_int_eq(departed(world.store), 0);
}
END_TEST

/* A list that does not name it tells the same as its deletion. */
START_TEST(who_is_missing_from_a_list_counts_as_well)
{
    store_list_begin(world.store, FEED_PODS);
    store_list_end(world.store, FEED_PODS);
    ck_assert_int_eq(departed(world.store), 1);
}
END_TEST

/* Patience ends without any change of the node. */
START_TEST(what_is_said_of_the_node_is_not_remembered)
{
    const struct pod_view pod = {.ns = "ml", .name = "q", .uid = "uid-q"};

    world_add_pending(&world, "r", 4);
    for (int gone = 0; gone < 2; gone++) {
        struct feasibility question;
        struct ledger *ledger;
        struct moment now;

        (gone ? store_vanish_pod : store_delete_pod)(world.store, gone ? "uid-r" : "uid-p");
        ledger = store_decide(world.store, &now);
        feasibility_init(&question, world.store,
                         &(struct feasibility_about){GATE_BY_FILTER, &pod,
                                                     store_pending(world.store, "uid-q"), &now,
                                                     WITHOUT_ORDER});
        ck_assert(feasibility_lasts(&question, ledger_node(ledger, "duo")) == !gone);
        feasibility_clear(&question);
        store_unlock(world.store);
        if (!gone)
            world_expect_bind(&world, "r", "duo", "");
    }
}
END_TEST

START_TEST(a_copy_of_the_store_knows_them)
{
    store_vanish_pod(world.store, "uid-p");
    g_autoptr(store) copy = store_copy(world.store);
    ck_assert_int_eq(departed(copy), 1);
}
END_TEST

static void encode(struct departures_image *take_image, GString *text)
{
    struct json_writer writer;

    while (departures_image_take(take_image))
        continue;
    json_writer_init(&writer, text);
    departures_encode(&writer, take_image);
    departures_image_free(take_image);
}

static struct departures_image *begin_image(struct departures *departures)
{
    struct departures_image *image = departures_image_new();

    departures_image_begin(image, departures);
    return image;
}

/* Where a record's next file begins. */
START_TEST(what_is_told_of_them_is_understood)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(ledger) other = ledger_new();
    struct departures *from = departures_new(), *to = departures_new();

    departures_note(from, store_lock(world.store), ledger_get(store_ledger(world.store), "uid-p"));
    store_unlock(world.store);
    departures_begin(from, 7);
    encode(begin_image(from), text);
    ck_assert(departures_decode(to, other, arena, json_parse(arena, text->str, text->len, NULL),
                                NULL));
    const struct node *node = ledger_node(other, "duo");
    ck_assert(node && node->departed && node->departed->len == 1);
    ck_assert_int_eq(g_array_index(node->departed, struct departed, 0).match_amount, 5);
    ck_assert(!departures_end(to, other, 7 + DEPARTURE_MAX_MS - 1));
    ck_assert(departures_end(to, other, 7 + DEPARTURE_MAX_MS));
    ck_assert_ptr_null(ledger_node(other, "duo")); /* it was there for them alone */
    /* What is told next takes the place of what was told. */
    ck_assert(departures_decode(to, other, arena, json_parse(arena, text->str, text->len, NULL),
                                NULL));
    ck_assert(departures_decode(to, other, arena, json_parse(arena, "[]", 2, NULL), NULL));
    ck_assert_ptr_null(ledger_node(other, "duo"));
    departures_free(from);
    departures_free(to);
}
END_TEST

/* Who vanishes while it waits, on a node of its own world. */
static void vanish(struct departures *departures, struct ledger *ledger, const char *ns,
                   const char *uid, const char *node)
{
    struct allocation *allocation = allocation_new(uid, ns, uid, 0);

    allocation->dialect = dialect_find("gpushare");
    allocation->match_amount = 5;
    allocation->waiting = true;
    ck_assert_ptr_nonnull(ledger_put(ledger, node, allocation));
    departures_note(departures, ledger, ledger_get(ledger, uid));
    ledger_drop(ledger, uid);
}

static guint count_departed(const struct ledger *ledger, const char *name)
{
    const struct node *node = ledger_node(ledger, name);

    return node && node->departed ? node->departed->len : 0;
}

static void vanish_all(struct departures *departures, struct ledger *ledger, int from, int to)
{
    for (int i = from; i < to; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i), *node = g_strdup_printf("n%d", i % 7);
        vanish(departures, ledger, i % 3 ? "ml" : "web", uid, node);
    }
}

/* Taken in one go or while they come, begin to count and end: the same text. */
START_TEST(an_image_is_of_the_moment_in_which_it_began)
{
    g_autoptr(ledger) ledger = ledger_new();
    g_autoptr(GString) at_once = g_string_new(NULL), meanwhile = g_string_new(NULL),
                       later = g_string_new(NULL);
    struct departures *departures = departures_new();

    vanish_all(departures, ledger, 0, 60);
    departures_begin(departures, 5);
    vanish_all(departures, ledger, 60, 100);
    encode(begin_image(departures), at_once);
    struct departures_image *image = begin_image(departures);
    ck_assert(departures_image_take(image));
    vanish_all(departures, ledger, 100, 130);
    departures_begin(departures, 9);
    ck_assert(departures_image_take(image));
    ck_assert(departures_end(departures, ledger, 5 + DEPARTURE_MAX_MS));
    encode(image, meanwhile);
    ck_assert_str_eq(meanwhile->str, at_once->str);
    encode(begin_image(departures), later);
    ck_assert_ptr_nonnull(strstr(at_once->str, "\"uid\":\"u0\""));
    ck_assert_ptr_null(strstr(later->str, "\"uid\":\"u0\""));
    ck_assert_ptr_nonnull(strstr(later->str, "\"uid\":\"u129\""));
    departures_free(departures);
}
END_TEST

/* They come in the order in which they vanished, each once, although others go between. */
START_TEST(a_copy_is_made_a_few_at_a_time)
{
    g_autoptr(ledger) ledger = ledger_new(), other = ledger_new();
    g_autoptr(GString) text = g_string_new(NULL);
    struct departures *from = departures_new(), *to = departures_new();
    uint64_t number = 0;
    int turns = 1;

    vanish_all(from, ledger, 0, 40);
    departures_begin(from, 5);
    vanish_all(from, ledger, 40, 80);
    for (; departures_copy(to, from, &number); turns++) {
        if (turns == 1)
            departures_end(from, ledger, 5 + DEPARTURE_MAX_MS);
    }
    ck_assert_int_ge(turns, 3);
    encode(begin_image(to), text);
    const char *at = text->str;
    for (int i = 40; i < 80; i++) {
        g_autofree char *uid = g_strdup_printf("\"uid\":\"u%d\"", i);
        ck_assert_ptr_nonnull(at = strstr(at, uid));
        ck_assert_ptr_null(strstr(at + 1, uid));
    }
    ck_assert(departures_begin(to, 6));
    ck_assert(departures_end(to, other, 6 + DEPARTURE_MAX_MS));
    departures_free(from);
    departures_free(to);
}
END_TEST

/* Of one's own: "few" has 3, vanished before all others. */
START_TEST(who_has_most_loses_the_oldest)
{
    g_autoptr(ledger) ledger = ledger_new();
    struct departures *departures = departures_new();

    for (int i = 0; i < DEPARTURES_MAX + 100; i++) {
        const char *ns = i < 3 ? "few" : "many";
        const char *node = i < 3 ? "theirs" : i < 10 ? "old" : "new";
        g_autofree char *uid = g_strdup_printf("u%d", i);
        vanish(departures, ledger, ns, uid, node);
    }
    ck_assert_uint_eq(count_departed(ledger, "theirs"), 3);
    ck_assert_uint_eq(count_departed(ledger, "old"), 0);
    ck_assert_uint_eq(count_departed(ledger, "new"), DEPARTURES_MAX - 3);
    vanish(departures, ledger, "few", "late", "theirs");
    ck_assert_uint_eq(count_departed(ledger, "theirs"), 4);
    ck_assert_uint_eq(count_departed(ledger, "new"), DEPARTURES_MAX - 4);
    departures_free(departures);
}
END_TEST

/* The rule, in as many words: who is gone, the oldest first. */
struct told {
    int ns, node;
    int64_t since_ms;
};

static void drop_told(GArray *told)
{
    int n[40] = {0}, most = 0;
    guint first = 0;

    for (guint i = 0; i < told->len; i++)
        n[g_array_index(told, struct told, i).ns]++;
    for (size_t i = 0; i < G_N_ELEMENTS(n); i++)
        most = MAX(most, n[i]);
    while (n[g_array_index(told, struct told, first).ns] < most)
        first++;
    g_array_remove_index(told, first);
}

static void pass_told(GArray *told, int64_t now_ms)
{
    for (guint i = told->len; i-- > 0;) {
        struct told *one = &g_array_index(told, struct told, i);
        if (one->since_ms != 0 && now_ms - one->since_ms >= DEPARTURE_MAX_MS)
            g_array_remove_index(told, i);
        else if (one->since_ms == 0)
            one->since_ms = now_ms;
    }
}

static void expect_told(const struct ledger *ledger, const GArray *told, int n_nodes)
{
    for (int node = 0; node < n_nodes; node++) {
        g_autofree char *name = g_strdup_printf("n%d", node);
        guint n = 0;
        for (guint i = 0; i < told->len; i++)
            n += g_array_index(told, struct told, i).node == node;
        ck_assert_uint_eq(count_departed(ledger, name), n);
    }
}

START_TEST(whoever_comes_and_whenever_they_end)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    g_autoptr(ledger) ledger = ledger_new();
    g_autoptr(GArray) told = g_array_new(FALSE, FALSE, sizeof(struct told));
    struct departures *departures = departures_new();
    int64_t now_ms = 1;

    for (int i = 0; i < 4000; i++) {
        const int d = g_rand_int_range(rand, 0, 40), n = i / 1300 % 2 ? 40 : 5;
        const struct told one = {MIN(d, g_rand_int_range(rand, 0, 40)) % n, d % 9, 0};
        g_autofree char *ns = g_strdup_printf("t%d", one.ns);
        g_autofree char *uid = g_strdup_printf("u%d", i), *node = g_strdup_printf("n%d", one.node);
        vanish(departures, ledger, ns, uid, node);
        g_array_append_val(told, one);
        if (told->len > DEPARTURES_MAX)
            drop_told(told);
        if (i % 50 == 0) {
            now_ms += i < 2500 ? 1 : 900;
            departures_end(departures, ledger, now_ms);
            departures_begin(departures, now_ms);
            pass_told(told, now_ms);
            expect_told(ledger, told, 9);
        }
    }
    ck_assert_uint_lt(told->len, DEPARTURES_MAX);
    departures_free(departures);
}
END_TEST

/* What was written before there was a limit names no namespace, and may name more. */
START_TEST(what_was_written_before_is_understood_and_bounded)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new("[");
    g_autoptr(ledger) ledger = ledger_new();
    struct departures *departures = departures_new();

    for (int i = 0; i < DEPARTURES_MAX + 2; i++)
        g_string_append_printf(text,
                               "%s{\"uid\":\"u%d\",\"node\":\"%s\",\"dialect\":\"gpushare\","
                               "\"amount\":2,\"time\":\"7\"}",
                               i ? "," : "", i, i < 2 ? "old" : "new");
    g_string_append_c(text, ']');
    ck_assert(departures_decode(departures, ledger, arena,
                                json_parse(arena, text->str, text->len, NULL), NULL));
    ck_assert_uint_eq(count_departed(ledger, "old"), 0);
    ck_assert_uint_eq(count_departed(ledger, "new"), DEPARTURES_MAX);
    departures_free(departures);
}
END_TEST

/* Whose they are is told, too: after that the same one gives way. */
START_TEST(what_is_told_of_them_says_whose_they_are)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(ledger) ledger = ledger_new(), other = ledger_new();
    struct departures *from = departures_new(), *to = departures_new();

    for (int i = 0; i < DEPARTURES_MAX; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        vanish(from, ledger, i == 0 ? "few" : "many", uid, i == 0 ? "theirs" : "new");
    }
    encode(begin_image(from), text);
    ck_assert(departures_decode(to, other, arena, json_parse(arena, text->str, text->len, NULL),
                                NULL));
    vanish(to, other, "many", "late", "new");
    ck_assert_uint_eq(count_departed(other, "theirs"), 1);
    ck_assert_uint_eq(count_departed(other, "new"), DEPARTURES_MAX - 1);
    departures_free(from);
    departures_free(to);
}
END_TEST

/* kubelet has turned it away: it is shown as Failed. */
START_TEST(who_was_rejected_does_not)
{
    const struct pod_view pod = {.ns = "ml", .name = "p", .uid = "uid-p", .node_name = "duo",
                                 .phase = "Failed", .status_reason = "UnexpectedAdmissionError"};

    store_apply_pod(world.store, &pod);
    store_vanish_pod(world.store, "uid-p");
    ck_assert_int_eq(departed(world.store), 0);
    world_expect_bind(&world, "q", "duo", "");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("departures");
    TCase *tc = tcase_create("departures");

    tcase_add_checked_fixture(tc, begin, teardown);
    tcase_add_test(tc, who_vanishes_waiting_counts_for_a_while);
    tcase_add_test(tc, its_time_begins_with_a_decision);
    tcase_add_test(tc, or_with_a_look_of_housekeeping);
    tcase_add_test(tc, who_has_ended_does_not);
    tcase_add_test(tc, who_was_rejected_does_not);
    tcase_add_test(tc, whoever_comes_and_whenever_they_end);
    tcase_add_test(tc, nor_who_was_taken);
    tcase_add_test(tc, who_is_missing_from_a_list_counts_as_well);
    tcase_add_test(tc, what_is_said_of_the_node_is_not_remembered);
    tcase_add_test(tc, a_copy_of_the_store_knows_them);
    tcase_add_test(tc, what_is_told_of_them_is_understood);
    tcase_add_test(tc, an_image_is_of_the_moment_in_which_it_began);
    tcase_add_test(tc, a_copy_is_made_a_few_at_a_time);
    tcase_add_test(tc, who_has_most_loses_the_oldest);
    tcase_add_test(tc, what_was_written_before_is_understood_and_bounded);
    tcase_add_test(tc, what_is_told_of_them_says_whose_they_are);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
