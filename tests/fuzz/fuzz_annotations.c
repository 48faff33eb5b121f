/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever nodes, pods and ConfigMaps say in their labels, annotations and amounts: every dialect
 * reads it or says why not, and the ledger stays right.
 *
 * The input is lines. Their first letter says where "key=value" goes: c capacity (all of it
 * allocatable), b label, n annotation of the node; a annotation of the pod, l limit, i limit of an init container,
 * s limit of a sidecar, each in a container of its own, t limit of the one container that has
 * several; d data of the ConfigMap; p the pod's phase.
 */
#include "core/ledger.h"
#include "target.h"

#include <gpuledger/dialect.h>
#include <gpuledger/mig.h>
#include <string.h>

#define LINES_MAX 64

struct input {
    struct string_pair pairs[256][LINES_MAX]; /* by letter */
    size_t n[256];
    struct container_view containers[3 * LINES_MAX + 1];
    char names[3 * LINES_MAX + 1][8];
    size_t n_containers;
};

static struct string_pairs pairs_of(const struct input *input, char letter)
{
    return (struct string_pairs){input->pairs[(unsigned char)letter],
                                 input->n[(unsigned char)letter]};
}

static void add_containers(struct input *input, char letter)
{
    for (size_t i = 0; i < input->n[(unsigned char)letter]; i++) {
        char *name = input->names[input->n_containers];
        g_snprintf(name, sizeof input->names[0], "%c%u", letter, (unsigned)i);
        input->containers[input->n_containers++] = (struct container_view){
            .name = name,
            .init = letter != 'l',
            .sidecar = letter == 's',
            .limits = {&input->pairs[(unsigned char)letter][i], 1},
        };
    }
}

static void split(struct input *input, char **lines)
{
    for (char **line = lines; *line; line++) {
        char *value = strchr(*line, '=');
        size_t *n = &input->n[(unsigned char)**line];

        if (!value || value == *line || *n == LINES_MAX)
            continue;
        *value++ = '\0';
        input->pairs[(unsigned char)**line][(*n)++] = (struct string_pair){*line + 1, value};
    }
    if (input->n['t'] > 0)
        input->containers[input->n_containers++] =
            (struct container_view){.name = "t", .limits = {input->pairs['t'], input->n['t']}};
    add_containers(input, 'l');
    add_containers(input, 'i');
    add_containers(input, 's');
}

static void check_topology(const struct topology *topology)
{
    FUZZ_CHECK(topology->dialect && topology->memory_unit > 0);
    FUZZ_CHECK(topology->n_cards >= 0 && topology->n_cards <= NODE_CARDS_MAX);
    FUZZ_CHECK(topology->n_cards > 0 || topology->n_pools > 0);
    for (int32_t i = 0; i < topology->n_cards; i++)
        FUZZ_CHECK(topology->cards[i].memory >= 0 && topology->cards[i].memory <= AMOUNT_BYTES_MAX);
}

static void check_allocation(const struct allocation *allocation)
{
    FUZZ_CHECK(allocation->dialect && allocation->n_shares > 0);
    FUZZ_CHECK(allocation->assume_time_ns >= 0 && allocation->match_amount >= 0);
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        FUZZ_CHECK(share->memory.value >= 0 && share->core >= 0);
        FUZZ_CHECK(share->card >= CARD_UNKNOWN && share->card < NODE_CARDS_MAX);
    }
}

static void read_health(struct ledger *ledger, const struct input *input,
                        const struct dialect *dialect)
{
    struct configmap_view view = {.name = "health", .data = pairs_of(input, 'd')};
    g_autoptr(GArray) indices = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_autofree char *warning = NULL;

    if (!dialect->read_health)
        return;
    dialect->read_health(&view, indices, &warning);
    for (guint i = 0; i < indices->len; i++) {
        int32_t index = g_array_index(indices, int32_t, i);
        FUZZ_CHECK(index >= 0 && index < NODE_CARDS_MAX);
    }
    ledger_set_unhealthy(ledger, "n", (const int32_t *)(void *)indices->data, indices->len);
}

