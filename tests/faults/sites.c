/* SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include "../prop/chance.h"

static void add_capacity(struct played_node *node, const char *key, int64_t amount)
{
    words_setf(&node->capacity, key, "%" G_GINT64_FORMAT, amount);
}

static void serve_gpushare(struct played_node *node)
{
    add_capacity(node, "aliyun.com/gpu-mem", node->n_cards * (node->card_mib / node->unit_mib));
    add_capacity(node, "aliyun.com/gpu-count", node->n_cards);
}

static void serve_gpushare_core(struct played_node *node)
{
    serve_gpushare(node);
    add_capacity(node, "aliyun.com/gpu-core.percentage", node->n_cards * 100);
    words_set(&node->labels, "ack.node.gpu.schedule", "core_mem");
    node->core_divided = true;
}

static void serve_tencent(struct played_node *node)
{
    add_capacity(node, "tencent.com/vcuda-core", node->n_cards * 100);
    add_capacity(node, "tencent.com/vcuda-memory", node->n_cards * (node->card_mib / 256));
}

/* `before` and `after` the model. */
static void register_cards(struct played_node *node, const char *key, const char *count,
                           const char *before, const char *after)
{
    const char *model = words_get(&node->labels, "nvidia.com/gpu.product");

    g_autoptr(GString) text = g_string_new(NULL);

    for (int card = 0; card < node->n_cards; card++) {
        g_autofree char *uuid = holders_uuid(node, card);
        g_string_append_printf(text, "%s,%d,%d,", uuid, node->split, (int)node->card_mib);
        g_string_append_printf(text, "%s%s%s:", before, model, after);
    }
    words_set(&node->annotations, key, text->str);
    add_capacity(node, count, node->n_cards * node->split);
}

static void serve_hami(struct played_node *node)
{
    register_cards(node, "hami.io/node-nvidia-register", "nvidia.com/gpu", "100,", ",0,true");
}

static void serve_paradigm(struct played_node *node)
{
    register_cards(node, "4pd.io/node-nvidia-register", "nvidia.com/gpu", "100,", ",0,true");
}

static void serve_vvgpu(struct played_node *node)
{
    register_cards(node, "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-number",
                   "", ",true,hami-core");
}

static void serve_volcano(struct played_node *node)
{
    add_capacity(node, "volcano.sh/gpu-memory", node->n_cards * node->card_mib);
    add_capacity(node, "volcano.sh/gpu-number", node->n_cards);
}

static void serve_volcano_number(struct played_node *node)
{
    add_capacity(node, "volcano.sh/gpu-number", node->n_cards);
}

static void serve_elastic(struct played_node *node)
{
    add_capacity(node, "elasticgpu.io/gpu-core", node->n_cards * 100);
    add_capacity(node, "elasticgpu.io/gpu-memory", node->n_cards * node->card_mib);
}

static void serve_elastic_com(struct played_node *node)
{
    add_capacity(node, "elasticgpu.com/gpu-core", node->n_cards * 100);
    add_capacity(node, "elasticgpu.com/gpu-memory", node->n_cards * node->card_mib);
}

static void serve_nano_io(struct played_node *node)
{
    add_capacity(node, "nano-gpu.io/gpu-core", node->n_cards * 100);
    add_capacity(node, "nano-gpu.io/gpu-memory", node->n_cards * node->card_mib);
}

static void serve_nano(struct played_node *node)
{
    add_capacity(node, "nano-gpu/gpu-percent", node->n_cards * 100);
}

static void label_nvidia(struct played_node *node, int replicas)
{
    words_setf(&node->labels, "nvidia.com/gpu.count", "%d", node->n_cards);
    words_setf(&node->labels, "nvidia.com/gpu.replicas", "%d", replicas);
    words_set(&node->labels, "nvidia.com/gpu.sharing-strategy",
              replicas > 1 ? "time-slicing" : "none");
    words_setf(&node->labels, "nvidia.com/gpu.memory", "%d", (int)node->card_mib);
}

static void serve_nvidia(struct played_node *node)
{
    add_capacity(node, "nvidia.com/gpu", node->n_cards);
    label_nvidia(node, 1);
}

