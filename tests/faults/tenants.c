/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants.h"

#include "planted.h"
#include "kubelets.h"
#include "sim.h"

#include <string.h>

#define MODELS "A10"

/* --- what is asked -------------------------------------------------------------------------- */

static struct box *ask_amounts(struct played_pod *pod, enum box_sort sort, enum tongue tongue,
                               const struct played_node *node, int eighths)
{
    struct box *box = played_add_box(pod, sort, "");
    struct words *limits = &box->limits;
    int64_t mib = node->card_mib * eighths / 8;
    int core = 100 * eighths / 8;

    switch (tongue) {
    case GPUSHARE:
        words_setf(limits, "aliyun.com/gpu-mem", "%d", (int)MAX(mib / node->unit_mib, 1));
        break;
    case TENCENT:
        words_setf(limits, "tencent.com/vcuda-core", "%d", MAX(core, 1));
        words_setf(limits, "tencent.com/vcuda-memory", "%d", (int)MAX(mib / 256, 1));
        break;
    case HAMI:
    case PARADIGM:
        words_set(limits, "nvidia.com/gpu", "1");
        words_setf(limits, "nvidia.com/gpumem", "%d", (int)mib);
        if (chance_percent(30))
            words_setf(limits, "nvidia.com/gpucores", "%d", core);
        break;
    case VVGPU:
        words_set(limits, "volcano.sh/vgpu-number", "1");
        words_setf(limits, "volcano.sh/vgpu-memory", "%d", (int)mib);
        break;
    case VOLCANO:
        if (words_get(&node->capacity, "volcano.sh/gpu-memory"))
            words_setf(limits, "volcano.sh/gpu-memory", "%d", (int)mib);
        else
            words_set(limits, "volcano.sh/gpu-number", eighths == 8 && node->n_cards > 1 ? "2" : "1");
        break;
    case ELASTIC:
    case ELASTIC_COM:
    case NANO_IO: {
        static const char *const prefixes[] = {
            [ELASTIC] = "elasticgpu.io", [ELASTIC_COM] = "elasticgpu.com", [NANO_IO] = "nano-gpu.io"};
        g_autofree char *core_key = g_strconcat(prefixes[tongue], "/gpu-core", NULL);
        g_autofree char *memory_key = g_strconcat(prefixes[tongue], "/gpu-memory", NULL);
        words_setf(limits, core_key, "%d", MAX(core, 1));
        if (eighths < 8)
            words_setf(limits, memory_key, "%d", (int)mib);
        break;
    }
    case NANO:
        words_setf(limits, "nano-gpu/gpu-percent", "%d", MAX(core, 1));
        break;
    case NVIDIA:
        for (int pool = 0; pool < POOLS; pool++) {
            if (words_get(&node->capacity, holders_pool(pool)) && (pool == 0 || chance_percent(70))) {
                words_set(limits, holders_pool(pool), eighths == 8 ? "2" : "1");
                return box;
            }
        }
        words_set(limits, "nvidia.com/gpu", "1");
        break;
    case QGPU:
        words_setf(limits, "tke.cloud.tencent.com/qgpu-core", "%d", MAX(core / 5 * 5, 5));
        words_setf(limits, "tke.cloud.tencent.com/qgpu-memory", "%d", (int)MAX(mib >> 10, 1));
        break;
    case KOORDINATOR:
        if (chance_percent(50)) {
            words_setf(limits, "koordinator.sh/gpu", "%d", MAX(core, 1));
            break;
        }
        words_setf(limits, "koordinator.sh/gpu-core", "%d", MAX(core, 1));
        words_setf(limits, "koordinator.sh/gpu-memory-ratio", "%d", MAX(core, 1));
        break;
    default:
        break;
    }
    return box;
}

void tenants_ask(struct played_pod *pod, enum tongue tongue, const struct played_node *node,
                 int eighths)
{
    ask_amounts(pod, BOX_APP, tongue, node, eighths);
}

static enum tongue any_tongue_of(const struct played_node *node)
{
    enum tongue tongue;

    do
        tongue = (enum tongue)chance_below(TONGUES);
    while (!(node->serves >> tongue & 1));
    return tongue;
}

