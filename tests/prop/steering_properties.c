/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bursts of equal pods through filter, prioritize and bind, in any order, with a node side that serves
 * pods when it likes: no pod waits in bind while another node that filter was asked about could take it
 * at once, and filter lets no node pass where it would wait while it lets none pass where it would not.
 *
 * The oracle knows no cards. A node that has nobody, and to which nobody is on the way, takes any pod at
 * once; two pods of one size that do not fit on one card together wait for each other. Pods are on the
 * way from prioritize, or a filter that left one node, until their bind.
 */
#include "verbs/bind/attempt.h"
#include "chance.h"
#include "../unit/suite.h"
#include "../unit/world.h"

#include <string.h>

#define NODES 6
#define PODS 12
#define ROUND_EVENTS 300
#define SIZE 6 /* of cards of 10 */

enum stage {
    STAGE_GONE,
    STAGE_NEW,
    STAGE_CHOSEN, /* filter and perhaps prioritize were asked; kube-scheduler will bind it */
    STAGE_WAITING, /* its bind waits */
    STAGE_BOUND,
    STAGE_SERVED,
};

struct pod {
    char name[8];
    enum stage stage;
    int node;          /* where it is bound, waits, or will be bound */
    int known;         /* where it is known to go; -1: that is not known */
    int64_t known_ms;  /* since when */
    bool asked[NODES]; /* filter was */
    int64_t filtered_ms;
    int64_t turned_ms; /* its bind was turned away, to a node that nobody but the program knows */
    struct bind_args args;
    struct attempt attempt;
};

static struct world world;
static struct fake_cluster *cluster;
static struct pod pods[PODS];
static struct moment now;
static unsigned n_waits, n_turned, n_bound;

static const char *node_name(int node)
{
    static char names[NODES][8];

    g_snprintf(names[node], sizeof names[node], "n%d", node);
    return names[node];
}

/* --- the oracle ------------------------------------------------------------------------------- */

static bool is_on_node(const struct pod *pod, int node)
{
    return pod->stage >= STAGE_WAITING && pod->node == node;
}

static bool is_coming(const struct pod *pod, int node)
{
    return pod->stage == STAGE_CHOSEN && pod->known == node &&
           now.now_ms - pod->known_ms < HINT_LASTS_MS;
}

/* Nobody is there, and nobody but this pod may be on the way. */
static bool is_idle(const struct pod *but, int node)
{
    for (int i = 0; i < PODS; i++) {
        if (&pods[i] != but && (is_on_node(&pods[i], node) || is_coming(&pods[i], node)))
            return false;
    }
    return true;
}

/* How many of the nodes that filter was asked about for the pod take it at once, at least. */
static int count_idle(const struct pod *pod)
{
    int n = 0;

    for (int i = 0; i < NODES; i++)
        n += pod->asked[i] && is_idle(pod, i);
    for (int i = 0; i < PODS; i++)
        n -= &pods[i] != pod && pods[i].stage == STAGE_NEW && pods[i].turned_ms > 0 &&
             now.now_ms - pods[i].turned_ms < HINT_LASTS_MS;
    return n;
}

/* Somebody there has not been served. */
static bool is_busy(int node)
{
    for (int i = 0; i < PODS; i++) {
        if (pods[i].stage == STAGE_BOUND && pods[i].node == node)
            return true;
    }
    return false;
}

/* --- what happens ------------------------------------------------------------------------------ */

static struct pod *pick(enum stage stage)
{
    uint32_t order[PODS];

    chance_order(order, PODS);
    for (int i = 0; i < PODS; i++) {
        if (pods[order[i]].stage == stage)
            return &pods[order[i]];
    }
    return NULL;
}

static void create(void *data)
{
    struct pod *pod = pick(STAGE_GONE);

    if (!pod)
        return;
    world_add_pending(&world, pod->name, SIZE);
    pod->stage = STAGE_NEW;
}

static void end_grant(struct pod *pod)
{
    attempt_clear(&pod->attempt);
    pod->attempt = (struct attempt){.args = &pod->args};
}

