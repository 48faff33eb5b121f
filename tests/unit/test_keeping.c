/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan keeps on nodes, against an API server with a script. */
#include "maintain/keeping.h"

#include "evicting_api.h"
#include "suite.h"

#include <gpuledger/dialect.h>

static struct keeping *plan;
static GString *told;

static void complain(void *data, const char *text)
{
    g_string_append_printf(told, "%s\n", text);
}

static void setup(void)
{
    evicting_begin();
    told = g_string_new(NULL);
    plan = keeping_new(&(struct keeping_options){.client = client, .by = "plan", .tell = complain});
    clock_await_waiting(1); /* the thread that renews */
}

static void teardown(void)
{
    keeping_free(plan);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    evicting_end();
    g_string_free(told, TRUE);
}

static struct kept_room *room_of(const char *uid, const char *group)
{
    struct kept_room *room = kept_room_new();

    *room = (struct kept_room){.uid = g_strdup(uid),
                               .group = g_strdup(group),
                               .ns = g_strdup("ml"),
                               .held = allocation_new(uid, "ml", uid, 0)};
    room->held->dialect = dialects[0];
    return room;
}

/* It was there before, and goes on being kept. */
static void adopt(const char *node)
{
    struct plan_mark *mark = plan_mark_new();

    mark->doing = g_strdup("test");
    mark->by = g_strdup("plan");
    g_ptr_array_add(mark->rooms, room_of("u", "g"));
    keeping_adopt(plan, node, mark);
}

/* A Node that says this of a plan; NULL: nothing. */
static const char *node_text(const char *node, const char *by, const char *until)
{
    g_autofree char *mark =
        by ? g_strdup_printf("\"gpuledger.io/plan\":\"{\\\"doing\\\":\\\"things\\\",\\\"by\\\":"
                             "\\\"%s\\\",\\\"until\\\":\\\"%s\\\",\\\"rooms\\\":[]}\"",
                             by, until)
           : g_strdup("");

    return keep(g_strdup_printf("{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"7\","
                                "\"annotations\":{%s}}}",
                                node, mark));
}

static void show_node(const char *node, const char *by, const char *until)
{
    answer(keep(g_strdup_printf("GET /api/v1/nodes/%s ", node)), FAKE_ALWAYS, 200,
           node_text(node, by, until));
}

static void accept_writes(void)
{
    answer("PATCH /api/v1/nodes/", FAKE_ALWAYS, 200, NULL);
}

static unsigned n_writes(const char *node, const char *text)
{
    g_autofree char *line = g_strdup_printf("PATCH /api/v1/nodes/%s ", node);

    return count_requests(line, text);
}
#define GONE "\"gpuledger.io/plan\":null"

/* Most of all the node that a plan has emptied: it goes, and what is kept on others is still renewed. */
START_TEST(a_node_that_goes_ends_nothing_on_others)
{
    static const char *const gone[] = {"a", "b", "c", "d"};
    g_autoptr(GError) failure = NULL;

    show_node("n1", NULL, NULL);
    accept_writes();
    answer("GET", FAKE_ALWAYS, 404, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(gone); i++)
        adopt(gone[i]);
    adopt("n1");
    ck_assert_msg(keeping_narrow(plan, &failure), "%s", failure ? failure->message : "");
    ck_assert_uint_eq(fake_server_count(server), 6); /* of each a GET, and the PATCH */
    const struct keeping_place place = {"a", NULL};
    ck_assert(!keeping_set(plan, "test", &place, 1, NULL)); /* but no step begins there */
    keeping_abandon(plan);
}
END_TEST

/* --- another plan ----------------------------------------------------------------------------- */

static const struct {
    const char *by, *until;
    bool refused;
} others[] = {
    {NULL, NULL, false},
    {"other", "2026-01-05T12:00:01Z", true},
    {"other", "2026-01-05T12:15:00Z", true},
    {"other", "2026-01-05T12:00:00Z", false}, /* it was killed */
    {"other", "2026-01-05T12:16:00Z", false}, /* more than is believed */
    {"plan", "2026-01-05T12:01:00Z", false},  /* our own, before a restart */
    {"", "2026-01-05T12:01:00Z", true},
    {"other", "nonsense", false},
};

