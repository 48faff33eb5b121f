/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two nodes whose kubelet rejects pods, and the extender that leaves them out after three in a minute.
 */
#include "quota_extender.h"

#include "base/log.h"
#include "gate/node_backoff/node_backoff.h"

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define LEFT_OUT "has rejected pods that were bound to it"
#define ADMISSION "UnexpectedAdmissionError"
#define NO_DEVICES                                                                                 \
    "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices " MEM    \
    ", which is unexpected"
#define PLUGIN_SAYS                                                                                \
    "Allocate failed due to rpc error: code = Unknown desc = cannot reset the GPU, which is "      \
    "unexpected"
#define PLUGIN_IS_GONE                                                                             \
    "Allocate failed due to rpc error: code = Unavailable desc = transport is closing, which is "  \
    "unexpected"

static struct moment moment;
static const struct store_options store_defaults = {.patience_ms = 60000,
                                                    NODE_BACKOFF_SETTINGS(3, 60000)};

static inline void pass(int64_t ms)
{
    moment.now_ms += ms;
    moment.now_ns += ms * 1000000;
    store_end_waits(extender.store); /* as the clock does every second */
}

static inline void put_node(const char *name, const char *mark)
{
    const struct string_pairs marks = PAIRS({NODE_BACKOFF_RESUME, mark});

    store_apply_node(extender.store,
                     &(struct node_view){.name = name,
                                         .annotations = {marks.items, mark ? 1 : 0},
                                         .capacity = PAIRS({MEM, "80"}, {COUNT, "2"})});
}

static inline void begin_with(const struct store_options *options)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    extender = (struct extender){.store = store_new(options)};
    moment = (struct moment){INT64_C(1700000000) * 1000000000, 5000, 0};
    store_set_moment(extender.store, &moment);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    put_node("a", NULL);
    put_node("b", NULL);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static inline void setup(void)
{
    begin_with(&store_defaults);
}

struct seen {
    const char *uid, *ns, *node, *card, *phase, *reason, *message;
};

static inline void see(const struct seen *seen)
{
    const struct string_pairs card = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", seen->card});

    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = seen->ns,
                                       .name = seen->uid,
                                       .uid = seen->uid,
                                       .node_name = seen->node,
                                       .phase = seen->phase,
                                       .started = !g_str_equal(seen->phase, "Pending"),
                                       .status_reason = seen->reason,
                                       .status_message = seen->message,
                                       .annotations = {card.items, seen->card ? 1 : 0},
                                       /* of another size than who asks, who need not wait for it */
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "2"})})});
}

static inline void bind_on(const char *uid, const char *ns, const char *node, const char *card)
{
    see(&(struct seen){uid, ns, NULL, NULL, "Pending"});
    see(&(struct seen){uid, ns, node, card, "Pending"});
}

static inline void start(const char *uid, const char *ns, const char *node)
{
    see(&(struct seen){uid, ns, node, "0", "Running"});
}

static inline void turn_down(const char *uid, const char *ns, const char *reason,
                             const char *message)
{
    see(&(struct seen){uid, ns, "a", "0", "Failed", reason, message});
}

/* It was bound to "a", and kubelet does not take it. */
static inline void reject(const char *uid, const char *ns)
{
    bind_on(uid, ns, "a", "0");
    turn_down(uid, ns, ADMISSION, NO_DEVICES);
}

static inline void reject_three(const char *ns)
{
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%d", ns, i);
        reject(uid, ns);
    }
}

/* Which of the nodes filter passes. */
static inline void expect(const char *ns, const char *wanted)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"1\"}}}]}},\"NodeNames\":[\"a\",\"b\"]}",
        ns);

    expect_filter(body, "a,b", wanted, LEFT_OUT);
}
