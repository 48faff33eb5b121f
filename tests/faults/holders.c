/* SPDX-License-Identifier: Apache-2.0 */
#include "holders.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINERS 1100
#define ALL (-1) /* of a card's memory */

/* What one container asks of one tongue. */
struct ask {
    bool present, unreadable;
    int cards; /* different ones */
    struct amounts each;
    int devices[POOLS];
};

struct row {
    const char *name;
    const char *resources[4]; /* whose presence makes a container one of this tongue's */
    void (*ask)(const struct box *box, const struct played_node *node, struct ask *ask);
    /* The cards of a container, as bits; 0: not said, or not so that it can be read. */
    uint32_t (*cards)(const struct words *record, const struct played_pod *pod, unsigned container,
                      const struct played_node *node);
};

static const char *const pools[POOLS] = {"nvidia.com/gpu", "nvidia.com/gpu.shared",
                                         "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"};

const char *holders_pool(int pool)
{
    return pools[pool];
}

char *holders_uuid(const struct played_node *node, int card)
{
    return g_strdup_printf("GPU-%s-%d", node->name, card);
}

/* --- numbers -------------------------------------------------------------------------------- */

/* A Quantity that is a whole number. */
static int64_t quantity(const struct box *box, const char *resource, bool *ret_unreadable)
{
    static const struct {
        const char *suffix;
        int64_t factor;
    } suffixes[] = {{"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000},
                    {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}};
    const char *text = words_get(&box->limits, resource);
    char *end;

    if (!text)
        return 0;
    int64_t number = g_ascii_strtoll(text, &end, 10);
    for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        if (g_str_equal(end, suffixes[i].suffix) && end > text && number >= 0 &&
            number < INT64_C(1) << 30)
            return number * suffixes[i].factor;
    }
    *ret_unreadable = true;
    return 0;
}

/* A card's index, as strict as the plugins read it. */
static int index_of(const char *text, size_t length, const struct played_node *node)
{
    int number = 0;

    if (length == 0 || length > 2)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (!g_ascii_isdigit(text[i]))
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number < node->n_cards ? number : -1;
}

/* "0" or "0,2": bits, 0 if anything is wrong with it. */
static uint32_t indices_of(const char *text, const struct played_node *node)
{
    uint32_t bits = 0;

    if (!text)
        return 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        int card = index_of(text, length, node);
        if (card < 0 || bits >> card & 1)
            return 0;
        bits |= 1U << card;
        if (!text[length])
            return bits;
        text += length + 1;
    }
}

static struct amounts whole(void)
{
    return (struct amounts){ALL, 100, 1};
}

/* --- what is asked -------------------------------------------------------------------------- */

static void ask_gpushare(const struct box *box, const struct played_node *node, struct ask *ask)
{
    int64_t units = quantity(box, "aliyun.com/gpu-mem", &ask->unreadable);
    int64_t core = quantity(box, "aliyun.com/gpu-core.percentage", &ask->unreadable);

    ask->unreadable |= core > 100;
    ask->cards = units > 0;
    ask->each = (struct amounts){units * node->unit_mib,
                                 node->core_divided ? (int)MIN(core, 100) : 0, 1};
}

/* Below 100 a share of one card, which needs both; multiples are whole cards; gpu-manager fails
 * anything else, so that it holds nothing. */
static void ask_tencent(const struct box *box, const struct played_node *node, struct ask *ask)
{
    int64_t core = quantity(box, "tencent.com/vcuda-core", &ask->unreadable);
    int64_t blocks = quantity(box, "tencent.com/vcuda-memory", &ask->unreadable);

    if (core >= 100) {
        ask->unreadable |= core % 100 != 0;
        ask->cards = core % 100 ? 0 : (int)MIN(core / 100, PLAYED_CARDS + 1);
        ask->each = whole();
    } else {
        ask->unreadable |= (core > 0) != (blocks > 0);
        ask->cards = core > 0 && blocks > 0;
        ask->each = (struct amounts){blocks * 256, (int)core, 1};
    }
}

