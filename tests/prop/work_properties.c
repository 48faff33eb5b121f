/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of filter costs, as it counts it itself (policy/effort/work_meter.h), for pods that are made to be dear: of
 * every dialect, with many containers, unequal amounts, several cards each, long lists, init containers and
 * sidecars, selectors, tolerations and terms of affinity, on nodes of which others hold parts; and the same of
 * those who foresee what kube-scheduler leaves out, such as a group's places. It is at most DEARER times what the cheapest pod of the dialect costs,
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
#define SELECTOR_MAX 64
#define TOLERATIONS_MAX 1024
#define TERMS_MAX 32
#define MATCHES_MAX 8
#define VALUES_MAX 64

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

static const struct taint_view taint = {"dedicated", "ml", "NoSchedule"};

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
    add_pair(labels, "kubernetes.io/hostname", name);
    add_pair(labels, "zone", "a");
    view.labels = words_at(&words, WORD_LABEL, labels);
    view.taints = &taint;
    view.n_taints = 1;
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
    struct constraints constraints;
    struct string_pair selector[SELECTOR_MAX];
    struct toleration tolerations[TOLERATIONS_MAX];
    struct match_term terms[TERMS_MAX];
    struct match matches[MATCHES_MAX];
    const char *values[VALUES_MAX];
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
    pod->tolerations[0] = (struct toleration){"dedicated", "ml", "NoSchedule", TOLERATION_EQUAL};
    pod->constraints = (struct constraints){.tolerations = pod->tolerations, .n_tolerations = 1};
    pod->view.constraints = &pod->constraints;
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

/* It may be on every node, but that is found out at the very end. */
static void constrain(struct pod *pod)
{
    struct constraints *own = &pod->constraints;

    for (int i = 0; i < VALUES_MAX; i++)
        pod->values[i] = g_intern_static_string("another-zone");
    for (int i = 0; i < MATCHES_MAX; i++)
        pod->matches[i] = (struct match){.key = "zone",
                                         .operator= MATCH_NOT_IN,
                                         .values = pod->values,
                                         .n_values = (size_t)chance_between(1, VALUES_MAX)};
    pod->matches[MATCHES_MAX - 1].key = "kubernetes.io/hostname";
    pod->matches[MATCHES_MAX - 1].operator= MATCH_IN; /* holds nowhere */
    for (int i = 0; i < TERMS_MAX; i++)
        pod->terms[i] = (struct match_term){pod->matches, MATCHES_MAX};
    for (int i = 0; i < SELECTOR_MAX; i++)
        pod->selector[i] = (struct string_pair){"zone", "a"};
    for (int i = 0; i < TOLERATIONS_MAX; i++)
        pod->tolerations[i] = (struct toleration){"another", "x", "NoSchedule", TOLERATION_EQUAL};
    own->n_terms = own->has_affinity = chance_percent(60);
    own->n_terms *= (size_t)chance_between(1, TERMS_MAX);
    pod->terms[own->n_terms > 0 ? own->n_terms - 1 : 0].n = MATCHES_MAX - 1;
    own->terms = pod->terms;
    own->n_tolerations = (size_t)chance_between(1, TOLERATIONS_MAX);
    pod->tolerations[own->n_tolerations - 1].key = NULL;
    pod->tolerations[own->n_tolerations - 1].operator= TOLERATION_EXISTS;
    own->tolerations = pod->tolerations;
    own->selector = (struct string_pairs){pod->selector, chance_below(SELECTOR_MAX)};
    own->overlooked = chance_below(1U << OVERLOOKED_N);
    pod->view.constraints = own;
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
        pod->containers[i].sidecar = pod->containers[i].init && chance_percent(50);
    }
    if (chance_percent(50))
        constrain(pod);
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
    bool foresees; /* whether kube-scheduler asks about the node at all */
    int64_t work;
    int n_limited; /* nodes of which nothing is known */
    int n_taking;
    bool cut;
    enum reason reasons[NODES];
};

