/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attack after the other, each as a script of its own in a cluster of its own, judged as
 * tenant_runs.c judges: by true holders, and by whether honest pods get what is free.
 *
 *   build/tests/faults/tenant_scripts [NAME…]
 *
 * With GPULEDGER_SEALED=1 all of them are played with a key for seals, else those with a restart are.
 *
 * The names begin with those of docs/reliability.md's table.
 */
#include "script.h"

/* --- C1, C2: keys at creation --------------------------------------------------------------- */

#define KOORDINATOR_WORD                                                                           \
    "{\"gpu\":[{\"minor\":0,\"resources\":{\"koordinator.sh/gpu-memory\":\"1\"}}]}"

/* One card, of which each wants three quarters: one gets it, whatever it says of itself. */
static void planted(const struct named *row, const char *const *pairs)
{
    unsigned bound = 0;

    one_node(row->kind, 1);
    start();
    for (int i = 0; i < 4; i++) {
        struct played_pod *pod = begin_part(i < 3 ? "mallory" : "bank", row->tongue, 0, 6);
        for (int j = 0; i < 3 && pairs[j]; j += 2)
            words_set(&pod->annotations, pairs[j], pairs[j + 1]);
        announce(pod);
        if (comes_within(pod, 10)) {
            bound++;
            admit(pod);
        }
    }
    if (bound != 1)
        complain("%u pods of three quarters are on one card of %s", bound, row->kind);
}

static void c1(const struct named *row)
{
    static const char *const pairs[] = {"scheduling.koordinator.sh/device-allocated",
                                        KOORDINATOR_WORD, NULL};
    planted(row, pairs);
}

static void c2(const struct named *row)
{
    static const char *const pairs[] = {
        "4pd.io/vgpu-node", "n0", "4pd.io/vgpu-time", "4102444800",
        "4pd.io/vgpu-ids-new", "GPU-n0-1,NVIDIA,24000,0:;",
        "hami.sh/vgpu-devices-allocated", "GPU-n0-1,NVIDIA,24000,0:;",
        "volcano.sh/vgpu-ids-new", "GPU-n0-1,NVIDIA,24000,0:", "volcano.sh/vgpu-time", "4102444800",
        "volcano.sh/vgpu-node", "n0",
        "hami.io/vgpu-time", "4102444800", "hami.io/vgpu-node", "n0",
        "hami.io/vgpu-devices-allocated", "GPU-n0-1,NVIDIA,24000,0:;", NULL};
    unsigned bound = 0;

    one_node(row->kind, 2);
    start();
    for (int i = 0; i < 4; i++) {
        struct played_pod *pod = begin_part(i < 3 ? "mallory" : "bank", row->tongue, 0, 7);
        for (int j = 0; i < 3 && pairs[j]; j += 2)
            words_set(&pod->annotations, pairs[j], pairs[j + 1]);
        announce(pod);
        if (comes_within(pod, 10)) {
            bound++;
            admit(pod);
        }
    }
    if (bound != 2)
        complain("%u pods of seven eighths are on two cards of %s", bound, row->kind);
}

/* --- C3: what cannot be read ---------------------------------------------------------------- */

static void ask_twice(const char *limits)
{
    for (int i = 0; i < 2; i++)
        comes(announce(begin("bank", limits)));
}

static void c3_gpushare_core(void)
{
    struct played_pod *pod;

    one_node("gpushare", 2);
    start();
    pod = begin("mallory", "aliyun.com/gpu-mem=24 aliyun.com/gpu-core.percentage=101");
    words_parse(&pod->annotations, "ALIYUN_COM_GPU_MEM_IDX=0 ALIYUN_COM_GPU_MEM_ASSIGNED=true "
                                   "ALIYUN_COM_GPU_MEM_ASSUME_TIME=1767225600000000000");
    bound_by_itself(pod);
    ask_twice("aliyun.com/gpu-mem=24");
}

