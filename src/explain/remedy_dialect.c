/* SPDX-License-Identifier: Apache-2.0 */
/* The pod asks in another dialect: what each container wants in cards, memory and compute is said in
 * the words of a dialect that some node reads (struct dialect_words). It is told only if that dialect
 * then reads the same, not more and not less. */
#include "core/bytes.h"
#include "base/printable.h"
#include "explain/remedy_search.h"

#define CORE_HUNDREDTH (CORE_WHOLE / 100)
#define AMOUNTS_MAX 3 /* of one container */
#define UNITS_OF_MIB 1000 /* no card has so many GiB */

/* What one container asks for, in nobody's words. */
struct wish {
    size_t container;
    int32_t cards;
    bool whole;
    struct amount memory; /* of each card; not in units of a node; 0: it says nothing of that */
    int32_t core;         /* thousandths of each card */
};

struct wishes {
    size_t n;
    struct wish items[REQUEST_ASKS_MAX];
};

/* --- what is asked for ----------------------------------------------------------------------- */

static bool asks(const struct container_view *container)
{
    const struct string_pairs *pairs =
        container->limits.n ? &container->limits : &container->requests;

    for (size_t i = 0; i < pairs->n; i++) {
        if (search_reads(pairs->items[i].key))
            return true;
    }
    return false;
}

