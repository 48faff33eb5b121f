/* SPDX-License-Identifier: Apache-2.0 */
/* How many pods of a kind fit and where, on nodes that are there, like a template, or left after a drain. */
#include "suite.h"

#include "explain/fit.h"
#include "explained_reason.h"

#define HALF "'" MEM "':'5','aliyun.com/gpu-count':'1'"

static struct fit *found;

static void end_fit(void)
{
    g_clear_pointer(&found, fit_free);
    end();
}

/* What is asked, without the store. */
struct question {
    struct said_pod pod; /* no name: none */
    int64_t replicas;
    const char *drain[4];
    const char *template; /* a Node in JSON with single quotes, or NULL */
};

static bool ask(const struct question *question, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *pod = question->pod.name ? pod_json(&question->pod) : NULL;
    g_autofree char *node = question->template ? json_of(question->template) : NULL;
    struct node_view template;
    struct pod_view view;
    const struct fit_query query = {
        .store = told,
        .cluster = &cluster,
        .pod = pod ? &view : NULL,
        .replicas = question->replicas,
        .drain = question->drain,
        .template = node ? &template : NULL,
    };

    if (pod)
        read_pod(arena, pod, &view);
    if (node)
        ck_assert(
            node_view_decode(arena, json_parse(arena, node, strlen(node), NULL), &template, NULL));
    g_clear_pointer(&found, fit_free);
    found = fit_find(&query, error);
    return found;
}

/* "n 2, m 1" */
static void expect_places(const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < found->places->len; i++) {
        const struct fit_place *place = &g_array_index(found->places, struct fit_place, i);
        g_string_append_printf(text, "%s%s %" G_GINT64_FORMAT, i ? ", " : "", place->node,
                               place->pods);
        ck_assert_int_eq(place->made, strstr(place->node, "(new ") != NULL);
    }
    expect_text(text->str, expected);
}

/* "ml/a n -> m", or "ml/a n: why". */
static void expect_moves(const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int64_t stranded = 0;

    for (guint i = 0; i < found->moves->len; i++) {
        const struct fit_move *move = &g_array_index(found->moves, struct fit_move, i);
        g_string_append_printf(text, "%s%s/%s %s%s%s", i ? "\n" : "", move->ns, move->name,
                               move->from, move->to ? " -> " : ": ",
                               move->to ? move->to : move->why);
        stranded += !move->to;
    }
    expect_text(text->str, expected);
    ck_assert_int_eq(found->stranded, stranded);
}

#define TEMPLATE(amounts, more)                                                                    \
    "{'metadata':{'name':'large','labels':{'kubernetes.io/hostname':'large','kind':'big'}},"       \
    "'spec':{" more "},'status':{'capacity':{" amounts "},'allocatable':{" amounts "}}}"

/* A node with one card, which its device plugin says is unhealthy. */
#define SICK(annotations)                                                                          \
    "{'metadata':{'name':'real','annotations':{'" REGISTER "':'GPU-a,4,10240,100,Tesla T4,0,"      \
    "false:'" annotations "}},'spec':{'unschedulable':true},'status':{'capacity':{"                \
    "'nvidia.com/gpu':'4'},'allocatable':{'nvidia.com/gpu':'0'}}}"
#define ALL_SICK                                                                                   \
    ",'hami.io/device-cordon':'GPU-a','hami.io/node-handshake':'Deleted_2026.01.01 00:00:00',"     \
    "'hami.io/mutex.lock':'2026-01-01T00:00:00Z','gpuledger.io/cordoned-cards':'0',"               \
    "'gpuledger.io/memory-in-use':'0=99','gpuledger.io/switch-state':'drain'"

