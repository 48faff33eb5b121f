/* SPDX-License-Identifier: Apache-2.0 */
/* The pod asks in another dialect: what it wants in cards, memory and compute is said in the words of
 * a dialect that some node reads (struct dialect_words). */
#include "app/remedy_search.h"

#define CORE_HUNDREDTH (CORE_WHOLE / 100)
#define AMOUNTS_MAX 3
#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)
#define UNITS_OF_MIB 1000 /* no card has so many GiB */

/* What the pod asks for, in nobody's words. */
struct wish {
    size_t container;
    int32_t cards;
    bool whole;
    struct amount memory; /* of each card; not in units of a node */
    int32_t core;         /* thousandths of each card */
};

/* --- what is asked for ----------------------------------------------------------------------- */

/* The one container that asks; false: none, several, or one that ends before the others begin. */
static bool find_container(const struct pod_view *pod, size_t *ret_at)
{
    size_t n = 0;

    for (size_t i = 0; i < pod->n_containers; i++) {
        const struct container_view *container = &pod->containers[i];
        const struct string_pairs *pairs =
            container->limits.n ? &container->limits : &container->requests;
        bool asks = false;
        for (size_t j = 0; j < pairs->n; j++)
            asks |= search_reads(pairs->items[j].key);
        if (asks && container->init)
            return false;
        if (asks) {
            *ret_at = i;
            n++;
        }
    }
    return n == 1;
}

/* In a dialect whose unit only nodes know: as its nodes have it, or else by the size, as for them. */
static int64_t guess_unit(struct search *search, int64_t amount)
{
    const struct dialect *dialect = search->query->request->dialect;
    const GPtrArray *nodes = ledger_nodes(search->ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->present && node_offers(node, dialect))
            return node->memory_unit;
    }
    return amount >= UNITS_OF_MIB ? MIB : GIB;
}

static bool read_wish(struct search *search, struct wish *ret_wish)
{
    const struct request *request = search->query->request;
    const struct card_ask *ask = &request->asks[0];
    const char *device = request->dialect->words.whole;

    if (request->n_asks != 1 || !find_container(search->query->pod, &ret_wish->container))
        return false;
    if (ask->device) { /* of a part of a card by a name nothing is known but the name */
        if (g_strcmp0(ask->device, device) != 0)
            return false;
        *ret_wish = (struct wish){
            .container = ret_wish->container, .cards = ask->count, .whole = true};
        return true;
    }
    ret_wish->cards = ask->count;
    ret_wish->core = ask->core;
    ret_wish->whole = ask->exclusive || ask->core >= CORE_WHOLE ||
                      (ask->memory.kind == AMOUNT_THOUSANDTHS && ask->memory.value >= 1000);
    ret_wish->memory = ask->memory;
    if (ask->memory.kind == AMOUNT_NODE_UNITS)
        ret_wish->memory = (struct amount){
            amount_bytes(ask->memory, guess_unit(search, ask->memory.value)), AMOUNT_BYTES};
    return ret_wish->whole || ret_wish->memory.value > 0;
}

/* --- in other words -------------------------------------------------------------------------- */

static int64_t divide_up(int64_t amount, int64_t unit)
{
    return (amount + unit - 1) / unit;
}

static void add_amount(GArray *amounts, const char *resource, int64_t amount)
{
    const struct remedy_amount row = {resource, amount};

    g_array_append_val(amounts, row);
}

/* The largest card, of whose size parts are told. */
static const struct card *largest_card(const struct node *node)
{
    const struct card *largest = NULL;

    for (int32_t i = 0; i < node->n_cards; i++) {
        if (!largest || node->cards[i].memory > largest->memory)
            largest = &node->cards[i];
    }
    return largest;
}

/* What to write for the node; NULL: it cannot be said, or not all of it. */
static GArray *translate(const struct wish *wish, const struct dialect_words *words,
                         const struct node *node)
{
    const struct card *card = largest_card(node);
    const int64_t unit = words->memory_unit ? words->memory_unit : node->memory_unit;
    int64_t hundredths = divide_up(wish->core, CORE_HUNDREDTH);

    if (wish->whole ? !words->whole
                    : !words->memory || !card || card->memory <= 0 || unit <= 0 ||
                          (wish->cards > 1 && !words->count) || (hundredths > 0 && !words->core))
        return NULL;
    GArray *amounts = g_array_new(FALSE, FALSE, sizeof(struct remedy_amount));
    if (wish->whole) {
        add_amount(amounts, words->whole, (int64_t)wish->cards * words->whole_units);
        return amounts;
    }
    const int64_t bytes = card_bytes(node, card, wish->memory);
    if (words->core_needed && hundredths == 0) /* as much of the compute as of the memory */
        hundredths = CLAMP(divide_up(100 * (bytes / MIB), MAX(card->memory / MIB, 1)), 1, 99);
    if (words->count)
        add_amount(amounts, words->count, wish->cards);
    add_amount(amounts, words->memory, divide_up(bytes, unit));
    if (hundredths > 0)
        add_amount(amounts, words->core, hundredths);
    return amounts;
}

