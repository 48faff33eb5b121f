/* SPDX-License-Identifier: Apache-2.0 */
/* Promises that a device plugin may hand out, though kubelet does not ask for them. */
#include "queue/strays.h"
#include "core/node.h"
#include "audit/audit.h"
#include "explain/messages/messages.h"
#include "store/feasibility.h"
#include "verbs/revoker.h"

#include "literals.h"
#include "stored_world.h"
#include "suite.h"

#include <string.h>

#define BARRED "The node's GPU plugin may give the pod a GPU that another pod was promised"
#define TURN                                                                                       \
    "Another pod on the node still waits for its GPU, and its GPU plugin serves one at a time"
#define AWAITED "A pod of the same size on the node still waits for its GPU"
#define CARDS(gpu, memory)                                                                         \
    "[{\"name\":\"c\",\"resources\":{\"limits\":{\"" gpu "\":\"1\",\"" memory "\":\"3000\"}}}]"

/* A node of two cards of 10,000 MiB, whose plugin picks pods in any phase. */
static const struct site {
    const char *dialect, *node, *status, *key, *cards, *containers;
    const char *phase, *time, *promised, *promised_node, *bind_time;
    bool outranked; /* by what gpuledger binds beside it */
} sites[] = {
    {"4paradigm", "f", "{\"allocatable\":{\"nvidia.com/gpu\":\"20\"}}",
     "4pd.io/node-nvidia-register", "GPU-a,10,10000,100,T4,0,true:GPU-b,10,10000,100,T4,0,true:",
     CARDS("nvidia.com/gpu", "nvidia.com/gpumem"), "4pd.io/bind-phase", "4pd.io/vgpu-time",
     "4pd.io/devices-to-allocate", "4pd.io/vgpu-node", "4pd.io/bind-time"},
    {"volcano-vgpu", "o", "{\"allocatable\":{\"volcano.sh/vgpu-number\":\"20\"}}",
     "volcano.sh/node-vgpu-register", "GPU-a,10,10000,T4,true:GPU-b,10,10000,T4,true:",
     CARDS("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"), "volcano.sh/bind-phase",
     "volcano.sh/vgpu-time", "volcano.sh/devices-to-allocate", "volcano.sh/vgpu-node",
     "volcano.sh/bind-time"},
    {"volcano-vgpu", "v", "{\"allocatable\":{\"volcano.sh/vgpu-number\":\"20\"}}",
     "volcano.sh/node-vgpu-register",
     "GPU-a,10,10000,T4,true,hami-core:GPU-b,10,10000,T4,true,hami-core:",
     CARDS("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"), "volcano.sh/bind-phase",
     "volcano.sh/vgpu-time", "volcano.sh/devices-to-allocate", "volcano.sh/vgpu-node",
     "volcano.sh/bind-time", true},
};
#define N_BARRED 2 /* of them */
#define NEWEST (&sites[2])

static void begin(void)
{
    setup();
    world.extender.bind_timeout_ms = 60;
    for (size_t i = 0; i < G_N_ELEMENTS(sites); i++) {
        fake_cluster_put_other_node(cluster, sites[i].node, sites[i].status);
        fake_cluster_annotate_node(cluster, sites[i].node, sites[i].key, sites[i].cards);
    }
    world_catch_up(&world);
}

static void add(const struct site *site, const char *name)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = name, .containers = site->containers});
    world_catch_up(&world);
}

static void bind_to(const struct site *site, const char *name, const char *error)
{
    world_expect_bind(&world, name, site->node, error);
    world_catch_up(&world);
}

/* Bound, and in that phase without the plugin having been asked. */
static void leave(const struct site *site, const char *name, const char *phase)
{
    add(site, name);
    bind_to(site, name, "");
    fake_cluster_set_phase(cluster, name, phase);
    world_catch_up(&world);
}

/* As the plugin does that serves the pod. */
static void serve(const struct site *site, const char *name)
{
    fake_cluster_annotate(cluster, name, site->promised, "");
    fake_cluster_annotate(cluster, name, site->phase, "success");
    fake_cluster_set_phase(cluster, name, "Running");
    world_catch_up(&world);
}

