/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods give back lent quota, so that a pod comes whose namespace is within its min; or why none. */
#include "suite.h"

#include "explained_cluster.h"
#include "wire/claim_sheet.h"

#define TREE "quota.scheduling.koordinator.sh/"
#define QUOTA(ns, spec) "{'metadata':{'name':'q','namespace':'" ns "'},'spec':{" spec "}}"
#define OTHER_QUOTA(ns, spec) "{'metadata':{'name':'other','namespace':'" ns "'},'spec':{" spec "}}"
#define MIN_OF(n) "'min':{'gpuledger.io/gpus':'" n "'}"
#define MAX_OF(n) "'max':{'gpuledger.io/gpus':'" n "'}"
/* One of a tree, all in the namespace "quotas". */
#define BRANCH(name, parent, is_parent, n, namespaces)                                             \
    "{'metadata':{'name':'" name "','namespace':'quotas','labels':{'" TREE "parent':'" parent      \
    "','" TREE "is-parent':'" is_parent "'},'annotations':{'" TREE "namespaces':'" namespaces      \
    "'}},'spec':{" MIN_OF(n) "," MAX_OF("9") "}}"
#define ON(of_ns, called, on) {called, of_ns, .node = "n", .card = on, .mem = "10"}

#define VGPU(memory) "'nvidia.com/gpu':'1','nvidia.com/gpumem':'" memory "'"
#define ON_HAMI(node, devices)                                                                     \
    "'hami.io/vgpu-node':'" node "','hami.io/bind-phase':'success',"                               \
    "'hami.io/vgpu-devices-allocated':'" devices "'"

static void begin_reclaim(void)
{
    begin_with((struct store_options){.elastic_quotas = true,
                                      .tree_namespaces = "quotas",
                                      .reclaim = true,
                                      .reclaim_uncontrolled = true,
                                      .reclaim_delay_ms = 30000,
                                      .gangs = true});
}

struct row {
    struct said_node nodes[3];
    const char *quotas[4], *budget;
    struct said_pod holders[5];
    struct said_pod pod;
    enum reclaim_answer answer;
    const char *ends; /* "a/a1 on n" */
};