static void serve_slices(struct played_node *node)
{
    add_capacity(node, "nvidia.com/gpu", node->n_cards * 4);
    label_nvidia(node, 4);
}

static void serve_mig(struct played_node *node)
{
    add_capacity(node, "nvidia.com/mig-1g.5gb", node->n_cards * 3);
    add_capacity(node, "nvidia.com/mig-3g.20gb", node->n_cards);
    words_set(&node->labels, "nvidia.com/mig.strategy", "mixed");
}

static void serve_qgpu(struct played_node *node)
{
    add_capacity(node, "tke.cloud.tencent.com/qgpu-core", node->n_cards * 100);
    add_capacity(node, "tke.cloud.tencent.com/qgpu-memory", node->n_cards * (node->card_mib >> 10));
}

static void serve_koordinator(struct played_node *node)
{
    add_capacity(node, "koordinator.sh/gpu-core", node->n_cards * 100);
    add_capacity(node, "koordinator.sh/gpu-memory-ratio", node->n_cards * 100);
    add_capacity(node, "koordinator.sh/gpu-memory", node->n_cards * (node->card_mib << 20));
}

static const struct kind {
    const char *name;
    enum tongue tongue;
    void (*serve)(struct played_node *node);
} kinds[] = {
    {"gpushare", GPUSHARE, serve_gpushare},
    {"gpushare-core", GPUSHARE, serve_gpushare_core},
    {"tencent", TENCENT, serve_tencent},
    {"hami", HAMI, serve_hami},
    {"4paradigm", PARADIGM, serve_paradigm},
    {"volcano-vgpu", VVGPU, serve_vvgpu},
    {"volcano", VOLCANO, serve_volcano},
    {"volcano-number", VOLCANO, serve_volcano_number},
    {"elastic", ELASTIC, serve_elastic},
    {"elastic-com", ELASTIC_COM, serve_elastic_com},
    {"nano-io", NANO_IO, serve_nano_io},
    {"nano", NANO, serve_nano},
    {"nvidia", NVIDIA, serve_nvidia},
    {"nvidia-slices", NVIDIA, serve_slices},
    {"nvidia-mig", NVIDIA, serve_mig},
    {"qgpu", QGPU, serve_qgpu},
    {"koordinator", KOORDINATOR, serve_koordinator},
};

static const struct kind *kind_of(const char *name)
{
    size_t i = 0;

    while (!g_str_equal(kinds[i].name, name))
        HOLDS(++i < G_N_ELEMENTS(kinds), "no kind '%s'", name);
    return &kinds[i];
}

void sites_put(int at, const char *text, int cards, int64_t card_mib)
{
    struct played_node *node = &played.nodes[at];
    g_auto(GStrv) names = g_strsplit(text, "+", -1);

    node->n_cards = cards;
    node->card_mib = card_mib;
    node->unit_mib = 1024;
    node->split = 10;
    g_snprintf(node->name, sizeof node->name, "n%d", at);
    words_set(&node->labels, "nvidia.com/gpu.product", at % 2 ? "NVIDIA-H100" : "NVIDIA-A10");
    for (char **name = names; *name; name++) {
        const struct kind *kind = kind_of(*name);
        node->serves |= 1U << kind->tongue;
        kind->serve(node);
    }
    played_put_node(at);
}

void sites_draw(void)
{
    static const char *const mixtures[] = {
        "gpushare+volcano", "gpushare+elastic", "gpushare+hami", "hami+koordinator",
        "gpushare+koordinator", "gpushare+nvidia", "gpushare+qgpu", "elastic+nano",
        "gpushare+tencent", "volcano+volcano-vgpu",
    };

    for (int i = 0; i < PLAYED_NODES; i++) {
        unsigned drawn = chance_below(G_N_ELEMENTS(kinds) + G_N_ELEMENTS(mixtures));
        int cards = (int)chance_between(1, 4);
        int64_t mib = chance_between(6, 24) * 1024;
        if (i > 0 && chance_percent(20)) /* two alike */
            drawn = (unsigned)chance_below(3);
        sites_put(i, drawn < G_N_ELEMENTS(kinds) ? kinds[drawn].name
                                                        : mixtures[drawn - G_N_ELEMENTS(kinds)],
                         cards, mib);
    }
}
