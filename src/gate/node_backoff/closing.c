/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods a node in backoff is closed to, and what is said of it. */
#include "gate/node_backoff/failed_places.h"
#include "gate/node_backoff/node_backoff_state.h"

#include "base/printable.h"
#include "core/node.h"
#include "policy/what_if.h"

#define WALKED_AT_ONCE 16 /* sites */

GATE_ROW(node_backoff, 70);

enum { REJECTING = 1 };

static const struct gate_reason reasons[] = {
    {"rejecting", "The node has rejected pods that were bound to it, and is left out for a while",
     false},
    {NULL},
};

/* --- the gate ----------------------------------------------------------------------------------- */

/* Whether a node side of the node would read the request. */
static bool reads(const struct node *node, const struct dialect *dialect,
                  const struct request *request)
{
    while (request && (request->dialect != dialect || !node_offers(node, dialect)))
        request = request->alternative;
    return request;
}

static bool is_closed(const struct site *site, const struct backoff *backoff,
                      const struct node *node)
{
    return !backoff->probing || node_backoff_coming(node, site->dialect, backoff->ns, backoff) > 0;
}

/* As many have been rejected and are on their way as may be lost. */
static bool is_suspect(const struct node_backoff *self, const struct site *site,
                       const struct node *node, const char *ns)
{
    const struct rejected_count own = node_backoff_count(site, ns),
                                all = node_backoff_count_all(site);

    return (own.n > 0 &&
            own.n + node_backoff_coming(node, site->dialect, ns, NULL) > self->limit) ||
           (all.n_spaces > 1 &&
            all.n + node_backoff_coming(node, site->dialect, NULL, NULL) > self->limit);
}

/* `card` CARD_UNKNOWN: the node itself. */
static bool site_closes(const struct node_backoff *self, const struct site *site,
                        const struct node *node, const char *ns, int32_t card)
{
    bool any = false;

    for (guint i = 0; i < site->backoffs->len; i++) {
        const struct backoff *backoff = site->backoffs->pdata[i];
        if (!backoff_is_for(backoff, ns))
            continue;
        any = true;
        if (backoff->card == card && is_closed(site, backoff, node))
            return true;
    }
    return card == CARD_UNKNOWN && !any && is_suspect(self, site, node, ns);
}

static bool closes(const struct node_backoff *self, const struct node *node,
                   const struct request *request, const char *ns, int32_t card)
{
    for (const struct site *site = node_backoff_sites(self, node->name); site; site = site->next) {
        if (reads(node, site->dialect, request) && site_closes(self, site, node, ns, card))
            return true;
    }
    return false;
}

static unsigned shut(const void *self, const struct gate_who *who, const struct node *node)
{
    return closes(self, node, who->request, who->ns, CARD_UNKNOWN) ? REJECTING : 0;
}

/* Marks the places of the card in which pods of the namespace have failed; whether there are any. */
static bool leave_places_out(const struct node_backoff *self, const struct gate_who *who,
                             const struct node *node, struct card *card)
{
    bool any = false;

    for (const struct site *site = node_backoff_sites(self, node->name); site; site = site->next) {
        if (!reads(node, site->dialect, who->request))
            continue;
        any |= failed_places_concern(site->places, who->ns, card->index);
        failed_places_leave_out(site->places, who->ns, card);
    }
    return any;
}

static struct node *left_node(struct what_if **left, const struct node *seen)
{
    if (!*left)
        *left = what_if_new(seen);
    return (*left)->node;
}

static struct what_if *narrow(const void *self, const struct gate_who *who, const struct node *node,
                              const struct node *seen)
{
    struct what_if *left = NULL;

    for (int32_t i = 0; i < node->n_cards; i++) {
        struct card marked = node->cards[i];
        if (closes(self, node, who->request, who->ns, marked.index)) {
            struct node *spared = left_node(&left, seen);
            node_set_health(spared, &spared->cards[i], false, CLOSURE_NONE);
        } else if (marked.mig && leave_places_out(self, who, node, &marked)) {
            left_node(&left, seen)->cards[i].left_out = marked.left_out;
        }
    }
    return left;
}