/* NULL: the dialect does not read it. */
static const struct request *find_reading(const struct request *request,
                                          const struct dialect *dialect)
{
    while (request && request->dialect != dialect)
        request = request->alternative;
    return request;
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

/* Whether the ask is for all of its cards. */
static bool is_whole(const struct card_ask *ask)
{
    return ask->exclusive || ask->core >= CORE_WHOLE ||
           (ask->memory.kind == AMOUNT_THOUSANDTHS && ask->memory.value >= 1000 && ask->core == 0);
}

static bool read_ask(struct search *search, const struct card_ask *ask, struct wish *wish)
{
    const char *device = search->query->request->dialect->words.whole;

    wish->cards = ask->count;
    wish->whole = ask->device || is_whole(ask);
    if (ask->device) /* of a part of a card by a name nothing is known but the name */
        return g_strcmp0(ask->device, device) == 0;
    wish->core = ask->core;
    wish->memory = ask->memory;
    if (ask->memory.kind == AMOUNT_NODE_UNITS)
        wish->memory = (struct amount){
            amount_bytes(ask->memory, guess_unit(search, ask->memory.value)), AMOUNT_BYTES};
    return wish->whole || wish->memory.value > 0 || wish->core > 0;
}

/* Each container by itself, as if it were the only one: some dialects add them up. */
static bool read_wishes(struct search *search, struct wishes *ret_wishes)
{
    const struct pod_view *pod = search->query->pod;
    const struct dialect_options *options = &store_options(search->query->copy)->dialects;

    ret_wishes->n = 0;
    for (size_t i = 0; i < pod->n_containers; i++) {
        struct pod_view alone = *pod;
        struct wish wish = {.container = i};
        if (!asks(&pod->containers[i]))
            continue;
        if (pod->containers[i].init || ret_wishes->n == REQUEST_ASKS_MAX)
            return false; /* it ends before the others begin */
        alone.containers = &pod->containers[i];
        alone.n_containers = 1;
        g_autoptr(request) request = dialect_read_request(&alone, options, NULL);
        const struct request *reading = find_reading(request, search->query->request->dialect);
        if (!reading || reading->n_asks != 1 || !read_ask(search, &reading->asks[0], &wish))
            return false;
        ret_wishes->items[ret_wishes->n++] = wish;
    }
    return ret_wishes->n > 0;
}

/* --- in other words -------------------------------------------------------------------------- */

struct amounts {
    size_t n;
    struct string_pair items[AMOUNTS_MAX];
    char texts[AMOUNTS_MAX][24];
};

static void add_amount(struct amounts *amounts, const char *resource, int64_t amount)
{
    char *text = amounts->texts[amounts->n];

    g_snprintf(text, sizeof amounts->texts[0], "%" G_GINT64_FORMAT, amount);
    amounts->items[amounts->n++] = (struct string_pair){resource, text};
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

static bool add_memory(const struct wish *wish, const struct dialect_words *words,
                       const struct node *node, struct amounts *amounts)
{
    const struct card *card = largest_card(node);
    const int64_t unit = words->memory_unit ? words->memory_unit : node->memory_unit;

    if (wish->memory.value == 0)
        return true;
    if (wish->memory.kind == AMOUNT_THOUSANDTHS && words->percent) {
        add_amount(amounts, words->percent, wish->memory.value / 10);
        return true;
    }
    if (!words->memory || !card || unit <= 0)
        return false;
    add_amount(amounts, words->memory, card_bytes(node, card, wish->memory) / unit);
    return true;
}

/* As much of the compute as of the memory, where both must be said and the pod says one. */
static int64_t core_in_proportion(const struct wish *wish, const struct node *node)
{
    const struct card *card = largest_card(node);
    const int64_t mib = card_bytes(node, card, wish->memory) / MIB;
    const int64_t all = MAX(card->memory / MIB, 1);

    return CLAMP((100 * mib + all - 1) / all, 1, 99);
}

/* What to write for the node, as near as its words come; false: they cannot say it. */
static bool translate(const struct wish *wish, const struct dialect_words *words,
                      const struct node *node, struct amounts *ret_amounts)
{
    int64_t hundredths = wish->core / CORE_HUNDREDTH;

    ret_amounts->n = 0;
    if (wish->whole) {
        if (words->whole)
            add_amount(ret_amounts, words->whole, (int64_t)wish->cards * words->whole_units);
        return words->whole;
    }
    if (words->count)
        add_amount(ret_amounts, words->count, wish->cards);
    if (!add_memory(wish, words, node, ret_amounts))
        return false;
    if (words->core_needed && wish->core == 0)
        hundredths = core_in_proportion(wish, node);
    if (hundredths > 0 && words->core)
        add_amount(ret_amounts, words->core, hundredths);
    return true;
}

/* Whether what is read is what was wished, on every card of the node. */
static bool is_same(const struct wish *wish, const struct card_ask *ask, const struct dialect *dialect,
                    const struct node *node)
{
    if (ask->count != wish->cards)
        return false;
    if (wish->whole || ask->device)
        return wish->whole &&
               (ask->device ? g_strcmp0(ask->device, dialect->words.whole) == 0 : is_whole(ask));
    if (ask->core != wish->core && (wish->core > 0 || !dialect->words.core_needed))
        return false;
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        if (card_bytes(node, card, ask->memory) != card_bytes(node, card, wish->memory))
            return false;
    }
    return true;
}

/* --- trying it ------------------------------------------------------------------------------- */

/* The pod in other words. */
struct wording {
    struct pod_view view;
    struct container_view *containers;
    GPtrArray *pairs;       /* what its containers refer to */
    struct amounts *amounts; /* one for each wish */
};

/* The amounts of a container without those that a dialect reads, and with these. */
static struct string_pairs replace_pairs(struct wording *wording, const struct string_pairs *pairs,
                                         const struct amounts *amounts)
{
    const size_t more = amounts ? amounts->n : 0;
    struct string_pair *items = g_new(struct string_pair, pairs->n + more + 1);
    size_t n = 0;

    g_ptr_array_add(wording->pairs, items);
    for (size_t i = 0; i < pairs->n; i++) {
        if (!search_reads(pairs->items[i].key))
            items[n++] = pairs->items[i];
    }
    for (size_t i = 0; i < more; i++)
        items[n++] = amounts->items[i];
    return (struct string_pairs){items, n};
}

static bool wording_make(struct wording *wording, const struct search *search,
                         const struct wishes *wishes, const struct dialect *dialect,
                         const struct node *node)
{
    const struct pod_view *pod = search->query->pod;
    bool said = true;

    wording->view = *pod;
    wording->containers =
        g_memdup2(pod->containers, pod->n_containers * sizeof *wording->containers);
    wording->view.containers = wording->containers;
    wording->pairs = g_ptr_array_new_with_free_func(g_free);
    wording->amounts = g_new0(struct amounts, wishes->n);
    for (size_t i = 0; i < wishes->n && said; i++) {
        struct container_view *container = &wording->containers[wishes->items[i].container];
        said = translate(&wishes->items[i], &dialect->words, node, &wording->amounts[i]);
        container->limits = replace_pairs(wording, &container->limits, &wording->amounts[i]);
        container->requests = replace_pairs(wording, &container->requests, NULL);
    }
    return said;
}

static void wording_clear(struct wording *wording)
{
    g_free(wording->containers);
    g_free(wording->amounts);
    g_ptr_array_unref(wording->pairs);
}

/* Whether the dialect reads all wishes in it, and the node takes it. */
static bool try_wording(struct search *search, const struct wording *wording,
                        const struct wishes *wishes, const struct dialect *dialect,
                        const struct node *node)
{
    const struct dialect_options *options = &store_options(search->query->copy)->dialects;
    g_autoptr(request) request = dialect_read_request(&wording->view, options, NULL);
    const struct request *reading = find_reading(request, dialect);
    struct feasibility question;

    if (!reading || reading->n_asks != wishes->n)
        return false;
    for (size_t i = 0; i < wishes->n; i++) {
        if (!is_same(&wishes->items[i], &reading->asks[i], dialect, node))
            return false;
    }
    search->tries++;
    search_begin(search, &question, &wording->view, request, 0);
    const bool takes = feasibility_takes(&question, node, NULL);
    feasibility_clear(&question);
    return takes;
}

static struct remedy tell(const struct wording *wording, const struct wishes *wishes,
                          const struct dialect *dialect)
{
    g_autoptr(GString) text = g_string_new("ask in the words of ");
    struct remedy remedy = {.kind = REMEDY_DIALECT, .key = g_strdup(dialect->name)};
    bool proportion = false;

    g_string_append(text, dialect->title);
    remedy.amounts = remedy_amounts_new();
    for (size_t i = 0; i < wishes->n; i++) {
        const struct wish *wish = &wishes->items[i];
        const struct amounts *amounts = &wording->amounts[i];
        const char *name = wording->containers[wish->container].name;
        printable_append(text, "%s%s%s: ", i ? ";" : "", name ? " in container " : "",
                         name ? name : "");
        for (size_t j = 0; j < amounts->n; j++) {
            const struct string_pair *pair = &amounts->items[j];
            const struct remedy_amount row = {g_strdup(name ? name : ""), pair->key,
                                              g_strdup(pair->value)};
            g_array_append_val(remedy.amounts, row);
            printable_append(text, "%s%s: %s", j ? ", " : "", pair->key, pair->value);
        }
        proportion |= !wish->whole && wish->core == 0 && dialect->words.core_needed;
    }
    if (proportion)
        g_string_append(text, " (compute, which it wants named, in proportion to the memory)");
    remedy.text = g_strdup(text->str);
    return remedy;
}

static bool try_dialect(struct search *search, const struct wishes *wishes,
                        const struct dialect *dialect, const struct node *node)
{
    struct wording wording;
    const bool found = wording_make(&wording, search, wishes, dialect, node) &&
                       try_wording(search, &wording, wishes, dialect, node);

    if (found)
        search_add(search, tell(&wording, wishes, dialect), node);
    wording_clear(&wording);
    return found;
}

/* Of each other dialect that some node reads, the first node that takes the pod. */
void search_dialects(struct search *search)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);
    struct wishes wishes;

    if (!read_wishes(search, &wishes))
        return;
    for (size_t i = 0; dialects[i]; i++) {
        bool found = find_reading(search->query->request, dialects[i]);
        for (guint j = 0; j < nodes->len && !found && search_may_try(search); j++) {
            const struct node *node = nodes->pdata[j];
            if (node->present && node_offers(node, dialects[i]) &&
                (!search->only || node == search->only))
                found = try_dialect(search, &wishes, dialects[i], node);
        }
    }
}