/* In a pod that asks for nothing. */
static void plant(const struct site *site, const char *name, const char *scheduler,
                  const char *time)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = name,
                                                     .containers = "[{\"name\":\"c\"}]",
                                                     .spec = {{"schedulerName", scheduler}}});
    fake_cluster_annotate(cluster, name, site->time, time);
    fake_cluster_annotate(cluster, name, site->bind_time, time);
    fake_cluster_annotate(cluster, name, site->phase, "allocating");
    fake_cluster_annotate(cluster, name, site->promised, "GPU-a,NVIDIA,9000,0:");
    fake_cluster_annotate(cluster, name, site->promised_node, site->node);
    world_catch_up(&world);
}

static unsigned revoke_some(void)
{
    const unsigned n = revoker_run(world.store, world.extender.cluster);

    world_catch_up(&world);
    return n;
}

static int64_t number(const char *pod, const char *key)
{
    g_autofree char *text = fake_cluster_annotation(cluster, pod, key);

    ck_assert_ptr_nonnull(text);
    return g_ascii_strtoll(text, NULL, 10);
}

static guint n_promised(struct store *store, const char *name)
{
    const struct node *node = ledger_node(store_lock(store), name);
    const guint n = node && node->promised ? node->promised->len : 0;

    store_unlock(store);
    return n;
}

static char *message(const char *pod, const char *node_name)
{
    const struct pod_view view = {.ns = "ml", .name = pod, .uid = "uid-q"};
    struct feasibility question;
    struct moment now;
    struct ledger *ledger = store_decide(world.store, &now);
    const struct request *request = store_pending(world.store, "uid-q");

    feasibility_init(
        &question, world.store,
        &(struct feasibility_about){GATE_BY_FILTER, &view, request, &now, WITHOUT_ORDER});
    const struct node *node = ledger_node(ledger, node_name);
    const enum reason reason = feasibility_ask(&question, node, NULL);
    char *text = message_of_node(&question, node, request, reason);
    feasibility_clear(&question);
    store_unlock(world.store);
    return text;
}

/* --- pods that have ended ---------------------------------------------------------------------- */

/* The next one would be given its card, and the one after it that of the next. */
START_TEST(what_an_ended_pod_was_promised_keeps_others_away)
{
    const struct site *site = &sites[_i / 2];

    leave(site, "x", _i % 2 ? "Failed" : "Succeeded");
    add(site, "q");
    bind_to(site, "q", BARRED);
    g_autofree char *text = message("q", site->node);
    ck_assert_str_eq(text, "its GPU plugin may give the pod what was promised to ml/x, which "
                           "kubelet does not ask for any more");
    ck_assert_uint_eq(revoke_some(), 1);
    bind_to(site, "q", "");
    ck_assert_uint_eq(revoke_some(), 0);
}
END_TEST

static void *bind_q(void *data)
{
    return world_bind(&world, "q", data);
}

/* Filter lets no pod come then; those that came before wait at bind, as for a plugin that has to serve another. */
START_TEST(a_bind_waits_until_it_is_revoked)
{
    const struct site *site = &sites[_i];
    pthread_t thread;
    g_autofree char *error = NULL;

    leave(site, "x", "Failed");
    add(site, "q");
    world.extender.bind_timeout_ms = 60000;
    const unsigned sent = fake_cluster_n_sent(cluster);
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_q, (void *)site->node), 0);
    g_usleep(30000);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), sent);
    ck_assert_uint_eq(revoke_some(), 1);
    pthread_join(thread, (void **)&error);
    ck_assert_str_eq(error, "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), sent + 1);
}
END_TEST

START_TEST(it_is_gone_with_the_pod)
{
    leave(&sites[_i], "x", "Failed");
    ck_assert_uint_eq(n_promised(world.store, sites[_i].node), 1);
    fake_cluster_delete_pod(cluster, "x");
    world_catch_up(&world);
    ck_assert_uint_eq(n_promised(world.store, sites[_i].node), 0);
}
END_TEST

/* Who starts now reads them in its first list, and a list sweeps what it does not name. */
START_TEST(a_list_tells_of_them)
{
    leave(&sites[_i], "x", "Failed");
    g_autoptr(store) other = store_new(store_options(world.store));
    fake_cluster_list(cluster, other, FEED_PODS);
    fake_cluster_list(cluster, other, FEED_NODES); /* in whichever order */
    ck_assert_uint_eq(n_promised(other, sites[_i].node), 1);
    g_autoptr(store) copy = store_copy(other);
    ck_assert_uint_eq(n_promised(copy, sites[_i].node), 1);
    store_list_begin(other, FEED_PODS);
    store_list_end(other, FEED_PODS);
    ck_assert_uint_eq(n_promised(other, sites[_i].node), 0);
}
END_TEST