static void c3_hami_core(void)
{
    struct played_pod *pod;

    one_node("hami", 1);
    start();
    pod = begin("mallory", "nvidia.com/gpu=1 nvidia.com/gpumem=24576 nvidia.com/gpucores=101");
    words_parse(&pod->annotations, "hami.io/vgpu-node=n0 hami.io/vgpu-time=1767225600 "
                                   "hami.io/bind-phase=success hami.io/bind-time=1767225600 "
                                   "hami.io/vgpu-devices-to-allocate=; "
                                   "hami.io/vgpu-devices-allocated=GPU-n0-0,NVIDIA,24576,100:;");
    bound_by_itself(pod);
    ask_twice("nvidia.com/gpu=1 nvidia.com/gpumem=8000");
}

static void many_boxes(struct played_pod *pod, int n, const char *limits)
{
    while (pod->boxes->len < (unsigned)n)
        played_add_box(pod, BOX_APP, limits);
}

static void c3_nvidia_65(void)
{
    struct played_pod *pod;

    one_node("nvidia-slices", 8);
    words_set(&played.nodes[0].capacity, "nvidia.com/gpu", "80");
    words_set(&played.nodes[0].labels, "nvidia.com/gpu.replicas", "10");
    played_node_changed(0);
    start();
    pod = begin("mallory", "nvidia.com/gpu=1");
    many_boxes(pod, 65, "nvidia.com/gpu=1");
    bound_by_itself(pod);
    comes(announce(begin("bank", "nvidia.com/gpu=20")));
}

static void c3_hami_65(void)
{
    struct played_pod *pod;

    sites_put(0, "hami", 1, MIB_OF_A_CARD);
    start();
    pod = begin("mallory", "nvidia.com/gpu=1 nvidia.com/gpumem=100");
    many_boxes(pod, 65, "nvidia.com/gpu=1 nvidia.com/gpumem=100");
    bound_by_itself(pod);
    comes(announce(begin("bank", "nvidia.com/gpu=1 nvidia.com/gpumem=20000")));
}

static void c3_containers_1025(void)
{
    struct played_pod *pod;

    one_node("gpushare", 1);
    start();
    pod = begin("mallory", "aliyun.com/gpu-mem=16");
    many_boxes(pod, 1025, "");
    words_parse(&pod->annotations, "ALIYUN_COM_GPU_MEM_IDX=0 ALIYUN_COM_GPU_MEM_ASSIGNED=true "
                                   "ALIYUN_COM_GPU_MEM_ASSUME_TIME=1767225600000000000");
    bound_by_itself(pod);
    ask_twice("aliyun.com/gpu-mem=16");
}

/* --- H1: edits of running pods -------------------------------------------------------------- */

enum h1_way { H1_OTHER_CARD, H1_REMOVED, H1_GARBAGE, H1_RESTART, H1_REMOVED_RESTART, H1_WAYS };

/* Two cards, two pods of a whole one each; then a third, whatever the first says by then. */
static void h1(const struct named *row, enum h1_way way)
{
    g_autofree char *own = NULL;

    one_node(row->kind, 2);
    start();
    struct played_pod *thief = run_part("mallory", row->tongue, 0, 7);
    if (thief->node < 0)
        return;
    const char *other = other_card(row, thief, &own);
    if (way == H1_REMOVED || way == H1_REMOVED_RESTART)
        remove_all(thief);
    else
        edit(thief, row->index_key, way == H1_GARBAGE ? "x" : other);
    if (way == H1_RESTART || way == H1_REMOVED_RESTART) {
        program_crash();
        pass(30 * S);
    }
    pass(70 * S); /* whoever may still have acted on it has */
    struct played_pod *first = announce(begin_part("bank", row->tongue, 0, 7));
    if (way == H1_REMOVED_RESTART) /* nobody knows any more: nothing, or rightly */
        comes_within(first, 10);
    else
        must_come(first, 10, "the other card is free");
    if (first->node >= 0)
        admit(first);
    must_not_come(announce(begin_part("bank", row->tongue, 0, 7)), "both cards are taken");
}

/* The words of a pod on the other card, with whatever seals them. */
static void h1_copied(const struct named *row, bool restart)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *thief = run_part("mallory", row->tongue, 0, 7);
    struct played_pod *other = run_part("lab", row->tongue, 0, 2);
    if (thief->node < 0 || other->node < 0)
        return;
    words_add(&thief->annotations, &other->annotations);
    words_add(&thief->labels, &other->labels);
    edit(thief, "touched", "1");
    if (restart) {
        program_crash();
        pass(30 * S);
    }
    pass(70 * S);
    struct played_pod *victim = announce(begin_part("bank", row->tongue, 0, 6));
    if (restart) /* nobody knows any more: nothing, or rightly */
        comes_within(victim, 10);
    else
        must_come(victim, 10, "the other card has room");
}