static const struct row rows[] = {
    /* a has borrowed what b is sure of. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("1")), QUOTA("b", MIN_OF("1"))},
     .holders = {ON("a", "a0", "0"), ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a0 on n"},
    /* A mirror and a pod of a DaemonSet give nothing back. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("0")), QUOTA("b", MIN_OF("1"))},
     .holders = {{"a0", "a", .node = "n", .card = "0", .mem = "5", .meta = DAEMON_SET},
                 {"a1", "a", .node = "n", .card = "0", .mem = "5",
                  .annotations = "'kubernetes.io/config.mirror':'x'"},
                 ON("a", "a2", "1")},
     .pod = {"p", "b", .mem = "5"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a2 on n"},
    /* The least important of them, and no more than needed. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("0")), QUOTA("b", MIN_OF("2"))},
     .holders = {{"a0", "a", .node = "n", .card = "0", .mem = "10", .priority = 5},
                 {"a1", "a", .node = "n", .card = "1", .mem = "5", .priority = 7},
                 {"a2", "a", .node = "n", .card = "1", .mem = "5", .priority = 1}},
     .pod = {"p", "b", .mem = "5"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a2 on n"},
    /* A quota of b that cannot be kept refuses its pods, for whose sake nobody ends. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("1")), QUOTA("b", MIN_OF("1")), OTHER_QUOTA("b", MIN_OF("much"))},
     .holders = {ON("a", "a0", "0"), ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_NO_MIN},
    /* What a has within its own min stays. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("2")), QUOTA("b", MIN_OF("1"))},
     .holders = {ON("a", "a0", "0"), ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_NOBODY},
    /* Half a card more than the min is all that a may lose, and each of its pods has a whole one. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("1500m")), QUOTA("b", MIN_OF("1"))},
     .holders = {ON("a", "a0", "0"), ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_NOBODY},
    {{{"n"}},
     {QUOTA("a", MIN_OF("1")), QUOTA("b", MIN_OF("1"))},
     .holders = {ON("a", "a0", "0"), ON("b", "b0", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_ABOVE_MIN},
    {{{"n"}},
     {QUOTA("a", MIN_OF("1")), QUOTA("b", MAX_OF("2"))},
     .holders = {ON("a", "a0", "0"), ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_NO_MIN},
    {{{"n"}},
     {QUOTA("a", MIN_OF("1"))},
     .holders = {ON("a", "a0", "0"), ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_NO_MIN},
    /* Those that end already make the room. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("1")), QUOTA("b", MIN_OF("1"))},
     .holders = {ON("a", "a0", "0"),
                 {"a1", "a", .node = "n", .card = "1", .mem = "10",
                  .meta = "'deletionTimestamp':'2026-01-02T00:00:00Z',"}},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_ROOM},
    /* Half a card is lent, and a whole one is needed. */
    {{{"n", .amounts = MONO}},
     {QUOTA("a", MIN_OF("0")), QUOTA("b", MIN_OF("1")), QUOTA("c", MIN_OF("1"))},
     .holders = {{"a0", "a", .node = "n", .card = "0", .mem = "5"},
                 {"c0", "c", .node = "n", .card = "0", .mem = "5"}},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_TOO_LITTLE},
    /* The node whose pods matter least. */
    {{{"n", .amounts = MONO}, {"m", .amounts = MONO}},
     {QUOTA("a", MIN_OF("0")), QUOTA("b", MIN_OF("1"))},
     .holders = {{"a0", "a", .node = "n", .card = "0", .mem = "10", .priority = 3},
                 {"a1", "a", .node = "m", .card = "0", .mem = "10", .priority = 2}},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a1 on m"},
    {{{"n", .amounts = MONO}, {"m", .amounts = MONO, .spec = "'unschedulable':true"}},
     {QUOTA("a", MIN_OF("0")), QUOTA("b", MIN_OF("1"))},
     .holders = {{"a0", "a", .node = "n", .card = "0", .mem = "10", .priority = 3},
                 {"a1", "a", .node = "m", .card = "0", .mem = "10", .priority = 2}},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a0 on n"},
    /* Budgets. */
    {{{"n"}},
     {QUOTA("a", MIN_OF("1")), QUOTA("b", MIN_OF("1"))},
     .budget =
         "{'metadata':{'name':'b','namespace':'a','uid':'b'},'spec':{'selector':{'matchLabels':{"
         "'app':'x'}}},'status':{'disruptionsAllowed':0}}",
     .holders = {{"a0", "a", .node = "n", .card = "0", .mem = "10", .labels = "'app':'x'"},
                 ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a1 on n"},
    /* A tree: within a team its members lend each other; a team that is above its min gives back. */
    {{{"n"}},
     {BRANCH("x", "", "true", "1", "[]"), BRANCH("x1", "x", "false", "1", "[\\\"a\\\"]"),
      BRANCH("y", "", "true", "1", "[]"), BRANCH("y1", "y", "false", "1", "[\\\"b\\\"]")},
     .holders = {ON("a", "a0", "0"), ON("a", "a1", "1")},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a0 on n"},
    /* Within its own team; the other one has no more than its min. */
    {{{"n"}},
     {BRANCH("x", "", "true", "1", "[]"), BRANCH("x1", "x", "false", "1", "[\\\"a\\\"]"),
      BRANCH("x2", "x", "false", "0", "[\\\"b\\\"]"), BRANCH("y", "", "false", "1", "[\\\"c\\\"]")},
     .holders = {ON("b", "b0", "0"), ON("c", "c0", "1")},
     .pod = {"p", "a", .mem = "10"},
     .answer = RECLAIM_FOUND,
     .ends = "b/b0 on n"},
    /* A pod that ends elsewhere still counts for its namespace. */
    {{{"n"}, {"m", .spec = "'unschedulable':true", .amounts = MONO}},
     {QUOTA("a", MIN_OF("0")), QUOTA("b", MIN_OF("1"))},
     .holders = {ON("a", "a0", "0"),
                 ON("a", "a1", "1"),
                 {"b0", "b", .node = "m", .card = "0", .mem = "10",
                  .meta = "'deletionTimestamp':'2026-01-02T00:00:00Z',"}},
     .pod = {"p", "b", .mem = "10"},
     .answer = RECLAIM_ABOVE_MIN},
    /* What only its team is sure of, others give back, and not the team. */
    {{{"n"}},
     {BRANCH("x", "", "true", "2", "[]"), BRANCH("x1", "x", "false", "0", "[\\\"a\\\"]"),
      BRANCH("x2", "x", "false", "0", "[\\\"b\\\"]"), BRANCH("y", "", "false", "0", "[\\\"c\\\"]")},
     .holders = {{"b0", "b", .node = "n", .card = "0", .mem = "10", .priority = 1},
                 {"c0", "c", .node = "n", .card = "1", .mem = "10", .priority = 5}},
     .pod = {"p", "a", .mem = "10"},
     .answer = RECLAIM_FOUND,
     .ends = "c/c0 on n"},
    /* Half of the large card would be more than the min. */
    {{{"big", .annotations = "'" REGISTER "':'GPU-a,4,20480,100,T4,0,true:'",
       .amounts = "'nvidia.com/gpu':'4'"},
      {"small", .annotations = "'" REGISTER "':'GPU-b,4,10240,100,T4,0,true:'",
       .amounts = "'nvidia.com/gpu':'4'"}},
     {QUOTA("a", "'min':{'gpuledger.io/gpu-memory':'0'}"),
      QUOTA("b", "'min':{'gpuledger.io/gpu-memory':'6Gi'}")},
     .holders = {{"a0", "a", .node = "big", .priority = 1, .limits = VGPU("20480"),
                  .annotations = ON_HAMI("big", "GPU-a,NVIDIA,20480,0:;")},
                 {"a1", "a", .node = "small", .priority = 5, .limits = VGPU("10240"),
                  .annotations = ON_HAMI("small", "GPU-b,NVIDIA,10240,0:;")}},
     .pod = {"p", "b", .limits = "'nvidia.com/gpu':'1','nvidia.com/gpumem-percentage':'50'"},
     .answer = RECLAIM_FOUND,
     .ends = "a/a1 on small"},
};

static void populate(const struct row *row)
{
    begin_reclaim();
    for (size_t i = 0; i < G_N_ELEMENTS(row->nodes) && row->nodes[i].name; i++)
        add_node(row->nodes[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(row->quotas) && row->quotas[i]; i++)
        feed(FEED_ELASTIC_QUOTAS, false, "%s", row->quotas[i]);
    if (row->budget)
        feed(FEED_BUDGETS, false, "%s", row->budget);
    for (size_t i = 0; i < G_N_ELEMENTS(row->holders) && row->holders[i].name; i++)
        add_pod(row->holders[i]);
    if (row->pod.name)
        add_pod(row->pod);
}

/* --- one pod --------------------------------------------------------------------------------------- */

static char *ends_of(const struct reclaim_plan *plan)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < plan->ends->len; i++) {
        const struct reclaim_end *end = &g_array_index(plan->ends, struct reclaim_end, i);
        g_string_append_printf(text, "%s%s/%s on %s", i ? ", " : "", end->ns, end->name, end->node);
    }
    return g_string_free(text, FALSE);
}

START_TEST(lent_quota_comes_back)
{
    const struct row *row = &rows[_i];
    g_autofree char *key = g_strdup_printf("%s/p", row->pod.ns);

    populate(row);
    g_autoptr(explanation) explanation = explain(key);
    ck_assert_int_eq(explanation->verdict, VERDICT_REFUSED);
    const struct reclaim_preview *preview = explanation->reclaim;
    ck_assert_ptr_nonnull(preview);
    ck_assert_str_eq(reclaim_code(preview->plan->answer), reclaim_code(row->answer));
    g_autofree char *ends = ends_of(preview->plan);
    expect_text(ends, row->ends ? row->ends : "");
    ck_assert_uint_eq(preview->plan->places->len, row->answer == RECLAIM_FOUND);
    ck_assert_uint_eq(preview->n_pods, 1);
}
END_TEST

/* --- the ground ------------------------------------------------------------------------------------ */

static const struct row borrowed = {
    {{"n"}},
    {QUOTA("a", MIN_OF("0")), QUOTA("b", MIN_OF("2"))},
    .holders = {{"a0", "a", .node = "n", .card = "0", .mem = "10", .priority = 3},
                {"a1", "a", .node = "n", .card = "1", .mem = "10", .priority = 2}},
};

/* Pods "b/p0" and so on that wait, each for a card. */
static void add_waiting(int n)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("p%d", i);
        add_pod((struct said_pod){name, "b", .mem = "10"});
    }
}

static struct reclaim_plan *make_plan(struct reclaim_ground *ground, int first, int n)
{
    struct pod_view views[4];
    struct reclaim_pod asked[4];

    for (int i = 0; i < n; i++) {
        g_autofree char *uid = g_strdup_printf("b/p%d", first + i);
        ck_assert(reclaim_ground_pod(ground, uid, &views[i], &asked[i]));
        /* Borrowed from the ground, but for the UID, which is the caller's. */
        views[i].uid = NULL;
    }
    return reclaim_plan_make(ground, asked, (size_t)n);
}

static void expect_plan(const struct reclaim_plan *plan, enum reclaim_answer answer,
                        const char *ends, const char *places)
{
    g_autofree char *found = ends_of(plan);
    g_autoptr(GString) text = g_string_new(NULL);

    ck_assert_str_eq(reclaim_code(plan->answer), reclaim_code(answer));
    expect_text(found, ends);
    for (guint i = 0; i < plan->places->len; i++) {
        const struct reclaim_place *place = &g_array_index(plan->places, struct reclaim_place, i);
        g_string_append_printf(text, "%s%s/%d", i ? ", " : "", place->node, place->card);
    }
    expect_text(text->str, places);
}

START_TEST(pods_come_together_or_not_at_all)
{
    populate(&borrowed);
    add_waiting(3);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    g_autoptr(reclaim_plan) three = make_plan(ground, 0, 3);
    expect_plan(three, RECLAIM_ABOVE_MIN, "", "");
    g_autoptr(reclaim_plan) two = make_plan(ground, 0, 2);
    expect_plan(two, RECLAIM_FOUND, "a/a1 on n, a/a0 on n", "n/1, n/0");
    const struct reclaim_end *last = &g_array_index(two->ends, struct reclaim_end, 1);
    ck_assert_str_eq(last->uid, "a/a0");
    ck_assert_int_eq(last->gpus, 1000);
    ck_assert_int_eq(last->priority, 3);
    ck_assert_uint_eq(last->pod, 1);
}
END_TEST

/* The next question is of the cluster as the last answer leaves it, unless that is given up. */
START_TEST(questions_follow_each_other)
{
    populate(&borrowed);
    add_waiting(2);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    g_autoptr(reclaim_plan) first = make_plan(ground, 0, 1);
    expect_plan(first, RECLAIM_FOUND, "a/a1 on n", "n/1");
    reclaim_plan_undo(ground);
    g_autoptr(reclaim_plan) again = make_plan(ground, 0, 1);
    expect_plan(again, RECLAIM_FOUND, "a/a1 on n", "n/1");
    g_autoptr(reclaim_plan) second = make_plan(ground, 1, 1);
    expect_plan(second, RECLAIM_FOUND, "a/a0 on n", "n/0");
    /* Of the store itself nothing has changed. */
    ck_assert_ptr_nonnull(ledger_get(store_lock(told), "a/a0"));
    store_unlock(told);
}
END_TEST

static bool stays(const struct allocation *allocation, void *data)
{
    return g_str_equal(allocation->uid, data);
}

START_TEST(a_pod_that_may_stay_stays)
{
    populate(&borrowed);
    add_waiting(1);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, stays, (void *)"a/a1");
    g_autoptr(reclaim_plan) plan = make_plan(ground, 0, 1);
    expect_plan(plan, RECLAIM_FOUND, "a/a0 on n", "n/0");
}
END_TEST

static void add_budget(const char *name)
{
    feed(FEED_BUDGETS, false,
         "{'metadata':{'name':'%s','namespace':'a','uid':'%s'},'spec':{'selector':{'matchLabels':{"
         "'app':'x'}}},'status':{'disruptionsAllowed':5}}",
         name, name);
}

/* The Eviction API refuses pods of several budgets, and what is not there yet cannot be evicted. */
START_TEST(a_pod_that_cannot_be_evicted_stays)
{
    populate(&borrowed);
    add_pod((struct said_pod){"a1", "a", .node = "n", .card = "1", .mem = "10", .priority = 2,
                              .labels = "'app':'x'"});
    add_waiting(1);
    add_budget("one");
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    g_autoptr(reclaim_plan) plan = make_plan(ground, 0, 1);
    expect_plan(plan, RECLAIM_FOUND, "a/a1 on n", "n/1");
    add_budget("two");
    g_autoptr(reclaim_ground) guarded = reclaim_ground_new(told, NULL, NULL);
    g_autoptr(reclaim_plan) other = make_plan(guarded, 0, 1);
    expect_plan(other, RECLAIM_FOUND, "a/a0 on n", "n/0");
    unconfirm("a/a0");
    g_autoptr(reclaim_ground) bare = reclaim_ground_new(told, NULL, NULL);
    g_autoptr(reclaim_plan) none = make_plan(bare, 0, 1);
    expect_plan(none, RECLAIM_NOBODY, "", "");
}
END_TEST

START_TEST(a_pod_that_does_not_wait_is_none)
{
    struct pod_view view;
    struct reclaim_pod pod;

    populate(&borrowed);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    ck_assert(!reclaim_ground_pod(ground, "b/p0", &view, &pod));
    ck_assert(!reclaim_ground_pod(ground, "a/a0", &view, &pod));
}
END_TEST

/* One of a group may have it before the others are planned for. */
START_TEST(a_pod_that_has_its_room_waits_no_more)
{
    struct pod_view view;
    struct reclaim_pod pod;

    populate(&borrowed);
    add_waiting(1);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    ck_assert(reclaim_ground_pod(ground, "b/p0", &view, &pod));
    g_autoptr(reclaim_plan) plan = reclaim_plan_make(ground, &pod, 1);
    ck_assert_int_eq(plan->answer, RECLAIM_FOUND);
    ck_assert(!reclaim_ground_pod(ground, "b/p0", &view, &pod));
}
END_TEST

static void add_claim(const char *uid, const char *ending)
{
    const char *const ends[] = {ending, NULL};
    g_autoptr(claim_sheet) sheet = claim_sheet_new();

    claim_sheet_add(sheet, "n",
                    claim_new(uid, g_get_real_time() / G_USEC_PER_SEC, CARD_UNKNOWN, ends));
    store_apply_claims(told, sheet);
}

/* Room that is made for one pod is not there for another, and counts for its namespace. */
START_TEST(claims_have_their_room)
{
    populate(&borrowed);
    add_waiting(3);
    add_claim("b/p0", "a/a1");
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    g_autoptr(reclaim_plan) second = make_plan(ground, 1, 1);
    expect_plan(second, RECLAIM_FOUND, "a/a0 on n", "n/0");
    g_autoptr(reclaim_plan) third = make_plan(ground, 2, 1);
    expect_plan(third, RECLAIM_ABOVE_MIN, "", "");
}
END_TEST

/* The room that is made for the pod itself is not made twice. */
START_TEST(a_pod_with_a_claim_is_told_no_other)
{
    populate(&borrowed);
    add_waiting(1);
    add_claim("b/p0", "a/a1");
    g_autoptr(explanation) explanation = explain("b/p0");
    ck_assert_ptr_null(explanation->reclaim);
}
END_TEST

/* It counts even where its room cannot be seen any more. */
START_TEST(a_claim_without_room_counts)
{
    begin_reclaim();
    feed(FEED_ELASTIC_QUOTAS, false, "%s", QUOTA("a", MIN_OF("0")));
    feed(FEED_ELASTIC_QUOTAS, false, "%s", QUOTA("b", MIN_OF("1")));
    add_node((struct said_node){"n"});
    add_pod((struct said_pod)ON("a", "a0", "0"));
    add_pod((struct said_pod)ON("a", "a1", "1"));
    add_waiting(2);
    add_claim("b/p0", NULL);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    g_autoptr(reclaim_plan) plan = make_plan(ground, 1, 1);
    expect_plan(plan, RECLAIM_ABOVE_MIN, "", "");
}
END_TEST

/* In a tree both count in one account above theirs. */
START_TEST(a_plan_that_is_given_up_leaves_nothing)
{
    begin_reclaim();
    feed(FEED_ELASTIC_QUOTAS, false, "%s", BRANCH("x", "", "true", "3", "[]"));
    feed(FEED_ELASTIC_QUOTAS, false, "%s", BRANCH("x1", "x", "false", "0", "[\\\"a\\\"]"));
    feed(FEED_ELASTIC_QUOTAS, false, "%s", BRANCH("x2", "x", "false", "2", "[\\\"b\\\"]"));
    add_node((struct said_node){"n"});
    add_pod((struct said_pod)ON("a", "a0", "0"));
    add_pod((struct said_pod)ON("a", "a1", "1"));
    add_waiting(2);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        g_autoptr(reclaim_plan) plan = make_plan(ground, 0, 2);
        expect_plan(plan, RECLAIM_FOUND, "a/a0 on n, a/a1 on n", "n/0, n/1");
        reclaim_plan_undo(ground);
    }
}
END_TEST

