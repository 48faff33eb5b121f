/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever happens in whatever order, the ledger ends up as one that has just listed the cluster.
 */
#include "suite.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define RUNS 15
#define STEPS 250
#define PODS 10
#define NODES 4

static struct world world;
static struct fake_cluster *cluster;
static GRand *chance;
static unsigned generation; /* of pods, so that names come back with other UIDs */

static void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    store_set_policy(world.store, &policies[0], 0); /* filter says who would have to wait */
    generation = 0;
}

static void teardown(void)
{
    world_release(&world);
}

static int below(int n)
{
    return g_rand_int_range(chance, 0, n);
}

static const char *any_pod(void)
{
    static const char *const names[PODS] = {"p0", "p1", "p2", "p3", "p4",
                                            "p5", "p6", "p7", "p8", "p9"};
    return names[below(PODS)];
}

static const char *any_node(void)
{
    static const char *const names[NODES] = {"n0", "n1", "n2", "n3"};
    return names[below(NODES)];
}

/* --- what can happen ------------------------------------------------------------------------ */

static void create_pod(void)
{
#define GPU(n) "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" n "\"}}}"
    const char *name = any_pod();
    g_autofree char *uid = g_strdup_printf("uid-%s-%u", name, generation++);
    struct fake_pod pod = {.name = name, .uid = uid, .mem = below(7)};

    if (below(8) == 0)
        pod.containers = "[" GPU("2") "," GPU("3") "]";
    if (below(8) == 0)
        pod.init_containers = "[" GPU("4") "]";
    if (below(6) == 0)
        pod.node = any_node(); /* by a scheduler that we know nothing of */
    if (below(3) == 0)
        pod.card = below(2) ? "0" : "1";
    fake_cluster_add_pod(cluster, &pod);
}

/* Mostly one that is not bound. */
static const char *any_candidate(void)
{
    const char *pod = any_pod();

    for (int i = 0; i < 8; i++) {
        g_autofree char *object = fake_cluster_pod_json(cluster, pod);
        if (object && !strstr(object, "\"nodeName\"") && strstr(object, "\"Pending\""))
            break;
        pod = any_pod();
    }
    return pod;
}

static bool would_wait(const char *pod, const char *node)
{
    g_autofree char *reply = world_filter(&world, pod, node);
    return strstr(reply, reason_info(REASON_AWAITING_ASSIGNMENT)->text) != NULL;
}

static void bind_pod(void)
{
    const char *pod = any_candidate(), *node = any_node();
    g_autofree char *uid = fake_cluster_uid(cluster, pod);

    if (uid && !would_wait(pod, node))
        g_free(world_bind_uid(&world, pod, uid, node));
}

/* A node that filter passes is not refused for its cards a moment later. */
static void filter_and_bind_pod(void)
{
    const char *pod = any_candidate(), *node = any_node();
    g_autofree char *uid = fake_cluster_uid(cluster, pod);
    g_autofree char *object = fake_cluster_pod_json(cluster, pod);

    if (!uid || strstr(object, "\"nodeName\""))
        return; /* kube-scheduler asks for unbound pods only */
    g_autofree char *before = world_nodes(&world);
    g_autofree char *passes = g_strdup_printf("\"NodeNames\":[\"%s\"]", node);
    g_autofree char *reply = world_filter(&world, pod, node);
    g_autofree char *after = world_nodes(&world);
    ck_assert_str_eq(before, after);
    if (!strstr(reply, passes))
        return;
    g_autofree char *error = world_bind_uid(&world, pod, uid, node);
    /* Filter has no look at nodes for a pod without a GPU; bind does. */
    if (!strstr(object, "aliyun.com") && g_str_equal(error, reason_info(REASON_NODE_UNKNOWN)->text))
        return;
    ck_assert_msg(!g_str_has_prefix(error, "Insufficient") &&
                      !g_str_has_prefix(error, "The node") && !g_str_has_prefix(error, "A pod"),
                  "%s on %s: filter passed, bind said '%s'", pod, node, error);
}