/* Before the containers are admitted the node side may still do what an edit says. */
static void h1_early(const struct named *row)
{
    g_autofree char *own = NULL;

    one_node(row->kind, 2);
    start();
    struct played_pod *thief = announce(begin_part("mallory", row->tongue, 0, 7));
    must_come(thief, 10, "there is room");
    if (thief->node < 0)
        return;
    edit(thief, row->index_key, other_card(row, thief, &own));
    struct played_pod *first = announce(begin_part("bank", row->tongue, 0, 6));
    comes(first);
    thief->image_missing = true;
    admit(thief);
    if (first->node < 0)
        must_come(first, SOON_S, "what an edit names is not kept for ever");
}

/* --- H2: a tiny pod blocks ------------------------------------------------------------------ */

static void h2_amounts(const struct named *row)
{
    static const char devices[] = "GPU-n0-0,NVIDIA,24576,100:GPU-n0-1,NVIDIA,24576,100:"
                                  "GPU-n0-2,NVIDIA,24576,100:GPU-n0-3,NVIDIA,24576,100:;";
    one_node(row->kind, 4);
    start();
    struct played_pod *tiny = run_tiny(row);
    edit(tiny, row->index_key, strchr(row->other_card, ',') ? devices : "0,1,2,3");
    edit(tiny, "ALIYUN_COM_GPU_MEM_POD", "9999");
    edit(tiny, "scheduler.framework.gpushare.allocation",
         "{\"0\":{\"0\":24,\"1\":24,\"2\":24,\"3\":24}}");
    edit(tiny, "scheduling.koordinator.sh/device-allocated",
         "{\"gpu\":[{\"minor\":0,\"resources\":{\"koordinator.sh/gpu-core\":\"100\","
         "\"koordinator.sh/gpu-memory-ratio\":\"100\"}},{\"minor\":1,\"resources\":{"
         "\"koordinator.sh/gpu-core\":\"100\",\"koordinator.sh/gpu-memory-ratio\":\"100\"}}]}");
    for (int i = 0; i < 3; i++) {
        struct played_pod *pod = announce(begin_part("bank", row->tongue, 0, 7));
        must_come(pod, SOON_S, "the tiny pod holds what it asks for");
        if (pod->node >= 0)
            admit(pod);
    }
}

/* Bound by others, with a record of much more than it asks for. */
static void h2_record(const char *kind, const char *limits, const char *key, const char *value,
                      const char *asks)
{
    one_node(kind, 4);
    start();
    struct played_pod *tiny = begin("mallory", limits);
    words_set(&tiny->annotations, key, value);
    words_set(&tiny->annotations, "hami.io/vgpu-node", "n0");
    words_set(&tiny->annotations, "ALIYUN_COM_GPU_MEM_IDX", "0");
    bound_by_itself(tiny);
    pass(70 * S);
    for (int i = 0; i < 3; i++) {
        struct played_pod *pod = announce(begin("bank", asks));
        must_come(pod, SOON_S, "the tiny pod holds what it asks for");
        if (pod->node >= 0)
            admit(pod);
    }
}

/* It says that it waits, for ever. */
static void h2_waits(const struct named *row, bool restart)
{
    one_node(row->kind, 4);
    start();
    struct played_pod *tiny = begin_part("mallory", row->tongue, 0, 6);
    tiny->image_missing = true; /* nothing fits beside it: the next would be on another card */
    announce(tiny);
    must_come(tiny, 10, "there is room");
    if (tiny->node < 0)
        return;
    admit(tiny);
    static const char *const pairs[] = {
        "ALIYUN_COM_GPU_MEM_ASSIGNED", "false", "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
        "4000000000000000000", "hami.io/bind-phase", "allocating", "hami.io/bind-time", "4102444800",
        "hami.io/vgpu-time", "4102444800", "4pd.io/bind-phase", "allocating", "4pd.io/bind-time",
        "4102444800", "4pd.io/vgpu-time", "4102444800", "volcano.sh/bind-phase", "allocating",
        "volcano.sh/bind-time", "4102444800", "volcano.sh/vgpu-time", "4102444800",
        "volcano.sh/gpu-assigned", "false", "volcano.sh/predicate-time", "4000000000000000000",
        "tencent.com/gpu-assigned", "false", "tencent.com/predicate-time", "4000000000000000000"};
    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i += 2)
        words_set(&tiny->annotations, pairs[i], pairs[i + 1]);
    edit(tiny, "touched", "1");
    if (restart) {
        program_crash();
        pass(20 * S);
    }
    must_come(announce(begin_part("bank", row->tongue, 0, 6)), SOON_S,
              "three cards are free, and nothing waits for ever");
}

