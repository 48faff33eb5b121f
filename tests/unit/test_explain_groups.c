/* SPDX-License-Identifier: Apache-2.0 */
/* What explain and fit say of a group of pods that comes whole or not at all. */
#include "suite.h"

#include "explain/fit.h"
#include "explained_cluster.h"

#define KOORDINATOR "gang.scheduling.koordinator.sh/"
#define OF(needs) "'" KOORDINATOR "name':'g','" KOORDINATOR "min-available':'" needs "'"
#define NO_ROOM "There is no room for the pod's group as a whole"

static void begin_groups(void)
{
    begin_with((struct store_options){.gangs = true});
}

/* Pods g-0 and so on of the group; those from `n_bound` on wait. */
static void add_group(int n, int n_bound, const char *mem, const char *says)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("g-%d", i);
        add_pod((struct said_pod){name, .mem = mem, .annotations = says,
                                  .node = i < n_bound ? "n" : NULL,
                                  .card = i < n_bound ? "0" : NULL});
    }
}

static const struct row {
    struct said_node nodes[2];
    int n, n_bound;
    const char *mem, *says;
    enum reason reason;
    const char *text;
    uint32_t needs, fit;
    bool remedies; /* are looked for */
} rows[] = {
    {{{"n"}}, 2, 0, "6", OF("2"), REASON_NONE, NULL, 2, 2},
    {{{"n", .amounts = MONO}}, 2, 0, "6", OF("2"), REASON_GANG_NO_ROOM, NO_ROOM, 2, 1},
    {{{"n", .amounts = MONO}, {"m", .amounts = MONO}}, 3, 0, "6", OF("2"), REASON_NONE, NULL, 2, 2},
    {{{"n", .spec = "'unschedulable':true"}},
     2,
     0,
     "6",
     OF("2"),
     REASON_GANG_NO_ROOM,
     NO_ROOM,
     2,
     0},
    {{{"n"}},
     2,
     0,
     "6",
     OF("3"),
     REASON_GANG_FEW,
     "The pod's group has fewer pods than it needs",
     3,
     2},
    {{{"n"}},
     2,
     0,
     "6",
     OF("x"),
     REASON_GANG_UNKNOWN,
     "Nothing says how many pods the pod's group needs at least: annotation " KOORDINATOR
     "min-available is 'x', no number from 1 to 100000",
     0,
     2},
    /* The last one that its group lacks: room for it is room for the group. */
    {{{"n", .amounts = MONO}},
     2,
     1,
     "6",
     OF("2"),
     REASON_GANG_NO_ROOM,
     NO_ROOM,
     2,
     1,
     .remedies = true},
    {{{"n", .amounts = MONO}}, 3, 1, "6", OF("3"), REASON_GANG_NO_ROOM, NO_ROOM, 3, 1},
};

START_TEST(a_group_comes_whole_or_not)
{
    const struct row *row = &rows[_i];
    g_autofree char *last = g_strdup_printf("ml/g-%d", row->n - 1);

    for (size_t i = 0; i < G_N_ELEMENTS(row->nodes) && row->nodes[i].name; i++)
        add_node(row->nodes[i]);
    add_group(row->n, row->n_bound, row->mem, row->says);
    g_autoptr(explanation) explanation = explain(last);
    const struct group_place *group = explanation->group;

    ck_assert_ptr_nonnull(group);
    ck_assert_str_eq(group->ns, "ml");
    ck_assert_str_eq(group->name, "g");
    ck_assert_str_eq(reason_info(group->reason)->code, reason_info(row->reason)->code);
    expect_text(group->text, row->text);
    ck_assert_uint_eq(group->needs, row->needs);
    ck_assert_uint_eq(group->fit, row->fit);
    ck_assert_uint_eq(group->known, (unsigned)row->n);
    ck_assert_uint_eq(group->bound, (unsigned)row->n_bound);
    ck_assert_uint_eq(group->held, 0);
    const bool refused = explanation->verdict == VERDICT_REFUSED;
    ck_assert_int_eq(refused, row->reason != REASON_NONE);
    ck_assert_int_eq(explanation->remedies != NULL, row->remedies);
    ck_assert_ptr_null(explanation->preview); /* preemption ends nothing for one pod of a group */
}
END_TEST