/* --- many ---------------------------------------------------------------------------------------- */

static void set(struct strays *strays, struct ledger *ledger, int pod, int64_t amount, int64_t time)
{
    g_autofree char *uid = g_strdup_printf("%d", pod);
    const struct stray stray = {.dialect = dialect_find("volcano-vgpu"),
                                .uid = uid,
                                .ns = "ml",
                                .name = uid,
                                .node = "v",
                                .match_amount = amount,
                                .time = time};

    strays_set(strays, ledger, &stray, 1);
}

static void drop(struct strays *strays, struct ledger *ledger, int pod)
{
    g_autofree char *uid = g_strdup_printf("%d", pod);

    ck_assert(strays_drop(strays, ledger, dialect_find("volcano-vgpu"), uid));
}

/* 0: there is none. */
static int64_t time_of(struct ledger *ledger, int64_t amount)
{
    const struct promised *promised =
        node_promised(ledger_node(ledger, "v"), dialect_find("volcano-vgpu"), amount);

    return promised ? promised->time : 0;
}

START_TEST(of_one_size_the_oldest_is_told)
{
    struct ledger *ledger = store_lock(world.store);
    struct strays *strays = strays_new();

    set(strays, ledger, 0, 3, 7);
    set(strays, ledger, 1, 3, 5);
    set(strays, ledger, 2, 4, 9);
    ck_assert_int_eq(time_of(ledger, 3), 5);
    set(strays, ledger, 1, 3, 8); /* it was made again */
    ck_assert_int_eq(time_of(ledger, 3), 7);
    drop(strays, ledger, 0);
    ck_assert_int_eq(time_of(ledger, 3), 8);
    drop(strays, ledger, 1);
    ck_assert_int_eq(time_of(ledger, 3), 0);
    ck_assert_int_eq(time_of(ledger, 4), 9);
    strays_free(strays);
    store_unlock(world.store);
}
END_TEST

START_TEST(of_too_many_sizes_any_may_be_meant)
{
    struct ledger *ledger = store_lock(world.store);
    struct strays *strays = strays_new();
    const struct node *node = ledger_node(ledger, "v");

    for (int i = 0; i < STRAYS_SIZES_MAX; i++)
        set(strays, ledger, i, STRAYS_SIZES_MAX - i, 5 + i);
    ck_assert_uint_eq(node->promised->len, STRAYS_SIZES_MAX);
    ck_assert_int_eq(time_of(ledger, 2), 5 + STRAYS_SIZES_MAX - 2);
    ck_assert_ptr_null(node_promised(node, dialect_find("volcano-vgpu"), 0));
    set(strays, ledger, STRAYS_SIZES_MAX, INT64_MAX, 5);
    ck_assert_uint_eq(node->promised->len, 1);
    ck_assert_ptr_nonnull(node_promised(node, dialect_find("volcano-vgpu"), 0));
    drop(strays, ledger, 7);
    ck_assert_uint_eq(node->promised->len, STRAYS_SIZES_MAX);
    ck_assert_int_eq(time_of(ledger, INT64_MAX), 5);
    strays_sweep(strays, ledger, 2);
    ck_assert_ptr_null(node->promised);
    strays_free(strays);
    store_unlock(world.store);
}
END_TEST

/* Each by itself, so that decisions come between. */
START_TEST(a_list_names_those_that_it_drops)
{
    struct ledger *ledger = store_lock(world.store);
    struct strays *strays = strays_new();
    const struct stray heard = {.dialect = dialect_find("volcano-vgpu"),
                                .uid = "1",
                                .ns = "ml",
                                .name = "1",
                                .node = "v",
                                .match_amount = 1,
                                .time = 5};

    set(strays, ledger, 0, 1, 5);
    set(strays, ledger, 1, 1, 5);
    set(strays, ledger, 2, 1, 5);
    strays_set(strays, ledger, &heard, 2);
    for (int i = 0; i < 3; i += 2) {
        struct stray *stale = strays_stale(strays, 2);
        ck_assert_int_eq(g_ascii_strtoll(stale->uid, NULL, 10), i);
        ck_assert(strays_drop(strays, ledger, stale->dialect, stale->uid));
        stray_free(stale);
    }
    ck_assert_ptr_null(strays_stale(strays, 2));
    ck_assert_int_eq(time_of(ledger, 1), 5);
    strays_free(strays);
    store_unlock(world.store);
}
END_TEST