/* --- trying it ------------------------------------------------------------------------------- */

/* The amounts of a container without those that a dialect reads, and with these. */
static struct string_pair *replace_pairs(const struct string_pairs *pairs, const GArray *amounts,
                                         char (*texts)[24], size_t *ret_n)
{
    struct string_pair *items = g_new(struct string_pair, pairs->n + amounts->len + 1);

    size_t n = 0;

    for (size_t i = 0; i < pairs->n; i++) {
        if (!search_reads(pairs->items[i].key))
            items[n++] = pairs->items[i];
    }
    for (guint i = 0; i < amounts->len; i++) {
        const struct remedy_amount *one = &g_array_index(amounts, struct remedy_amount, i);
        g_snprintf(texts[i], sizeof texts[i], "%" G_GINT64_FORMAT, one->amount);
        items[n++] = (struct string_pair){one->resource, texts[i]};
    }
    *ret_n = n;
    return items;
}

/* Whether a pod that asks so would go to the node. */
static bool try_amounts(struct search *search, const struct wish *wish, const GArray *amounts,
                        const struct dialect *dialect, const struct node *node)
{
    const struct pod_view *pod = search->query->pod;
    const struct dialect_options *options = &store_options(search->query->copy)->dialects;
    g_autofree struct container_view *containers =
        g_memdup2(pod->containers, pod->n_containers * sizeof *containers);
    struct container_view *container = &containers[wish->container];
    struct pod_view changed = *pod;
    g_autoptr(GArray) nothing = g_array_new(FALSE, FALSE, sizeof(struct remedy_amount));
    char texts[AMOUNTS_MAX][24];
    struct judge judge;

    g_autofree struct string_pair *limits =
        replace_pairs(&container->limits, amounts, texts, &container->limits.n);
    g_autofree struct string_pair *requests =
        replace_pairs(&container->requests, nothing, texts, &container->requests.n);
    container->limits.items = limits;
    container->requests.items = requests;
    changed.containers = containers;
    g_autoptr(request) request = dialect_read_request(&changed, options, NULL);
    const struct request *reading = request;
    while (reading && reading->dialect != dialect)
        reading = reading->alternative;
    if (!reading)
        return false;
    /* Options may give units another size: then it is not what was asked for. */
    const struct card *card = largest_card(node);
    const struct card_ask *ask = &reading->asks[0];
    if (!wish->whole && card_bytes(node, card, ask->memory) < card_bytes(node, card, wish->memory))
        return false;
    search->tries++;
    judge_init(&judge, search->query->copy, &changed, request, &search->moment);
    const bool takes = judge_takes(&judge, node, NULL);
    judge_clear(&judge);
    return takes;
}

static char *tell_amounts(const GArray *amounts)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < amounts->len; i++) {
        const struct remedy_amount *one = &g_array_index(amounts, struct remedy_amount, i);
        g_string_append_printf(text, "%s%s: %" G_GINT64_FORMAT, i ? ", " : "", one->resource,
                               one->amount);
    }
    return g_string_free(text, FALSE);
}

static bool try_dialect(struct search *search, const struct wish *wish,
                        const struct dialect *dialect, const struct node *node)
{
    g_autoptr(GArray) amounts = translate(wish, &dialect->words, node);
    const char *name = search->query->pod->containers[wish->container].name;

    if (!amounts || !try_amounts(search, wish, amounts, dialect, node))
        return false;
    g_autofree char *told = tell_amounts(amounts);
    search_add(search,
               (struct remedy){.kind = REMEDY_DIALECT,
                               .container = g_strdup(name ? name : ""),
                               .key = g_strdup(dialect->name),
                               .text = g_strdup_printf("ask in the words of %s%s%s: %s",
                                                       dialect->title, name ? " in container " : "",
                                                       name ? name : "", told),
                               .amounts = g_steal_pointer(&amounts)},
               node);
    return true;
}

/* Whether the pod is read so already. */
static bool is_spoken(const struct request *request, const struct dialect *dialect)
{
    for (; request; request = request->alternative) {
        if (request->dialect == dialect)
            return true;
    }
    return false;
}

/* Of each other dialect that some node reads, the first node that takes the pod. */
void search_dialects(struct search *search)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);
    struct wish wish = {0};

    if (!read_wish(search, &wish))
        return;
    for (size_t i = 0; dialects[i]; i++) {
        bool found = is_spoken(search->query->request, dialects[i]);
        for (guint j = 0; j < nodes->len && !found && search_may_try(search); j++) {
            const struct node *node = nodes->pdata[j];
            if (node->present && node_offers(node, dialects[i]) &&
                (!search->only || node == search->only))
                found = try_dialect(search, &wish, dialects[i], node);
        }
    }
}