/* A node that would take the pod alone gives the group's reason. */
START_TEST(a_node_says_what_keeps_the_group)
{
    add_node((struct said_node){"n", .amounts = MONO});
    add_node((struct said_node){"full", .amounts = MONO});
    hold("a", "full", "0", "8");
    add_group(2, 0, "6", OF("2"));
    g_autoptr(explanation) explanation = explain("ml/g-0");
    ck_assert_int_eq(explained(explanation, "n")->reason, REASON_GANG_NO_ROOM);
    expect_text(explained(explanation, "n")->why, NO_ROOM);
    ck_assert_int_eq(explained(explanation, "full")->reason, REASON_INSUFFICIENT_MEMORY);
    ck_assert_uint_eq(explanation->n_taking, 0);
}
END_TEST

START_TEST(a_pod_of_no_group_has_none)
{
    add_node((struct said_node){"n"});
    add_pod((struct said_pod){"p", .mem = "6"});
    add_pod((struct said_pod){"one", .mem = "6", .annotations = OF("1")});
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_ptr_null(explanation->group);
    g_autoptr(explanation) alone = explain("ml/one");
    ck_assert_ptr_null(alone->group);
    begin(); /* groups are not wanted */
    add_node((struct said_node){"n", .amounts = MONO});
    add_group(2, 0, "6", OF("2"));
    g_autoptr(explanation) unwanted = explain("ml/g-0");
    ck_assert_ptr_null(unwanted->group);
    ck_assert_int_eq(unwanted->verdict, VERDICT_FITS);
}
END_TEST

START_TEST(people_read_what_a_group_lacks)
{
    g_autoptr(GString) text = g_string_new(NULL);

    add_node((struct said_node){"n", .amounts = MONO});
    add_group(3, 1, "6", OF("3"));
    g_autoptr(explanation) explanation = explain("ml/g-2");
    group_place_write(text, explanation->group);
    expect_text(text->str,
                "\nGROUP       ml/g needs 3 pods together: 3 known, 1 fit, 0 with a place, 1 "
                "bound; it is half\n            " NO_ROOM "\n"
                "            kube-scheduler ends nobody to make room for it: it does not ask "
                "extenders about groups\n");
    g_string_truncate(text, 0);
    group_place_write(text, NULL);
    expect_text(text->str, "");
}
END_TEST

/* The largest number that a pod says counts. */
START_TEST(pods_that_say_different_numbers_are_told)
{
    g_autoptr(GString) text = g_string_new(NULL);

    add_node((struct said_node){"n"});
    add_group(3, 0, "6", OF("2"));
    add_pod((struct said_pod){"g-0", .mem = "6", .annotations = OF("3")});
    g_autoptr(explanation) explanation = explain("ml/g-1");
    ck_assert_uint_eq(explanation->group->needs, 3);
    ck_assert_uint_eq(explanation->group->says_least, 2);
    group_place_write(text, explanation->group);
    ck_assert_ptr_nonnull(strstr(text->str,
                                 "\n            Its pods say different numbers, from 2 to 3: "
                                 "the largest counts\n"));
}
END_TEST

START_TEST(programs_read_the_same)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    add_node((struct said_node){"n", .amounts = MONO});
    add_group(3, 1, "6", OF("3"));
    g_autoptr(explanation) explanation = explain("ml/g-2");
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    group_place_encode(&writer, explanation->group);
    json_end_object(&writer);
    expect_text(text->str,
                "{\"group\":{\"name\":\"g\",\"reason\":\"gang_no_room\",\"text\":\"" NO_ROOM "\","
                "\"needs\":3,\"known\":3,\"fit\":1,\"held\":0,\"bound\":1,\"half\":true,"
                "\"behind\":0,\"saysLeast\":0,\"roomNodes\":0,\"roomForSeconds\":0}}");
}
END_TEST

/* --- fit ------------------------------------------------------------------------------------------- */

