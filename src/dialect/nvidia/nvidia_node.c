/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node of NVIDIA's own plugin has: pools of devices, and what the labels of GPU Feature
 * Discovery say of them. Where they contradict what kubelet reports, that counts, and nothing else
 * that they say of the cards is relied on. They do so
 *  - for up to a minute after each change: the plugin reports at once, the labels are written every
 *    60 s (NVIDIA/k8s-device-plugin@v0.20.0:cmd/gpu-feature-discovery/main.go);
 *  - where cards of several models have one name, as the labels are those of one model, and where
 *    mig.strategy is mixed, as cards in MIG mode are counted with the others
 *    (internal/lm/mig-strategy.go).
 */
#include "core/fail.h"
#include "dialect/digits.h"
#include "dialect/marks/node_marks.h"
#include "core/bytes.h"
#include "dialect/nvidia/nvidia.h"
#include "dialect/nvidia/nvidia_replicas.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <gpuledger/quantity.h>
#include <string.h>

/* Ours, on nodes, see node_marks.h: cards that take one holder. Which ones is of no use here. */
#define KEY_EXCLUSIVE "gpuledger.io/exclusive-cards"

/* Source: NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md, README.md */
#define GPU "nvidia.com/gpu"
#define LABEL_CONFIG "nvidia.com/device-plugin.config"
#define LABEL_STRATEGY "nvidia.com/gpu.sharing-strategy"
#define LABEL_MEMORY "nvidia.com/gpu.memory"

/* Processes that one MPS server takes; 16 below compute capability 7.5
 * (NVIDIA/k8s-device-plugin@v0.20.0:cmd/mps-control-daemon/mps/device.go). */
#define MPS_CLIENTS 48

/* Other plugins report nvidia.com/gpu as well, and mean slots. */
static bool is_foreign_node(const struct node_view *view)
{
    static const char *const keys[] = {"hami.io/node-nvidia-register",
                                       "4pd.io/node-nvidia-register"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (string_pairs_get(&view->annotations, keys[i]))
            return true;
    }
    return false;
}

/* What the labels say of one resource's devices; 0: nothing. */
struct facts {
    const char *model;
    int64_t memory;  /* bytes of a whole card or MIG instance */
    int64_t count;   /* of these */
    int64_t replicas;
    bool shared;     /* if anything says so */
    bool mps;
    enum doubt doubt;
};

/* The resource's own label: "nvidia.com/gpu.shared" is described by "nvidia.com/gpu.…". */
static const char *get_label(const struct node_view *view, const char *resource, const char *what)
{
    char key[320];
    size_t length = strlen(resource);

    if (g_str_has_suffix(resource, SHARED_SUFFIX))
        length -= strlen(SHARED_SUFFIX);
    g_snprintf(key, sizeof key, "%.*s.%s", (int)length, resource, what);
    return string_pairs_get(&view->labels, key);
}

/* "4096", "4GB", "4Gi", "4096MiB": GPU Feature Discovery writes MiB, people write what they like,
 * and the makers of cards mean 2^30 when they say GB. */
static bool parse_memory(const char *text, int64_t *ret_bytes)
{
    static const struct {
        const char *suffix;
        int64_t unit;
    } forms[] = {
        {"GiB", GIB}, {"GB", GIB}, {"Gi", GIB}, {"MiB", MIB}, {"MB", MIB}, {"Mi", MIB}, {"", MIB},
    };
    g_autofree char *digits = g_strdup(text);
    size_t length = strspn(digits, "0123456789");
    const char *suffix = text + length + strspn(text + length, " ");
    int64_t value;

    digits[length] = '\0';
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        if (g_ascii_strcasecmp(suffix, forms[i].suffix) != 0)
            continue;
        if (!digits_parse(digits, AMOUNT_BYTES_MAX / forms[i].unit, &value) || value == 0)
            return false;
        *ret_bytes = value * forms[i].unit;
        return true;
    }
    return false;
}

static bool read_memory(const struct node_view *view, const char *label, const char *text,
                        int64_t *ret_bytes, char **ret_warning)
{
    if (!text)
        return false;
    if (parse_memory(text, ret_bytes))
        return true;
    warn(ret_warning, g_strdup_printf("node '%s': label '%s' is '%.32s': write an amount of memory "
                                      "such as '4GB'; it is ignored",
                                      view->name, label, text));
    return false;
}

