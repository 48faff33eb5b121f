/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of a record begins with of pods that wait: their turn, the places kept for them, and what
 * their groups hold.
 */
#include "next_file.h"

#include "store/images/queue_state.h"

/* What is known of who waits, as a record tells it. */
static char *queue_of(struct store *store)
{
    const struct ledger *ledger = store_lock(store);
    g_autoptr(arrivals_image) image = arrivals_image_new();
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    arrivals_image_begin(image, store_arrivals(store), ledger, store_nominations(store));
    while (arrivals_image_take(image))
        continue;
    queue_state_encode(&writer, image);
    store_unlock(store);
    return g_string_free(text, FALSE);
}

static uint64_t give_number(struct observer *observer)
{
    return ++number;
}

static GPtrArray *observed; /* struct record * */

static void keep_observed(struct observer *observer, const struct observation *observation)
{
    g_ptr_array_add(observed, record_new(observation));
}

static gint compare_numbers(gconstpointer a, gconstpointer b)
{
    const struct record *left = *(struct record *const *)a, *right = *(struct record *const *)b;

    return (left->number > right->number) - (left->number < right->number);
}

/* All that is told where a file ends, by the store itself, in whatever order. */
static void note_known(void)
{
    struct observer observer = {give_number, keep_observed};

    observed = g_ptr_array_new();
    store_set_observer(live, &observer);
    store_tell_known(live);
    store_set_observer(live, NULL);
    g_ptr_array_sort(observed, compare_numbers);
    for (guint i = 0; i < observed->len; i++)
        note(observed->pdata[i]);
    g_ptr_array_unref(observed);
}

/* A promise stands, though by now there may be a better place. */
START_TEST(places_that_are_kept_are_known)
{
    g_autofree char *body = ask("6");
    g_autoptr(GString) reply = g_string_new(NULL);

    live_options.hold_ms = 3600000;
    live_options.n_places = 8;
    store_free(live);
    live = store_new(&live_options);
    list_all();
    add_running("a", "4", "n1");
    add_running("b", "5", "n2");
    add_pod("large", "9", NULL);
    store_lock(live);
    arrivals_ask(store_arrivals(live), "large", g_get_monotonic_time() / 1000);
    store_unlock(live);
    extender_filter(&(struct extender){.store = live}, body, strlen(body), reply);
    remove_pod("b");
    note_known();
    begin_file();
    const struct arrivals *arrivals = store_arrivals(replay_store(next_file));
    const struct reservation *place = arrivals_place(arrivals, "large");
    ck_assert_ptr_nonnull(place);
    ck_assert_str_eq(place->node, "n1");
    ck_assert_uint_eq(place->ending->len, 1);
    ck_assert_str_eq(place->ending->pdata[0], "a");
    ck_assert_int_eq(place->held->shares[0].memory.value, 9);
    expect_same(body);
    note_known(); /* compared: who waits, and what was learned */
    ck_assert_uint_eq(replay_summary(next_file)->compared, 2);
    ck_assert_uint_eq(replay_summary(next_file)->different, 0);
}
END_TEST

/* A pod that waits: whose scheduler it is, and whether more than sums keep it from being asked about. */
static void add_asking(const char *uid, const char *mem, bool picky, const char *scheduler)
{
    static const struct constraints selecting = {.overlooked = 1U << OVERLOOKED_VOLUMES};
    const struct pod_view view = {.ns = "ml",
                                  .name = uid,
                                  .uid = uid,
                                  .phase = "Pending",
                                  .scheduler_name = scheduler,
                                  .constraints = picky ? &selecting : NULL,
                                  CONTAINERS({.name = "c", .limits = PAIRS({MEM, mem})})};

    store_apply_pod(live, &view);
    note(record_new(&(struct observation){
        .what = OBSERVED_POD, .number = ++number, .pod = &view, .trust = TRUST_ANNOTATIONS}));
}

static const struct {
    const char *scheduler;
    bool picky, waited_for;
} silent[] = {
    {"mine", false, true},
    {"mine", true, false},
    {"another", false, false},
};