static const struct row {
    struct said_node nodes[3];
    struct said_pod holders[3];
    struct question question;
    int64_t fitting;
    bool whole;
    int64_t made;
    const char *places;
    const char *rest; /* of the closest node, why one more does not fit; NULL: not asked */
} rows[] = {
    /* As many as fit. */
    {{{"n"}, {"m", .amounts = MONO}},
     .question = {{"p", .mem = "4"}},
     .fitting = 6,
     .whole = true,
     .places = "m 2, n 4",
     .rest = "card 0: wants 4GiB, 2GiB free of 10GiB; held by ml/p (4GiB), ml/p (4GiB)"},
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "3"}},
     .question = {{"p", .mem = "8"}, .replicas = 1},
     .fitting = 1,
     .whole = true,
     .places = "n 1"},
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "3"}},
     .question = {{"p", .mem = "8"}, .replicas = 2},
     .fitting = 1,
     .places = "n 1",
     .rest = "card 0: wants 8GiB, 7GiB free of 10GiB; held by ml/a (3GiB)"},
    {{{"n", .spec = "'unschedulable':true"}},
     .question = {{"p", .mem = "8"}, .replicas = 2},
     .places = "",
     .rest = "cordoned; else it takes the pod"},
    {{{"n"}},
     .question = {{"p", .limits = "'cpu':'1'"}, .replicas = 2},
     .whole = true,
     .places = ""},
    /* What is there comes first, and no more new nodes than needed. */
    {{{"n"}},
     .question = {{"p", .mem = "8"},
                  .replicas = 9,
                  .template = TEMPLATE("'" MEM "':'40','aliyun.com/gpu-count':'2'", "")},
     .fitting = 9,
     .whole = true,
     .made = 2,
     .places = "n 2, large (new 1) 4, large (new 2) 3"},
    /* A new node has the template's taints and labels, but not what had become of it. */
    {{{"n", .amounts = HALF}},
     .question = {{"p", .mem = "8", .spec = "'nodeSelector':{'kind':'big'},"},
                  .replicas = 1,
                  .template = TEMPLATE(MONO, "'unschedulable':true,'taints':[{'key':"
                                             "'node.kubernetes.io/not-ready','effect':"
                                             "'NoExecute'}]")},
     .fitting = 1,
     .whole = true,
     .made = 1,
     .places = "large (new 1) 1"},
    {{{"n", .amounts = HALF}},
     .question = {{"p", .mem = "8"},
                  .replicas = 1,
                  .template = TEMPLATE(MONO, "'taints':[{'key':'x','effect':'NoSchedule'}]")},
     .places = "",
     .rest = "taint x:NoSchedule is not tolerated; else it takes the pod"},
    {{{"n", .amounts = HALF}},
     .question = {{"p", .mem = "8", .spec = "'nodeSelector':{'kubernetes.io/hostname':'large'},"},
                  .replicas = 1,
                  .template = TEMPLATE(MONO, "")},
     .places = "",
     .rest = "nodeSelector: kubernetes.io/hostname=large; the node has "
             "kubernetes.io/hostname=large (new 1); else it takes the pod"},
    /* What the Node says of its own state is not of its kind. */
    {{{"n", .amounts = HALF}},
     .question = {{"p", .limits = VGPU("1024", "10")}, .replicas = 1, .template = SICK(ALL_SICK)},
     .fitting = 1,
     .whole = true,
     .made = 1,
     .places = "real (new 1) 1"},
    {{{"n", .amounts = HALF}},
     .question = {{"p", .limits = VGPU("1024", "10")},
                  .replicas = 1,
                  .template = SICK(",'gpuledger.io/slots':'none'")},
     .places = "",
     .rest = "card 0: the node's gpuledger.io/slots cannot be read"},
    /* Without a number there is no end to new nodes. */
    {{{"n"}},
     .question = {{"p", .mem = "8"}, .template = TEMPLATE(MONO, "")},
     .fitting = 2,
     .whole = true,
     .places = "n 2",
     .rest = "card 0: wants 8GiB, 2GiB free of 10GiB; held by ml/p (8GiB)"},
    {{{"n", .amounts = HALF}},
     .question = {{"p", .mem = "12"}, .replicas = 3, .template = TEMPLATE(MONO, "")},
     .places = "",
     .rest = "card 0: wants 12GiB, the card has 10GiB in all"},
};