/* Something that its node may serve; at times in several containers. */
static void ask_anything(struct played_pod *pod)
{
    const struct played_node *node = &played.nodes[chance_below(PLAYED_NODES)];
    enum tongue tongue = any_tongue_of(node);
    int eighths = chance_percent(30) ? 8 : (int)chance_between(1, 7);

    ask_amounts(pod, BOX_APP, tongue, node, eighths);
    if (chance_percent(15))
        ask_amounts(pod, BOX_APP, tongue, node, (int)chance_between(1, 4));
    if (chance_percent(8)) /* in two tongues */
        ask_amounts(pod, BOX_APP, any_tongue_of(&played.nodes[chance_below(PLAYED_NODES)]), node, 2);
    if (chance_percent(8))
        played_add_box(pod, BOX_APP, "");
    /* Before them, one after the other, or beside them. */
    for (int i = 0; i < 3 && chance_percent(i > 0 ? 50 : 8); i++)
        ask_amounts(pod, chance_percent(50) ? BOX_INIT : BOX_SIDECAR, tongue, node,
                    (int)chance_between(1, i > 0 ? 4 : 8));
}

/* What no node side serves, and what nobody expected. */
static void ask_unreadable(struct played_pod *pod)
{
    const struct played_node *node = &played.nodes[chance_below(PLAYED_NODES)];
    enum tongue tongue = any_tongue_of(node);
    struct box *box = ask_amounts(pod, BOX_APP, tongue, node, (int)chance_between(4, 8));
    static const char *const more[] = {
        "aliyun.com/gpu-core.percentage=101", "nvidia.com/gpucores=101",
        "nvidia.com/gpumem-percentage=101", "volcano.sh/vgpu-cores=101",
        "koordinator.sh/gpu-core=150", "aliyun.com/gpu-mem=1e30", "nvidia.com/gpumem=8Ei",
        "tencent.com/vcuda-core=150", "elasticgpu.io/gpu-core=150", "volcano.sh/gpu-number=1",
    };

    switch (chance_below(4)) {
    case 0: { /* more containers than anybody counts */
        int n = chance_percent(80) ? 65 : 1025;
        for (int i = 1; i < n; i++) {
            struct box *next = played_add_box(pod, BOX_APP, "");
            if (n == 65)
                words_add(&next->limits, &g_array_index(pod->boxes, struct box, 0).limits);
        }
        break;
    }
    case 1:
        if (box->limits.n > 0)
            words_set(&box->limits, box->limits.items[0].key, "9999999");
        break;
    default:
        words_parse(&box->limits, more[chance_below(G_N_ELEMENTS(more))]);
    }
}

/* --- who does it ------------------------------------------------------------------------------ */

static struct played_pod *pick(bool (*fits)(const struct played_pod *pod))
{
    unsigned n = played_n(), from = n > 0 ? chance_below(n) : 0;

    for (unsigned i = 0; i < n; i++) {
        struct played_pod *pod = played_at((from + i) % n);
        if (fits(pod))
            return pod;
    }
    return NULL;
}

static bool is_bound(const struct played_pod *pod)
{
    return played_lives(pod) && pod->node >= 0;
}

static bool is_honestly_bound(const struct played_pod *pod)
{
    return is_bound(pod) && pod->ours && !pod->tainted;
}

static bool is_attackers(const struct played_pod *pod)
{
    return played_lives(pod) && pod->ns[0] == 'm';
}

static bool is_attackers_bound(const struct played_pod *pod)
{
    return is_attackers(pod) && pod->node >= 0;
}

void tenants_copy_words(struct played_pod *pod)
{
    const struct played_pod *from = pick(is_honestly_bound);

    if (!from)
        return;
    words_add(&pod->annotations, &from->annotations);
    words_add(&pod->labels, &from->labels);
}

/* --- what they do --------------------------------------------------------------------------- */

void tenants_draw_class(struct played_pod *pod)
{
    if (!played.classed)
        return;
    pod->priority_class = chance_percent(20) ? "batch" : chance_percent(20) ? "chat" : NULL;
    if (!pod->priority_class && g_str_equal(pod->ns, "lab") && chance_percent(20))
        words_set(&pod->annotations, CLASS_KEY, "training");
}

static struct played_pod *begin_pod(bool attackers)
{
    static const char *const honest[] = {"bank", "lab"}, *const others[] = {"mallory", "mob"};
    struct played_pod *pod = played_slot(TENANTS_PODS);

