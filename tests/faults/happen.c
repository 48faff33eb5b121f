/* SPDX-License-Identifier: Apache-2.0 */
#include "happen.h"

#include "server.h"
#include "sim.h"
#include "truth.h"

#define S INT64_C(1000000)

static bool unpredictable;
static char *token_file;

static void write_token(int token)
{
    g_autofree char *text = g_strdup_printf("token-%d\n", token);
    HOLDS(g_file_set_contents(token_file, text, -1, NULL), "%s", token_file);
}

/* One draw after the other: compilers differ in the order of arguments. */
static void draw_node(int node, int unit)
{
    int cards = (int)chance_between(1, CARDS_MAX), units = (int)chance_between(6, 16) * unit;

    server_put_node(node, cards, units);
}

void happen_begin(bool others_meddle, const char *token_path)
{
    int unit = chance_percent(25) ? 1000 : 1;

    unpredictable = others_meddle;
    g_free(token_file);
    token_file = g_strdup(token_path);
    write_token(0);
    for (int i = 0; i < NODES; i++)
        draw_node(i, unit);
}

static bool is_over(const struct pod *pod)
{
    return pod->phase == SUCCEEDED || pod->phase == FAILED;
}

static bool is_there(const struct pod *pod)
{
    return pod->exists;
}

static bool is_unassigned(const struct pod *pod)
{
    return truth_holds(pod) && pod->granted && pod->phase == PENDING &&
           g_strcmp0(pod->annotations[ASSIGNED], "false") == 0;
}

/* kubelet has asked for its containers. */
static bool can_start(const struct pod *pod)
{
    return pod->exists && pod->node >= 0 && !is_over(pod) && !pod->started &&
           g_strcmp0(pod->annotations[ASSIGNED], "false") != 0;
}

static bool can_run(const struct pod *pod)
{
    return pod->exists && pod->started && pod->phase == PENDING;
}

static bool can_end(const struct pod *pod)
{
    return pod->exists && !is_over(pod) && (pod->node >= 0 || chance_percent(10));
}

static bool can_be_bound(const struct pod *pod)
{
    return pod->exists && pod->node < 0 && !pod->terminating && !is_over(pod);
}

/* Any that fits, NULL if there is none. */
static struct pod *pick(bool (*fits)(const struct pod *pod))
{
    unsigned from = chance_below(PODS);

    for (unsigned i = 0; i < PODS; i++) {
        struct pod *pod = &server.pods[(from + i) % PODS];
        if (fits(pod))
            return pod;
    }
    return NULL;
}

static void create_pod(void *data)
{
    int i = (int)chance_below(PODS);
    int units = server_shape(0)->units >= 1000 ? (int)chance_between(1, 6) * 1000
                                               : (int)chance_between(1, 7);

    if (server.pods[i].exists && !is_over(&server.pods[i]) && !chance_percent(10))
        return;
    if (chance_percent(4))
        units = 0;
    server_create_pod(i, units, units > 1 && chance_percent(4) ? 2 : 1);
}

static void delete_pod(void *data)
{
    struct pod *pod = pick(is_there);

    if (pod)
        server_delete_pod(pod);
}

static void terminate_pod(void *data)
{
    struct pod *pod = pick(is_there);

    if (!pod || pod->terminating)
        return;
    pod->terminating = true;
    server_touch_pod(pod, !is_over(pod));
}

/* kubelet asks the plugin, which marks the pod. */
static void assign_pod(void *data)
{
    struct pod *pod = pick(is_unassigned);

    if (pod)
        server_annotate(pod, ASSIGNED, "true");
}

static void start_pod(void *data)
{
    struct pod *pod = pick(can_start);

    if (!pod)
        return;
    pod->started = true;
    pod->moved_us = sim_now_us();
    server_touch_pod(pod, true);
}

static void run_pod(void *data)
{
    struct pod *pod = pick(can_run);

    if (!pod)
        return;
    pod->phase = RUNNING;
    server_touch_pod(pod, true);
}

static void end_pod(void *data)
{
    struct pod *pod = pick(can_end);

    if (!pod)
        return;
    pod->phase = chance_percent(50) ? SUCCEEDED : FAILED;
    pod->rejected = pod->phase == FAILED && chance_percent(60);
    server_touch_pod(pod, true);
}

/* A pod of which a Binding of the program may be on its way is taken to be bound by it. */
static void bind_bare(void *data)
{
    struct pod *pod = unpredictable ? pick(can_be_bound) : NULL;

    if (!pod || pod->known[NODE] >= 0)
        return;
    pod->node = (int)chance_below(NODES);
    g_hash_table_insert(server.bound, g_strdup(pod->uid), GINT_TO_POINTER(pod->node + 1));
    server_touch_pod(pod, true);
}

static void put_node(void *data)
{
    int node = (int)chance_below(NODES);
    /* A unit is one of all nodes: pods that ask for MiB find nothing on those that count GiB. */
    int unit = server_shape(0)->units >= 1000 ? 1000 : 1;

    if (!chance_percent(10))
        draw_node(node, unit);
    else if (chance_percent(50))
        server_put_node(node, 0, 0);
    else
        draw_node(node, 1001 - unit);
}

static void delete_node(void *data)
{
    server_delete_node((int)chance_below(NODES));
}

/* A flap: gone and back with the same cards, at once. */
static void flap_node(void *data)
{
    int node = (int)chance_below(NODES);
    struct shape shape = *server_shape(node);

    if (!shape.exists)
        return;
    server_delete_node(node);
    server_put_node(node, shape.cards, shape.units);
}

static void put_health(void *data)
{
    int node = (int)chance_below(NODES);

    if (chance_percent(40))
        server_delete_health(node);
    else
        server_put_health(node, chance_below(1 << CARDS_MAX) & chance_below(1 << CARDS_MAX));
}

static void compact(void *data)
{
    server_compact();
}

/* A new token; the old one holds a little longer, or not at all. */
static void rotate_token(void *data)
{
    server.token_before = chance_percent(80) ? server.token : -1;
    server.token++;
    write_token(server.token);
}

static void step_clock(void *data)
{
    sim_step_clock(chance_between(-7200, 7200) * S);
}

const struct chance_action happenings[] = {
    {"create pod", 40, create_pod},
    {"delete pod", 6, delete_pod},
    {"terminate pod", 4, terminate_pod},
    {"assign pod", 60, assign_pod},
    {"start pod", 60, start_pod},
    {"run pod", 20, run_pod},
    {"end pod", 10, end_pod},
    {"bind pod by another scheduler", 2, bind_bare},
    {"change node", 2, put_node},
    {"delete node", 1, delete_node},
    {"flap node", 2, flap_node},
    {"change health", 3, put_health},
    {"compact", 2, compact},
    {"rotate token", 1, rotate_token},
    {"step clock", 1, step_clock},
    {0},
};