START_TEST(as_many_pods_fit)
{
    const struct row *row = &rows[_i];
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(row->nodes) && row->nodes[i].name; i++)
        add_node(row->nodes[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(row->holders) && row->holders[i].name; i++)
        add_pod(row->holders[i]);
    ck_assert_msg(ask(&row->question, &error), "%s", error ? error->message : "");
    ck_assert_int_eq(found->fitting, row->fitting);
    ck_assert_int_eq(fit_is_whole(found), row->whole);
    ck_assert_int_eq(found->made, row->made);
    ck_assert_int_eq(found->wanted, row->question.replicas);
    expect_places(row->places);
    ck_assert_int_eq(found->rest != NULL, row->rest != NULL);
    if (row->rest)
        expect_text(g_array_index(found->rest->nodes, struct explained_node, 0).why, row->rest);
    ck_assert(!found->capped && !found->drains);
}
END_TEST

/* The question has an end, and says that there may be more. */
START_TEST(no_more_are_tried_than_that)
{
    add_node((struct said_node){"n", .amounts = "'" MEM "':'20000','aliyun.com/gpu-count':'1'"});
    ck_assert(ask(&(struct question){{"p", .mem = "1"}}, NULL));
    ck_assert_int_eq(found->fitting, FIT_REPLICAS_MAX);
    ck_assert(found->capped && !found->rest);
    ck_assert(ask(&(struct question){{"p", .mem = "1"}, .replicas = FIT_REPLICAS_MAX}, NULL));
    ck_assert(!found->capped && fit_is_whole(found));
    ck_assert(ask(&(struct question){{"p", .mem = "1"}, .replicas = FIT_REPLICAS_MAX + 1}, NULL));
    ck_assert(found->capped && !fit_is_whole(found));
}
END_TEST

/* --- drains ---------------------------------------------------------------------------------------- */

static void populate(void)
{
    add_node((struct said_node){"n"});
    add_node((struct said_node){"m", .amounts = MONO});
    add_node((struct said_node){"o", .amounts = HALF});
    hold("a", "n", "0", "6");
    hold("b", "n", "0", "4");
    hold("c", "n", "1", "5");
    hold("d", "m", "0", "3");
}

START_TEST(a_drained_node_is_left_by_all)
{
    populate();
    ck_assert(ask(&(struct question){.drain = {"n"}}, NULL));
    ck_assert(found->drains);
    expect_moves(
        "ml/a n -> m\nml/b n -> o\nml/c n: m: card 0: wants 5GiB, 1GiB free of 10GiB; held "
        "by ml/d (3GiB), ml/a (6GiB)");
    ck_assert(!fit_is_whole(found));
    /* The store itself has them still. */
    ck_assert_uint_eq(ledger_node(store_lock(told), "n")->allocations->len, 3);
    store_unlock(told);
}
END_TEST

START_TEST(a_drained_card_is_left_by_those_on_it)
{
    populate();
    ck_assert(ask(&(struct question){.drain = {"n/1"}}, NULL));
    expect_moves("ml/c n -> m");
    ck_assert(fit_is_whole(found));
    ck_assert(ask(&(struct question){.drain = {"n/1", "o"}}, NULL));
    expect_moves("ml/c n -> m");
    /* A drained card takes nothing, its node does. */
    ck_assert(ask(&(struct question){{"p", .mem = "4"}, .drain = {"n/1", "m", "o"}}, NULL));
    expect_moves(
        "ml/c n: n: card 0: wants 5GiB, 0GiB free of 10GiB; held by ml/a (6GiB), ml/b (4GiB)\n"
        "ml/d m: n: card 0: wants 3GiB, 0GiB free of 10GiB; held by ml/a (6GiB), ml/b (4GiB)");
    ck_assert_int_eq(found->fitting, 0);
}
END_TEST

START_TEST(a_pod_is_drained_once)
{
    populate();
    ck_assert(ask(&(struct question){.drain = {"m", "m/0", "m"}}, NULL));
    expect_moves("ml/d m -> n");
}
END_TEST

