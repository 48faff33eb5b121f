/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An extender of two nodes with two cards of 10, and pods of any importance. Whatever a test did,
 * teardown finds usage to be the sum of its parts.
 */
#include "literals.h"

#include "base/log.h"
#include "verbs/extender.h"

#include <check.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"

static struct extender extender;

static inline void begin_with(const struct store_options *options)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    extender = (struct extender){.store = store_new(options), .bind_timeout_ms = 3000};
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    for (int i = 1; i <= 2; i++)
        store_apply_node(extender.store,
                         &(struct node_view){.name = i == 1 ? "n1" : "n2",
                                             .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static inline void setup(void)
{
    begin_with(&(struct store_options){.patience_ms = 60000});
}

static inline void teardown(void)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(ledger_verify(store_lock(extender.store), &error), "%s", error ? error->message : "");
    store_unlock(extender.store);
    store_free(extender.store);
}

struct pod {
    const char *uid, *mem, *node, *card, *cpu, *app;
    int64_t priority;
    const char *nominated;
    bool terminating, particular;
    const char *created; /* NULL: when the year began */
    const char *started; /* NULL: when it was created */
    bool not_started;    /* kubelet has not admitted it yet */
    const char *group;   /* spec.schedulingGroup.podGroupName */
};

static inline void apply(struct pod pod)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = "ml",
                           .name = pod.uid,
                           .uid = pod.uid,
                           .created = pod.created ? pod.created : "2026-01-01T00:00:00Z",
                           .priority = pod.priority,
                           .node_name = pod.node,
                           .nominated_node = pod.nominated,
                           .terminating = pod.terminating,
                           .particular = pod.particular,
                           .scheduling_group = pod.group,
                           .labels = PAIRS({"app", pod.app ? pod.app : "none"}, {"tier", "x"}),
                           .phase = pod.node ? "Running" : "Pending",
                           .started = pod.node && !pod.not_started,
                           .started_at = pod.started,
                           .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", pod.card},
                                                {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}),
                           CONTAINERS({.name = "c",
                                       .limits = PAIRS({MEM, pod.mem}),
                                       .requests = PAIRS({"cpu", pod.cpu ? pod.cpu : "1"})})});
}
