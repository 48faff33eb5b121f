/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of filter costs, as it counts it itself (policy/effort/work_meter.h), for pods that are made to be dear: of
 * every dialect, with many containers, unequal amounts, several cards each, long lists, init containers, on
 * nodes of which others hold parts. It is at most DEARER times what the cheapest pod of the dialect costs,
 * and a node that refuses a pod for the work takes it, or tells why not, once the work is no bound.
 */
#include "chance.h"
#include "policy/effort/work_meter.h"
#include "store/feasibility.h"

#include <string.h>

#define DEARER 5
#define NODES 1000
#define GIB (INT64_C(1) << 30)
#define CARD_BYTES (16 * GIB)
#define CONTAINERS_MAX 64
#define WORDS_MAX 4 /* of one container */

static const struct dialect *row; /* the one under test */
static struct store_options options;
static struct store *asked;
static struct moment now = {.now_ns = INT64_C(1767225600000000000)};

/* --- nodes ---------------------------------------------------------------------------------- */

static void add_pair(GArray *pairs, const char *key, const char *value)
{
    const struct string_pair pair = {g_intern_string(key), g_intern_string(value)};

    g_array_append_val(pairs, pair);
}

static struct string_pairs pairs_of(const GArray *pairs)
{
    return (struct string_pairs){(const struct string_pair *)(void *)pairs->data, pairs->len};
}

static struct string_pairs words_at(const struct profile_words *words, enum word_place place,
                                    GArray *pairs)
{
    for (size_t i = 0; i < words->n; i++) {
        if (words->items[i].place == place && words->items[i].key)
            add_pair(pairs, words->items[i].key, words->items[i].value);
    }
    return pairs_of(pairs);
}

/* The node side's own words; one that has none for cards gives devices. */
static void add_node(const char *name, int32_t n_cards, const char *model)
{
    struct card_profile profile = {row, n_cards, CARD_BYTES, 0, model};
    g_autoptr(GArray) labels = g_array_new(FALSE, FALSE, sizeof(struct string_pair));
    g_autoptr(GArray) annotations = g_array_new(FALSE, FALSE, sizeof(struct string_pair));
    g_autoptr(GArray) resources = g_array_new(FALSE, FALSE, sizeof(struct string_pair));
    struct profile_words words = {0};
    struct node_view view = {.name = name};

    if (!row->write_profile)
        profile_words_amount(&words, row->resources[0], n_cards);
    else if (!row->write_profile(&profile, &options.dialects, &words)) {
        profile.model = NULL;
        row->write_profile(&profile, &options.dialects, &words);
    }
    view.labels = words_at(&words, WORD_LABEL, labels);
    view.annotations = words_at(&words, WORD_ANNOTATION, annotations);
    view.capacity = view.allocatable = words_at(&words, WORD_RESOURCE, resources);
    store_apply_node(asked, &view);
    profile_words_clear(&words);
}

/* Others hold parts of its cards. */
static void fill(const char *name)
{
    struct ledger *ledger = store_lock(asked);
    const struct node *node = ledger_node(ledger, name);

    for (int32_t i = 0; node && i < node->n_cards; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%d", name, i);
        struct allocation *held = allocation_new(uid, "others", uid, 1);
        held->dialect = row;
        held->state = ALLOCATION_CONFIRMED;
        held->shares[0] = (struct share){.memory = {chance_between(0, CARD_BYTES), AMOUNT_BYTES},
                                         .card = node->cards[i].index,
                                         .core = (int32_t)chance_between(0, CORE_WHOLE)};
        ledger_put(ledger, name, held);
    }
    store_unlock(asked);
}

static char *node_name(int i)
{
    return g_strdup_printf("n%d", i);
}

static void add_nodes(void)
{
    const int32_t n_cards = 1 << chance_below(5);
    const bool filled = chance_percent(70);

    for (int i = 0; i < NODES; i++) {
        g_autofree char *name = node_name(i);
        g_autofree char *model = g_strdup_printf("NVIDIA Model %u", chance_below(8));
        add_node(name, n_cards, model);
        if (filled)
            fill(name);
    }
}

/* --- pods ----------------------------------------------------------------------------------- */