/* --- promises that plugins hand out though kubelet does not ask for them ------------------------ */

struct promising {
    const char *kind;
    enum tongue tongue;
    const char *node, *phase, *bind_time, *time, *promise;
    bool by_time; /* the plugin serves the least; else the first by name that is being allocated */
};

static const struct promising promising[] = {
    {"4paradigm", PARADIGM, "4pd.io/vgpu-node", "4pd.io/bind-phase", "4pd.io/bind-time",
     "4pd.io/vgpu-time", "hami.sh/vgpu-devices-to-allocate"},
    {"volcano-vgpu", VVGPU, "volcano.sh/vgpu-node", "volcano.sh/bind-phase", "volcano.sh/bind-time",
     "volcano.sh/vgpu-time", "volcano.sh/devices-to-allocate", true},
};

static bool is_candidate(const struct promising *row, const struct played_pod *pod)
{
    const char *promise = words_get(&pod->annotations, row->promise);

    if (!pod->exists || g_strcmp0(words_get(&pod->annotations, row->node), "n0") != 0)
        return false;
    return row->by_time ? promise && strchr(promise, ',')
                        : g_strcmp0(words_get(&pod->annotations, row->phase), "allocating") == 0 &&
                              words_get(&pod->annotations, row->bind_time);
}

static bool goes_before(const struct promising *row, const struct played_pod *a,
                        const struct played_pod *b)
{
    const char *left = words_get(&a->annotations, row->time);
    const char *right = words_get(&b->annotations, row->time);

    if (row->by_time)
        return g_ascii_strtoull(left ? left : "0", NULL, 10) <=
               g_ascii_strtoull(right ? right : "0", NULL, 10);
    return g_strcmp0(a->ns, b->ns) < 0 ||
           (g_strcmp0(a->ns, b->ns) == 0 && strcmp(a->name, b->name) < 0);
}

/* The plugin has only what pods say, whatever has become of them, and kubelet does not name any. */
static void admit_by_promise(const struct promising *row, struct played_pod *pod)
{
    const struct played_pod *first = NULL;

    for (unsigned i = 0; i < played_n(); i++) {
        const struct played_pod *other = played_at(i);
        if (is_candidate(row, other) && (!first || goes_before(row, other, first)))
            first = other;
    }
    if (first != pod)
        complain("%s/%s is given what %s/%s was promised", pod->ns, pod->name,
                 first ? first->ns : "", first ? first->name : "nobody");
    admit(pod);
}

static void plant_promise(const struct promising *row, struct played_pod *pod, const char *time)
{
    words_set(&pod->annotations, row->node, "n0");
    words_set(&pod->annotations, row->bind_time, time);
    words_set(&pod->annotations, row->time, time);
    words_set(&pod->annotations, row->promise, "GPU-n0-0,NVIDIA,24576,0:;");
    edit(pod, row->phase, "allocating");
}

enum promise_way { PROMISE_REJECTED, PROMISE_UNBOUND, PROMISE_RUNNING, PROMISE_WAYS };

static void promise(const struct promising *row, enum promise_way way)
{
    one_node(row->kind, 4);
    start();
    struct played_pod *thief = way == PROMISE_UNBOUND
                                   ? announce(begin("a", ""))
                                   : announce(begin_part("a", row->tongue, 0, 6));
    if (way != PROMISE_UNBOUND)
        must_come(thief, 10, "there is room");
    if (way == PROMISE_REJECTED) { /* by kubelet, before it has asked the plugin */
        thief->phase = FAILED;
        played_touch(thief);
        pass(S);
    } else {
        if (way == PROMISE_RUNNING)
            admit_by_promise(row, thief);
        plant_promise(row, thief, "0");
    }
    for (int i = 0; i < 3; i++) {
        struct played_pod *pod = announce(begin_part("bank", row->tongue, 0, 6));
        must_come(pod, SOON_S, "cards are free");
        if (pod->node >= 0)
            admit_by_promise(row, pod);
    }
}