/* A part of a card whose memory is oversubscribed is given of what it really has. Read back it is a part
 * of all that the card offers: more, never less. */
static bool is_as_much(const struct node *node, const struct card *card, const struct share *back,
                       const struct share *ours)
{
    const int64_t bytes = card_bytes(node, card, ours->memory);

    if (card && card->physical > 0 && back->memory.kind == AMOUNT_THOUSANDTHS &&
        card->physical / 1000 * back->memory.value <= bytes &&
        bytes <= card_bytes(node, card, back->memory))
        return true;
    return card_bytes(node, card, back->memory) == bytes;
}

static bool is_the_same(const struct node *node, const struct share *a, const struct share *b)
{
    const struct card *card = node_share_card(node, b);

    return (card ? node_share_card(node, a) == card : share_same_place(a, b)) &&
           a->container == b->container && a->core == b->core && a->exclusive == b->exclusive &&
           a->init == b->init && a->devices == b->devices &&
           (!card || !card->mig || mig_place_equal(a->place, b->place)) &&
           is_as_much(node, card, a, b);
}

/* What the words of its dialect say of the pod. */
static struct pod_reading reading_of(const struct allocation *allocation,
                                     const struct dialect *dialect)
{
    for (uint32_t i = 0; i < allocation_own(allocation)->n_readings; i++) {
        if (allocation_own(allocation)->readings[i].dialect == dialect)
            return allocation_own(allocation)->readings[i];
    }
    return (struct pod_reading){.dialect = allocation->dialect, .distrust = allocation->distrust,
                                .waiting = allocation->waiting,
                                .match_amount = allocation->match_amount,
                                .assume_time_ns = allocation->assume_time_ns};
}

/* Amounts may have been settled for the card meanwhile, a node side that mistakes no pod for another
 * needs neither times nor what it matches by, some count in seconds, and some put init containers
 * first. */
static bool holds_the_same(const struct allocation *back, const struct allocation *ours)
{
    const struct pod_reading reading = reading_of(back, ours->dialect);
    bool taken[REQUEST_ASKS_MAX] = {0};
    uint32_t n = 0;

    if (reading.dialect != ours->dialect || back->oversubscribes != ours->oversubscribes ||
        reading.distrust != DISTRUST_NONE || reading.waiting != ours->waiting ||
        (ours->waiting && (reading.match_amount != ours->match_amount ||
                           ABS(reading.assume_time_ns - ours->assume_time_ns) >= 1000000000)))
        return false;
    for (uint32_t i = 0; i < back->n_shares; i++) {
        uint32_t j = 0;
        /* Where the node serves several that could be meant, all of these count. */
        if (allocation_share_dialect(back, &back->shares[i]) != ours->dialect)
            continue;
        n++;
        while (j < ours->n_shares &&
               (taken[j] || !is_the_same(ours->node, &back->shares[i], &ours->shares[j])))
            j++;
        if (j == ours->n_shares)
            return false;
        taken[j] = true;
    }
    return n == ours->n_shares;
}

