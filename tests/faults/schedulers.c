/* SPDX-License-Identifier: Apache-2.0 */
#include "schedulers.h"

#include "../prop/chance.h"
#include "preempts.h"
#include "sim.h"
#include "truth.h"

#include "inspect/views.h"

#include <cjson/cJSON.h>
#include <string.h>

#define MS 1000
#define S (1000 * MS)
#define SCHEDULERS 2

/* kube-scheduler's side of one pod. */
struct attempt {
    char uid[24];
    bool binding;
    int64_t asked_us, not_before_us, backoff_us;
};

struct scheduler {
    int number;
    int64_t timeout_us; /* of its calls: then it takes them for failed, and asks again */
    struct attempt attempts[PODS];
};

static struct {
    struct extender *extender;
    const bool *stopping;
    bool paused;
    struct scheduler all[SCHEDULERS];
    struct schedulers_counts counts;
} side;

char *schedulers_nodes(void)
{
    GString *text = g_string_new(NULL);

    HOLDS(view_nodes(side.extender->store, NULL, text), "no nodes");
    return g_string_free(text, FALSE);
}

int schedulers_filter(const struct pod *pod, int *ret_left)
{
    uint32_t order[NODES];
    g_autofree char *object = server_pod_json(pod);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    bool compares = chance_percent(10) && pod->group == 0; /* a group's pod gets a place */
    /* Time alone may have ended what was waited for. */
    store_end_waits(side.extender->store);
    g_autofree char *before = compares ? schedulers_nodes() : NULL;
    uint64_t requests = server.n_requests;
    int passing = 0, left = 0;

    chance_order(order, NODES);
    g_string_printf(body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", object);
    for (int i = 0; i < NODES; i++)
        g_string_append_printf(body, "%s\"n%u\"", i ? "," : "", order[i]);
    g_string_append(body, "]}");
    extender_filter(side.extender, body->str, body->len, reply);
    side.counts.filters++;

    HOLDS(server.n_requests == requests, "filter has asked the API server");
    if (compares) {
        g_autofree char *after = schedulers_nodes();
        HOLDS(g_str_equal(before, after), "filter has changed\n%s\nto\n%s", before, after);
    }
    cJSON *tree = cJSON_Parse(reply->str);
    const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "Error"));
    const cJSON *name;
    HOLDS(tree && error, "%s", reply->str);
    cJSON_ArrayForEach (name, cJSON_GetObjectItemCaseSensitive(tree, "NodeNames"))
        passing |= 1 << (cJSON_GetStringValue(name)[1] - '0');
    cJSON_ArrayForEach (
        name, cJSON_GetObjectItemCaseSensitive(tree, "FailedAndUnresolvableNodes"))
        left |= g_str_equal(cJSON_GetStringValue(name), reason_info(REASON_OTHERS_COMING)->text)
                << (name->string[1] - '0');
    HOLDS(left == 0 || passing != 0, "%s", reply->str);
    if (ret_left)
        *ret_left = left;
    if (*error)
        passing = -1;
    sim_trace("filter %s: %x %s", pod->uid, (unsigned)passing, error);
    cJSON_Delete(tree);
    return passing;
}

/* Which of the nodes that pass it likes best has no consequence; the record tells. */
static void call_prioritize(const struct pod *pod, int passing)
{
    g_autofree char *object = server_pod_json(pod);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const char *comma = "";

    g_string_printf(body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", object);
    for (int i = 0; i < NODES; i++) {
        if (!(passing >> i & 1))
            continue;
        g_string_append_printf(body, "%s\"n%d\"", comma, i);
        comma = ",";
    }
    g_string_append(body, "]}");
    HOLDS(extender_prioritize(side.extender, PRIORITIZE_ALL, body->str, body->len, reply, &error),
          "%s", error->message);
    sim_trace("prioritize %s: %s", pod->uid, reply->str);
}

/* A pause that doubles, or the scheduler has gone away for a while. */
static void back_off(struct attempt *attempt)
{
    attempt->backoff_us = MIN(attempt->backoff_us * 2, 10 * S);
    attempt->not_before_us =
        sim_now_us() + (chance_percent(10) ? chance_below(300 * S) : attempt->backoff_us);
}

struct binding_call {
    struct scheduler *scheduler;
    int pod, node;
    char uid[24];
};

char *schedulers_bind(int i, const char *uid, int node)
{
    g_autofree char *text = g_strdup_printf("{\"PodName\":\"p%d\",\"PodNamespace\":\"ml\","
                                            "\"PodUID\":\"%s\",\"Node\":\"n%d\"}",
                                            i, uid, node);
    g_autoptr(GString) reply = g_string_new(NULL);
    struct pod *pod = &server.pods[i];

    if (pod->exists && g_str_equal(pod->uid, uid) && store_is_synced(side.extender->store))
        truth_note_bind(pod);
    side.counts.binds++;
    sim_trace("bind %s to n%d", uid, node);
    extender_bind(side.extender, text, strlen(text), reply);
    cJSON *tree = cJSON_Parse(reply->str);
    char *error =
        g_strdup(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "Error")));
    HOLDS(error, "%s", reply->str);
    cJSON_Delete(tree);
    sim_trace("bind %s to n%d: '%s'", uid, node, error);
    if (!*error) {
        int bound = GPOINTER_TO_INT(g_hash_table_lookup(server.bound, uid)) - 1;
        HOLDS(bound == node, "bind says that %s is on n%d, it is on n%d", uid, node, bound);
        side.counts.bound++;
    }
    return error;
}

