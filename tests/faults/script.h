/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What scripts of attacks share: a small cluster, pods that are led through their lives by hand, and what
 * an honest one may expect. One script after the other, each in a cluster of its own, judged as
 * tenant_runs.c judges. A program includes this once and calls script_main.
 */
#include "faults.h"
#include "kubelets.h"
#include "net.h"
#include "program.h"
#include "scales.h"
#include "sim.h"
#include "sites.h"
#include "tenants.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S (1000 * (int64_t)1000)
#define PODS_MAX 6000
#define MIB_OF_A_CARD 24576
/* A minute for whatever waits, and as long as an attempt takes. */
#define SOON_S 80

static GString *found;
static struct program_options options;
static bool sealed; /* all of them with a key */

static void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);

static inline void complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_string_append_vprintf(found, format, arguments);
    va_end(arguments);
    g_string_append_c(found, '\n');
}

/* --- a cluster ------------------------------------------------------------------------------ */

static inline void pass(int64_t us)
{
    net_tell();
    program_let_pass(us);
}

/* After the nodes have been put. */
static inline void start(void)
{
    if (options.patience_ms == 0)
        options.patience_ms = 5000;
    program_start(&options);
    pass(5 * S);
    HOLDS(program_is_synced(), "not synced");
}

static inline struct played_pod *begin(const char *ns, const char *limits)
{
    struct played_pod *pod = played_slot(PODS_MAX);

    played_pod_new(pod, ns);
    played_add_box(pod, BOX_APP, limits);
    return pod;
}

static inline struct played_pod *announce(struct played_pod *pod)
{
    played_announce(pod);
    pass(S / 10);
    return pod;
}

/* One of a tongue that wants so many eighths of a card of that node. */
static inline struct played_pod *begin_part(const char *ns, enum tongue tongue, int node,
                                            int eighths)
{
    struct played_pod *pod = played_slot(PODS_MAX);

    played_pod_new(pod, ns);
    tenants_ask(pod, tongue, &played.nodes[node], eighths);
    return pod;
}

static inline void try_once(void *data)
{
    struct played_pod *pod = data;
    int passing = program_filter(pod);

    for (int node = 0; passing > 0 && node < PLAYED_NODES && pod->node < 0; node++) {
        if (passing >> node & 1)
            g_free(program_bind(pod, node));
    }
}

/* It asks again and again, as kube-scheduler would. */
static inline bool comes_within(struct played_pod *pod, int seconds)
{
    int64_t until_us = sim_now_us() + seconds * S;

    for (;;) {
        program_run(try_once, pod);
        pass(S / 10);
        if (pod->node >= 0)
            return true;
        if (sim_now_us() >= until_us)
            return false;
        pass(2 * S);
    }
}

static inline bool comes(struct played_pod *pod)
{
    return comes_within(pod, 0);
}

static inline void admit(struct played_pod *pod)
{
    kubelets_admit(pod);
    pass(S);
    if (!pod->image_missing && pod->phase == PENDING) {
        pod->phase = RUNNING;
        played_touch(pod);
        pass(S);
    }
}

static inline void edit(struct played_pod *pod, const char *key, const char *value)
{
    played_edit(pod, key, value);
    pass(S);
}

static inline void must_come(struct played_pod *pod, int seconds, const char *why)
{
    if (!comes_within(pod, seconds))
        complain("%s/%s is not served within %d s: %s: %s", pod->ns, pod->name, seconds, why,
                 program_last());
}

static inline void must_not_come(struct played_pod *pod, const char *why)
{
    if (comes(pod))
        complain("%s/%s is bound: %s", pod->ns, pod->name, why);
}

/* Bound, admitted, running. */
static inline struct played_pod *run_part(const char *ns, enum tongue tongue, int node, int eighths)
{
    struct played_pod *pod = announce(begin_part(ns, tongue, node, eighths));

    must_come(pod, 60, "there is room");
    if (pod->node >= 0)
        admit(pod);
    return pod;
}

static inline void one_node(const char *kind, int cards)
{
    sites_put(0, kind, cards, MIB_OF_A_CARD);
}

