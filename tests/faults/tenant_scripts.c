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

/* A bit of a card, for the smallest pod there is. */
static struct played_pod *run_tiny(const struct named *row)
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

/* --- H4: calls that kube-scheduler does not make ---------------------------------------------- */

enum h4_way { H4_TAINTED, H4_CORDONED, H4_SELECTOR, H4_FOREIGN, H4_NOWHERE, H4_WAYS };

static const char *const h4_ways[H4_WAYS] = {"tainted", "cordoned", "selector", "foreign",
                                             "unknown-node"};

struct forgery {
    struct played_pod *pod;
    int node;
    bool filtered; /* a call of filter is forged first */
};

/* played.c judges the Bindings that come of it. */
static void forge(void *data)
{
    const struct forgery *forgery = data;

    if (forgery->filtered)
        program_filter(forgery->pod);
    g_autofree char *error = program_bind(forgery->pod, forgery->node);
    if (!*error)
        complain("%s/%s is bound to n%d", forgery->pod->ns, forgery->pod->name, forgery->node);
}

static void h4(enum h4_way way, bool gpu)
{
    static const char *const closed[H4_WAYS] = {
        [H4_TAINTED] = "\"taints\":[{\"key\":\"control-plane\",\"effect\":\"NoSchedule\"}]",
        [H4_CORDONED] = "\"unschedulable\":true",
    };
    one_node("gpushare", 1);
    played.nodes[1].closed = closed[way];
    sites_put(1, "gpushare", 2, MIB_OF_A_CARD);
    start();
    struct played_pod *victim = begin("bank", gpu ? "aliyun.com/gpu-mem=4" : "cpu=1");
    victim->elsewhere = way == H4_SELECTOR;
    victim->scheduler = way == H4_FOREIGN ? "volcano" : NULL;
    victim->quiet = true;
    /* The first call comes before the watch has shown the pod. */
    played_announce(victim);
    struct forgery forgery = {victim, way == H4_NOWHERE ? 5 : 1, false};
    for (int i = 0; i < 4; i++) {
        forgery.filtered = i % 2;
        program_run(forge, &forgery);
        pass(S);
        if (i == 1) {
            program_crash();
            pass(5 * S);
        }
    }
    if (way == H4_TAINTED || way == H4_CORDONED || way == H4_NOWHERE) {
        forgery = (struct forgery){victim, 0, true};
        program_run(forge, &forgery);
        g_string_truncate(found, 0); /* forge's complaint: here it should be */
        if (victim->node != 0)
            complain("%s/%s is not bound where it may be", victim->ns, victim->name);
    }
}

#define H4_INVENTED 2000

/* Who invents pods costs the API server little, and kube-scheduler nothing. */
static void h4_lookups(void)
{
    one_node("elastic", 8);
    start();
    const uint64_t before = server.n_requests;
    uint64_t honest = 0;
    for (int i = 0; i < H4_INVENTED; i++) {
        struct played_pod *invented = begin("nobody", "elasticgpu.io/gpu-core=10");
        struct forgery forgery = {invented, 0, false};
        program_run(forge, &forgery);
        if (i % 100 != 99)
            continue;
        const uint64_t so_far = server.n_requests;
        must_come(announce(begin("bank", "elasticgpu.io/gpu-core=10")), 0, "the first try has to do");
        honest += server.n_requests - so_far;
    }
    if (server.n_requests - before - honest > H4_INVENTED / 4)
        complain("%" G_GUINT64_FORMAT " calls to the API server", server.n_requests - before);
}

/* --- H5: who never comes -------------------------------------------------------------------- */

enum h5_way { H5_GATED, H5_ELSEWHERE, H5_FOREIGN, H5_SILENT, H5_TOO_LARGE, H5_WAYS };