static const struct fit_row {
    struct said_node nodes[2];
    int n_bound; /* of the group, each of 6, are there */
    const char *says;
    int64_t replicas;
    bool whole;
    int64_t fitting, wanted;
    const char *places, *text; /* of fit_write, the first line */
} fits[] = {
    {{{"n"}},
     0,
     OF("2"),
     2,
     true,
     2,
     2,
     "n 2",
     "2 of 2 pods like ml/w (6 units of memory of one card) fit; their group g comes: it needs 2"},
    {{{"n"}},
     0,
     OF("2"),
     0,
     true,
     2,
     2,
     "n 2",
     "2 of 2 pods like ml/w (6 units of memory of one card) fit; their group g comes: it needs 2"},
    {{{"n"}},
     0,
     OF("3"),
     3,
     false,
     2,
     3,
     "",
     "2 of 3 pods like ml/w (6 units of memory of one card) fit; their group g does not come, so "
     "none is placed: it needs 3"},
    {{{"n"}},
     1,
     OF("2"),
     0,
     true,
     1,
     1,
     "n 1",
     "1 of 1 pods like ml/w (6 units of memory of one card) fit; their group g comes: it needs 2, "
     "1 "
     "there already"},
    {{{"n"}},
     0,
     OF("3"),
     2,
     false,
     2,
     2,
     "",
     "2 of 2 pods like ml/w (6 units of memory of one card) fit; their group g does not come, so "
     "none is placed: it needs 3"},
    {{{"n"}},
     0,
     OF("x"),
     2,
     false,
     2,
     2,
     "",
     "2 of 2 pods like ml/w (6 units of memory of one card) fit; their group g does not come: "
     "nothing "
     "says how many it needs"},
    {{{"n"}},
     0,
     OF("1"),
     3,
     false,
     2,
     3,
     "n 2",
     "2 of 3 pods like ml/w (6 units of memory of one card) fit"},
};

START_TEST(a_group_fits_whole_or_not)
{
    const struct fit_row *row = &fits[_i];
    const struct said_pod asked = {"w", .mem = "6", .annotations = row->says};
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL), places = g_string_new(NULL);
    g_autofree char *json = pod_json(&asked);
    struct pod_view view;

    for (size_t i = 0; i < G_N_ELEMENTS(row->nodes) && row->nodes[i].name; i++)
        add_node(row->nodes[i]);
    add_group(row->n_bound, row->n_bound, "6", row->says);
    read_pod(arena, json, &view);
    view.uid = NULL;
    g_autoptr(fit) fit = fit_find(&(struct fit_query){.store = told,
                                                      .cluster = &cluster,
                                                      .pod = &view,
                                                      .replicas = row->replicas,
                                                      .drain = (const char *const[]){NULL}},
                                  NULL);
    ck_assert_int_eq(fit_is_whole(fit), row->whole);
    ck_assert_int_eq(fit->wanted, row->wanted);
    for (guint i = 0; i < fit->places->len; i++) {
        const struct fit_place *place = &g_array_index(fit->places, struct fit_place, i);
        g_string_append_printf(places, "%s%s %" G_GINT64_FORMAT, i ? ", " : "", place->node,
                               place->pods);
    }
    fit_write(text, fit);
    g_string_truncate(text, strcspn(text->str, "\n"));
    expect_text(text->str, row->text);
    ck_assert_int_eq(fit->fitting, row->fitting);
    expect_text(places->str, row->places);
}
END_TEST

/* As many new nodes as the group needs, and none if it does not come. */
START_TEST(new_nodes_take_a_group)
{
    const struct string_pair amounts[] = {{MEM, "10"}, {"aliyun.com/gpu-count", "1"}};
    const struct node_view template = {
        .name = "t", .capacity = {amounts, 2}, .allocatable = {amounts, 2}};
    const struct said_pod asked = {"w", .mem = _i ? "11" : "6", .annotations = OF("4")};
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *json = pod_json(&asked);
    struct pod_view view;

    add_node((struct said_node){"n"});
    read_pod(arena, json, &view);
    view.uid = NULL;
    g_autoptr(fit) fit = fit_find(&(struct fit_query){.store = told,
                                                      .cluster = &cluster,
                                                      .pod = &view,
                                                      .drain = (const char *const[]){NULL},
                                                      .template = &template},
                                  NULL);
    ck_assert_int_eq(fit->wanted, 4);
    ck_assert_int_eq(fit_is_whole(fit), _i == 0);
    ck_assert_int_eq(fit->fitting, _i ? 0 : 4);
    ck_assert_int_eq(fit->made, _i ? 0 : 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_groups");
    TCase *tests = tcase_create("groups");

    tcase_add_checked_fixture(tests, begin_groups, end);
    tcase_add_loop_test(tests, a_group_comes_whole_or_not, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, a_node_says_what_keeps_the_group);
    tcase_add_test(tests, a_pod_of_no_group_has_none);
    tcase_add_test(tests, people_read_what_a_group_lacks);
    tcase_add_test(tests, pods_that_say_different_numbers_are_told);
    tcase_add_test(tests, programs_read_the_same);
    tcase_add_loop_test(tests, a_group_fits_whole_or_not, 0, G_N_ELEMENTS(fits));
    tcase_add_loop_test(tests, new_nodes_take_a_group, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