static void h2_replicas(const char *kind)
{
    one_node(kind, 8);
    start();
    struct played_pod *tiny = announce(begin("mallory", "nvidia.com/gpu=1"));
    must_come(tiny, 10, "there is room");
    admit(tiny);
    edit(tiny, "gpuledger.io/gpu-replicas", "7");
    must_come(announce(begin("bank", "nvidia.com/gpu=1")), SOON_S, "seven GPUs are free");
}

static void h2_replicas_mig(void)
{
    one_node("nvidia-mig", 2);
    start();
    struct played_pod *tiny = announce(begin("mallory", "nvidia.com/mig-1g.5gb=1"));
    must_come(tiny, 10, "there is room");
    admit(tiny);
    edit(tiny, "gpuledger.io/gpu-replicas", "7");
    must_come(announce(begin("bank", "nvidia.com/mig-1g.5gb=1")), SOON_S, "five instances are free");
}

static void h2_replicas_at_creation(void)
{
    one_node("nvidia", 4);
    start();
    struct played_pod *tiny = begin("mallory", "nvidia.com/gpu=1");
    words_set(&tiny->annotations, "gpuledger.io/gpu-replicas", "7");
    announce(tiny);
    must_come(tiny, 10, "there is room");
    admit(tiny);
    must_come(announce(begin("bank", "nvidia.com/gpu=1")), SOON_S, "three cards are free");
}

static void h2_guard(void)
{
    options.memory_guard = true;
    one_node("nvidia-slices", 2);
    start();
    struct played_pod *tiny = begin("mallory", "nvidia.com/gpu=1");
    words_set(&tiny->annotations, "gpuledger.io/gpu-memory", "1Gi");
    announce(tiny);
    must_come(tiny, 10, "there is room");
    admit(tiny);
    edit(tiny, "gpuledger.io/gpu-memory", "1000Gi");
    struct played_pod *pod = begin("bank", "nvidia.com/gpu=1");
    words_set(&pod->annotations, "gpuledger.io/gpu-memory", "1Gi");
    must_come(announce(pod), SOON_S, "the tiny pod wants 1Gi, as it was bound");
}

/* --- H3: wishes of pending pods ------------------------------------------------------------- */

static void h3(const char *kind, const char *limits, const char *before, const char *after,
               int wanted)
{
    sites_put(0, kind, 2, MIB_OF_A_CARD); /* A10 */
    sites_put(1, kind, 2, MIB_OF_A_CARD); /* H100 */
    start();
    struct played_pod *pod = begin("bank", limits);
    words_set(&pod->annotations, "gpuledger.io/gpu-models", before);
    announce(pod);
    if (!strstr("A10 H100", before))
        must_not_come(pod, "there is no such card");
    edit(pod, "gpuledger.io/gpu-models", after);
    must_come(pod, 20, "it wants what there is now");
    if (pod->node >= 0 && pod->node != wanted)
        complain("it is on n%d and wants %s", pod->node, after);
}

/* --- backups: words that somebody else's pod was given -------------------------------------- */

static void backup(const struct named *row)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *first = run_part("lab", row->tongue, 0, 4);
    struct played_pod *copy = begin_part("lab", row->tongue, 0, 4);
    words_add(&copy->annotations, &first->annotations);
    words_add(&copy->labels, &first->labels);
    must_come(announce(copy), 70, "it asks for what there is, whatever its copied words say");
    if (copy->node >= 0)
        admit(copy);
    played_delete(first);
    played_delete(copy);
    pass(S);
    copy = begin_part("lab", row->tongue, 0, 7);
    words_parse(&copy->annotations, "hami.io/vgpu-node=elsewhere 4pd.io/vgpu-node=elsewhere "
                                    "tencent.com/predicate-node=elsewhere");
    must_come(announce(copy), 70, "the node is empty");
}