/* A profile names its memory, rounded up to whole GB: "…mig-2g.10gb.me". Less than the least that
 * such an instance has, which is for the case that no label says it. */
static int64_t profile_memory(const char *text)
{
    const char *profile = g_strrstr(text, "g.");
    int64_t gigabytes;

    if (!profile)
        return 0;
    g_autofree char *digits = g_strdup(profile + 2);
    size_t length = strspn(digits, "0123456789");
    if (!g_str_has_prefix(digits + length, "gb"))
        return 0;
    digits[length] = '\0';
    return digits_parse(digits, 10000, &gigabytes) ? gigabytes * 1000 * 1000 * 1000 / 20 * 19 : 0;
}

/* 0: the label is not there, or is no number, which is said. */
static int64_t read_number(const struct node_view *view, const char *resource, const char *what,
                           char **ret_warning)
{
    const char *text = get_label(view, resource, what);
    int64_t number = 0;

    if (text && !digits_parse(text, NVIDIA_DEVICES_MAX, &number))
        warn(ret_warning, g_strdup_printf("node '%s': label '%s.%s' is '%.32s', which is no number; it "
                                          "is ignored", view->name, resource, what, text));
    return number;
}

static struct facts read_facts(const struct node_view *view, const char *resource,
                               const struct dialect_options *options, struct topology *topology,
                               char **ret_warning)
{
    struct facts facts = {0};
    const char *product = get_label(view, resource, "product");
    const char *strategy = string_pairs_get(&view->labels, LABEL_STRATEGY);
    const char *own = options->nvidia_memory_label;
    bool is_mig = g_str_has_prefix(resource, NVIDIA_MIG_PREFIX);

    facts.mps = g_strcmp0(strategy, "mps") == 0 && !is_mig;
    facts.count = read_number(view, resource, "count", ret_warning);
    facts.replicas = read_number(view, resource, "replicas", ret_warning);
    facts.shared = g_str_has_suffix(resource, SHARED_SUFFIX) || facts.replicas > 1 ||
                   (facts.replicas == 0 && !is_mig && strategy && strcmp(strategy, "none") != 0);
    if (product) {
        g_autofree char *model = g_strdup(product);
        if (g_str_has_suffix(model, "-SHARED")) {
            facts.shared = true;
            model[strlen(model) - strlen("-SHARED")] = '\0';
        }
        facts.model = topology_keep(topology, model);
    }
    if (facts.count == 0 && facts.replicas == 0 && !product && !strategy)
        facts.doubt = DOUBT_UNSAID;
    /* What the administrator says is there because nobody else knows it. */
    if ((is_mig || !own || !*own ||
         !read_memory(view, own, string_pairs_get(&view->labels, own), &facts.memory,
                      ret_warning)) &&
        !read_memory(view, is_mig ? "memory" : LABEL_MEMORY, get_label(view, resource, "memory"),
                     &facts.memory, ret_warning)) {
        const char *instance = is_mig ? resource : product ? strstr(product, "-MIG-") : NULL;
        facts.memory = instance ? profile_memory(instance) : 0;
    }
    return facts;
}

/* Some cards are in MIG mode, and counted all the same. */
static bool has_instances(const struct node_view *view)
{
    for (size_t i = 0; i < view->capacity.n; i++) {
        if (g_str_has_prefix(view->capacity.items[i].key, NVIDIA_MIG_PREFIX) &&
            !g_str_equal(view->capacity.items[i].value, "0"))
            return true;
    }
    return false;
}

/* Whether plugin and labels have not caught up with the configuration that the node is to have.
 * Fewer devices than there should be are lost cards, unless they are as many as another number of
 * replicas would give. */
static bool is_changing(const struct node_view *view, const struct facts *facts, int64_t announced,
                        int64_t reported)
{
    if (facts->replicas > 0 && facts->replicas != announced)
        return true;
    return facts->count > 0 && !has_instances(view) &&
           (reported > facts->count * announced ||
            (reported % facts->count == 0 && reported / facts->count != announced));
}

/* Of devices that may all be on one card, no more are given than it may have holders. */
static int64_t withhold(const struct node_view *view, const struct facts *facts, int64_t reported,
                        enum withheld *ret_why, char **ret_warning)
{
    const char *exclusive = string_pairs_get(&view->annotations, KEY_EXCLUSIVE);
    int64_t most = reported;
    struct node_slots slots;