/* A pod that is told yes can be reserved, described, and read back. */
static void bind(struct ledger *ledger, const struct pod_view *pod, const struct request *request,
                 const struct dialect_options *options)
{
    struct admission_query query = {request, policies, options, 1, 1};
    struct placement placement;
    enum reason reason, other;
    const struct node *node = ledger_node(ledger, "n");
    enum admission admission = dialect_admit(node, &query, &placement, &reason);

    FUZZ_CHECK(dialect_admit(node, &query, NULL, &other) == admission && other == reason);
    FUZZ_CHECK((admission == ADMISSION_NO) == (reason != REASON_NONE));
    if (admission != ADMISSION_YES)
        return;
    struct allocation *allocation = allocation_new("new", "ml", "new", placement.n_shares);
    allocation->dialect = placement.request->dialect;
    allocation->terms = terms_ref(placement.request->terms);
    allocation->oversubscribes = allocation->terms && allocation->terms->oversubscribes;
    allocation->waiting = allocation->dialect->in_flight != NULL;
    allocation->match_amount = placement.request->match_amount;
    allocation->assume_time_ns = 1;
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof *placement.shares);
    allocation = ledger_reserve(ledger, "n", allocation, &reason);
    FUZZ_CHECK(allocation);
    FUZZ_CHECK(ledger_verify(ledger, NULL));

    g_auto(annotations) written = {0};
    struct string_pair pairs[ANNOTATIONS_MAX + LINES_MAX];
    struct pod_view bound = *pod;
    allocation->dialect->write_annotations(allocation, node, &written);
    for (size_t i = 0; i < written.n; i++)
        pairs[i] = (struct string_pair){written.items[i].key, written.items[i].value};
    /* A Binding adds to what the pod says. */
    size_t n = written.n;
    for (size_t i = 0; i < pod->annotations.n; i++) {
        const struct string_pairs ours = {pairs, written.n};
        if (!string_pairs_get(&ours, pod->annotations.items[i].key))
            pairs[n++] = pod->annotations.items[i];
    }
    bound.uid = bound.name = "new";
    bound.phase = "Pending";
    bound.node_name = "n";
    bound.annotations = (struct string_pairs){pairs, n};
    struct allocation *back = dialect_read_allocation(&bound, options, NULL);
    FUZZ_CHECK(back);
    back = ledger_foresee(node, back);
    FUZZ_CHECK(holds_the_same(back, allocation));
    bool edited;
    g_autoptr(allocation) next = dialect_continue(allocation, back, &edited);
    FUZZ_CHECK(!edited);
    next = ledger_foresee(node, g_steal_pointer(&next));
    FUZZ_CHECK(holds_the_same(next, allocation));
}

static void play(const struct input *input, const struct dialect_options *options)
{
    struct node_view node = {
        .name = "n",
        .capacity = pairs_of(input, 'c'),
        .allocatable = pairs_of(input, 'c'),
        .labels = pairs_of(input, 'b'),
        .annotations = pairs_of(input, 'n'),
    };
    struct string_pairs phase = pairs_of(input, 'p');
    struct pod_view pod = {
        .ns = "ml",
        .name = "old",
        .uid = "old",
        .phase = phase.n ? phase.items[0].value : NULL,
        .annotations = pairs_of(input, 'a'),
        .containers = input->containers,
        .n_containers = input->n_containers,
    };
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL, *pod_warning = NULL, *silence = NULL;
    struct heartbeat heartbeat;
    g_autoptr(GError) error = NULL, pod_error = NULL;
    g_autoptr(ledger) ledger = ledger_new();

    bool shared = dialect_read_topology(&node, options, topology, &warning, &error);
    FUZZ_CHECK(!shared || !error);
    if (shared)
        check_topology(topology);
    ledger_set_topology(ledger, "n", shared ? topology : NULL);
    dialect_read_heartbeat(&node, &heartbeat, &silence);
    FUZZ_CHECK(!heartbeat.dialect || heartbeat.said_ns > 0);
    for (size_t i = 0; dialects[i]; i++)
        read_health(ledger, input, dialects[i]);

    struct allocation *allocation = dialect_read_allocation(&pod, options, &pod_warning);
    if (allocation) {
        check_allocation(allocation);
        ledger_put(ledger, "n", allocation);
    }
    FUZZ_CHECK(ledger_verify(ledger, NULL));
    g_autoptr(request) request = dialect_read_request(&pod, options, &pod_error);
    FUZZ_CHECK(!request || !pod_error);
    if (request)
        bind(ledger, &pod, request, options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dialect_options options = {0};
    struct dialect_options lenient = {
        .gpushare_any_on_single_card = true,
        .tencent_order = TENCENT_ORDER_BYTES_NVML,
        .tencent_unchecked = true,
    };
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree struct input *input = g_new0(struct input, 1);

    split(input, lines);
    play(input, &options);
    play(input, &lenient);
    return 0;
}
