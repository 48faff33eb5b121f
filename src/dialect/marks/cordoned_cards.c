/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/marks/cordoned_cards.h"

#include "dialect/warning.h"

#include <string.h>

#define COUNT_PREFIX "of:"
#define UUID_LENGTH_MAX 128

enum kind { KIND_UNREADABLE, KIND_ALL, KIND_INDEX, KIND_COUNTED, KIND_UUID };

struct item {
    enum kind kind;
    int32_t index, count;
    const char *uuid; /* points into the text */
};

/* What an item means on a topology. */
enum meaning {
    MEANS_CARDS, /* these, for certain */
    MEANS_GONE,  /* a card that is not listed */
    MEANS_MAYBE, /* one of these */
};

/* What stands in an annotation without a misreading. */
static bool is_plain(const char *uuid)
{
    size_t length = 0;

    for (; uuid[length]; length++) {
        if (!g_ascii_isalnum(uuid[length]) && !strchr("-_.:/", uuid[length]))
            return false;
    }
    return length > 0 && length <= UUID_LENGTH_MAX && !g_str_has_prefix(uuid, COUNT_PREFIX);
}

static bool read_number(const char *text, guint64 least, guint64 most, int32_t *ret_number)
{
    guint64 number;

    if (!g_ascii_string_to_unsigned(text, 10, least, most, &number, NULL))
        return false;
    *ret_number = (int32_t)number;
    return true;
}

static struct item parse(const char *text)
{
    const char *sign = strchr(text, '=');
    g_autofree char *index = sign ? g_strndup(text, (gsize)(sign - text)) : g_strdup(text);
    struct item item = {KIND_UNREADABLE, -1, 0, NULL};

    if (g_str_equal(text, "*")) {
        item.kind = KIND_ALL;
    } else if (!read_number(index, 0, NODE_CARDS_MAX - 1, &item.index)) {
        item.index = -1;
    } else if (!sign) {
        item.kind = KIND_INDEX;
    } else if (g_str_has_prefix(sign + 1, COUNT_PREFIX)) {
        if (read_number(sign + 1 + strlen(COUNT_PREFIX), (guint64)item.index + 1, NODE_CARDS_MAX,
                        &item.count))
            item.kind = KIND_COUNTED;
    } else if (is_plain(sign + 1)) {
        item.kind = KIND_UUID;
        item.uuid = sign + 1;
    }
    return item;
}

static enum meaning find_uuid(const char *uuid, const struct topology *topology, bool *ret_meant)
{
    bool found = false, unnamed = false;

    for (int32_t i = 0; i < topology->n_cards; i++) {
        ret_meant[i] = g_strcmp0(topology->cards[i].uuid, uuid) == 0;
        found |= ret_meant[i];
        unnamed |= !topology->cards[i].uuid;
    }
    for (int32_t i = 0; !found && i < topology->n_cards; i++)
        ret_meant[i] = !topology->cards[i].uuid;
    return found ? MEANS_CARDS : unnamed ? MEANS_MAYBE : MEANS_GONE;
}

/* `ret_meant` has an element for each card of the topology. */
static enum meaning find(const struct item *item, const struct topology *topology, bool *ret_meant)
{
    if (item->kind == KIND_UUID)
        return find_uuid(item->uuid, topology, ret_meant);
    const bool placed = (item->kind == KIND_INDEX && item->index < topology->n_cards) ||
                        (item->kind == KIND_COUNTED && item->count == topology->n_cards);
    for (int32_t i = 0; i < topology->n_cards; i++)
        ret_meant[i] = !placed || i == item->index;
    return placed || item->kind == KIND_ALL ? MEANS_CARDS : MEANS_MAYBE;
}

/* The items of a list, without those that are empty. */
static GPtrArray *split(const char *list)
{
    g_auto(GStrv) parts = g_strsplit(list ? list : "", ",", NODE_CARDS_MAX + 1);
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);

    for (char **part = parts; *part; part++) {
        if (*g_strstrip(*part))
            g_ptr_array_add(texts, g_strdup(*part));
    }
    return texts;
}

/* --- reading ------------------------------------------------------------------------------------ */

static char *describe(const char *text, const struct item *item, enum meaning meaning,
                      int32_t n_cards)
{
    const char *what = "names a card again";

    if (item->kind == KIND_UNREADABLE)
        what = "is not like '0', '0=GPU-5f6d', '0=of:8' or '*'; the cards it may mean are closed";
    else if (meaning == MEANS_GONE)
        what = "is a cordon of a card that the node does not list now; it stays";
    else if (item->kind == KIND_UUID)
        what = "may be any card that the node lists without a UUID; these are closed";
    else if (meaning == MEANS_MAYBE)
        what = "may be any card, since their number has changed; all are closed";
    return g_strdup_printf("annotation '" CORDONED_CARDS_KEY "' on a node of %d cards: '%.64s' %s",
                           n_cards, text, what);
}