static void h5(enum h5_way way)
{
    options.hold_ms = 2000;
    options.n_places = 8;
    one_node("hami", 4);
    start();
    run_tiny(&named[2]);
    struct played_pod *never = begin("mallory", "nvidia.com/gpu=4 nvidia.com/gpucores=100");
    never->gated = way == H5_GATED;
    never->elsewhere = way == H5_ELSEWHERE;
    never->scheduler = way == H5_FOREIGN ? "volcano" : NULL;
    if (way == H5_TOO_LARGE)
        words_set(&g_array_index(never->boxes, struct box, 0).limits, "nvidia.com/gpu", "5");
    announce(never);
    if (way == H5_SILENT || way == H5_TOO_LARGE)
        comes(never); /* asked once */
    pass(2 * S);
    must_come(announce(begin("bank", "nvidia.com/gpu=1 nvidia.com/gpumem=1000")), SOON_S,
              "three cards are free, and nobody else asks for them");
}

/* Who keeps asking keeps his place: the whole card is not taken from under it by small ones. */
static void h5_asks_on(void)
{
    options.hold_ms = 30000;
    options.n_places = 8;
    one_node("gpushare", 1);
    start();
    struct played_pod *first = run_part("lab", GPUSHARE, 0, 4);
    pass(S);
    struct played_pod *large = announce(begin("bank", "aliyun.com/gpu-mem=24"));
    must_not_come(large, "the card is in use");
    for (int i = 0; i < 12; i++) {
        struct played_pod *small = announce(begin("mob", "aliyun.com/gpu-mem=6"));
        comes(large);
        if (comes(small))
            admit(small);
        pass(3 * S);
        if (i == 6) {
            played_delete(first);
            pass(S);
            comes(large);
        }
    }
    if (large->node < 0)
        complain("the large pod has been overtaken, although it asks again and again");
}

/* --- H6: binds that wait -------------------------------------------------------------------- */

#define BINDS 100
#define WAITING_MAX 32 /* on one node */

