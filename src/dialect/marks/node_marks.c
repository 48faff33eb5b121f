/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/marks/node_marks.h"

#include "core/bytes.h"
#include "dialect/marks/card_order.h"
#include "dialect/marks/cordoned_cards.h"
#include "dialect/warning.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define PRESSED_PERCENT 95
#define ANY "any"
#define BEST_EFFORT 2 /* of the classes */
#define POLICY_LABEL "gpuledger.io/policy"

/* One item's say about one card; false: it cannot be understood. */
typedef bool (*mark)(struct topology_card *card, const char *value);

static bool make_exclusive(struct topology_card *card, const char *value)
{
    card->slots = 1;
    return !value;
}

static bool set_class(struct topology_card *card, const char *value)
{
    static const char *const classes[] = {"fixed:", "equal:", "best-effort:"};
    guint64 slots;

    for (size_t i = 0; value && i < G_N_ELEMENTS(classes); i++) {
        if (!g_str_has_prefix(value, classes[i]))
            continue;
        if (!g_ascii_string_to_unsigned(value + strlen(classes[i]), 10, 1, NODE_SLOTS_MAX, &slots,
                                        NULL))
            return false;
        card->slots = (int32_t)slots;
        card->best_effort = i == BEST_EFFORT;
        card->parts = i == BEST_EFFORT ? 0 : card->slots;
        return true;
    }
    return false;
}

/* After a machine has moved to other hardware, say. */
static bool set_former(struct topology_card *card, const char *value)
{
    card->former_key = value && *value ? card_key(value) : 0;
    return card->former_key != 0;
}

static bool set_physical(struct topology_card *card, const char *value)
{
    int64_t bytes;

    if (!value || !quantity_parse(value, &bytes, NULL) || bytes < MIB || bytes > AMOUNT_BYTES_MAX)
        return false;
    card->physical = bytes;
    return true;
}

static bool set_use(struct topology_card *card, const char *value)
{
    guint64 percent;

    if (!value || !g_ascii_string_to_unsigned(value, 10, 0, 100, &percent, NULL))
        return false;
    card->pressed = percent >= PRESSED_PERCENT;
    return true;
}

static const struct {
    const char *key;
    const char *example;
    mark apply;
    enum closure otherwise; /* of cards of which it says what cannot be read, or says two things */
    bool state;             /* of that machine alone (struct node_view, as_new) */
} marks[] = {
    {"gpuledger.io/share-class", "0=fixed:4,1=equal:4,2=best-effort:4", set_class, CLOSURE_CLASS},
    {"gpuledger.io/exclusive-cards", "0,2", make_exclusive},
    {"gpuledger.io/physical-memory", "0=16Gi,*=24Gi", set_physical},
    {"gpuledger.io/memory-in-use", "0=97,*=20", set_use, .state = true},
    {"gpuledger.io/former-uuids", "0=GPU-5f6d,1=GPU-0a1b", set_former},
};

/* What an annotation says of cards, item by item. */
struct saying {
    struct topology *topology;
    mark apply;
    enum closure otherwise;
    bool named[NODE_CARDS_MAX], all; /* what has been said of them */
};

static void close_cards(struct saying *saying, guint64 first, guint64 last)
{
    for (guint64 i = first; i < last; i++) {
        if (saying->otherwise != CLOSURE_NONE)
            saying->topology->cards[i].closure = saying->otherwise;
    }
}

static bool apply_to(struct saying *saying, guint64 first, guint64 last, const char *value)
{
    for (guint64 i = first; i < last; i++) {
        struct topology_card card = saying->topology->cards[i];
        if (!saying->apply(&card, value))
            return false;
        saying->topology->cards[i] = card;
    }
    return first < last;
}

/* "3" or "*", and what follows a '='. What is said of a card goes before what is said of all. */
static bool apply_item(struct saying *saying, const char *item, bool all)
{
    const char *sign = strchr(item, '=');
    g_autofree char *index = sign ? g_strndup(item, (gsize)(sign - item)) : g_strdup(item);
    guint64 first = 0, last = (guint64)saying->topology->n_cards;

    if (g_str_equal(index, "*") != all)
        return true;
    if (!all) {
        if (!g_ascii_string_to_unsigned(index, 10, 0, NODE_CARDS_MAX - 1, &first, NULL)) {
            close_cards(saying, 0, last); /* it may be any */
            return false;
        }
        last = MIN(last, first + 1);
    }
    bool *said = all ? &saying->all : &saying->named[first];
    const bool again = *said && saying->otherwise != CLOSURE_NONE;
    *said = true;
    if (!again && apply_to(saying, first, last, sign ? sign + 1 : NULL))
        return true;
    close_cards(saying, first, last);
    return false;
}

/* The node's own policy chooses among its cards, unless the pod has one. */
static void apply_policy(const struct node_view *view, struct topology *topology,
                         char **ret_warning)
{
    const char *name = string_pairs_get(&view->labels, POLICY_LABEL);
    const struct policy *policy = policy_find(name);

    if (policy)
        topology->policy = policy;
    else if (name && ret_warning && !*ret_warning)
        *ret_warning = g_strdup_printf("label '" POLICY_LABEL "': '%.32s' is not a policy, such as "
                                       "'binpack' or 'oc'; it is ignored",
                                       name);
}