struct pod {
    struct pod_view view;
    struct container_view containers[CONTAINERS_MAX];
    GArray *limits[CONTAINERS_MAX];
    GArray *annotations;
};

static void add_amount(GArray *limits, const char *resource, int64_t amount)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, amount);

    if (resource)
        add_pair(limits, resource, text);
}

/* One card, or a part of one, or a device. */
static void ask(GArray *limits, int64_t count, int64_t part)
{
    const struct dialect_words *words = &row->words;
    const int64_t unit = words->memory_unit ? words->memory_unit : GIB;

    if (words->memory || words->percent) {
        add_amount(limits, words->count, count);
        if (words->memory)
            add_amount(limits, words->memory, MAX(CARD_BYTES / unit * part / 1000, 1));
        else
            add_amount(limits, words->percent, MAX(part / 10, 1));
        if (words->core && (words->core_needed || chance_percent(30)))
            add_amount(limits, words->core, MAX(part / 10, 1));
    } else {
        add_amount(limits, words->whole ? words->whole : row->resources[0],
                   MAX(words->whole_units, 1) * count);
    }
}

static struct pod *pod_new(void)
{
    struct pod *pod = g_new0(struct pod, 1);

    pod->view =
        (struct pod_view){.ns = "ml", .name = "p", .uid = "uid-p", .containers = pod->containers};
    pod->annotations = g_array_new(FALSE, FALSE, sizeof(struct string_pair));
    return pod;
}

static GArray *add_container(struct pod *pod)
{
    const size_t i = pod->view.n_containers++;

    pod->limits[i] = g_array_new(FALSE, FALSE, sizeof(struct string_pair));
    pod->containers[i].name = "c";
    return pod->limits[i];
}

static void finish(struct pod *pod)
{
    for (size_t i = 0; i < pod->view.n_containers; i++)
        pod->containers[i].limits = pairs_of(pod->limits[i]);
    pod->view.annotations = pairs_of(pod->annotations);
}

static void pod_free(struct pod *pod)
{
    for (size_t i = 0; i < pod->view.n_containers; i++)
        g_array_unref(pod->limits[i]);
    g_array_unref(pod->annotations);
    g_free(pod);
}

static struct pod *honest_pod(void)
{
    struct pod *pod = pod_new();

    ask(add_container(pod), 1, 1);
    finish(pod);
    return pod;
}

/* As long as it may be; one word in some lists is the models' own. */
static void add_list(struct pod *pod, const char *key)
{
    g_autoptr(GString) text = g_string_new(chance_percent(50) ? "Model" : "none");

    for (int i = 1; i < 64; i++)
        g_string_append_printf(text, ",word-%u", chance_below(1000000));
    add_pair(pod->annotations, key, text->str);
}

static const char *const lists[] = {
    "nvidia.com/use-gputype",   "nvidia.com/nouse-gputype",    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid", "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid",
    "gpuledger.io/gpu-models",  "gpuledger.io/gpu-models-not",
};

/* Sizes that differ by little, and fit by two, three or not at all. */
static struct pod *hostile_pod(void)
{
    struct pod *pod = pod_new();
    const int n = (int)chance_between(1, CONTAINERS_MAX);
    const int64_t about = 1000 / chance_between(1, 8) + chance_between(-20, 20);
    const uint32_t counts = chance_below(4) + 1, inits = chance_percent(20) ? 30 : 0;

    for (int i = 0; i < n; i++) {
        ask(add_container(pod), chance_between(1, counts),
            CLAMP(about + (chance_percent(80) ? i : -3 * i), 1, 1000));
        pod->containers[i].init = chance_percent(inits);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        if (chance_percent(30))
            add_list(pod, lists[i]);
    }
    if (chance_percent(20))
        add_pair(pod->annotations, "gpuledger.io/containers",
                 chance_percent(50) ? "same-card" : "different-cards");
    if (chance_percent(20))
        add_pair(pod->annotations, "nvidia.com/numa-bind", "true");
    if (chance_percent(30))
        add_pair(pod->annotations, "gpuledger.io/policy", chance_percent(50) ? "spread" : "oc");
    finish(pod);
    return pod;
}

/* --- calls ---------------------------------------------------------------------------------- */