static void run_binding_call(void *data)
{
    struct binding_call *call = data;
    struct attempt *attempt = &call->scheduler->attempts[call->pod];
    g_autofree char *error = schedulers_bind(call->pod, call->uid, call->node);

    if (g_str_equal(attempt->uid, call->uid)) {
        attempt->binding = false;
        if (*error)
            back_off(attempt);
    }
    g_free(call);
}

/* The pod's turn has come: it waits for a node, and is not being bound as far as the scheduler
 * knows. */
static bool is_due(struct scheduler *scheduler, int i)
{
    const struct pod *pod = &server.pods[i];
    struct attempt *attempt = &scheduler->attempts[i];

    if (!pod->exists || pod->node >= 0 || pod->phase != PENDING || pod->terminating)
        return false;
    /* Each has pods of its own; now and then one takes up another's, as after a change of leader. */
    if (i % SCHEDULERS != scheduler->number && !chance_percent(10))
        return false;
    if (!g_str_equal(attempt->uid, pod->uid)) {
        *attempt = (struct attempt){.backoff_us = S};
        memcpy(attempt->uid, pod->uid, sizeof attempt->uid);
    }
    if (attempt->binding && sim_now_us() < attempt->asked_us + scheduler->timeout_us)
        return false;
    return sim_now_us() >= attempt->not_before_us;
}

static void schedule_one(struct scheduler *scheduler, int i)
{
    struct attempt *attempt = &scheduler->attempts[i];
    struct pod *pod = &server.pods[i];
    int passing = schedulers_filter(pod, NULL);

    if (pod->units > 0 && chance_percent(30))
        preempts_call(side.extender, pod);
    if (passing <= 0) {
        back_off(attempt);
        return;
    }
    call_prioritize(pod, passing);
    struct binding_call *call = g_new0(struct binding_call, 1);
    *call = (struct binding_call){.scheduler = scheduler, .pod = i};
    memcpy(call->uid, pod->uid, sizeof call->uid);
    do
        call->node = (int)chance_below(NODES);
    while (!(passing >> call->node & 1));
    attempt->binding = true;
    attempt->asked_us = sim_now_us();
    sim_sleep(chance_below(5 * MS)); /* other plugins */
    sim_spawn(run_binding_call, call);
}

static void run_scheduler(void *data)
{
    struct scheduler *scheduler = data;

    while (!*side.stopping) {
        uint32_t order[PODS];
        int i = 0;

        sim_sleep(chance_below(20 * MS));
        if (side.paused)
            sim_sleep(S);
        if (side.paused || sim_alive() > 60)
            continue;
        chance_order(order, PODS);
        while (i < PODS && !is_due(scheduler, (int)order[i]))
            i++;
        if (i < PODS)
            schedule_one(scheduler, (int)order[i]);
        else
            sim_sleep(chance_below(500 * MS));
    }
}

/* --- their life ----------------------------------------------------------------------------- */

void schedulers_reset(void)
{
    memset(side.all, 0, sizeof side.all);
    side.paused = false;
}

void schedulers_start(struct extender *extender, const bool *stopping)
{
    side.extender = extender;
    side.stopping = stopping;
    for (int i = 0; i < SCHEDULERS; i++) {
        side.all[i].number = i;
        side.all[i].timeout_us = extender->bind_timeout_ms * chance_between(500, 2000);
        sim_spawn(run_scheduler, &side.all[i]);
    }
}

void schedulers_pause(bool paused)
{
    side.paused = paused;
}

void schedulers_lose_calls(void)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        for (int j = 0; j < PODS; j++) {
            struct attempt *attempt = &side.all[i].attempts[j];
            if (attempt->binding)
                back_off(attempt);
            attempt->binding = false;
        }
    }
}

const struct schedulers_counts *schedulers_counts(void)
{
    return &side.counts;
}