    *ret_why = WITHHELD_NONE;
    if (!facts->shared)
        return reported;
    if (!facts->mps && exclusive && *exclusive) {
        warn(ret_warning, g_strdup_printf("node '%s' shares cards of which '%.64s' take one "
                                          "holder: one pod gets a device",
                                          view->name, exclusive));
        *ret_why = reported > 1 ? WITHHELD_EXCLUSIVE : WITHHELD_NONE;
        most = MIN(most, 1);
    }
    if (facts->mps && facts->replicas > MPS_CLIENTS) {
        warn(ret_warning, g_strdup_printf("node '%s' makes %" G_GINT64_FORMAT " of a card, but MPS "
                                          "serves %d: the node gives no more than that, as they "
                                          "may all be on one card",
                                          view->name, facts->replicas, MPS_CLIENTS));
        *ret_why = reported > MPS_CLIENTS ? WITHHELD_MPS : WITHHELD_NONE;
        most = MIN(most, MPS_CLIENTS);
    }
    node_slots_read(view, &slots, ret_warning);
    if (!slots.readable || (slots.most > 0 && slots.most < most)) {
        *ret_why = WITHHELD_SLOTS;
        most = slots.most;
    }
    return most;
}

/* A number for the configuration that the node is being changed to, which is said; 0: it is not. */
static uint64_t tell_change(const struct node_view *view, const char *resource,
                            const struct facts *facts, const struct dialect_options *options,
                            int64_t reported, char **ret_warning)
{
    const char *configuration = string_pairs_get(&view->labels, LABEL_CONFIG);

    if (!configuration || g_str_has_prefix(resource, NVIDIA_MIG_PREFIX))
        return 0;
    const int64_t announced = nvidia_replicas_find(options->nvidia_config_replicas, configuration);
    if (announced == 0 || !is_changing(view, facts, announced, reported))
        return 0;
    warn(ret_warning,
         g_strdup_printf("node '%s' is being changed to configuration '%.64s': for a minute at "
                         "most, %s is not given until the node reports what it makes of the cards",
                         view->name, configuration, resource));
    return card_key(configuration);
}

/* Of `capacity` devices, the sick ones among them, each is a part of a card that so many are, or of
 * fewer: the larger of labels and devices. Gives what devices alone say, which is 0 if they do not. */
static int64_t doubt_facts(const struct node_view *view, const char *resource, struct facts *facts,
                           int64_t capacity, char **ret_warning)
{
    const int64_t expected = facts->count * MAX(facts->replicas, 1);

    if (facts->doubt == DOUBT_UNSAID)
        return 0;
    if (facts->count == 0 || capacity == expected)
        return facts->shared ? facts->replicas : 1;
    facts->doubt = DOUBT_CONTRADICTED;
    warn(ret_warning, g_strdup_printf("node '%s': its labels promise %" G_GINT64_FORMAT
                                      " of %s, it has %" G_GINT64_FORMAT ", which counts; nothing "
                                      "else is promised of them",
                                      view->name, expected, resource, capacity));
    facts->replicas = MAX(facts->replicas, (capacity + facts->count - 1) / facts->count);
    facts->shared |= facts->replicas > 1;
    return has_instances(view) || capacity % facts->count != 0 ? 0 : capacity / facts->count;
}

/* Without labels a device may be a replica: these have a card's plain name unless the plugin renames
 * them, and its chart leaves GPU Feature Discovery off
 * (NVIDIA/k8s-device-plugin@v0.20.0:deployments/helm/nvidia-device-plugin/values.yaml). */
static enum isolation isolation_of(const struct facts *facts)
{
    if (facts->doubt != DOUBT_NONE || (facts->shared && !facts->mps))
        return ISOLATION_NONE;
    return facts->shared ? ISOLATION_HOOK : ISOLATION_HARDWARE;
}

static enum sharing sharing_of(const struct facts *facts)
{
    if (facts->doubt != DOUBT_NONE)
        return SHARING_UNKNOWN;
    return !facts->shared ? SHARING_WHOLE : facts->mps ? SHARING_MPS : SHARING_SLICED;
}

struct devices {
    int64_t usable, all;
};

static bool read_devices(const struct node_view *view, const char *resource,
                         struct devices *ret_devices, GError **error)
{
    const char *usable = string_pairs_get(&view->allocatable, resource);
    int64_t capacity, allocatable = NVIDIA_DEVICES_MAX;