static void ask_slices(const struct box *box, struct ask *ask, const char *const keys[4],
                       const struct played_node *node)
{
    int64_t cards = quantity(box, keys[0], &ask->unreadable);
    int64_t mib = quantity(box, keys[1], &ask->unreadable);
    int64_t percent = quantity(box, keys[2], &ask->unreadable);
    int64_t core = quantity(box, keys[3], &ask->unreadable);

    ask->unreadable |= percent > 100 || core > 100;
    ask->cards = (int)MIN(cards, PLAYED_CARDS + 1);
    if (mib == 0 && percent > 0)
        mib = node->card_mib * MIN(percent, 100) / 100;
    ask->each = (struct amounts){mib > 0 ? mib : ALL, (int)MIN(core, 100), 1};
}

static void ask_hami(const struct box *box, const struct played_node *node, struct ask *ask)
{
    static const char *const keys[] = {"nvidia.com/gpu", "nvidia.com/gpumem",
                                       "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"};
    ask_slices(box, ask, keys, node);
}

static void ask_vvgpu(const struct box *box, const struct played_node *node, struct ask *ask)
{
    static const char *const keys[] = {"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory",
                                       "volcano.sh/vgpu-memory-percentage",
                                       "volcano.sh/vgpu-cores"};
    ask_slices(box, ask, keys, node);
}

static void ask_volcano(const struct box *box, const struct played_node *node, struct ask *ask)
{
    int64_t mib = quantity(box, "volcano.sh/gpu-memory", &ask->unreadable);
    int64_t number = quantity(box, "volcano.sh/gpu-number", &ask->unreadable);

    ask->unreadable |= mib > 0 && number > 0;
    ask->cards = number > 0 ? (int)MIN(number, PLAYED_CARDS + 1) : mib > 0;
    ask->each = number > 0 ? whole() : (struct amounts){mib, 0, 1};
}

static void ask_hundredths(const struct box *box, struct ask *ask, const char *core_key,
                           const char *memory_key)
{
    int64_t core = quantity(box, core_key, &ask->unreadable);
    int64_t mib = memory_key ? quantity(box, memory_key, &ask->unreadable) : 0;

    if (core >= 100) {
        ask->unreadable |= core % 100 != 0;
        ask->cards = (int)MIN(core / 100, PLAYED_CARDS + 1);
        ask->each = whole();
    } else {
        ask->cards = core > 0 || mib > 0;
        ask->each = (struct amounts){mib, (int)core, 1};
    }
}

static void ask_elastic(const struct box *box, const struct played_node *node, struct ask *ask)
{
    ask_hundredths(box, ask, "elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory");
}

static void ask_elastic_com(const struct box *box, const struct played_node *node, struct ask *ask)
{
    ask_hundredths(box, ask, "elasticgpu.com/gpu-core", "elasticgpu.com/gpu-memory");
}

static void ask_nano_io(const struct box *box, const struct played_node *node, struct ask *ask)
{
    ask_hundredths(box, ask, "nano-gpu.io/gpu-core", "nano-gpu.io/gpu-memory");
}

static void ask_nano(const struct box *box, const struct played_node *node, struct ask *ask)
{
    ask_hundredths(box, ask, "nano-gpu/gpu-percent", NULL);
}

static void ask_nvidia(const struct box *box, const struct played_node *node, struct ask *ask)
{
    for (int i = 0; i < POOLS; i++) {
        if (words_get(&node->capacity, pools[i])) /* kubelet ignores what is not there */
            ask->devices[i] = (int)quantity(box, pools[i], &ask->unreadable);
        ask->cards += ask->devices[i];
    }
}