static char *ask(struct pod *pod)
{
    g_autoptr(GString) nodes = g_string_new(NULL);

    do {
        g_string_truncate(nodes, 0);
        for (int i = 0; i < NODES; i++) {
            pod->asked[i] = chance_percent(70);
            if (pod->asked[i])
                g_string_append_printf(nodes, "%s%s", nodes->len ? "," : "", node_name(i));
        }
    } while (nodes->len == 0);
    return g_strdup(nodes->str);
}

/* As kube-scheduler: filter, then, if it knows of it, prioritize. */
static void schedule(void *data)
{
    struct pod *pod = pick(STAGE_NEW);
    bool passed[NODES], waits = false;
    int n_passed = 0, n = 0;

    if (!pod)
        return;
    g_autofree char *nodes = ask(pod);
    g_autofree char *answer = world_filter(&world, pod->name, nodes);
    for (int i = 0; i < NODES; i++) {
        g_autofree char *refusal = g_strdup_printf("\"%s\":\"", node_name(i));
        passed[i] = pod->asked[i] && !strstr(answer, refusal);
        n_passed += passed[i];
        waits |= passed[i] && is_busy(i);
    }
    const bool idle = count_idle(pod) > 0;
    HOLDS(!idle || n_passed > 0, "a node is idle, but filter says %s", answer);
    HOLDS(!idle || !waits, "a node is idle, but filter passes one that is busy: %s", answer);
    if (n_passed == 0)
        return;
    g_autoptr(GString) left = g_string_new(NULL);
    for (int i = 0; i < NODES; i++) {
        if (passed[i])
            g_string_append_printf(left, "%s%s", left->len ? "," : "", node_name(i));
    }
    pod->known = -1;
    pod->filtered_ms = pod->known_ms = now.now_ms;
    const int which = (int)chance_below((uint32_t)n_passed);
    for (int i = 0; i < NODES; i++) {
        if (passed[i] && n++ == which)
            pod->node = i;
    }
    if (n_passed == 1) {
        pod->known = pod->node;
    } else if (chance_percent(60)) {
        g_autofree char *marks = world_prioritize(&world, PRIORITIZE_ALL, pod->name, left->str);
        for (int i = 0; i < NODES; i++) {
            g_autofree char *best = g_strdup_printf("%s=10", node_name(i));
            if (strstr(marks, best))
                pod->known = i;
        }
        HOLDS(pod->known >= 0 && passed[pod->known], "prioritize says %s of %s", marks, left->str);
        if (chance_percent(90)) /* else something else weighed more */
            pod->node = pod->known;
    }
    pod->stage = STAGE_CHOSEN;
}

static void bind(const struct pod *pod)
{
    g_autofree char *failure = world_bind(&world, pod->name, node_name(pod->node));

    HOLDS(*failure == '\0', "bind of %s to %s: %s", pod->name, node_name(pod->node), failure);
    world_catch_up(&world);
}

/* One look of the pod's bind. */
static void look(struct pod *pod)
{
    const bool first = pod->stage == STAGE_CHOSEN;
    const bool known = now.now_ms - pod->filtered_ms < HINT_LASTS_MS;
    g_autoptr(GError) error = NULL;

    if (first) {
        end_grant(pod);
        pod->attempt.send_until_ms = now.now_ms + 16000;
        pod->args.node = node_name(pod->node);
    }
    struct ledger *ledger = store_lock(world.store);
    hints_end(store_hints(world.store), ledger, now.now_ms);
    const enum attempt_step step = attempt_look(&pod->attempt, world.store, ledger, &now, &error);
    if (step == ATTEMPT_SEND)
        ledger_drop(ledger, pod->args.pod_uid);
    store_unlock(world.store);

    switch (step) {
    case ATTEMPT_WAIT_NODE:
        HOLDS(!first || !known || count_idle(pod) <= 0, "%s waits for %s while %d nodes are idle",
              pod->name, node_name(pod->node), count_idle(pod));
        pod->stage = STAGE_WAITING;
        n_waits++;
        return;
    case ATTEMPT_SEND:
        bind(pod);
        pod->stage = STAGE_BOUND;
        n_bound++;
        break;
    default:
        HOLDS(error, "no step that can be: %d", (int)step);
        n_turned += g_str_equal(error->message, reason_info(REASON_OTHERS_COMING)->text);
        pod->stage = STAGE_NEW;
        pod->turned_ms = now.now_ms;
        break;
    }
    end_grant(pod);
}