/* Item by item. */
static void apply_marks(const struct node_view *view, struct topology *topology, char **ret_warning)
{
    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++) {
        const char *text = string_pairs_get(&view->annotations, marks[i].key);
        if (!text || (view->as_new && marks[i].state))
            continue;
        g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
        struct saying saying = {topology, marks[i].apply, marks[i].otherwise, .all = false};
        for (int pass = 0; pass < 2; pass++) {
            for (char **item = items; *item; item++) {
                if (!*g_strstrip(*item) || apply_item(&saying, *item, pass == 0) || !ret_warning ||
                    *ret_warning)
                    continue;
                *ret_warning = g_strdup_printf(
                    "annotation '%s': '%.32s' names none of the %d cards, "
                    "names one again, or is not like '%s'; %s",
                    marks[i].key, *item, topology->n_cards, marks[i].example,
                    marks[i].otherwise ? "the cards it may mean are closed" : "it is ignored");
            }
        }
    }
}

static bool is_read(const struct topology *topology, const char *key)
{
    for (int32_t i = 0; i < topology->n_dialects; i++) {
        const char *const *marks_read = topology->dialects[i]->card_marks;
        for (; marks_read && *marks_read; marks_read++) {
            if (g_str_equal(*marks_read, key))
                return true;
        }
    }
    return false;
}

static void tell_unread(const struct node_view *view, const struct topology *topology,
                        char **ret_warning)
{
    static const char *const keys[] = {NODE_CARD_MEMORY_KEY, NODE_CARD_ORDER_KEY};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *text = string_pairs_get(&view->annotations, keys[i]);
        const bool read =
            is_read(topology, keys[i]) || (keys[i] == keys[1] && card_order_matters(topology));
        if (text && *text && !read)
            warn(ret_warning, g_strdup_printf("annotation '%s' is not read for pods of %s, and "
                                              "changes nothing",
                                              keys[i], topology->dialects[0]->title));
    }
}

/* --- slots --------------------------------------------------------------------------------------- */

struct node_slots node_slots_parse(const char *text)
{
    guint64 most = 0;
    const bool readable = !text || g_str_equal(text, ANY) ||
                          g_ascii_string_to_unsigned(text, 10, 1, NODE_SLOTS_MAX, &most, NULL);

    return (struct node_slots){readable, readable ? (int32_t)most : 0};
}

void node_slots_read(const struct node_view *view, struct node_slots *ret_slots, char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, NODE_SLOTS_KEY);

    *ret_slots = node_slots_parse(text);
    if (!ret_slots->readable && ret_warning && !*ret_warning)
        *ret_warning =
            g_strdup_printf("annotation '" NODE_SLOTS_KEY "': '%.32s' is neither a number "
                            "from 1 to %d nor '" ANY "'; the node's cards take no new "
                            "pods",
                            text, NODE_SLOTS_MAX);
}

/* The smaller of two numbers of slots, of which 0 is any number. */
static int32_t least_slots(int32_t one, int32_t other)
{
    if (one == 0 || other == 0)
        return MAX(one, other);
    return MIN(one, other);
}

bool node_slots_shrink(const char *from, const char *to)
{
    const struct node_slots before = node_slots_parse(from), after = node_slots_parse(to);

    return !after.readable || (after.most > 0 && (before.most == 0 || before.most > after.most));
}

/* No word of the administrator's gives a card more holders than its node side does. */
static void bound_slots(const struct node_view *view, struct topology *topology,
                        const int32_t *by_itself, char **ret_warning)
{
    struct node_slots said;

    node_slots_read(view, &said, ret_warning);
    for (int32_t i = 0; i < topology->n_cards; i++) {
        struct topology_card *card = &topology->cards[i];
        card->slots = least_slots(card->slots, by_itself[i]);
        card->capped = least_slots(card->slots, said.most) != card->slots;
        card->slots = least_slots(card->slots, said.most);
        if (!said.readable && card->closure == CLOSURE_NONE)
            card->closure = CLOSURE_SLOTS;
    }
}

void node_marks_apply(const struct node_view *view, struct topology *topology, char **ret_warning)
{
    int32_t by_itself[NODE_CARDS_MAX];

    apply_policy(view, topology, ret_warning);
    tell_unread(view, topology, ret_warning);
    if (topology->n_cards == 0)
        return; /* devices that are given by count have no index */
    for (int32_t i = 0; i < topology->n_cards; i++)
        by_itself[i] = topology->cards[i].slots;
    apply_marks(view, topology, ret_warning);
    if (!view->as_new)
        cordoned_cards_apply(string_pairs_get(&view->annotations, CORDONED_CARDS_KEY), topology,
                             ret_warning);
    bound_slots(view, topology, by_itself, ret_warning);
}