static void run_named(const struct named *row)
{
    static const char *const ways[] = {"other-card", "removed", "garbage", "restart",
                                       "removed-restart"};

    SCRIPT(g_strconcat("C1-", row->kind, NULL), c1(row));
    SCRIPT(g_strconcat("C2-", row->kind, NULL), c2(row));
    for (int way = 0; way < H1_WAYS; way++)
        SCRIPT(g_strdup_printf("H1-%s-%s", ways[way], row->kind), h1(row, (enum h1_way)way));
    SCRIPT(g_strconcat("H1-copied-", row->kind, NULL), h1_copied(row, false));
    SCRIPT(g_strconcat("H1-copied-restart-", row->kind, NULL), h1_copied(row, true));
    SCRIPT(g_strconcat("H1-early-", row->kind, NULL), h1_early(row));
    SCRIPT(g_strconcat("H2-amounts-", row->kind, NULL), h2_amounts(row));
    SCRIPT(g_strconcat("H2-waits-", row->kind, NULL), h2_waits(row, false));
    SCRIPT(g_strconcat("H2-waits-restart-", row->kind, NULL), h2_waits(row, true));
    SCRIPT(g_strconcat("copied-", row->kind, NULL), backup(row));
}

static void run_all(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(named); i++)
        run_named(&named[i]);
    static const char *const promise_ways[PROMISE_WAYS] = {"rejected", "unbound", "running"};
    for (size_t i = 0; i < G_N_ELEMENTS(promising); i++) {
        for (int way = 0; way < PROMISE_WAYS; way++)
            SCRIPT(g_strdup_printf("promise-%s-%s", promise_ways[way], promising[i].kind),
                   promise(&promising[i], (enum promise_way)way));
    }
    SCRIPT(g_strdup("C3-gpushare-core-101"), c3_gpushare_core());
    SCRIPT(g_strdup("C3-hami-core-101"), c3_hami_core());
    SCRIPT(g_strdup("C3-nvidia-65-containers"), c3_nvidia_65());
    SCRIPT(g_strdup("C3-hami-65-containers"), c3_hami_65());
    SCRIPT(g_strdup("C3-1025-containers"), c3_containers_1025());
    SCRIPT(g_strdup("H2-record-hami"),
           h2_record("hami", "nvidia.com/gpu=1 nvidia.com/gpumem=1", "hami.io/vgpu-devices-allocated",
                     "GPU-n0-0,NVIDIA,24576,100:GPU-n0-1,NVIDIA,24576,100:GPU-n0-2,NVIDIA,24576,100:"
                     "GPU-n0-3,NVIDIA,24576,100:;", "nvidia.com/gpu=1 nvidia.com/gpumem=20000"));
    SCRIPT(g_strdup("H2-record-gpushare"),
           h2_record("gpushare", "aliyun.com/gpu-mem=1", "scheduler.framework.gpushare.allocation",
                     "{\"0\":{\"0\":24,\"1\":24,\"2\":24,\"3\":24}}", "aliyun.com/gpu-mem=20"));
    SCRIPT(g_strdup("H2-replicas-whole"), h2_replicas("nvidia"));
    SCRIPT(g_strdup("H2-replicas-sliced"), h2_replicas("nvidia-slices"));
    SCRIPT(g_strdup("H2-replicas-mig"), h2_replicas_mig());
    SCRIPT(g_strdup("H2-replicas-at-creation"), h2_replicas_at_creation());
    SCRIPT(g_strdup("H2-memory-guard"), h2_guard());
    SCRIPT(g_strdup("H3-nvidia-unknown"), h3("nvidia", "nvidia.com/gpu=1", "V100", "H100", 1));
    SCRIPT(g_strdup("H3-nvidia-other"), h3("nvidia", "nvidia.com/gpu=1", "A10", "H100", 1));
    SCRIPT(g_strdup("H3-gpushare"), h3("gpushare", "aliyun.com/gpu-mem=1", "H100", "A10", 0));
    SCRIPT(g_strdup("H3-hami"),
           h3("hami", "nvidia.com/gpu=1 nvidia.com/gpumem=1000", "V100", "H100", 1));
}

int main(int argc, char **argv)
{
    return script_main(argc, argv, run_all);
}