static void ask_qgpu(const struct box *box, const struct played_node *node, struct ask *ask)
{
    int64_t core = quantity(box, "tke.cloud.tencent.com/qgpu-core", &ask->unreadable);
    int64_t gib = quantity(box, "tke.cloud.tencent.com/qgpu-memory", &ask->unreadable);

    ask->cards = core >= 100 ? (int)MIN(core / 100, PLAYED_CARDS + 1) : core > 0 || gib > 0;
    ask->each = core >= 100 ? whole() : (struct amounts){gib * 1024, (int)core, 1};
}

static void ask_koordinator(const struct box *box, const struct played_node *node, struct ask *ask)
{
    int64_t core = quantity(box, "koordinator.sh/gpu-core", &ask->unreadable);
    int64_t bytes = quantity(box, "koordinator.sh/gpu-memory", &ask->unreadable);
    int64_t ratio = quantity(box, "koordinator.sh/gpu-memory-ratio", &ask->unreadable);
    int64_t both = quantity(box, "koordinator.sh/gpu", &ask->unreadable);

    core += both;
    ratio += both;
    ask->unreadable |= core > 100 || ratio > 100;
    ask->cards = core > 0 || bytes > 0 || ratio > 0;
    ask->each = (struct amounts){ratio > 0 ? node->card_mib * MIN(ratio, 100) / 100 : bytes >> 20,
                                 (int)MIN(core, 100), 1};
}

/* --- where it is ---------------------------------------------------------------------------- */

static uint32_t cards_gpushare(const struct words *record, const struct played_pod *pod,
                               unsigned container, const struct played_node *node)
{
    const char *text = words_get(record, "ALIYUN_COM_GPU_MEM_IDX");
    int card = text ? index_of(text, strlen(text), node) : -1;

    if (node->n_cards == 1) /* where else */
        return 1;
    return card >= 0 ? 1U << card : 0;
}

static uint32_t cards_tencent(const struct words *record, const struct played_pod *pod,
                              unsigned container, const struct played_node *node)
{
    g_autofree char *key = g_strdup_printf("tencent.com/predicate-gpu-idx-%u", container);
    return indices_of(words_get(record, key), node);
}

static uint32_t cards_volcano(const struct words *record, const struct played_pod *pod,
                              unsigned container, const struct played_node *node)
{
    return indices_of(words_get(record, "volcano.sh/gpu-index"), node);
}

static uint32_t cards_by_name(const struct words *record, const struct played_pod *pod,
                              unsigned container, const struct played_node *node, const char *prefix)
{
    const char *name = g_array_index(pod->boxes, struct box, container).name;
    g_autofree char *key = g_strconcat(prefix, name, NULL);
    return indices_of(words_get(record, key), node);
}

static uint32_t cards_elastic(const struct words *record, const struct played_pod *pod,
                              unsigned container, const struct played_node *node)
{
    return cards_by_name(record, pod, container, node, "elasticgpu.io/container-");
}

static uint32_t cards_elastic_com(const struct words *record, const struct played_pod *pod,
                                  unsigned container, const struct played_node *node)
{
    return cards_by_name(record, pod, container, node, "elasticgpu.io/container-");
}

static uint32_t cards_nano_io(const struct words *record, const struct played_pod *pod,
                              unsigned container, const struct played_node *node)
{
    return cards_by_name(record, pod, container, node, "nano-gpu.io/gpu-");
}

static uint32_t cards_nano(const struct words *record, const struct played_pod *pod,
                           unsigned container, const struct played_node *node)
{
    return cards_by_name(record, pod, container, node, "nano-gpu/container-");
}

static int card_of_uuid(const char *uuid, const struct played_node *node)
{
    for (int card = 0; card < node->n_cards; card++) {
        g_autofree char *own = holders_uuid(node, card);
        if (g_str_equal(own, uuid))
            return card;
    }
    return -1;
}