/* --- what still holds ------------------------------------------------------------------------------ */

static bool may_end(const char *node, const char *uid, const char *going)
{
    g_autoptr(GHashTable) set = g_hash_table_new(g_str_hash, g_str_equal);
    const struct pod_view claimant = {.uid = "b/p0", .ns = "b"};

    if (going)
        g_hash_table_add(set, (gpointer)going);
    store_lock(told);
    const bool may = reclaim_may_end(told, set, &claimant, node, uid);
    store_unlock(told);
    return may;
}

static bool is_sure(const char *uid)
{
    g_autoptr(reclaim_promises) promises = reclaim_promises_new();

    store_lock(told);
    const bool sure = reclaim_is_sure(told, promises, "n", uid);
    store_unlock(told);
    return sure;
}

static const struct {
    const char *min_a, *min_b;
    const char *uid, *going;
    bool may, sure;
} stills[] = {
    {"1", "1", "a/a0", NULL, true, true},
    {"1", "1", "a/a1", NULL, true, true},
    {"1", "1", "a/a0", "a/a1", false, true}, /* the other one's end gives back all that is lent */
    {"0", "1", "a/a0", "a/a1", true, true},
    {"2", "1", "a/a0", NULL, false, true},  /* a is within its min */
    {"1", "0", "a/a0", NULL, false, false}, /* b is sure of nothing any more */
    {"1", "1", "a/a9", NULL, false, true},  /* it has ended */
    {"1", "1", "c/c0", NULL, false, true},  /* it counts in no quota */
};