static const struct named {
    const char *kind;
    enum tongue tongue;
    const char *index_key; /* an edit of which names another card */
    const char *other_card;
    const char *least; /* that a pod can ask for */
} named[] = {
    {"gpushare", GPUSHARE, "ALIYUN_COM_GPU_MEM_IDX", "1", "aliyun.com/gpu-mem=1"},
    {"tencent", TENCENT, "tencent.com/predicate-gpu-idx-0", "1",
     "tencent.com/vcuda-core=1 tencent.com/vcuda-memory=1"},
    {"hami", HAMI, "hami.io/vgpu-devices-allocated", "GPU-n0-1,NVIDIA,1,0:;",
     "nvidia.com/gpu=1 nvidia.com/gpumem=1"},
    {"4paradigm", PARADIGM, "hami.sh/vgpu-devices-allocated", "GPU-n0-1,NVIDIA,1,0:;",
     "nvidia.com/gpu=1 nvidia.com/gpumem=1"},
    {"volcano-vgpu", VVGPU, "volcano.sh/vgpu-ids-new",
     "GPU-n0-1,NVIDIA,1,0:", "volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory=1"},
    {"volcano", VOLCANO, "volcano.sh/gpu-index", "1", "volcano.sh/gpu-memory=1"},
    {"elastic", ELASTIC, "elasticgpu.io/container-c0", "1",
     "elasticgpu.io/gpu-core=1 elasticgpu.io/gpu-memory=1"},
    {"elastic-com", ELASTIC_COM, "elasticgpu.io/container-c0", "1",
     "elasticgpu.com/gpu-core=1 elasticgpu.com/gpu-memory=1"},
    {"nano-io", NANO_IO, "nano-gpu.io/gpu-c0", "1",
     "nano-gpu.io/gpu-core=1 nano-gpu.io/gpu-memory=1"},
    {"nano", NANO, "nano-gpu/container-c0", "1", "nano-gpu/gpu-percent=1"},
};

/* The first card, or the second: whichever the pod is not on. */
static inline const char *other_card(const struct named *row, const struct played_pod *pod,
                                     char **ret_own)
{
    const char *first = words_get(&pod->grant, row->index_key);
    bool is_second = first && (strstr(first, "n0-1") || g_str_equal(first, "1"));

    *ret_own = g_strdup(row->other_card);
    if (!is_second)
        return *ret_own;
    char *at = strstr(*ret_own, "n0-1");
    if (at)
        at[3] = '0';
    else
        **ret_own = '0';
    return *ret_own;
}

static inline void bound_by_itself(struct played_pod *pod)
{
    pod->node = 0;
    announce(pod);
    admit(pod);
    pass(2 * S);
}

/* A bit of a card, for the smallest pod there is. */
static inline struct played_pod *run_tiny(const struct named *row)
{
    struct played_pod *pod = played_slot(PODS_MAX);

    played_pod_new(pod, "mallory");
    played_add_box(pod, BOX_APP, row->least);
    announce(pod);
    must_come(pod, 10, "there is room");
    if (pod->node >= 0)
        admit(pod);
    return pod;
}

static inline void remove_all(struct played_pod *pod)
{
    while (pod->annotations.n > 1) {
        g_autofree char *key = g_strdup(pod->annotations.items[0].key);
        words_set(&pod->annotations, key, NULL);
    }
    g_autofree char *last = g_strdup(pod->annotations.items[0].key);
    edit(pod, last, NULL);
}

/* --- one script after the other -------------------------------------------------------------- */

static char **wanted;
static unsigned n_run, n_failed;

static inline bool is_wanted(const char *name)
{
    for (char **at = wanted; *at; at++) {
        if (g_str_has_prefix(name, *at))
            return true;
    }
    return !*wanted;
}

static inline void check_grant(struct played_pod *pod)
{
    program_check_words(pod);
    scales_check_grant(pod);
}

static inline bool begin_script(const char *name)
{
    if (!is_wanted(name))
        return false;
    chance_restart(1);
    sim_trace("script %s", name);
    sim_reset();
    net_reset();
    played_reset();
    played.on_granted = check_grant;
    faults_set_trouble(0);
    /* While no replica watches only a seal tells; the rest holds with and without. */
    options = (struct program_options){.sealed = strstr(name, "restart") || sealed};
    g_string_truncate(found, 0);
    scales_collect(found);
    return true;
}

static inline void end_script(const char *name)
{
    program_end();
    n_run++;
    n_failed += found->len > 0;
    printf("%sok %u - %s\n", found->len > 0 ? "not " : "", n_run, name);
    if (found->len > 0) {
        g_auto(GStrv) lines = g_strsplit(found->str, "\n", -1);
        for (int i = 0; lines[i] && i < 8; i++)
            if (*lines[i])
                printf("# %.600s\n", lines[i]);
    }
    fflush(stdout);
}

#define SCRIPT(name, ...)                                                                          \
    do {                                                                                           \
        g_autofree char *script_name = name;                                                       \
        if (begin_script(script_name)) {                                                           \
            __VA_ARGS__;                                                                           \
            end_script(script_name);                                                               \
        }                                                                                          \
    } while (0)

static inline int script_main(int argc, char **argv, void (*run_all)(void))
{
    const char *trace = g_getenv("GPULEDGER_TRACE");
    g_autofree char *directory = g_dir_make_tmp("gpuledger-tenants-XXXXXX", NULL);

    wanted = argv + 1;
    sealed = g_getenv("GPULEDGER_SEALED") != NULL;
    found = g_string_new(NULL);
    program_init(directory);
    if (trace)
        sim_trace_to(fopen(trace, "w"));
    log_configure(trace ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    run_all();
    printf("1..%u\n# %u of %u attacks succeed\n", n_run, n_failed, n_run);
    return n_failed > 0;
}