static void bind_one(void *data)
{
    struct pod *pod = pick(STAGE_CHOSEN);

    if (pod)
        look(pod);
}

static void look_again(void *data)
{
    struct pod *pod = pick(STAGE_WAITING);

    if (pod)
        look(pod);
}

static void serve(void *data)
{
    struct pod *pod = pick(STAGE_BOUND);

    if (!pod)
        return;
    fake_cluster_assign(cluster, pod->name);
    fake_cluster_start(cluster, pod->name);
    world_catch_up(&world);
    pod->stage = STAGE_SERVED;
}

static void delete(void *data)
{
    struct pod *pod = &pods[chance_below(PODS)];

    if (pod->stage == STAGE_GONE || (pod->stage != STAGE_SERVED && chance_percent(70)))
        return;
    end_grant(pod);
    fake_cluster_delete_pod(cluster, pod->name);
    world_catch_up(&world);
    pod->stage = STAGE_GONE;
}

static void pass_time(void *data)
{
    now.now_ms += chance_between(1, 900);
    now.now_ns = now.now_ms * 1000000;
}

static const struct chance_action actions[] = {
    {"create", 6, create},         {"schedule", 8, schedule}, {"bind", 7, bind_one},
    {"look again", 3, look_again}, {"serve", 4, serve},       {"delete", 3, delete},
    {"pass time", 2, pass_time},   {0},
};

static void begin(void)
{
    world_init(&world);
    cluster = world.cluster;
    for (int i = 0; i < NODES; i++)
        fake_cluster_put_node(cluster, node_name(i), 20, 2);
    world_sync(&world);
    world.extender.bind_timeout_ms = INT32_MAX; /* time is what `now` says */
    now = (struct moment){g_get_real_time() * 1000, g_get_monotonic_time() / 1000, 0};
    now.now_ns = now.now_ms * 1000000;
    store_set_moment(world.store, &now);
    for (int i = 0; i < PODS; i++) {
        pods[i] = (struct pod){0};
        g_snprintf(pods[i].name, sizeof pods[i].name, "p%d", i);
        g_autofree char *uid = g_strdup_printf("uid-p%d", i);
        pods[i].args = (struct bind_args){.pod_name = pods[i].name,
                                          .pod_namespace = g_strdup("default"),
                                          .pod_uid = g_steal_pointer(&uid)};
        pods[i].attempt.args = &pods[i].args;
    }
}

static void end(void)
{
    g_autofree char *violation = fake_cluster_violation(cluster);

    HOLDS(!violation, "%s", violation);
    world_verify(&world);
    for (int i = 0; i < PODS; i++) {
        attempt_clear(&pods[i].attempt);
        g_free((char *)pods[i].args.pod_namespace);
        g_free((char *)pods[i].args.pod_uid);
    }
    world_release(&world);
}

/* In a test of Check's, since the world asserts with it. */
START_TEST(nobody_waits_while_another_node_is_free)
{
    for (unsigned i = 0; chance_next_event(); i++) {
        if (i % ROUND_EVENTS == 0) {
            if (i > 0)
                end();
            begin();
        }
        chance_act(actions, NULL);
    }
    end();
    HOLDS(n_waits > 0 && n_turned > 0 && n_bound > 0, "%u waited, %u were turned, %u bound",
          n_waits, n_turned, n_bound);
    g_print("# %u bound, %u waits, %u turned to another node\n", n_bound, n_waits, n_turned);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("steering");
    TCase *tests = tcase_create("steering");

    chance_init("nobody waits while another node is free", 30000);
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, nobody_waits_while_another_node_is_free);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