    if (!quantity_parse(string_pairs_get(&view->capacity, resource), &capacity, error) ||
        (usable && !quantity_parse(usable, &allocatable, error)))
        return fail_within(error, "node '%s': %s: ", view->name, resource);
    if (capacity > NVIDIA_DEVICES_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "node '%s': capacity %s is %" G_GINT64_FORMAT "; it must not be above %d",
                         view->name, resource, capacity, NVIDIA_DEVICES_MAX);
    *ret_devices = (struct devices){MIN(capacity, allocatable), capacity};
    return true;
}

static void add_pool(const struct node_view *view, const char *resource,
                     const struct devices *devices, const struct dialect_options *options,
                     struct topology *topology, char **ret_warning)
{
    const int64_t reported = devices->usable;
    struct facts facts = read_facts(view, resource, options, topology, ret_warning);
    enum withheld why;
    const uint64_t change = tell_change(view, resource, &facts, options, reported, ret_warning);
    const int64_t divided = doubt_facts(view, resource, &facts, devices->all, ret_warning);
    const int64_t usable = withhold(view, &facts, reported, &why, ret_warning);
    if (!facts.shared && facts.doubt != DOUBT_UNSAID)
        facts.replicas = 1;
    else if (facts.replicas <= 1)
        facts.replicas = 0;
    const bool mps = facts.shared && facts.mps;
    const bool fails_several =
        facts.shared &&
        (mps ? !options->nvidia_mps_several : options->nvidia_fail_requests_greater_than_one);
    topology->pools[topology->n_pools++] = (struct pool){
        .resource = topology_keep(topology, resource),
        .model = facts.doubt != DOUBT_NONE ? NULL : (char *)facts.model,
        .capacity = change ? 0 : (int32_t)usable,
        .reported = (int32_t)reported,
        .withheld = change ? WITHHELD_CHANGE : why,
        .change = change,
        .later = (int32_t)usable,
        .later_withheld = why,
        .at_once = fails_several ? 1 : 0,
        .memory = mps && facts.replicas > 0 ? facts.memory / facts.replicas : facts.memory,
        .sharing = sharing_of(&facts),
        .shared = facts.shared,
        .doubt = facts.doubt,
        .replicas = (int32_t)facts.replicas,
        .divided = (int32_t)divided,
        .isolation = isolation_of(&facts),
    };
}

bool nvidia_read_pools(const struct node_view *view, const struct dialect_options *options,
                          struct topology *ret_topology, char **ret_warning, GError **error)
{
    struct topology *topology = ret_topology;
    struct devices devices;

    if (is_foreign_node(view))
        return false;
    for (size_t i = 0; i < view->capacity.n; i++) {
        const char *resource = view->capacity.items[i].key;
        if (!nvidia_is_device(resource))
            continue;
        if (!read_devices(view, resource, &devices, error))
            return false;
        const char *capacity = view->capacity.items[i].value;
        if (g_str_equal(capacity, "0"))
            continue;
        if (topology->n_pools == NODE_POOLS_MAX)
            return fail_with(error, GPULEDGER_ERROR_LIMIT,
                             "node '%s': it has more than %d resources of NVIDIA's plugin",
                             view->name, NODE_POOLS_MAX);
        add_pool(view, resource, &devices, options, topology, ret_warning);
    }
    if (topology->n_pools == 0)
        return false;
    topology->memory_unit = 1;
    return true;
}

bool nvidia_write_profile(const struct card_profile *profile, struct profile_words *words)
{
    const int64_t replicas = MAX(profile->slots, 1);

    if (profile->memory < MIB || profile->cards * replicas > NVIDIA_DEVICES_MAX)
        return false;
    profile_words_amount(words, GPU, profile->cards * replicas);
    profile_words_add(words, WORD_LABEL, GPU ".count",
                      g_strdup_printf("%" G_GINT64_FORMAT, profile->cards));
    profile_words_add(words, WORD_LABEL, GPU ".replicas",
                      g_strdup_printf("%" G_GINT64_FORMAT, replicas));
    profile_words_add(words, WORD_LABEL, LABEL_MEMORY,
                      g_strdup_printf("%" G_GINT64_FORMAT, profile->memory / MIB));
    if (profile->model)
        profile_words_add(words, WORD_LABEL, GPU ".product", g_strdup(profile->model));
    return true;
}