void cordoned_cards_apply(const char *list, struct topology *topology, char **ret_warning)
{
    g_autoptr(GPtrArray) texts = split(list);
    bool meant[NODE_CARDS_MAX], named[NODE_CARDS_MAX] = {false};

    for (guint i = 0; i < texts->len; i++) {
        const struct item item = parse(texts->pdata[i]);
        const enum meaning meaning = find(&item, topology, meant);
        const bool certain = meaning == MEANS_CARDS && item.kind != KIND_ALL;
        bool again = false;
        for (int32_t j = 0; j < topology->n_cards; j++) {
            struct topology_card *card = &topology->cards[j];
            again |= meant[j] && certain && named[j];
            named[j] |= meant[j] && certain;
            if (meant[j] && meaning == MEANS_CARDS)
                card->closure = CLOSURE_CORDON;
            else if (meant[j] && card->closure != CLOSURE_CORDON)
                card->closure = CLOSURE_CORDON_MAYBE;
        }
        if (again || meaning != MEANS_CARDS)
            warn(ret_warning, describe(texts->pdata[i], &item, meaning, topology->n_cards));
    }
}

/* --- writing ------------------------------------------------------------------------------------ */

static char *write_item(const struct topology *topology, int32_t card)
{
    const char *uuid = topology->cards[card].uuid;

    return uuid && is_plain(uuid)
               ? g_strdup_printf("%d=%s", card, uuid)
               : g_strdup_printf("%d=" COUNT_PREFIX "%d", card, topology->n_cards);
}

/* Whether an item has this index, and means a card that is gone or an index that the node does not have. */
static bool is_stale(const struct item *item, const struct cordon_edit *edit)
{
    bool meant[NODE_CARDS_MAX];

    if (item->index != edit->card || item->kind == KIND_UNREADABLE)
        return false;
    const enum meaning meaning = find(item, edit->topology, meant);
    return meaning == MEANS_GONE ||
           (meaning == MEANS_MAYBE && edit->card >= edit->topology->n_cards);
}

bool cordoned_cards_lists(const struct cordon_edit *edit)
{
    g_autoptr(GPtrArray) texts = split(edit->list);

    for (guint i = 0; i < texts->len; i++) {
        const struct item item = parse(texts->pdata[i]);
        if (is_stale(&item, edit))
            return true;
    }
    return false;
}

static char *join(const GPtrArray *texts)
{
    g_autoptr(GString) list = g_string_new(NULL);

    for (guint i = 0; i < texts->len; i++)
        g_string_append_printf(list, "%s%s", i ? "," : "", (const char *)texts->pdata[i]);
    return list->len ? g_strdup(list->str) : NULL;
}

/* Whether an item names the card of the edit, and which meaning it has. */
static bool names(const struct item *item, const struct cordon_edit *edit,
                  enum meaning *ret_meaning)
{
    bool meant[NODE_CARDS_MAX];

    *ret_meaning = find(item, edit->topology, meant);
    return edit->card < edit->topology->n_cards && meant[edit->card];
}

static void close_card(const struct cordon_edit *edit, GPtrArray *texts)
{
    char *take = write_item(edit->topology, edit->card);
    enum meaning meaning;

    for (guint i = 0; take && i < texts->len; i++) {
        const struct item item = parse(texts->pdata[i]);
        if (!names(&item, edit, &meaning) || meaning != MEANS_CARDS)
            continue;
        if (item.kind == KIND_ALL) {
            g_clear_pointer(&take, g_free);
        } else {
            g_free(texts->pdata[i]);
            texts->pdata[i] = g_steal_pointer(&take);
        }
    }
    if (take)
        g_ptr_array_add(texts, take);
}

static void name_others(const struct cordon_edit *edit, GPtrArray *texts)
{
    for (int32_t i = 0; i < edit->topology->n_cards; i++) {
        const struct cordon_edit other = {NULL, edit->topology, i, false};
        if (i != edit->card)
            close_card(&other, texts);
    }
}

/* True: an item named the card for certain, or all cards. */
static bool open_card(const struct cordon_edit *edit, GPtrArray *texts)
{
    bool named = false, all = false;
    enum meaning meaning;

    for (guint i = texts->len; i-- > 0;) {
        const struct item item = parse(texts->pdata[i]);
        if (!names(&item, edit, &meaning) || meaning != MEANS_CARDS)
            continue;
        all |= item.kind == KIND_ALL;
        named = true;
        g_ptr_array_remove_index(texts, i);
    }
    if (all)
        name_others(edit, texts);
    return named;
}

/* Removes the last stale item; returns its UUID. */
static char *remove_stale(const struct cordon_edit *edit, GPtrArray *texts)
{
    for (guint i = texts->len; i-- > 0;) {
        const struct item item = parse(texts->pdata[i]);
        if (!is_stale(&item, edit))
            continue;
        char *uuid = g_strdup(item.uuid);
        g_ptr_array_remove_index(texts, i);
        return uuid;
    }
    return NULL;
}

char *cordoned_cards_keeper(const struct cordon_edit *edit)
{
    g_autoptr(GPtrArray) texts = split(edit->list);
    enum meaning meaning;

    for (guint i = 0; i < texts->len; i++) {
        const struct item item = parse(texts->pdata[i]);
        if (names(&item, edit, &meaning))
            return g_strdup(texts->pdata[i]);
    }
    return NULL;
}

char *cordoned_cards_edit(const struct cordon_edit *edit, char **ret_uuid)
{
    g_autoptr(GPtrArray) texts = split(edit->list);
    const bool listed = edit->card < edit->topology->n_cards;

    *ret_uuid = listed ? g_strdup(edit->topology->cards[edit->card].uuid) : NULL;
    if (!edit->open) {
        close_card(edit, texts);
    } else if (!open_card(edit, texts) && cordoned_cards_lists(edit)) {
        g_free(*ret_uuid);
        *ret_uuid = remove_stale(edit, texts);
    }
    return join(texts);
}