static void h6(void)
{
    one_node("gpushare", 8);
    start();
    struct played_pod *tiny = begin("mallory", "aliyun.com/gpu-mem=2");
    tiny->image_missing = true;
    announce(tiny);
    must_come(tiny, 10, "there is room");
    edit(tiny, "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "4000000000000000000");
    for (int i = 0; i < BINDS; i++)
        program_bind_later(announce(begin("mallory", "aliyun.com/gpu-mem=2")), 0);
    pass(S);
    if (program_binding() > WAITING_MAX)
        complain("%u binds wait for one node", program_binding());
    pass(40 * S);
}

/* --- M2: wakes ------------------------------------------------------------------------------ */

static bool woken;
static const struct played_pod *sleeper;

static void note_patched(struct played_pod *pod)
{
    woken |= pod == sleeper;
}

static void filter_once(void *data)
{
    program_filter(data);
}

static void m2(void)
{
    one_node("gpushare", 1);
    start();
    struct played_pod *holder = run_part("lab", GPUSHARE, 0, 8);
    for (int i = 0; i < 4200; i++) {
        struct played_pod *pod = begin("mallory", "aliyun.com/gpu-mem=25");
        played_announce(pod);
        if (i % 100 == 0)
            pass(S / 10);
        program_run(filter_once, pod);
    }
    pass(S);
    sleeper = announce(begin("bank", "aliyun.com/gpu-mem=24"));
    woken = false;
    played.on_patched = note_patched;
    program_run(filter_once, (void *)sleeper);
    played_delete(holder);
    pass(60 * S);
    if (!woken)
        complain("the victim is not woken within a minute");
}

/* --- M3: hidden pods ------------------------------------------------------------------------ */

static void m3_pool(const char *key, const char *value, bool at_creation)
{
    one_node("nvidia", 8);
    start();
    struct played_pod *thief = begin("mallory", "nvidia.com/gpu=1");
    if (at_creation)
        words_set(&thief->annotations, key, value);
    announce(thief);
    must_come(thief, 10, "there is room");
    if (thief->node < 0)
        return;
    admit(thief);
    edit(thief, key, value);
    comes(announce(begin("bank", "nvidia.com/gpu=8")));
}

static void m3_two_tongues(void)
{
    struct played_pod *pod;

    one_node("gpushare+volcano", 1);
    start();
    pod = begin("mallory", "aliyun.com/gpu-mem=1 volcano.sh/gpu-memory=16000");
    words_parse(&pod->annotations, "ALIYUN_COM_GPU_MEM_IDX=0 volcano.sh/gpu-index=0");
    bound_by_itself(pod);
    comes(announce(begin("bank", "aliyun.com/gpu-mem=20")));
    comes(announce(begin("bank", "volcano.sh/gpu-memory=20000")));
}

/* One container that nobody serves hides no other. */
static void m3_hides_none(void)
{
    struct played_pod *pod;

    one_node("gpushare+hami", 1);
    start();
    pod = begin("mallory", "aliyun.com/gpu-mem=1 aliyun.com/gpu-core.percentage=101");
    played_add_box(pod, BOX_APP, "nvidia.com/gpu=1 nvidia.com/gpumem=20000");
    words_parse(&pod->annotations, "ALIYUN_COM_GPU_MEM_IDX=0 hami.io/vgpu-node=n0 "
                                   "hami.io/vgpu-devices-allocated=;GPU-n0-0,NVIDIA,20000,0:;");
    bound_by_itself(pod);
    comes(announce(begin("bank", "nvidia.com/gpu=1 nvidia.com/gpumem=8000")));
    comes(announce(begin("bank", "aliyun.com/gpu-mem=8")));
}

/* Sidecars run beside what comes after them; other init containers before. */
static void m3_sidecar(void)
{
    struct played_pod *pod;

    one_node("hami", 1);
    start();
    pod = begin("mallory", "nvidia.com/gpu=1 nvidia.com/gpumem=10000");
    played_add_box(pod, BOX_SIDECAR, "nvidia.com/gpu=1 nvidia.com/gpumem=10000");
    played_add_box(pod, BOX_INIT, "nvidia.com/gpu=1 nvidia.com/gpumem=12000");
    words_parse(&pod->annotations, "hami.io/vgpu-node=n0 hami.io/vgpu-devices-allocated="
                                   "GPU-n0-0,NVIDIA,10000,0:;GPU-n0-0,NVIDIA,12000,0:;"
                                   "GPU-n0-0,NVIDIA,10000,0:;");
    bound_by_itself(pod);
    must_not_come(announce(begin("bank", "nvidia.com/gpu=1 nvidia.com/gpumem=3000")),
                  "22,000 of 24,576 MiB are in use at the worst time");
    pass(70 * S);
    must_come(announce(begin("bank", "nvidia.com/gpu=1 nvidia.com/gpumem=2000")), 10,
              "2,576 MiB are always free");
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
    static const char *const never[] = {"gated", "elsewhere", "foreign", "silent", "too-large"};

    for (size_t i = 0; i < G_N_ELEMENTS(named); i++)
        run_named(&named[i]);
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
    for (int way = 0; way < H4_WAYS; way++) {
        SCRIPT(g_strdup_printf("H4-%s", h4_ways[way]), h4((enum h4_way)way, true));
        SCRIPT(g_strdup_printf("H4-%s-without-gpu", h4_ways[way]), h4((enum h4_way)way, false));
    }
    SCRIPT(g_strdup("H4-lookups"), h4_lookups());
    for (int way = 0; way < H5_WAYS; way++)
        SCRIPT(g_strdup_printf("H5-%s", never[way]), h5((enum h5_way)way));
    SCRIPT(g_strdup("H5-asks-on"), h5_asks_on());
    SCRIPT(g_strdup("H6-binds"), h6());
    SCRIPT(g_strdup("M2-wakes"), m2());
    SCRIPT(g_strdup("M3-hami-node"), m3_pool("hami.io/vgpu-node", "n0", false));
    SCRIPT(g_strdup("M3-hami-node-at-creation"), m3_pool("hami.io/vgpu-node", "n0", true));
    SCRIPT(g_strdup("M3-vgpu-manager"), m3_pool("nvidia.com/pre-allocated", "c0[0]", true));
    SCRIPT(g_strdup("M3-two-tongues"), m3_two_tongues());
    SCRIPT(g_strdup("M3-hides-none"), m3_hides_none());
    SCRIPT(g_strdup("M3-sidecar"), m3_sidecar());
}

int main(int argc, char **argv)
{
    return script_main(argc, argv, run_all);
}