static void expect_place(const char *uid, bool has)
{
    const struct arrivals *arrivals = store_arrivals(replay_store(next_file));

    ck_assert_int_eq(arrivals_place(arrivals, uid) != NULL, has);
}

/* Who is waited for though it has not asked is so in the next file. */
START_TEST(who_cannot_ask_is_known)
{
    static const struct string_pair units[] = {{MEM, "10"}, {COUNT, "1"}};
    g_autofree char *body = ask("3");
    g_autoptr(GString) reply = g_string_new(NULL);

    live_options.hold_ms = 3600000;
    live_options.n_places = 8;
    store_free(live);
    live = store_new(&live_options);
    list_all();
    for (int i = 0; i < 2; i++) {
        const struct node_view view = {
            .name = i ? "n2" : "n1", .capacity = {units, 2}, .allocatable = {units, 2}};
        store_apply_node(live, &view);
        note(record_new(
            &(struct observation){.what = OBSERVED_NODE, .number = ++number, .node = &view}));
    }
    add_running("a", "4", "n1");
    add_running("b", "9", "n2");
    add_asking("asks", "1", false, "mine");
    store_lock(live);
    arrivals_ask(store_arrivals(live), "asks", g_get_monotonic_time() / 1000);
    store_unlock(live);
    add_asking("silent", "8", silent[_i].picky, silent[_i].scheduler);
    extender_filter(&(struct extender){.store = live}, body, strlen(body), reply);
    note_known();
    begin_file();
    expect_same(body);
    expect_place("silent", silent[_i].waited_for);
    remove_pod("silent");
    add_asking("another", "8", silent[_i].picky, silent[_i].scheduler);
    expect_same(body);
    expect_place("another", silent[_i].waited_for);
}
END_TEST

static guint ask_about(struct store *store, const char *uid)
{
    store_lock(store);
    arrivals_ask(store_arrivals(store), uid, 1000);
    const guint n = g_hash_table_size(arrivals_schedulers(store_arrivals(store)));
    store_unlock(store);
    return n;
}

/* A namespace that has brought as many schedulers as it may brings no more in the next file. */
START_TEST(who_brought_schedulers_is_known)
{
    const guint most = ARRIVALS_SCHEDULERS_MAX / 2;

    live_options.hold_ms = _i ? 3600000 : 0; /* 0: only what is kept on the way is told */
    store_free(live);
    live = store_new(&live_options);
    list_all();
    for (guint i = 0; i < most; i++) {
        g_autofree char *uid = g_strdup_printf("p%u", i);
        add_asking(uid, "1", false, uid);
        ck_assert_uint_eq(ask_about(live, uid), i + 1);
    }
    note_known();
    begin_file();
    add_asking("one-more", "1", false, "one-more");
    ck_assert_uint_eq(ask_about(live, "one-more"), most);
    ck_assert_uint_eq(ask_about(replay_store(next_file), "one-more"), most);
}
END_TEST

static bool refuses(const char *object)
{
    g_autofree char *line = g_strdup_printf("{\"kind\":\"arrivals\",\"object\":%s}", object);
    g_autoptr(GError) error = NULL;
    const bool played = replay_line(next_file, line, strlen(line), &error);

    ck_assert(played == !error);
    return !played;
}