static void deliver(void)
{
    fake_cluster_deliver(cluster, world.store, (enum feed)below(FEED_N), 1 + (unsigned)below(5));
}

static void change_phase(void)
{
    static const char *const phases[] = {"Running", "Running", "Succeeded", "Failed"};
    fake_cluster_set_phase(cluster, any_pod(), phases[below(G_N_ELEMENTS(phases))]);
}

static void assign_pod(void)
{
    fake_cluster_assign(cluster, any_pod());
}

static void start_pod(void)
{
    fake_cluster_start(cluster, any_pod());
}

static void delete_pod(void)
{
    fake_cluster_delete_pod(cluster, any_pod());
}

static void terminate_pod(void)
{
    fake_cluster_terminate(cluster, any_pod());
}

#define IDX "ALIYUN_COM_GPU_MEM_IDX"

static GHashTable *written; /* pod's UID -> the card that it was bound to, of those whose word was edited */
static GHashTable *distrusted; /* UIDs of pods that others bound while a bind of ours was under way */

static GHashTable *away; /* nodes whose plugin is away: of those a list does not tell what they had */

/*
 * Beside a bind of ours whose outcome is unknown, its card stays held: a list sees no card, and cannot
 * tell a pod that others bound from one of ours whose word was removed.
 */
static void bind_bare(void)
{
    const char *pod = any_pod();
    char *uid = fake_cluster_uid(cluster, pod);

    if (uid) {
        if (ledger_get(store_lock(world.store), uid))
            g_hash_table_add(distrusted, g_strdup(uid));
        store_unlock(world.store);
    }
    g_free(uid);
    fake_cluster_bind_bare(cluster, pod, any_node());
}

/* What a pod is on, whoever edits it; a list would believe the edit, so that this is undone in the end. */
static void annotate_pod(void)
{
    static const char *const cards[] = {NULL, "0", "1", "7", "x"};
    const char *pod = any_pod();
    g_autofree char *object = fake_cluster_pod_json(cluster, pod);
    g_autofree char *uid = fake_cluster_uid(cluster, pod);

    if (uid && strstr(object, "\"nodeName\"")) {
        char *card = fake_cluster_annotation(cluster, pod, IDX);
        const struct allocation *held = ledger_get(store_lock(world.store), uid);
        const bool seen = held && held->state == ALLOCATION_CONFIRMED;
        store_unlock(world.store);
        if (!card || !seen) { /* it may be seen first as it is edited */
            g_free(card);
            return;
        }
        if (!g_hash_table_contains(written, uid))
            g_hash_table_insert(written, g_strdup(uid), g_strdup(card));
        g_free(card);
    }
    fake_cluster_annotate(cluster, pod, IDX, cards[below(G_N_ELEMENTS(cards))]);
}

static void undo_edits(void)
{
    GHashTableIter iter;
    gpointer node;

    g_hash_table_iter_init(&iter, away);
    while (g_hash_table_iter_next(&iter, &node, NULL))
        fake_cluster_put_node(cluster, node, 20, 2);
    for (int i = 0; i < PODS; i++) {
        g_autofree char *pod = g_strdup_printf("p%d", i);
        g_autofree char *uid = fake_cluster_uid(cluster, pod);
        const char *card = uid ? g_hash_table_lookup(written, uid) : NULL;
        if (uid && g_hash_table_contains(distrusted, uid))
            fake_cluster_delete_pod(cluster, pod);
        else if (card)
            fake_cluster_annotate(cluster, pod, IDX, card);
    }
}

static void put_node(void)
{
    static const int shapes[][2] = {{20, 2}, {10, 1}, {40, 4}, {0, 0}, {0, 2}, {16384, 2}, {5, 9}, {60, 4}};
    const int *shape = shapes[below(G_N_ELEMENTS(shapes))];
    const char *node = any_node();

    if (shape[1] == 0)
        fake_cluster_put_other_node(cluster, node, "{}");
    else
        fake_cluster_put_node(cluster, node, shape[0], shape[1]);
    if (shape[0] == 0 && shape[1] > 0)
        g_hash_table_add(away, g_strdup(node));
    else
        g_hash_table_remove(away, node);
}