/* Volcano's newer plugin serves the least time. gpuledger itself goes by the true one. */
START_TEST(a_newcomer_outranks_it)
{
    leave(NEWEST, "x", "Failed");
    fake_cluster_annotate(cluster, "x", NEWEST->time, "1000");
    world_catch_up(&world);
    add(NEWEST, "q");
    bind_to(NEWEST, "q", "");
    ck_assert_int_eq(number("q", NEWEST->time), 999);
    const struct allocation *held = ledger_get(store_lock(world.store), "uid-q");
    ck_assert_int_eq(held->assume_time_ns / G_GINT64_CONSTANT(1000000000),
                     number("q", NEWEST->bind_time));
    ck_assert_int_gt(held->assume_time_ns, G_GINT64_CONSTANT(1000) * 1000000000);
    store_unlock(world.store);
    ck_assert_uint_eq(revoke_some(), 1); /* for its older releases */
}
END_TEST

START_TEST(a_patch_that_fails_is_sent_again_later)
{
    leave(&sites[0], "x", "Failed");
    fake_cluster_script_annotate(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
    ck_assert_uint_eq(revoke_some(), 0);
    ck_assert_uint_eq(revoke_some(), 0); /* not yet */
    struct strays *strays = store_strays(world.store);
    store_lock(world.store);
    const int64_t now_ms = g_get_monotonic_time() / 1000;
    g_autoptr(GPtrArray) none = strays_take_due(strays, 9, now_ms);
    g_autoptr(GPtrArray) due = strays_take_due(strays, 9, now_ms + REVOKE_AGAIN_MS);
    store_unlock(world.store);
    ck_assert_uint_eq(none->len, 0);
    ck_assert_uint_eq(due->len, 1);
}
END_TEST

/* --- pods that tenants made ------------------------------------------------------------------- */

START_TEST(a_planted_promise_is_revoked)
{
    const struct site *site = &sites[_i];

    plant(site, "evil/p", "\"default-scheduler\"", "0");
    add(site, "q");
    bind_to(site, "q", BARRED); /* the least time of all */
    ck_assert_uint_eq(revoke_some(), 1);
    bind_to(site, "q", "");
}
END_TEST

/* Which is about to bind the pod; but it does not write a time of 0. */
START_TEST(that_of_volcano_itself_is_left_alone)
{
    plant(NEWEST, "evil/p", "\"volcano\"", "1767225600");
    ck_assert_uint_eq(revoke_some(), 0);
    add(NEWEST, "q");
    bind_to(NEWEST, "q", "");
    ck_assert_int_lt(number("q", NEWEST->time), 1767225600);
    serve(NEWEST, "q");
    plant(NEWEST, "evil/p0", "\"volcano\"", "0");
    add(NEWEST, "r");
    bind_to(NEWEST, "r", BARRED);
    ck_assert_uint_eq(revoke_some(), 1);
    bind_to(NEWEST, "r", "");
}
END_TEST

/* A pod of its own that nobody ever binds, whatever its author makes of its time. */
START_TEST(that_of_volcano_itself_is_revoked_in_the_end)
{
    struct strays *strays = store_strays(world.store);

    plant(NEWEST, "evil/p", "\"volcano\"", "1767225600");
    store_lock(world.store);
    g_autoptr(GPtrArray) first = strays_take_due(strays, 9, 1000);
    store_unlock(world.store);
    ck_assert_uint_eq(first->len, 0);
    fake_cluster_annotate(cluster, "evil/p", NEWEST->time, "1767225601");
    world_catch_up(&world);
    store_lock(world.store);
    g_autoptr(GPtrArray) early = strays_take_due(strays, 9, 1000 + STRAY_SPARED_MS - 1);
    g_autoptr(GPtrArray) due = strays_take_due(strays, 9, 1000 + STRAY_SPARED_MS);
    g_autoptr(GPtrArray) again = strays_take_due(strays, 9, 1001 + STRAY_SPARED_MS);
    store_unlock(world.store);
    ck_assert_uint_eq(early->len, 0);
    ck_assert_uint_eq(due->len, 1);
    ck_assert_uint_eq(again->len, 0);
    fake_cluster_annotate(cluster, "evil/p", NEWEST->promised, "");
    world_catch_up(&world);
    store_lock(world.store);
    g_autoptr(GPtrArray) none = strays_take_due(strays, 9, 9 * (int64_t)STRAY_SPARED_MS);
    store_unlock(world.store);
    ck_assert_uint_eq(none->len, 0);
}
END_TEST

START_TEST(a_namespace_with_many_keeps_no_other_waiting)
{
    for (int i = 0; i < 100; i++) {
        g_autofree char *name = g_strdup_printf("evil/p%d", i);
        plant(&sites[0], name, "\"default-scheduler\"", "0");
    }
    leave(NEWEST, "x", "Failed");
    store_lock(world.store);
    g_autoptr(GPtrArray) due = strays_take_due(store_strays(world.store), 2, 1);
    store_unlock(world.store);
    bool found = false;
    for (guint i = 0; i < due->len; i++)
        found |= g_str_equal(((const struct stray *)due->pdata[i])->name, "x");
    ck_assert(found);
}
END_TEST

/* Whom kubelet will ask for is no stray. */
START_TEST(who_waits_for_the_plugin_is_not_among_them)
{
    add(&sites[_i], "x");
    bind_to(&sites[_i], "x", "");
    ck_assert_uint_eq(n_promised(world.store, sites[_i].node), 0);
    ck_assert_uint_eq(revoke_some(), 0);
    serve(&sites[_i], "x");
    ck_assert_uint_eq(n_promised(world.store, sites[_i].node), 0);
}
END_TEST

/* --- pods that were given what others were promised ------------------------------------------- */

static void expect_place(const struct site *site, const char *uid, bool known)
{
    const struct allocation *held = ledger_get(store_lock(world.store), uid);

    ck_assert(known == (held->shares[0].card != CARD_UNKNOWN));
    ck_assert(known == (held->distrust == DISTRUST_NONE || held->distrust == DISTRUST_EDITED));
    store_unlock(world.store);
    ck_assert_int_eq(world_unplaced(&world, site->node) > 0, !known);
}

static bool finds(const char *cause)
{
    g_autoptr(audit_report) report = audit_look(world.store, &(struct audit_options){0});
    bool found = false;

    for (guint i = 0; i < report->rows->len; i++) {
        const struct audit_row *row = report->rows->pdata[i];
        found |= g_str_equal(audit_cause_info(row->cause)->code, cause);
    }
    return found;
}

START_TEST(who_runs_while_its_promise_stands_is_anywhere)
{
    const struct site *site = &sites[_i];

    leave(site, "x", "Running");
    expect_place(site, "uid-x", false);
    ck_assert(finds("promise_stands") && finds("mistaken"));
    ck_assert_uint_eq(revoke_some(), 1);
    expect_place(site, "uid-x", false);
    ck_assert(!finds("promise_stands") && finds("mistaken"));
    g_autoptr(store) other = store_new(store_options(world.store));
    fake_cluster_list(cluster, other, FEED_PODS);
    const struct allocation *held = ledger_get(store_lock(other), "uid-x");
    ck_assert_int_eq(held->shares[0].card, CARD_UNKNOWN);
    store_unlock(other);
}
END_TEST

START_TEST(who_was_seen_served_stays_on_its_card)
{
    const struct site *site = &sites[_i];

    add(site, "x");
    bind_to(site, "x", "");
    serve(site, "x");
    fake_cluster_annotate(cluster, "x", site->phase, "allocating");
    fake_cluster_annotate(cluster, "x", site->promised, "GPU-b,NVIDIA,3000,0:");
    world_catch_up(&world);
    ck_assert_uint_eq(n_promised(world.store, site->node), 1);
    const struct allocation *held = ledger_get(store_lock(world.store), "uid-x");
    ck_assert_int_eq(held->shares[0].card, 0);
    store_unlock(world.store);
    ck_assert_uint_eq(revoke_some(), 1);
    ck_assert_int_eq(world_unplaced(&world, site->node), 0);
}
END_TEST

/* --- gpushare --------------------------------------------------------------------------------- */

static void let_pass(int64_t *now_ms, int64_t ms)
{
    struct moment moment = {.now_ns = 1, .now_ms = *now_ms += ms};

    store_set_moment(world.store, &moment);
    store_decide_recorded(world.store, &moment);
    store_unlock(world.store);
    store_set_moment(world.store, NULL);
}

/* The plugin may give it to the next pod of the size as long as it is Pending, however old it is. */
START_TEST(a_mark_that_was_lost_is_made_up_for)
{
    int64_t now_ms = g_get_monotonic_time() / 1000;

    for (int i = 0; i < 2; i++)
        world_add_pending(&world, i ? "q" : "p", 5);
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    for (int i = 0; i < 10; i++) {
        let_pass(&now_ms, 60000);
        world_expect_bind(&world, "q", "duo", AWAITED);
    }
    ck_assert_uint_eq(revoke_some(), 0);
    fake_cluster_start(cluster, "p"); /* an image is being pulled */
    world_catch_up(&world);
    let_pass(&now_ms, 600000);
    world_expect_bind(&world, "q", "duo", BARRED);
    world_add_pending(&world, "r", 4); /* of another size */
    world_expect_bind(&world, "r", "duo", "");
    ck_assert_uint_eq(revoke_some(), 1);
    g_autofree char *mark = fake_cluster_annotation(cluster, "p", "ALIYUN_COM_GPU_MEM_ASSIGNED");
    ck_assert_str_eq(mark, "true");
    world_expect_bind(&world, "q", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-p"), 0);
}
END_TEST

/* --- plugins that begin with the first pod of the cluster --------------------------------------- */

#define TIME_OF_DAY INT64_C(1700000000)

static void put_second_node(void)
{
    fake_cluster_put_other_node(cluster, "w", NEWEST->status);
    fake_cluster_annotate_node(cluster, "w", NEWEST->key, NEWEST->cards);
    world_catch_up(&world);
}

START_TEST(of_two_nodes_the_first_pod_has_the_larger_time)
{
    const char *order[] = {_i ? "a" : "b", _i ? "b" : "a"};

    put_second_node();
    for (int i = 0; i < 2; i++) {
        add(NEWEST, order[i]);
        world_expect_bind(&world, order[i], i ? "w" : "v", "");
        world_catch_up(&world);
    }
    ck_assert_int_gt(number("a", NEWEST->time), number("b", NEWEST->time));
    ck_assert_int_gt(number(order[0], NEWEST->time), TIME_OF_DAY);
}
END_TEST

/* Bound by its author to a node that is not there, so that no kubelet asks for it. */
static void put_on_ghost(void)
{
    fake_cluster_add_pod(
        cluster,
        &(struct fake_pod){.name = "a/a", .containers = NEWEST->containers, .node = "ghost"});
    fake_cluster_annotate(cluster, "a/a", NEWEST->phase, "allocating");
    fake_cluster_annotate(cluster, "a/a", NEWEST->promised, "GPU-a,NVIDIA,9000,0:");
    fake_cluster_annotate(cluster, "a/a", NEWEST->promised_node, "ghost");
    fake_cluster_annotate(cluster, "a/a", NEWEST->time, "1");
}

START_TEST(a_time_that_an_author_made_up_is_revoked)
{
    if (_i) { /* or written over that of gpuledger */
        put_second_node();
        add(NEWEST, "a");
        world_expect_bind(&world, "a", "w", "");
        fake_cluster_annotate(cluster, "a", NEWEST->time, "1");
    } else {
        put_on_ghost();
    }
    world_catch_up(&world);
    add(NEWEST, "q");
    bind_to(NEWEST, "q", BARRED);
    ck_assert_uint_eq(revoke_some(), 1);
    bind_to(NEWEST, "q", "");
    ck_assert_uint_eq(revoke_some(), 0);
}
END_TEST

/* The plugin does not read the phase of a pod whose promise stands. Its author has bound it. */
START_TEST(a_phase_that_an_author_made_up_ends_no_wait)
{
    fake_cluster_add_pod(
        cluster,
        &(struct fake_pod){.name = "z", .containers = NEWEST->containers, .node = NEWEST->node});
    fake_cluster_annotate(cluster, "z", NEWEST->bind_time, "1700000000");
    fake_cluster_annotate(cluster, "z", NEWEST->time, "1700000000");
    fake_cluster_annotate(cluster, "z", NEWEST->promised_node, NEWEST->node);
    fake_cluster_annotate(cluster, "z", "volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,3000,0:");
    fake_cluster_annotate(cluster, "z", NEWEST->promised, "GPU-a,NVIDIA,3000,0:");
    fake_cluster_annotate(cluster, "z", NEWEST->phase, "success");
    world_catch_up(&world);
    add(NEWEST, "q");
    bind_to(NEWEST, "q", TURN);
    serve(NEWEST, "z");
    bind_to(NEWEST, "q", "");
}
END_TEST

/* One that gpuledger has written itself, beside a planted one, is none of those. */
START_TEST(a_small_time_of_ours_is_left_alone)
{
    put_second_node();
    plant(NEWEST, "evil/p", "\"default-scheduler\"", "1000");
    add(NEWEST, "q");
    bind_to(NEWEST, "q", "");
    ck_assert_int_lt(number("q", NEWEST->time), 1000);
    ck_assert_uint_eq(revoke_some(), 1); /* the planted one */
    ck_assert_uint_eq(revoke_some(), 0);
    add(NEWEST, "r");
    world_expect_bind(&world, "r", "w", "");
    world_catch_up(&world);
    ck_assert_int_lt(number("r", NEWEST->time), number("q", NEWEST->time));
    serve(NEWEST, "q");
    serve(NEWEST, "r");
    add(NEWEST, "s");
    bind_to(NEWEST, "s", "");
    ck_assert_int_gt(number("s", NEWEST->time), TIME_OF_DAY);
}
END_TEST

/* A time far ahead leaves room for others, too. */
START_TEST(a_time_far_ahead_counts_for_nothing)
{
    put_second_node();
    add(NEWEST, "z");
    world_expect_bind(&world, "z", "w", "");
    fake_cluster_annotate(cluster, "z", NEWEST->time,
                          _i ? "9223372036854775807" : "4611686018427387904");
    world_catch_up(&world);
    add(NEWEST, "q");
    bind_to(NEWEST, "q", "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("strays");
    TCase *tests = tcase_create("store");

    tcase_add_checked_fixture(tests, begin, teardown);
    tcase_add_loop_test(tests, what_an_ended_pod_was_promised_keeps_others_away, 0, 2 * N_BARRED);
    tcase_add_loop_test(tests, a_bind_waits_until_it_is_revoked, 0, N_BARRED);
    tcase_add_loop_test(tests, it_is_gone_with_the_pod, 0, G_N_ELEMENTS(sites));
    tcase_add_loop_test(tests, a_list_tells_of_them, 0, G_N_ELEMENTS(sites));
    tcase_add_test(tests, of_one_size_the_oldest_is_told);
    tcase_add_test(tests, of_too_many_sizes_any_may_be_meant);
    tcase_add_test(tests, a_list_names_those_that_it_drops);
    tcase_add_test(tests, a_newcomer_outranks_it);
    tcase_add_test(tests, a_patch_that_fails_is_sent_again_later);
    tcase_add_loop_test(tests, a_planted_promise_is_revoked, 0, G_N_ELEMENTS(sites));
    tcase_add_test(tests, that_of_volcano_itself_is_left_alone);
    tcase_add_test(tests, that_of_volcano_itself_is_revoked_in_the_end);
    tcase_add_test(tests, a_namespace_with_many_keeps_no_other_waiting);
    tcase_add_loop_test(tests, who_waits_for_the_plugin_is_not_among_them, 0, G_N_ELEMENTS(sites));
    tcase_add_loop_test(tests, who_runs_while_its_promise_stands_is_anywhere, 0,
                        G_N_ELEMENTS(sites));
    tcase_add_loop_test(tests, who_was_seen_served_stays_on_its_card, 0, G_N_ELEMENTS(sites));
    tcase_add_test(tests, a_mark_that_was_lost_is_made_up_for);
    tcase_add_loop_test(tests, of_two_nodes_the_first_pod_has_the_larger_time, 0, 2);
    tcase_add_loop_test(tests, a_time_that_an_author_made_up_is_revoked, 0, 2);
    tcase_add_test(tests, a_phase_that_an_author_made_up_ends_no_wait);
    tcase_add_test(tests, a_small_time_of_ours_is_left_alone);
    tcase_add_loop_test(tests, a_time_far_ahead_counts_for_nothing, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