/* "UUID,NVIDIA,MIB,CORE:…", one container. */
static uint32_t devices_of(const char *segment, const struct played_node *node)
{
    g_auto(GStrv) devices = g_strsplit(segment, ":", -1);
    uint32_t bits = 0;

    for (char **device = devices; *device; device++) {
        if (!**device)
            continue;
        g_auto(GStrv) fields = g_strsplit(*device, ",", -1);
        int card = g_strv_length(fields) >= 4 ? card_of_uuid(fields[0], node) : -1;
        if (card < 0 || bits >> card & 1)
            return 0;
        bits |= 1U << card;
    }
    return bits;
}

static unsigned n_init(const struct played_pod *pod)
{
    unsigned n = 0;

    for (unsigned i = 0; i < pod->boxes->len; i++)
        n += g_array_index(pod->boxes, struct box, i).sort != BOX_APP;
    return n;
}

static bool asks_for_vgpu(const struct box *box)
{
    return words_get(&box->limits, "nvidia.com/gpu") || words_get(&box->limits, "volcano.sh/vgpu-number");
}

/* Old texts leave out who asks for nothing and init containers, which then take what comes first. */
static uint32_t cards_of_askers(char *const *segments, const struct played_pod *pod,
                                unsigned container, const struct played_node *node)
{
    unsigned askers = 0, own = 0, filled = 0;
    uint32_t bits = 0;

    for (unsigned i = 0; i < pod->boxes->len; i++) {
        const struct box *box = &g_array_index(pod->boxes, struct box, i);
        if (i == container)
            own = box->sort == BOX_APP ? askers : 0;
        askers += box->sort == BOX_APP && asks_for_vgpu(box);
    }
    for (; *segments; segments++) {
        if (!**segments)
            continue;
        if (filled++ == own)
            bits = devices_of(*segments, node);
    }
    return filled <= askers ? bits : 0;
}

/* Segments are in the order of containers. With `inits`, init containers come first. */
static uint32_t cards_of_segments(const char *text, const struct played_pod *pod, unsigned container,
                                  const struct played_node *node, bool inits)
{
    g_auto(GStrv) segments = g_strsplit(text ? text : "", ";", -1);
    unsigned n = n_init(pod), at = container, there = g_strv_length(segments);

    if (there > 0 && !*segments[there - 1])
        there--;
    if (there != pod->boxes->len - (inits ? 0 : n))
        return cards_of_askers(segments, pod, container, node);
    if (inits) /* played pods have theirs after the others */
        at = container >= pod->boxes->len - n ? container - (pod->boxes->len - n) : container + n;
    return at < there ? devices_of(segments[at], node) : 0;
}

static uint32_t cards_hami(const struct words *record, const struct played_pod *pod,
                           unsigned container, const struct played_node *node)
{
    return cards_of_segments(words_get(record, "hami.io/vgpu-devices-allocated"), pod, container,
                             node, true);
}

static uint32_t cards_paradigm(const struct words *record, const struct played_pod *pod,
                               unsigned container, const struct played_node *node)
{
    const char *new = words_get(record, "hami.sh/vgpu-devices-allocated");

    return cards_of_segments(new ? new : words_get(record, "4pd.io/vgpu-ids-new"), pod, container,
                             node, false);
}

static uint32_t cards_vvgpu(const struct words *record, const struct played_pod *pod,
                            unsigned container, const struct played_node *node)
{
    return cards_of_segments(words_get(record, "volcano.sh/vgpu-ids-new"), pod, container, node,
                             false);
}

static uint32_t cards_koordinator(const struct words *record, const struct played_pod *pod,
                                  unsigned container, const struct played_node *node)
{
    const char *text = words_get(record, "scheduling.koordinator.sh/device-allocated");
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    const cJSON *device;
    uint32_t bits = 0;

    cJSON_ArrayForEach (device, cJSON_GetObjectItemCaseSensitive(tree, "gpu")) {
        const cJSON *minor = cJSON_GetObjectItemCaseSensitive(device, "minor");
        if (cJSON_IsNumber(minor) && minor->valuedouble >= 0 && minor->valuedouble < node->n_cards)
            bits |= 1U << (int)minor->valuedouble;
    }
    cJSON_Delete(tree);
    return bits;
}