START_TEST(a_node_where_another_plan_is_at_work_is_left_to_it)
{
    const struct keeping_place place = {"n1", NULL};
    g_autoptr(GError) error = NULL;

    show_node("n1", others[_i].by, others[_i].until);
    accept_writes();
    ck_assert_int_eq(keeping_set(plan, "mine", &place, 1, &error), !others[_i].refused);
    ck_assert_uint_eq(n_writes("n1", "mine"), others[_i].refused ? 0 : 1);
    if (others[_i].refused)
        ck_assert_msg(strstr(error->message, "another plan is at work on node 'n1'") &&
                          strstr(error->message, ": things"),
                      "%s", error->message);
    keeping_end(plan);
    /* Nor is its mark taken away. Our own goes, as does what says nothing. */
    ck_assert_uint_eq(n_writes("n1", GONE), !others[_i].refused && others[_i].by ? 1 : 0);
}
END_TEST

START_TEST(what_killed_plans_have_left_is_taken_away)
{
    const bool lives = others[_i].refused || g_strcmp0(others[_i].by, "plan") == 0;

    show_node("n1", others[_i].by, others[_i].until);
    accept_writes();
    ck_assert(keeping_clean(client, "n1", NULL));
    /* Without a name of its own it takes no plan's for its own, but that of one without a name. */
    ck_assert_uint_eq(n_writes("n1", GONE), others[_i].by && (!lives || !*others[_i].by) ? 1 : 0);
}
END_TEST

/* --- writing ---------------------------------------------------------------------------------- */

static const struct {
    int conflicts, status;
    bool ok;
    unsigned writes;
} conflicts[] = {
    {0, 200, true, 1}, {1, 200, true, 2}, {4, 200, true, 5}, {5, 200, false, 5}, {1, 403, false, 2},
};

START_TEST(it_is_written_against_what_was_read)
{
    const struct keeping_place place = {"n1", NULL};

    show_node("n1", NULL, NULL);
    if (conflicts[_i].conflicts > 0)
        answer("PATCH", conflicts[_i].conflicts, 409, NULL);
    answer("PATCH", FAKE_ALWAYS, conflicts[_i].status, NULL);
    ck_assert_int_eq(keeping_set(plan, "mine", &place, 1, NULL), conflicts[_i].ok);
    ck_assert_uint_eq(n_writes("n1", "\"resourceVersion\":\"7\""), conflicts[_i].writes);
    keeping_abandon(plan);
}
END_TEST

/* A room, and the node that is only told. */
START_TEST(what_is_kept_has_its_time)
{
    struct kept_room *room = room_of("big", NULL);
    const struct keeping_place places[] = {{"n1", NULL}, {"n2", room}};

    show_node("n1", NULL, NULL);
    show_node("n2", NULL, NULL);
    accept_writes();
    ck_assert(keeping_set(plan, "mine", places, 2, NULL));
    ck_assert_uint_eq(n_writes("n1", "\\\"until\\\":\\\"2026-01-05T12:02:00"), 1);
    ck_assert_uint_eq(n_writes("n1", "\\\"by\\\":\\\"plan\\\""), 1);
    ck_assert_uint_eq(n_writes("n1", "\\\"id\\\""), 0);
    ck_assert_uint_eq(n_writes("n2", "\\\"id\\\":\\\"big\\\""), 1);
    kept_room_free(room);
    keeping_abandon(plan);
}
END_TEST

START_TEST(what_is_set_takes_the_place_of_what_was)
{
    const struct keeping_place first[] = {{"n1", NULL}, {"n2", NULL}}, second[] = {{"n2", NULL}};

    show_node("n1", "plan", "2026-01-05T12:01:00Z");
    show_node("n2", "plan", "2026-01-05T12:01:00Z");
    accept_writes();
    ck_assert(keeping_set(plan, "first", first, 2, NULL));
    ck_assert(keeping_set(plan, "second", second, 1, NULL));
    ck_assert_uint_eq(n_writes("n1", "first"), 1);
    ck_assert_uint_eq(n_writes("n1", GONE), 1);
    ck_assert_uint_eq(n_writes("n2", "second"), 1);
    ck_assert_uint_eq(n_writes("n2", GONE), 0);
    ck_assert(keeping_set(plan, "", NULL, 0, NULL));
    ck_assert_uint_eq(n_writes("n2", GONE), 1);
}
END_TEST