START_TEST(a_claim_is_looked_at_again)
{
    begin_reclaim();
    add_node((struct said_node){"n", .amounts = "'" MEM "':'30','aliyun.com/gpu-count':'3'"});
    feed(FEED_ELASTIC_QUOTAS, false, QUOTA("a", MIN_OF("%s")), stills[_i].min_a);
    feed(FEED_ELASTIC_QUOTAS, false, QUOTA("b", MIN_OF("%s")), stills[_i].min_b);
    add_pod((struct said_pod)ON("a", "a0", "0"));
    add_pod((struct said_pod)ON("a", "a1", "1"));
    add_pod((struct said_pod)ON("c", "c0", "2"));
    add_waiting(1);
    ck_assert_int_eq(may_end("n", stills[_i].uid, stills[_i].going), stills[_i].may);
    ck_assert(!may_end("other", stills[_i].uid, stills[_i].going));
    ck_assert_int_eq(is_sure("b/p0"), stills[_i].sure);
}
END_TEST

START_TEST(a_pod_within_its_min_is_sure)
{
    populate(&borrowed);
    add_waiting(1);
    ck_assert(is_sure("b/p0"));
    ck_assert(!is_sure("b/none"));
    add_pod((struct said_pod){"p0", "b", .mem = "10", .node = "n", .card = "0"});
    ck_assert(!is_sure("b/p0")); /* it waits no longer */
}
END_TEST