static uint32_t cards_unknown(const struct words *record, const struct played_pod *pod,
                              unsigned container, const struct played_node *node)
{
    return 0;
}

static const struct row rows[TONGUES] = {
    [GPUSHARE] = {"gpushare",
                  {"aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"},
                  ask_gpushare,
                  cards_gpushare},
    [TENCENT] = {"tencent",
                 {"tencent.com/vcuda-core", "tencent.com/vcuda-memory"},
                 ask_tencent,
                 cards_tencent},
    [HAMI] = {"hami", {"nvidia.com/gpu"}, ask_hami, cards_hami},
    [PARADIGM] = {"4paradigm", {"nvidia.com/gpu"}, ask_hami, cards_paradigm},
    [VVGPU] = {"volcano-vgpu", {"volcano.sh/vgpu-number"}, ask_vvgpu, cards_vvgpu},
    [VOLCANO] = {"volcano",
                 {"volcano.sh/gpu-memory", "volcano.sh/gpu-number"},
                 ask_volcano,
                 cards_volcano},
    [ELASTIC] = {"elastic",
                 {"elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory"},
                 ask_elastic,
                 cards_elastic},
    [ELASTIC_COM] = {"elastic-com",
                     {"elasticgpu.com/gpu-core", "elasticgpu.com/gpu-memory"},
                     ask_elastic_com,
                     cards_elastic_com},
    [NANO_IO] = {"nano-io",
                 {"nano-gpu.io/gpu-core", "nano-gpu.io/gpu-memory"},
                 ask_nano_io,
                 cards_nano_io},
    [NANO] = {"nano", {"nano-gpu/gpu-percent"}, ask_nano, cards_nano},
    [NVIDIA] = {"nvidia",
                {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb",
                 "nvidia.com/mig-3g.20gb"},
                ask_nvidia,
                cards_unknown},
    [QGPU] = {"qgpu",
              {"tke.cloud.tencent.com/qgpu-core", "tke.cloud.tencent.com/qgpu-memory"},
              ask_qgpu,
              cards_unknown},
    [KOORDINATOR] = {"koordinator",
                     {"koordinator.sh/gpu-core", "koordinator.sh/gpu-memory",
                      "koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu"},
                     ask_koordinator,
                     cards_koordinator},
};

const char *holders_tongue(enum tongue tongue)
{
    return rows[tongue].name;
}

bool holders_exclusive(enum tongue tongue)
{
    return tongue == NVIDIA || tongue == QGPU || tongue == TENCENT;
}

static bool is_named(const struct box *box, enum tongue tongue)
{
    for (int i = 0; i < 4 && rows[tongue].resources[i]; i++) {
        if (words_get(&box->limits, rows[tongue].resources[i]))
            return true;
    }
    return false;
}

unsigned holders_named(const struct played_pod *pod)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < pod->boxes->len; i++) {
        for (int tongue = 0; tongue < TONGUES; tongue++) {
            if (is_named(&g_array_index(pod->boxes, struct box, i), (enum tongue)tongue))
                bits |= 1U << tongue;
        }
    }
    return bits;
}

/* --- together ------------------------------------------------------------------------------- */

static void add(struct amounts *amounts, const struct amounts *more)
{
    amounts->mib += more->mib;
    amounts->core += more->core;
    amounts->slots += more->slots;
}

static void raise_to(struct amounts *amounts, const struct amounts *other)
{
    amounts->mib = MAX(amounts->mib, other->mib);
    amounts->core = MAX(amounts->core, other->core);
    amounts->slots = MAX(amounts->slots, other->slots);
}

/* What is there at a time: of cards by number, of the sum behind them, and of devices. */
struct tally {
    struct amounts on[PLAYED_CARDS + 1];
    int cards, devices[POOLS];
};