struct call {
    int64_t work;
    int n_limited; /* nodes of which nothing is known */
    enum reason reasons[NODES];
};

/* False: the pod is refused at once. */
static bool call_filter(const struct pod *pod, int64_t left, struct call *ret_call)
{
    g_autoptr(request) request = dialect_read_request(&pod->view, &options.dialects, NULL);
    struct feasibility question;

    if (!request)
        return false;
    struct ledger *ledger = store_lock(asked);
    *ret_call = (struct call){0};
    feasibility_init(&question, asked,
                     &(struct feasibility_about){&pod->view, request, &now, .of_many = true});
    question.work.left = left;
    for (int i = 0; i < NODES; i++) {
        g_autofree char *name = node_name(i);
        ret_call->reasons[i] = feasibility_ask(&question, ledger_node(ledger, name), NULL);
        ret_call->n_limited += ret_call->reasons[i] == REASON_WORK_LIMIT;
    }
    ret_call->work = question.work.done;
    feasibility_clear(&question);
    store_unlock(asked);
    return true;
}

/* Bind asks about one node, and finds what filter has found. */
static void check_bind(const struct pod *pod, const struct call *call)
{
    g_autoptr(request) request = dialect_read_request(&pod->view, &options.dialects, NULL);
    const int i = (int)chance_below(NODES);
    g_autofree char *name = node_name(i);
    struct ledger *ledger = store_lock(asked);
    struct feasibility question;
    struct placement placement;

    feasibility_init(&question, asked, &(struct feasibility_about){&pod->view, request, &now});
    const enum reason reason = feasibility_ask(&question, ledger_node(ledger, name), &placement);
    HOLDS(call->reasons[i] == REASON_WORK_LIMIT ||
              (reason == REASON_NONE) == (call->reasons[i] == REASON_NONE),
          "filter says %s, bind %s", reason_info(call->reasons[i])->code,
          reason_info(reason)->code);
    feasibility_clear(&question);
    store_unlock(asked);
}

static unsigned n_asked, n_limited, n_taken;
static double dearest;

static void try_pods(void)
{
    struct pod *honest = honest_pod();
    struct call cheap, dear, whole;

    HOLDS(call_filter(honest, WORK_CALL, &cheap), "%s: the cheapest pod is refused", row->name);
    for (int i = 0; i < 10 && chance_next_event(); i++) {
        struct pod *hostile = hostile_pod();
        if (call_filter(hostile, WORK_CALL, &dear)) {
            HOLDS(dear.work <= DEARER * cheap.work,
                  "%s: %" G_GINT64_FORMAT " instead of %" G_GINT64_FORMAT ", %zu containers",
                  row->name, dear.work, cheap.work, hostile->view.n_containers);
            dearest = MAX(dearest, (double)dear.work / (double)cheap.work);
            n_asked++;
            n_limited += dear.n_limited > 0;
            n_taken += dear.reasons[0] == REASON_NONE;
            check_bind(hostile, &dear);
            call_filter(hostile, INT64_C(1) << 40, &whole);
            for (int k = 0; k < NODES; k++)
                HOLDS(dear.reasons[k] == REASON_WORK_LIMIT ||
                          whole.reasons[k] == REASON_WORK_LIMIT ||
                          (dear.reasons[k] == REASON_NONE) == (whole.reasons[k] == REASON_NONE),
                      "%s: %s, after a whole search %s", row->name,
                      reason_info(dear.reasons[k])->code, reason_info(whole.reasons[k])->code);
        }
        pod_free(hostile);
    }
    pod_free(honest);
}

int main(void)
{
    chance_init("work", 200);
    options = (struct store_options){.policy = policies, .patience_ms = 60000};
    while (chance_events() > 0 && chance_next_event()) {
        for (size_t i = 0; dialects[i]; i++) {
            row = dialects[i];
            if (!row->refuse)
                continue;
            asked = store_new(&options);
            add_nodes();
            try_pods();
            store_free(asked);
        }
    }
    g_print("%u calls, at most %.2f times as dear, %u limited, %u taken\n", n_asked, dearest,
            n_limited, n_taken);
    HOLDS(n_limited > 0 && n_taken > 0, "nothing was limited, or taken");
    return 0;
}
