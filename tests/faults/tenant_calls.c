/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks by way of filter and bind, and by pods that hide what they hold, played and judged as those of
 * tenant_scripts.c are:
 *
 *   build/tests/faults/tenant_calls [NAME…]
 */
#include "script.h"

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
        must_come(announce(begin("bank", "elasticgpu.io/gpu-core=10")), 0,
                  "the first try has to do");
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

static void run_all(void)
{
    static const char *const never[] = {"gated", "elsewhere", "foreign", "silent", "too-large"};

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