static void tally_add(struct tally *tally, const struct ask *ask, uint32_t cards)
{
    for (int card = 0; card < PLAYED_CARDS; card++) {
        if (cards >> card & 1)
            add(&tally->on[card], &ask->each);
    }
    add(&tally->on[PLAYED_CARDS], &ask->each);
    tally->cards += ask->cards;
    for (int i = 0; i < POOLS; i++)
        tally->devices[i] += ask->devices[i];
}

static void tally_raise(struct tally *tally, const struct tally *other)
{
    for (int card = 0; card <= PLAYED_CARDS; card++)
        raise_to(&tally->on[card], &other->on[card]);
    tally->cards = MAX(tally->cards, other->cards);
    for (int i = 0; i < POOLS; i++)
        tally->devices[i] = MAX(tally->devices[i], other->devices[i]);
}

/* Whether the node side gives a pod nothing that bears none of its words: gpushare's plugin has no card
 * for it but the only one of a node, the vGPU plugins fail it ("no binding pod found"). */
static bool is_left_out(enum tongue tongue, const struct words *record,
                        const struct played_node *node)
{
    static const char *const words[TONGUES][4] = {
        [GPUSHARE] = {"ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD",
                      "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME"},
        [HAMI] = {"hami.io/vgpu-node", "hami.io/vgpu-devices-allocated"},
        [PARADIGM] = {"4pd.io/vgpu-node", "4pd.io/vgpu-ids-new", "hami.sh/vgpu-devices-allocated"},
        [VVGPU] = {"volcano.sh/vgpu-node", "volcano.sh/vgpu-ids-new"},
    };
    bool marked = !words[tongue][0] || (tongue == GPUSHARE && node->n_cards == 1);

    for (int i = 0; i < 4 && words[tongue][i]; i++)
        marked |= words_get(record, words[tongue][i]) != NULL;
    return !marked;
}

bool holders_read(const struct played_pod *pod, const struct played_node *node, enum tongue tongue,
                  const struct words *record, struct holding *ret)
{
    const struct row *row = &rows[tongue];
    struct tally apps = {0}, sidecars = {0}, most = {0};
    bool any = false, unplaced = false;

    *ret = (struct holding){0};
    if (!(node->serves >> tongue & 1))
        return false;
    for (unsigned i = 0; i < pod->boxes->len; i++) {
        const struct box *box = &g_array_index(pod->boxes, struct box, i);
        struct ask ask = {0};
        if (!is_named(box, tongue))
            continue;
        any = true;
        row->ask(box, node, &ask);
        ret->unreadable |= ask.unreadable;
        if (ask.each.mib == ALL)
            ask.each.mib = node->card_mib;
        if (ask.cards == 0)
            continue;
        uint32_t cards = row->cards(record, pod, i, node);
        if (__builtin_popcount(cards) != ask.cards) {
            unplaced = true;
            cards = (1U << node->n_cards) - 1;
        }
        if (box->sort == BOX_APP) {
            tally_add(&apps, &ask, cards);
        } else if (box->sort == BOX_SIDECAR) {
            tally_add(&sidecars, &ask, cards);
        } else { /* beside the sidecars that run by then */
            struct tally then = sidecars;
            tally_add(&then, &ask, cards);
            tally_raise(&most, &then);
        }
    }
    if (!any)
        return false;
    for (int card = 0; card <= PLAYED_CARDS; card++)
        add(&apps.on[card], &sidecars.on[card]);
    apps.cards += sidecars.cards;
    for (int i = 0; i < POOLS; i++)
        apps.devices[i] += sidecars.devices[i];
    tally_raise(&most, &apps);

    memcpy(ret->on, most.on, sizeof ret->on);
    memcpy(ret->devices, most.devices, sizeof ret->devices);
    ret->sum = most.on[PLAYED_CARDS];
    ret->cards = most.cards;
    if (most.cards == 0 || (unplaced && is_left_out(tongue, record, node)))
        ret->where = NOWHERE;
    else
        ret->where = unplaced ? ANYWHERE : PLACED;
    return true;
}