START_TEST(no_places_but_of_such_a_pod)
{
#define PLACE(text) "{\"pods\":[{\"uid\":\"u\",\"place\":{\"node\":\"n1\"" text "}}]}"
#define SHARE "{\"memory\":6,\"units\":true,\"card\":0}"
    list_all();
    add_pod("u", "6", NULL);
    begin_file();
    ck_assert(!refuses("{\"pods\":[{\"uid\":\"nobody\",\"place\":{}}]}"));
    ck_assert(!refuses(PLACE("")));
    ck_assert(
        !refuses(PLACE(",\"dialect\":\"gpushare\",\"shares\":[" SHARE "],\"ending\":[\"x\",1]")));
    ck_assert(refuses("{}"));
    ck_assert(refuses("{\"pods\":[{}]}"));
    ck_assert(refuses("{\"pods\":[{\"uid\":\"u\",\"place\":{}}]}"));
    ck_assert(refuses(PLACE(",\"ending\":[\"x\"]")));
    ck_assert(refuses(PLACE(",\"shares\":[" SHARE "]")));
    ck_assert(refuses(PLACE(",\"dialect\":\"hami\",\"shares\":[" SHARE "]")));
    ck_assert(refuses(PLACE(",\"dialect\":\"gpushare\",\"shares\":[{}]")));
    ck_assert(
        refuses(PLACE(",\"dialect\":\"gpushare\",\"shares\":[{\"memory\":6,\"card\":0,\"device\":"
                      "\"nvidia.com/gpu\"}]")));
    g_autoptr(GString) many = g_string_new(SHARE);
    for (int i = 0; i < REQUEST_ASKS_MAX; i++)
        g_string_append(many, "," SHARE);
    g_autofree char *text =
        g_strdup_printf(PLACE(",\"dialect\":\"gpushare\",\"shares\":[%s]"), many->str);
    ck_assert(refuses(text));
}
END_TEST

#define GROUP "gang.scheduling.koordinator.sh/"

/* A member of a group of two. */
static void add_member(const char *uid)
{
    const struct pod_view view = {.ns = "ml",
                                  .name = uid,
                                  .uid = uid,
                                  .phase = "Pending",
                                  .annotations =
                                      PAIRS({GROUP "name", "pair"}, {GROUP "min-available", "2"}),
                                  CONTAINERS({.name = "c", .limits = PAIRS({MEM, "3"})})};

    store_apply_pod(live, &view);
    note(record_new(&(struct observation){
        .what = OBSERVED_POD, .number = ++number, .pod = &view, .trust = TRUST_ANNOTATIONS}));
}

static void filter(const char *uid, const char *mem, const char *annotations)
{
    g_autofree char *body = ask_as(uid, mem, annotations);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&(struct extender){.store = live}, body, strlen(body), reply);
}

static int32_t count_booked(struct store *store)
{
    const struct ledger *ledger = store_lock(store);
    const int32_t n = (int32_t)ledger_size(ledger);

    store_unlock(store);
    return n;
}

/* Whether it is known what looking again would find depends on what groups hold. */
START_TEST(what_is_settled_beside_a_group_is_so)
{
    live_options.gangs = true;
    live_options.hold_ms = 3600000;
    live_options.n_places = 8;
    store_free(live);
    live = store_new(&live_options);
    list_all();
    add_pod("huge", "11", NULL); /* more than any card has */
    store_lock(live);
    arrivals_ask(store_arrivals(live), "huge", g_get_monotonic_time() / 1000);
    store_unlock(live);
    add_member("m0");
    add_member("m1");
    filter("m0", "3", "{\"" GROUP "name\":\"pair\",\"" GROUP "min-available\":\"2\"}");
    ck_assert_int_eq(count_booked(live), 2);
    add_pod("p", "1", NULL);
    filter("p", "1", "{}"); /* and so "huge" is looked at */
    note_known();
    begin_file();
    ck_assert_int_eq(count_booked(replay_store(next_file)), 2);
    g_autofree char *expected = queue_of(live), *got = queue_of(replay_store(next_file));
    ck_assert_ptr_nonnull(strstr(expected, "\"hopeless\""));
    ck_assert_ptr_nonnull(strstr(expected, "\"settled\":true"));
    ck_assert_str_eq(got, expected);
    note_known(); /* where that file ends; learning what a group holds puts it anew */
    ck_assert_uint_gt(replay_summary(next_file)->compared, 0);
    ck_assert_msg(replay_summary(next_file)->different == 0, "%s becomes %s",
                  replay_summary(next_file)->difference.recorded,
                  replay_summary(next_file)->difference.replayed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_queue");
    TCase *tests = tcase_create("record_queue");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, places_that_are_kept_are_known);
    tcase_add_loop_test(tests, who_cannot_ask_is_known, 0, G_N_ELEMENTS(silent));
    tcase_add_loop_test(tests, who_brought_schedulers_is_known, 0, 2);
    tcase_add_test(tests, no_places_but_of_such_a_pod);
    tcase_add_test(tests, what_is_settled_beside_a_group_is_so);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