static void delete_node(void)
{
    fake_cluster_delete_node(cluster, any_node());
}

static void put_unhealthy(void)
{
    static const char *const cards[] = {NULL, "", "0", "1", "0,1", "9,x"};
    fake_cluster_put_unhealthy(cluster, any_node(), cards[below(G_N_ELEMENTS(cards))]);
}

static void settle(void)
{
    extender_reconcile(&world.extender, 0);
}

static void let_time_pass(void)
{
    g_autofree char *uid = fake_cluster_uid(cluster, any_pod());

    fake_cluster_forget_delayed(cluster); /* too old now */
    if (uid)
        world_age(&world, uid, 100000);
    settle();
}

static void carry_out(void)
{
    fake_cluster_carry_out(cluster);
}

static const struct {
    void (*run)(void);
    int weight;
} events[] = {
    {create_pod, 12},   {bind_pod, 10},     {filter_and_bind_pod, 10},
    {deliver, 20},      {change_phase, 5},  {assign_pod, 6},
    {start_pod, 4},     {delete_pod, 5},    {terminate_pod, 2},
    {bind_bare, 2},     {annotate_pod, 2},  {put_node, 3},
    {delete_node, 1},   {put_unhealthy, 2}, {settle, 3},
    {let_time_pass, 2}, {carry_out, 3},
};

static void happen(void)
{
    int total = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
        total += events[i].weight;
    int drawn = below(total);
    size_t i = 0;
    while (drawn >= events[i].weight)
        drawn -= events[i++].weight;
    events[i].run();
}

/* A list takes its time: other things happen between its snapshot and its end. */
static void list_slowly(enum feed feed)
{
    store_list_begin(world.store, feed);
    if (below(10) == 0)
        return; /* the list failed; the watch goes on as if nothing had been */
    g_autoptr(GPtrArray) objects = fake_cluster_snapshot(cluster, feed);
    for (guint i = 0; i < objects->len; i++) {
        if (below(3) == 0)
            bind_pod();
        if (below(3) == 0)
            settle();
        feed_event(world.store, feed, false, g_ptr_array_index(objects, i));
    }
    store_list_end(world.store, feed);
}

START_TEST(replay_equals_what_grew)
{
    unsigned n_bound = 0;

    for (unsigned run = 0; run < RUNS; run++) {
        unsigned seed = (unsigned)_i * RUNS + run;

        setup();
        written = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        distrusted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        away = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        chance = g_rand_new_with_seed(seed);
        fake_cluster_set_chaos(cluster, seed, 25);
        for (int i = 0; i < 6; i++)
            put_node();
        world_sync(&world);
        for (int step = 0; step < STEPS; step++) {
            if (below(40) == 0)
                list_slowly((enum feed)below(FEED_N));
            else
                happen();
            world_verify(&world);
        }
        if (below(2) == 0)
            fake_cluster_forget_delayed(cluster);
        undo_edits();
        world_settle_down(&world);
        g_autofree char *grown = world_nodes(&world);
        g_autofree char *copied = world_copied(&world);
        g_autofree char *fresh = world_replay(&world);
        ck_assert_str_eq(copied, grown);
        if (!g_str_equal(grown, fresh)) /* longer than what Check can pass on */
            fprintf(stderr, "seed %u:\n%s\nis not\n%s\n", seed, grown, fresh);
        ck_assert_msg(g_str_equal(grown, fresh), "seed %u", seed);
        n_bound += fake_cluster_n_bound(cluster);
        g_hash_table_unref(written);
        g_hash_table_unref(distrusted);
        g_hash_table_unref(away);
        g_rand_free(chance);
        teardown();
    }
    ck_assert_uint_gt(n_bound, RUNS * 5);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("replay");
    TCase *tc = tcase_create("replay");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, replay_equals_what_grew, 0, 5);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