    if (!pod)
        return NULL;
    pod = played_pod_new(pod, attackers ? others[chance_below(2)] : honest[chance_below(2)]);
    tenants_draw_class(pod);
    return pod;
}

static void create_honest(void *data)
{
    struct played_pod *pod = begin_pod(chance_percent(30));

    if (!pod)
        return;
    ask_anything(pod);
    if (chance_percent(10))
        words_set(&pod->annotations, "gpuledger.io/gpu-models",
                  chance_percent(50) ? MODELS : "H100");
    pod->image_missing = chance_percent(10);
    played_announce(pod);
}

static void create_planted(void *data)
{
    struct played_pod *pod = begin_pod(true);

    if (!pod)
        return;
    ask_anything(pod);
    planted_add(pod);
    if (chance_percent(20))
        planted_add(pod);
    pod->image_missing = chance_percent(30);
    played_announce(pod);
}

/* The YAML of a running pod, as a backup keeps it; its node at times, too. */
static void create_copy(void *data)
{
    const struct played_pod *from = pick(is_bound);
    struct played_pod *pod = from ? begin_pod(chance_percent(60)) : NULL;

    if (!pod)
        return;
    for (unsigned i = 0; i < from->boxes->len; i++) {
        const struct box *box = &g_array_index(from->boxes, struct box, i);
        words_add(&played_add_box(pod, box->sort, "")->limits, &box->limits);
    }
    words_add(&pod->annotations, &from->annotations);
    words_add(&pod->labels, &from->labels);
    pod->tainted = from->tainted;
    if (pod->ns[0] == 'm' && chance_percent(15))
        pod->node = from->node;
    played_announce(pod);
}

static void create_bound(void *data)
{
    struct played_pod *pod = begin_pod(true);

    if (!pod)
        return;
    if (chance_percent(40))
        ask_unreadable(pod);
    else
        ask_anything(pod);
    if (chance_percent(50))
        planted_add(pod);
    if (chance_percent(20))
        tenants_copy_words(pod);
    pod->node = (int)chance_below(PLAYED_NODES);
    pod->image_missing = chance_percent(30);
    played_announce(pod);
}

static void create_unreadable(void *data)
{
    struct played_pod *pod = begin_pod(true);

    if (!pod)
        return;
    ask_unreadable(pod);
    played_announce(pod);
}

/* Pods that will never come, of all that an older one would be waited for. */
static void create_never(void *data)
{
    struct played_pod *pod = begin_pod(true);

    if (!pod)
        return;
    const struct played_node *node = &played.nodes[chance_below(PLAYED_NODES)];
    struct box *box = ask_amounts(pod, BOX_APP, any_tongue_of(node), node, 8);
    if (words_get(&box->limits, "nvidia.com/gpu"))
        words_setf(&box->limits, "nvidia.com/gpu", "%d", node->n_cards);
    switch (chance_below(3)) {
    case 0:
        pod->gated = true;
        break;
    case 1:
        pod->elsewhere = true;
        break;
    default:
        pod->scheduler = "volcano";
    }
    if (chance_percent(30))
        planted_add(pod);
    played_announce(pod);
}

static void edit_one(struct played_pod *pod)
{
    const char *key = planted_key();

    if (pod->annotations.n > 0 && chance_percent(60))
        key = pod->annotations.items[chance_below(pod->annotations.n)].key;
    g_autofree char *copy = g_strdup(key);
    g_autofree char *value = chance_percent(20) ? NULL : planted_value(copy);

    pod->tainted = true;
    if (value || words_get(&pod->annotations, copy))
        played_edit(pod, copy, value);
}

static void edit_any(void *data)
{
    struct played_pod *pod = pick(is_attackers);

    if (pod)
        edit_one(pod);
}

static void edit_bound(void *data)
{
    struct played_pod *pod = pick(is_attackers_bound);

    if (pod)
        edit_one(pod);
}

static void remove_all(void *data)
{
    struct played_pod *pod = pick(is_attackers_bound);

    while (pod && pod->annotations.n > 1) {
        g_autofree char *key = g_strdup(pod->annotations.items[0].key);
        words_set(&pod->annotations, key, NULL);
    }
    if (pod && pod->annotations.n > 0) {
        g_autofree char *key = g_strdup(pod->annotations.items[0].key);
        played_edit(pod, key, NULL);
    }
}

