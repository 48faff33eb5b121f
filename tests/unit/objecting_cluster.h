/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * States of a cluster in which a rule beside the cards keeps pods of the namespace "ml" from a node. Nodes are of
 * gpushare; time is that of a clock that stands still.
 */
#include "explained_cluster.h"
#include "gate/node_backoff/node_backoff.h"
#include "stopped_clock.h"
#include "verbs/extender.h"

#define PRIORITY 1000 /* of the pod that asks */
#define SECOND_MS 1000
#define UNSEALED 5 /* so many pods of a namespace without a seal close a node to it */
#define KOORDINATOR "gang.scheduling.koordinator.sh/"
#define OF(group, needs)                                                                           \
    "'" KOORDINATOR "name':'" group "','" KOORDINATOR "min-available':'" needs "'"
#define CONFIG(limits)                                                                             \
    "{'metadata':{'namespace':'kube-system','name':'gpuquota'},'data':{'gpu_quota':'{\\\"ml\\\":"  \
    "{\\\"quota\\\":{" limits "}}}'}}"
#define NODE_FAILS                                                                                 \
    "Allocate failed due to rpc error: code = Unavailable desc = transport is closing, which is "  \
    "unexpected"
#define CARD_FAILS                                                                                 \
    "Allocate failed due to rpc error: code = Unknown desc = cannot reset the GPU, which is "      \
    "unexpected"
/* All of card 0 for a more important pod. */
#define ROOM_ON_CARD_0                                                                             \
    "'gpuledger.io/plan':'{\\\"doing\\\":\\\"room\\\",\\\"by\\\":\\\"test\\\",\\\"until\\\":"      \
    "\\\"2026-01-05T12:10:00Z\\\",\\\"rooms\\\":[{\\\"id\\\":\\\"other\\\",\\\"pod\\\":"           \
    "\\\"other\\\",\\\"priority\\\":5000,\\\"dialect\\\":\\\"gpushare\\\",\\\"shares\\\":"         \
    "[{\\\"memory\\\":10,\\\"units\\\":true,\\\"card\\\":0}]}]}'"
#define SWITCH_AHEAD                                                                               \
    "'gpuledger.io/switch':'nvidia.com/device-plugin.config=night@2026-01-05T13:00:00Z'"

static struct extender extender;

static inline enum outcome bind_pod(struct cluster *base, const struct binding *binding,
                                    int64_t deadline_ms, GError **error)
{
    return OUTCOME_OK;
}

static inline enum outcome annotate_pod(struct cluster *base,
                                        const struct pod_annotation *annotation,
                                        int64_t deadline_ms, GError **error)
{
    return OUTCOME_OK;
}

static const struct cluster_ops writable_ops = {.name = "objects",
                                                .bind = bind_pod,
                                                .get_pod = get_pod,
                                                .list_pods_on = list_pods_on,
                                                .annotate_pod = annotate_pod};
static struct cluster writable = {&writable_ops};

/* With every rule in use. */
static inline void begin_objecting(void)
{
    clock_begin();
    begin_with((struct store_options){
        .hold_ms = INT64_C(3600) * SECOND_MS,
        .n_places = 8,
        .model_label = "model",
        .resource_quotas = true,
        .elastic_quotas = true,
        .reclaim = true,
        .reclaim_uncontrolled = true,
        .gangs = true,
        .gang_room_ms = INT64_C(3600) * SECOND_MS,
        NODE_BACKOFF_SETTINGS(3, 60 * SECOND_MS),
    });
    extender = (struct extender){.store = told, .cluster = &writable, .bind_timeout_ms = SECOND_MS};
}

/* Filter's reply about the pod of that key and nodes such as "'n1','n2'". */
static inline GString *filter_reply(const char *key, const char *nodes)
{
    g_autofree char *names = json_of(nodes);
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[%s]}",
                                            (const char *)g_hash_table_lookup(pods, key), names);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    return reply;
}

/* Three pods are bound to card 0, and kubelet fails them with that message. */
static inline void reject_three(const char *node, const char *message)
{
    for (int i = 0; i < 3; i++) {
        g_autofree char *name = g_strdup_printf("rejected-%s-%d", node, i);
        g_autofree char *status = g_strdup_printf("'reason':'UnexpectedAdmissionError','message':"
                                                  "'%s',",
                                                  message);
        struct said_pod pod = {name, "ml", .mem = "1"};
        add_pod(pod);
        pod.node = node;
        pod.card = "0";
        pod.unmatched = true;
        add_pod(pod);
        pod.status = status;
        pod.phase = "Failed";
        add_pod(pod);
    }
    store_end_waits(told); /* as the clock does every second */
}

/* So many pods whose card nobody knows. */
static inline void lose_seals(const char *node, const char *ns, int n)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("unsealed-%s-%d", node, i);
        store_set_trust(told, TRUST_NOTHING);
        add_pod((struct said_pod){name, ns, .node = node, .card = "0", .mem = "1"});
    }
}

/* A group of two pods that want a card each is asked about for so long that room is kept for it, if it finds none. */
static inline void await_group(const char *nodes)
{
    for (int i = 0; i < 2; i++) {
        g_autofree char *name = g_strdup_printf("k-%d", i);
        add_pod((struct said_pod){name, "web", .mem = "10", .priority = PRIORITY,
                                  .annotations = OF("k", "2")});
    }
    for (int64_t passed = 0; passed <= GANG_ROOM_AFTER_MS; passed += 10 * SECOND_MS) {
        g_string_free(filter_reply("web/k-0", nodes), TRUE);
        clock_skip_ms(10 * SECOND_MS);
    }
}
