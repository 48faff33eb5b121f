/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan keeps on nodes, against an API server with a script. */
#include "maintain/keeping.h"

#include "scripted_api.h"
#include "suite.h"

#include <gpuledger/dialect.h>

static void complain(void *data, const char *text)
{
}

/* It was there before, and goes on being kept. */
static void adopt(struct keeping *keeping, const char *node)
{
    struct plan_mark *mark = plan_mark_new();
    struct kept_room *room = kept_room_new();

    *room = (struct kept_room){.uid = g_strdup("u"),
                               .group = g_strdup("g"),
                               .ns = g_strdup("ml"),
                               .held = allocation_new("r", "ml", "p", 0)};
    room->held->dialect = dialects[0];
    mark->doing = g_strdup("test");
    mark->by = g_strdup("plan");
    g_ptr_array_add(mark->rooms, room);
    keeping_adopt(keeping, node, mark);
}

/* Most of all the node that a plan has emptied: it goes, and what is kept on others is still renewed. */
START_TEST(a_node_that_goes_ends_nothing_on_others)
{
    static const char *const gone[] = {"a", "b", "c", "d"};
    struct keeping *keeping =
        keeping_new(&(struct keeping_options){.client = client, .by = "plan", .tell = complain});
    g_autoptr(GError) failure = NULL;

    script(&(struct fake_reply){
        .match = "GET /api/v1/nodes/n1 ",
        .times = FAKE_ALWAYS,
        .chunks = {"{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"1\"}}"}});
    script(&(struct fake_reply){
        .match = "PATCH /api/v1/nodes/n1 ", .times = FAKE_ALWAYS, .chunks = {"{}"}});
    script(&(struct fake_reply){
        .match = "GET", .status = 404, .times = FAKE_ALWAYS, .chunks = {"{}"}});
    for (size_t i = 0; i < G_N_ELEMENTS(gone); i++)
        adopt(keeping, gone[i]);
    adopt(keeping, "n1");
    ck_assert_msg(keeping_narrow(keeping, &failure), "%s", failure ? failure->message : "");
    ck_assert_uint_eq(fake_server_count(server), 6); /* of each a GET, and the PATCH */
    const struct keeping_place place = {"a", NULL};
    ck_assert(!keeping_set(keeping, "test", &place, 1, NULL)); /* but no step begins there */
    keeping_abandon(keeping);
    keeping_free(keeping);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keeping");
    TCase *tests = tcase_create("keeping");

    tcase_add_checked_fixture(tests, api_begin, api_end);
    tcase_add_test(tests, a_node_that_goes_ends_nothing_on_others);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