/* --- as it is read --------------------------------------------------------------------------------- */

START_TEST(people_read_who_gives_back)
{
    g_autoptr(GString) text = g_string_new(NULL);

    populate(&borrowed);
    add_pod((struct said_pod){"p", "b", .mem = "10"});
    g_autoptr(explanation) explanation = explain("b/p");
    explanation->reclaim->wait_ms = 29001;
    reclaim_preview_write(text, explanation->reclaim);
    expect_text(text->str,
                "\nIts namespace is within its quota's min. It waits 30 s, then 1 cards are "
                "given back, by the end of a/a1 on n.\n");
    g_string_truncate(text, 0);
    explanation->reclaim->wait_ms = 0;
    explanation->reclaim->n_pods = 2;
    reclaim_preview_write(text, explanation->reclaim);
    expect_text(text->str,
                "\nIts namespace is within its quota's min. 1 cards are given back to its "
                "group, by the end of a/a1 on n.\n");
    g_string_truncate(text, 0);
    explanation->reclaim->plan->answer = RECLAIM_NOBODY;
    reclaim_preview_write(text, explanation->reclaim);
    expect_text(text->str,
                "\nNobody gives back lent quota for it: nobody who may be ended has borrowed "
                "anything where it may go.\n");
}
END_TEST

START_TEST(programs_read_the_same)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    populate(&borrowed);
    add_pod((struct said_pod){"p", "b", .mem = "10"});
    g_autoptr(explanation) explanation = explain("b/p");
    explanation->reclaim->wait_ms = 29001;
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    reclaim_preview_encode(&writer, explanation->reclaim);
    json_end_object(&writer);
    g_strdelimit(text->str, "\"", '\'');
    expect_text(
        text->str,
        "{'reclaim':{'answer':'found','text':'pods give back what is lent to them',"
        "'waitsSeconds':30,'podsTogether':1,'pods':[{'namespace':'a','name':'a1','node':'n',"
        "'gpuThousandths':1000}]}}");
}
END_TEST