/* --- for people ----------------------------------------------------------------------------------- */

static void visit_site(const struct site *site, node_backoff_visit visit, void *data)
{
    for (guint i = 0; i < site->backoffs->len; i++) {
        const struct backoff *backoff = site->backoffs->pdata[i];
        visit(&(struct node_backoff_row){.node = site->node,
                                         .dialect = site->dialect,
                                         .ns = backoff->ns,
                                         .card = backoff->card,
                                         .until_ms = backoff->until_ms,
                                         .length_ms = backoff->length_ms,
                                         .probing = backoff->probing,
                                         .total = site->total,
                                         .last = site->last},
              data);
    }
    for (guint i = 0; i < site->places->len; i++) {
        const struct failed_place *failed = site->places->pdata[i];
        visit(&(struct node_backoff_row){.node = site->node,
                                         .dialect = site->dialect,
                                         .ns = failed->ns,
                                         .card = failed->card,
                                         .place = failed->place,
                                         .until_ms = failed->until_ms,
                                         .length_ms = FAILED_PLACE_MS,
                                         .total = site->total,
                                         .last = site->last},
              data);
    }
}

void node_backoff_each(const struct node_backoff *self, const char *node, node_backoff_visit visit,
                       void *data)
{
    for (const struct site *site = g_hash_table_lookup(self->nodes, node); site; site = site->next)
        visit_site(site, visit, data);
}

bool node_backoff_walk(const struct node_backoff *self, struct part_cursor *at,
                       node_backoff_visit visit, void *data)
{
    const struct roll_entry *entry;

    for (int i = 0; i < WALKED_AT_ONCE && (entry = roll_walk(&self->roll, &at->members)); i++)
        visit_site((const struct site *)entry, visit, data);
    return at->members > 0;
}

char *node_backoff_text(const struct node_backoff_row *backoff, int64_t now_ms)
{
    GString *text = g_string_new(NULL);
    const int64_t left_s = (backoff->until_ms - now_ms + 999) / 1000;

    if (backoff->card != CARD_UNKNOWN)
        g_string_append_printf(text, "card %d ", backoff->card);
    if (backoff->place.size > 0)
        g_string_append_printf(text, "from slice %d to %d, where no MIG instance could be made, ",
                               backoff->place.start,
                               backoff->place.start + backoff->place.size - 1);
    if (backoff->probing)
        g_string_append(text, "takes one pod at a time, until one is admitted");
    else if (now_ms == 0)
        g_string_append(text, "is left out");
    else
        g_string_append_printf(text, "is left out for %" G_GINT64_FORMAT " s more", MAX(left_s, 1));
    if (backoff->ns)
        g_string_append_printf(text, ", for pods of namespace %s", backoff->ns);
    return g_string_free(text, FALSE);
}

struct telling {
    const struct gate_who *who;
    GString *text;
};

static void append_row(const struct node_backoff_row *row, void *data)
{
    const struct telling *telling = data;
    g_autofree char *told = node_backoff_text(row, telling->who->now_ms);

    if (row->ns && !g_str_equal(row->ns, telling->who->ns))
        return;
    printable_append(
        telling->text, "%s%s, for its kubelet has rejected %" G_GUINT64_FORMAT " pods (%s)",
        telling->text->len > 0 ? "; " : "", told, row->total, rejection_names[row->last]);
}

static void message(const void *self, const struct gate_who *who, const struct node *node,
                    GString *text)
{
    node_backoff_each(self, node->name, append_row, &(struct telling){who, text});
    if (text->len == 0)
        g_string_append(text, "has rejected a pod, and has as many on their way as may be lost");
}

const struct gate gate_node_backoff = {
    .name = "node_backoff",
    .left_out = GATE_ASKERS(ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED,
                            ASKED, ASKED),
    .part = &part_node_backoff,
    .reasons = reasons,
    .shut = shut,
    .narrow = narrow,
    .message = message,
};