/* All the words of another pod. */
static void take_words(void *data)
{
    struct played_pod *pod = pick(is_attackers_bound);
    const struct played_pod *from = pick(is_bound);

    if (!pod || !from || pod == from || from->annotations.n == 0)
        return;
    pod->tainted = true;
    words_add(&pod->annotations, &from->annotations);
    g_autofree char *value = g_strdup(from->annotations.items[0].value);
    g_autofree char *key = g_strdup(from->annotations.items[0].key);
    played_edit(pod, key, value);
}

static void edit_label(void *data)
{
    struct played_pod *pod = pick(is_attackers);
    const char *key = planted_label_key();
    g_autofree char *value = g_strdup_printf("n%u", chance_below(PLAYED_NODES));

    if (!pod)
        return;
    pod->tainted = true;
    words_set(&pod->labels, key, chance_percent(20) ? NULL : value);
    played_touch(pod);
}

static bool has_wish(const struct played_pod *pod)
{
    return played_lives(pod) && pod->node < 0 &&
           words_get(&pod->annotations, "gpuledger.io/gpu-models");
}

static void change_wish(void *data)
{
    struct played_pod *pod = pick(has_wish);

    if (pod)
        played_edit(pod, "gpuledger.io/gpu-models", chance_percent(50) ? MODELS : "H100");
}

static bool can_end(const struct played_pod *pod)
{
    return played_lives(pod) && (pod->node >= 0 || chance_percent(10));
}

static void end_pod(void *data)
{
    struct played_pod *pod = pick(can_end);

    if (!pod)
        return;
    pod->phase = chance_percent(50) ? SUCCEEDED : FAILED;
    played_touch(pod);
}

static bool is_there(const struct played_pod *pod)
{
    return pod->exists;
}

static void delete_pod(void *data)
{
    struct played_pod *pod = pick(is_there);

    if (pod)
        played_delete(pod);
}

static void terminate_pod(void *data)
{
    struct played_pod *pod = pick(is_there);

    if (!pod || pod->terminating)
        return;
    pod->terminating = true;
    played_touch(pod);
}

static void stop_asking(void *data)
{
    struct played_pod *pod = pick(is_attackers);

    if (pod && pod->node < 0)
        pod->quiet = chance_percent(70);
}

static void node_sides(void *data)
{
    kubelets_act();
}

static void compact(void *data)
{
    server_compact();
}

static void step_clock(void *data)
{
    sim_step_clock(chance_between(-20, 20) * G_USEC_PER_SEC);
}

const struct chance_action tenants_actions[] = {
    {"create pod", 24, create_honest},
    {"create pod with planted keys", 14, create_planted},
    {"create copy of a pod", 8, create_copy},
    {"create pod with a node", 5, create_bound},
    {"create unreadable pod", 3, create_unreadable},
    {"create pod that never comes", 4, create_never},
    {"edit pod", 10, edit_any},
    {"edit bound pod", 20, edit_bound},
    {"remove all annotations", 3, remove_all},
    {"take another pod's annotations", 4, take_words},
    {"edit label", 3, edit_label},
    {"change wish", 6, change_wish},
    {"stop asking", 3, stop_asking},
    {"node side", 120, node_sides},
    {"end pod", 14, end_pod},
    {"delete pod", 20, delete_pod},
    {"terminate pod", 3, terminate_pod},
    {"compact", 1, compact},
    {"step clock", 1, step_clock},
    {0},
};

const struct chance_action tenants_honest[] = {
    {"create pod", 30, create_honest},
    {"node side", 120, node_sides},
    {"end pod", 14, end_pod},
    {"delete pod", 20, delete_pod},
    {"terminate pod", 3, terminate_pod},
    {"compact", 1, compact},
    {"step clock", 1, step_clock},
    {0},
};

const struct chance_action tenants_sieges[] = {
    {"create pod that never comes", 4, create_never},
    {"edit bound pod", 30, edit_bound},
    {"remove all annotations", 2, remove_all},
    {"take another pod's annotations", 3, take_words},
    {"edit label", 3, edit_label},
    {"node side", 30, node_sides},
    {0},
};