/* A pod is waited for first; one of a file has not waited at all. */
START_TEST(it_waits_before_it_is_given_anything)
{
    populate(&borrowed);
    add_pod((struct said_pod){"p", "b", .mem = "10"});
    g_autoptr(explanation) explanation = explain("b/p");
    ck_assert_int_gt(explanation->reclaim->wait_ms, 0);
    ck_assert_int_le(explanation->reclaim->wait_ms, 30000);
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    read_pod(arena, g_hash_table_lookup(pods, "b/p"), &view);
    view.uid = NULL;
    g_autoptr(explanation) of_file = explain_pod(told, &cluster, &view);
    ck_assert_int_eq(of_file->reclaim->wait_ms, 30000);
    begin_with((struct store_options){.elastic_quotas = true, .tree_namespaces = "quotas"});
    add_node((struct said_node){"n", .amounts = MONO});
    hold("a", "n", "0", "10");
    add_pod((struct said_pod){"p", "b", .mem = "10"});
    g_autoptr(explanation) without = explain("b/p");
    ck_assert_ptr_null(without->reclaim);
}
END_TEST

#define IN_GROUP                                                                                   \
    .annotations = "'gang.scheduling.koordinator.sh/name':'g',"                                    \
                   "'gang.scheduling.koordinator.sh/min-available':'2'"