static void ask_node(struct feasibility *question, const struct node *node, int i,
                     struct call *call)
{
    if (call->foresees) {
        call->n_taking += feasibility_takes(question, node, NULL);
        return;
    }
    call->reasons[i] = feasibility_ask(question, node, NULL);
    call->n_limited += call->reasons[i] == REASON_WORK_LIMIT;
    call->n_taking += call->reasons[i] == REASON_NONE;
}

/* Of filter, or of one who foresees kube-scheduler. False: the pod is refused at once. */
static bool call(const struct pod *pod, int64_t left, bool foresees, struct call *ret_call)
{
    g_autoptr(request) request = dialect_read_request(&pod->view, &options.dialects, NULL);
    struct feasibility question;

    if (!request)
        return false;
    struct ledger *ledger = store_lock(asked);
    *ret_call = (struct call){.foresees = foresees};
    feasibility_init(
        &question, asked,
        &(struct feasibility_about){GATE_BY_FILTER, &pod->view, request, &now, .of_many = true});
    question.work.left = left;
    for (int i = 0; i < NODES; i++) {
        g_autofree char *name = node_name(i);
        ask_node(&question, ledger_node(ledger, name), i, ret_call);
    }
    ret_call->work = question.work.done;
    ret_call->cut = question.work.cut;
    feasibility_clear(&question);
    store_unlock(asked);
    return true;
}

static bool call_filter(const struct pod *pod, int64_t left, struct call *ret_call)
{
    return call(pod, left, false, ret_call);
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

    feasibility_init(&question, asked,
                     &(struct feasibility_about){GATE_BY_FILTER, &pod->view, request, &now});
    const enum reason reason = feasibility_ask(&question, ledger_node(ledger, name), &placement);
    HOLDS(call->reasons[i] == REASON_WORK_LIMIT ||
              (reason == REASON_NONE) == (call->reasons[i] == REASON_NONE),
          "filter says %s, bind %s", reason_info(call->reasons[i])->code,
          reason_info(reason)->code);
    feasibility_clear(&question);
    store_unlock(asked);
}

static unsigned n_asked, n_limited, n_taken, n_cut;
static double dearest;

static void compare(const struct pod *pod, const struct call *dear, const struct call *cheap)
{
    HOLDS(dear->work <= DEARER * cheap->work,
          "%s: %" G_GINT64_FORMAT " instead of %" G_GINT64_FORMAT ", %zu containers", row->name,
          dear->work, cheap->work, pod->view.n_containers);
    dearest = MAX(dearest, (double)dear->work / (double)cheap->work);
}

/* What the work was no bound for takes as many nodes as filter passes, since the pod may be on each. */
static void foresee(const struct pod *pod, const struct call *cheap)
{
    struct call dear, whole, passed;

    call(pod, WORK_CALL, true, &dear);
    compare(pod, &dear, cheap);
    n_cut += dear.cut;
    if (chance_percent(70))
        return;
    call(pod, INT64_C(1) << 40, true, &whole);
    call(pod, INT64_C(1) << 40, false, &passed);
    HOLDS(whole.cut || whole.n_taking == passed.n_taking, "%s: %d take it, filter passes %d",
          row->name, whole.n_taking, passed.n_taking);
    HOLDS(dear.cut || dear.n_taking == whole.n_taking, "%s: %d take it, after whole searches %d",
          row->name, dear.n_taking, whole.n_taking);
}

static void try_pods(void)
{
    struct pod *honest = honest_pod();
    struct call cheap, foreseen, dear, whole;

    HOLDS(call_filter(honest, WORK_CALL, &cheap), "%s: the cheapest pod is refused", row->name);
    call(honest, WORK_CALL, true, &foreseen);
    for (int i = 0; i < 10 && chance_next_event(); i++) {
        struct pod *hostile = hostile_pod();
        if (call_filter(hostile, WORK_CALL, &dear)) {
            compare(hostile, &dear, &cheap);
            foresee(hostile, &foreseen);
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
    chance_init("work", 80);
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
    g_print("%u calls, at most %.2f times as dear, %u limited, %u foreseen cut short, %u taken\n",
            n_asked, dearest, n_limited, n_cut, n_taken);
    HOLDS(n_limited > 0 && n_taken > 0 && n_cut > n_limited, "nothing was limited, or taken");
    return 0;
}