/* What is kept for groups stays. */
START_TEST(narrowed_it_keeps_for_groups_alone)
{
    struct kept_room *single = room_of("big", NULL), *group = room_of("train-0", "train");
    const struct keeping_place places[] = {
        {"n1", single}, {"n2", single}, {"n2", group}, {"n3", NULL}};

    for (int i = 1; i <= 3; i++)
        show_node(keep(g_strdup_printf("n%d", i)), "plan", "2026-01-05T12:01:00Z");
    accept_writes();
    ck_assert(keeping_set(plan, "mine", places, 4, NULL));
    const unsigned before = n_writes("n2", NULL);
    ck_assert(keeping_narrow(plan, NULL));
    ck_assert_uint_eq(n_writes("n1", GONE), 1);
    ck_assert_uint_eq(n_writes("n3", GONE), 1);
    ck_assert_uint_eq(n_writes("n2", GONE), 0);
    ck_assert_uint_eq(n_writes("n2", NULL), before + 1);
    ck_assert_uint_eq(n_writes("n2", "\\\"id\\\":\\\"big\\\""), before);
    ck_assert_uint_eq(n_writes("n2", "\\\"group\\\":\\\"train\\\""), before + 1);
    kept_room_free(single);
    kept_room_free(group);
}
END_TEST

/* --- how long --------------------------------------------------------------------------------- */

/* Until so many were written, by the thread that renews. */
static void await_writes(unsigned n)
{
    for (int i = 0; n_writes("n1", NULL) < n && i < PATIENT_MS; i++)
        g_usleep(0);
    ck_assert_uint_ge(n_writes("n1", NULL), n);
}

START_TEST(it_is_renewed_before_its_time_is_over)
{
    const struct keeping_place place = {"n1", NULL};

    show_node("n1", "plan", "2026-01-05T12:01:00Z");
    accept_writes();
    ck_assert(keeping_set(plan, "mine", &place, 1, NULL));
    for (unsigned i = 1; i <= 5; i++) {
        clock_skip_ms(KEEPING_RENEW_MS);
        await_writes(i + 1);
        ck_assert(keeping_check(plan, NULL));
    }
    ck_assert_uint_eq(n_writes("n1", "\\\"until\\\":\\\"2026-01-05T12:04:30"), 1);
    ck_assert_str_eq(told->str, "");
}
END_TEST

START_TEST(what_cannot_be_renewed_in_time_is_lost)
{
    const struct keeping_place place = {"n1", NULL};
    g_autoptr(GError) error = NULL;

    show_node("n1", NULL, NULL);
    answer("PATCH", 1, 200, NULL);
    answer("PATCH", FAKE_ALWAYS, 403, NULL);
    ck_assert(keeping_set(plan, "mine", &place, 1, NULL));
    clock_skip_ms(KEEPING_RENEW_MS);
    await_writes(2);
    ck_assert(keeping_check(plan, NULL));
    clock_skip_ms(KEEPING_LIFE_MS - KEEPING_RENEW_MS - 1);
    await_writes(3);
    ck_assert(keeping_check(plan, NULL));
    clock_skip_ms(1);
    ck_assert(!keeping_check(plan, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "others may have it"));
    keeping_abandon(plan);
    ck_assert_ptr_nonnull(strstr(told->str, "what is kept cannot be renewed: "));
}
END_TEST

START_TEST(an_end_writes_nothing_any_more)
{
    const struct keeping_place place = {"n1", NULL};
    const bool abandoned = _i == 1;

    show_node("n1", "plan", "2026-01-05T12:01:00Z");
    accept_writes();
    ck_assert(keeping_set(plan, "mine", &place, 1, NULL));
    if (abandoned)
        keeping_abandon(plan);
    else
        keeping_end(plan);
    const unsigned n = n_writes("n1", NULL);
    ck_assert_uint_eq(n_writes("n1", GONE), abandoned ? 0 : 1);
    ck_assert(keeping_set(plan, "more", &place, 1, NULL));
    ck_assert(keeping_narrow(plan, NULL));
    keeping_end(plan);
    ck_assert_uint_eq(n_writes("n1", NULL), n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keeping");
    TCase *tests = tcase_create("keeping");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_node_that_goes_ends_nothing_on_others);
    tcase_add_loop_test(tests, a_node_where_another_plan_is_at_work_is_left_to_it, 0,
                        G_N_ELEMENTS(others));
    tcase_add_loop_test(tests, what_killed_plans_have_left_is_taken_away, 0, G_N_ELEMENTS(others));
    tcase_add_loop_test(tests, it_is_written_against_what_was_read, 0, G_N_ELEMENTS(conflicts));
    tcase_add_test(tests, what_is_kept_has_its_time);
    tcase_add_test(tests, what_is_set_takes_the_place_of_what_was);
    tcase_add_test(tests, narrowed_it_keeps_for_groups_alone);
    tcase_add_test(tests, it_is_renewed_before_its_time_is_over);
    tcase_add_test(tests, what_cannot_be_renewed_in_time_is_lost);
    tcase_add_loop_test(tests, an_end_writes_nothing_any_more, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