START_TEST(drained_pods_come_before_new_ones)
{
    populate();
    ck_assert(ask(&(struct question){{"p", .mem = "5"}, .drain = {"m"}}, NULL));
    expect_moves("ml/d m -> n");
    expect_places("o 1");
}
END_TEST

START_TEST(new_nodes_take_drained_pods)
{
    populate();
    ck_assert(ask(&(struct question){.drain = {"n"}, .template = TEMPLATE(HALF, "")}, NULL));
    expect_moves("ml/a n -> m\nml/b n -> o\nml/c n -> large (new 1)");
    ck_assert_int_eq(found->made, 1);
    ck_assert(fit_is_whole(found));
}
END_TEST

/* A new node that does not take a pod either is none. */
START_TEST(new_nodes_that_are_too_small_are_not_counted)
{
    populate();
    ck_assert(ask(&(struct question){.drain = {"n", "m"}, .template = TEMPLATE(HALF, "")}, NULL));
    expect_moves("ml/a n: o: card 0: wants 6GiB, the card has 5GiB in all\nml/b n -> o\n"
                 "ml/c n -> large (new 1)\nml/d m -> large (new 2)");
    ck_assert_int_eq(found->made, 2);
    ck_assert(!fit_is_whole(found));
}
END_TEST

/* A pod may be on any card that is not known: it leaves with each. */
START_TEST(a_pod_of_no_known_card_leaves_each)
{
    add_node((struct said_node){"n"});
    add_node((struct said_node){"m", .amounts = MONO});
    add_pod((struct said_pod){"lost", .node = "n", .limits = "'" MEM "':'2'",
                              .annotations = "'ALIYUN_COM_GPU_MEM_IDX':'x',"
                                             "'ALIYUN_COM_GPU_MEM_ASSIGNED':'true'"});
    ck_assert(ask(&(struct question){.drain = {"n/1"}}, NULL));
    expect_moves("ml/lost n -> m");
}
END_TEST

START_TEST(what_cannot_be_read_fits_nowhere)
{
    populate();
    g_hash_table_remove(pods, "ml/d");
    ck_assert(ask(&(struct question){.drain = {"m"}}, NULL));
    expect_moves("ml/d m: it cannot be read: there is no ml/d");
    add_node((struct said_node){"m", .amounts = MONO});
    add_pod((struct said_pod){"d", .limits = "'cpu':'1'"});
    hold("d", "m", "0", "3");
    g_hash_table_insert(pods, g_strdup("ml/d"),
                        pod_json(&(struct said_pod){"d", .limits = "'cpu':'1'"}));
    ck_assert(ask(&(struct question){.drain = {"m"}}, NULL));
    expect_moves("ml/d m: it asks for no GPU");
}
END_TEST

static const struct {
    const char *word, *message;
    int code;
} bad_drains[] = {
    {"x", "node 'x' is not known", GPULEDGER_ERROR_NOT_FOUND},
    {"", "'': the node's name is empty, expected NODE or NODE/CARD, such as gpu-1/0",
     GPULEDGER_ERROR_INVALID},
    {"/0", "'/0': the node's name is empty, expected NODE or NODE/CARD, such as gpu-1/0",
     GPULEDGER_ERROR_INVALID},
    {"n/x", "'n/x': what follows the slash is no card's index, 0 to 255", GPULEDGER_ERROR_INVALID},
    {"n/256", "'n/256': what follows the slash is no card's index, 0 to 255",
     GPULEDGER_ERROR_INVALID},
    {"n/2", "node 'n' has no card 2, only 0 to 1", GPULEDGER_ERROR_NOT_FOUND},
    {"d/0",
     "node 'd' hands out devices by count, and only its plugin knows on which card they are; give "
     "the node alone",
     GPULEDGER_ERROR_INVALID},
};

START_TEST(what_cannot_be_drained_is_an_error)
{
    g_autoptr(GError) error = NULL;

    populate();
    add_node((struct said_node){"d", .amounts = "'nvidia.com/gpu':'4'"});
    ck_assert(!ask(&(struct question){.drain = {"m", bad_drains[_i].word}}, &error));
    expect_text(error->message, bad_drains[_i].message);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, bad_drains[_i].code));
}
END_TEST