START_TEST(a_group_is_given_back_for_all_of_it)
{
    populate(&borrowed);
    add_pod((struct said_pod){"g0", "b", .mem = "10", IN_GROUP});
    g_autoptr(explanation) few = explain("b/g0");
    ck_assert_ptr_null(few->reclaim);
    add_pod((struct said_pod){"g1", "b", .mem = "10", IN_GROUP});
    g_autoptr(explanation) both = explain("b/g0");
    ck_assert_uint_eq(both->reclaim->n_pods, 2);
    expect_plan(both->reclaim->plan, RECLAIM_FOUND, "a/a1 on n, a/a0 on n", "n/1, n/0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_reclaim");
    TCase *tests = tcase_create("reclaim");

    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_loop_test(tests, lent_quota_comes_back, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, pods_come_together_or_not_at_all);
    tcase_add_test(tests, questions_follow_each_other);
    tcase_add_test(tests, a_pod_that_may_stay_stays);
    tcase_add_test(tests, a_pod_that_cannot_be_evicted_stays);
    tcase_add_test(tests, a_pod_that_does_not_wait_is_none);
    tcase_add_test(tests, a_pod_that_has_its_room_waits_no_more);
    tcase_add_test(tests, claims_have_their_room);
    tcase_add_test(tests, a_pod_with_a_claim_is_told_no_other);
    tcase_add_test(tests, a_claim_without_room_counts);
    tcase_add_test(tests, a_plan_that_is_given_up_leaves_nothing);
    tcase_add_loop_test(tests, a_claim_is_looked_at_again, 0, G_N_ELEMENTS(stills));
    tcase_add_test(tests, a_pod_within_its_min_is_sure);
    tcase_add_test(tests, people_read_who_gives_back);
    tcase_add_test(tests, programs_read_the_same);
    tcase_add_test(tests, it_waits_before_it_is_given_anything);
    tcase_add_test(tests, a_group_is_given_back_for_all_of_it);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