START_TEST(a_pod_that_cannot_be_read_is_an_error)
{
    g_autoptr(GError) error = NULL;

    populate();
    ck_assert(!ask(&(struct question){{"p", .mem = "x"}}, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "quantity 'x'"));
}
END_TEST

/* --- as it is read --------------------------------------------------------------------------------- */

START_TEST(people_read_tables)
{
    g_autoptr(GString) text = g_string_new(NULL);

    populate();
    ck_assert(ask(&(struct question){{"p", .mem = "5"}, .replicas = 3, .drain = {"o", "m"}}, NULL));
    fit_write(text, found);
    expect_text(text->str,
                "1 drained pod with a GPU: 1 fits elsewhere, 0 nowhere; then 0 of 3 pods "
                "like ml/p (5 units of memory of one card) fit\n\n"
                "DRAINED  FROM  TO\n"
                "ml/d     m     n\n\n"
                "WHY NOT ONE MORE\n"
                "NODES  REASON                CLOSEST  WHY\n"
                "    1  insufficient_memory   n        card 1: wants 5GiB, 2GiB free of "
                "10GiB; held by ml/c (5GiB), ml/d (3GiB)\n");
    g_string_truncate(text, 0);
    ck_assert(ask(&(struct question){{"p", .mem = "5"}}, NULL));
    fit_write(text, found);
    ck_assert_msg(g_str_has_prefix(text->str,
                                   "3 pods like ml/p (5 units of memory of one card) fit\n\n"
                                   " PODS  NODE\n"
                                   "    1  n\n"
                                   "    1  m\n"
                                   "    1  o\n\nWHY NOT ONE MORE\n"),
                  "%s", text->str);
}
END_TEST

/* What was placed for a question of many can be taken off again. */
START_TEST(pods_are_taken_back)
{
    g_autoptr(store) copy = NULL;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *json = pod_json(&(struct said_pod){"p", .mem = "5"});
    struct pod_view view;
    const struct fit_query query = {.cluster = &cluster,
                                    .pod = &view,
                                    .replicas = 2,
                                    .drain = (const char *const[]){NULL},
                                    .uid = "own"};

    populate();
    copy = store_copy(told);
    read_pod(arena, json, &view);
    const size_t before = ledger_size(store_lock(copy));
    store_unlock(copy);
    found = fit_on(&query, copy, NULL);
    ck_assert_int_eq(found->fitting, 2);
    ck_assert_ptr_nonnull(ledger_get(store_lock(copy), "own-1"));
    store_unlock(copy);
    fit_take_back(found, &query, copy);
    ck_assert_uint_eq(ledger_size(store_lock(copy)), before);
    store_unlock(copy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_fit");
    TCase *tests = tcase_create("fit");

    tcase_add_checked_fixture(tests, begin, end_fit);
    tcase_add_loop_test(tests, as_many_pods_fit, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, no_more_are_tried_than_that);
    tcase_add_test(tests, a_drained_node_is_left_by_all);
    tcase_add_test(tests, a_drained_card_is_left_by_those_on_it);
    tcase_add_test(tests, a_pod_is_drained_once);
    tcase_add_test(tests, drained_pods_come_before_new_ones);
    tcase_add_test(tests, new_nodes_take_drained_pods);
    tcase_add_test(tests, new_nodes_that_are_too_small_are_not_counted);
    tcase_add_test(tests, a_pod_of_no_known_card_leaves_each);
    tcase_add_test(tests, what_cannot_be_read_fits_nowhere);
    tcase_add_loop_test(tests, what_cannot_be_drained_is_an_error, 0, G_N_ELEMENTS(bad_drains));
    tcase_add_test(tests, a_pod_that_cannot_be_read_is_an_error);
    tcase_add_test(tests, people_read_tables);
    tcase_add_test(tests, pods_are_taken_back);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
