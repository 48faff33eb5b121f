/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger.h"
#include "gate/node_backoff/failed_places.h"
#include "gate/node_backoff/node_backoff_state.h"
#include "wire/kubernetes.h"

#include <string.h>

#define SITE_REJECTED_MAX 256
#define SITE_BACKOFFS_MAX 64

PART_ROW(node_backoff, 10);

/* --- whom it is about ------------------------------------------------------------------------- */

/* The one card that the pod is on; CARD_UNKNOWN: there are several, or it is not known. */
static int32_t only_card(const struct allocation *allocation)
{
    int32_t card = CARD_UNKNOWN;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (share->device || share->card == CARD_UNKNOWN || (i > 0 && share->card != card))
            return CARD_UNKNOWN;
        card = share->card;
    }
    return card;
}

static bool is_on(const struct allocation *allocation, int32_t card)
{
    bool on = card == CARD_UNKNOWN;

    for (uint32_t i = 0; i < allocation->n_shares && !on; i++)
        on = allocation->shares[i].card == card || allocation->shares[i].card == CARD_UNKNOWN;
    return on;
}

bool backoff_is_for(const struct backoff *backoff, const char *ns)
{
    return !backoff->ns || g_str_equal(backoff->ns, ns);
}

/* On their way: pods of which kubelet has said nothing yet. */
int64_t node_backoff_coming(const struct node *node, const struct dialect *dialect, const char *ns,
                            const struct backoff *backoff)
{
    int64_t n = 0;

    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        if (allocation->started || allocation->dialect != dialect ||
            (ns && !g_str_equal(ns, allocation->ns)))
            continue;
        n += !backoff || (is_on(allocation, backoff->card) &&
                          !g_hash_table_contains(backoff->former, allocation->uid));
    }
    return n;
}

/* From now on it is for others to be tried. */
static void note_former(struct backoff *backoff, const struct node *node)
{
    g_hash_table_remove_all(backoff->former);
    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        if (!allocation->started)
            g_hash_table_add(backoff->former, g_strdup(allocation->uid));
    }
    backoff->probed_ms = 0;
}

static struct backoff *find_backoff(const struct site *site, const char *ns, int32_t card)
{
    for (guint i = 0; i < site->backoffs->len; i++) {
        struct backoff *backoff = site->backoffs->pdata[i];
        if (g_strcmp0(backoff->ns, ns) == 0 && backoff->card == card)
            return backoff;
    }
    return NULL;
}

/* --- counting --------------------------------------------------------------------------------- */

static void add_count(struct rejected_count *count, const struct rejected *rejected)
{
    count->card = count->n == 0 || count->card == rejected->card ? rejected->card : CARD_UNKNOWN;
    count->n++;
}

/* Rejected pods of the namespace that a decision has found. */
struct rejected_count node_backoff_count(const struct site *site, const char *ns)
{
    struct rejected_count count = {.n_spaces = 1};

    for (guint i = 0; i < site->recent->len; i++) {
        const struct rejected *rejected = site->recent->pdata[i];
        if (rejected->since_ms != 0 && g_str_equal(rejected->ns, ns))
            add_count(&count, rejected);
    }
    return count;
}

/* The same of all. */
struct rejected_count node_backoff_count_all(const struct site *site)
{
    g_autoptr(GHashTable) spaces = g_hash_table_new(g_str_hash, g_str_equal);
    struct rejected_count count = {0};

    for (guint i = 0; i < site->recent->len; i++) {
        const struct rejected *rejected = site->recent->pdata[i];
        if (rejected->since_ms == 0)
            continue;
        g_hash_table_add(spaces, rejected->ns);
        add_count(&count, rejected);
    }
    count.n_spaces = g_hash_table_size(spaces);
    return count;
}

static void forget_of(struct site *site, const char *ns)
{
    for (guint i = site->recent->len; i > 0; i--) {
        const struct rejected *rejected = site->recent->pdata[i - 1];
        if (!ns || g_str_equal(rejected->ns, ns))
            g_ptr_array_remove_index(site->recent, i - 1);
    }
}

static void note_rejected(struct node_backoff *self, const struct allocation *allocation,
                          const struct rejection *rejection)
{
    if (self->limit == 0 || !allocation->dialect)
        return;
    struct site *site = node_backoff_site(self, allocation->node->name, allocation->dialect);
    node_backoff_change(self, site);
    const bool about_card =
        rejection->refused && allocation->dialect->names_cards && allocation->node->n_cards > 1;
    int64_t n = 0;

    if (rejection->refused)
        failed_places_note(site->places, allocation);
    site->total++;
    site->last = rejection->kind;
    /* Of a namespace more than the limit tell nothing more. */
    for (guint i = site->recent->len; i > 0; i--) {
        const struct rejected *rejected = site->recent->pdata[i - 1];
        if (g_str_equal(rejected->ns, allocation->ns) && ++n >= self->limit)
            g_ptr_array_remove_index(site->recent, i - 1);
    }
    if (site->recent->len >= SITE_REJECTED_MAX)
        g_ptr_array_remove_index(site->recent, 0);
    g_ptr_array_add(site->recent,
                    rejected_new(allocation->uid, allocation->ns,
                                 about_card ? only_card(allocation) : CARD_UNKNOWN, 0));
}

/* --- backoffs --------------------------------------------------------------------------------- */

static void add_backoff(struct site *site, const char *ns, int32_t card, const char *author,
                        int64_t now_ms)
{
    /* The node stands for its cards. */
    for (guint i = site->backoffs->len; card == CARD_UNKNOWN && i > 0; i--) {
        const struct backoff *backoff = site->backoffs->pdata[i - 1];
        if (g_strcmp0(backoff->ns, ns) == 0)
            g_ptr_array_remove_index(site->backoffs, i - 1);
    }
    struct backoff *backoff = backoff_new(ns, card, now_ms + NODE_BACKOFF_MS, NODE_BACKOFF_MS);
    backoff->author = g_strdup(author);
    g_ptr_array_add(site->backoffs, backoff);
}

/* One of those of a namespace with several, each of a card; NULL: none has. */
static const struct backoff *find_several(const struct site *site)
{
    for (guint i = 0; i < site->backoffs->len; i++) {
        const struct backoff *one = site->backoffs->pdata[i];
        for (guint j = 0; j < i; j++) {
            if (g_strcmp0(((const struct backoff *)site->backoffs->pdata[j])->ns, one->ns) == 0)
                return one;
        }
    }
    return NULL;
}

/* Where there are too many, a namespace with several is kept from the node and not from cards; if none has, all are. */
static void begin_backoff(struct site *site, const char *ns, int32_t card, const char *author,
                          int64_t now_ms)
{
    if (!ns || site->backoffs->len < SITE_BACKOFFS_MAX) {
        add_backoff(site, ns, card, author, now_ms);
        return;
    }
    const struct backoff *several = find_several(site);
    g_autofree char *whole = g_strdup(several ? several->ns : NULL);
    if (several || !find_backoff(site, NULL, CARD_UNKNOWN))
        add_backoff(site, whole, CARD_UNKNOWN, author, now_ms);
    if (several && g_strcmp0(whole, ns) != 0)
        add_backoff(site, ns, card, author, now_ms);
}

/* The pod that was tried was rejected. */
static void prolong(struct backoff *backoff, const struct rejected *rejected, int64_t now_ms)
{
    if (backoff->ns || g_strcmp0(backoff->author, rejected->ns) != 0)
        backoff->length_ms = MIN(2 * backoff->length_ms, NODE_BACKOFF_MAX_MS);
    g_free(backoff->author);
    backoff->author = g_strdup(rejected->ns);
    backoff->until_ms = now_ms + backoff->length_ms;
    backoff->probing = false;
    backoff->probed_ms = 0;
}

/* A decision has found the reject. */
static void count_rejected(struct node_backoff *self, struct site *site,
                           const struct rejected *rejected, int64_t now_ms)
{
    int32_t failed_card = CARD_UNKNOWN; /* of a what-if node that was everybody's */
    bool failed = false;

    for (guint i = 0; i < site->backoffs->len; i++) {
        struct backoff *backoff = site->backoffs->pdata[i];
        if (!backoff->probing || !backoff_is_for(backoff, rejected->ns) ||
            (backoff->card != CARD_UNKNOWN && backoff->card != rejected->card) ||
            g_hash_table_contains(backoff->former, rejected->uid))
            continue;
        prolong(backoff, rejected, now_ms);
        failed |= !backoff->ns;
        failed_card = backoff->ns ? failed_card : backoff->card;
    }
    const struct rejected_count own = node_backoff_count(site, rejected->ns);
    if (failed && !find_backoff(site, rejected->ns, CARD_UNKNOWN) &&
        !find_backoff(site, rejected->ns, failed_card))
        begin_backoff(site, rejected->ns, failed_card, rejected->ns, now_ms);
    if (own.n >= self->limit && !find_backoff(site, rejected->ns, CARD_UNKNOWN) &&
        !find_backoff(site, rejected->ns, own.card))
        begin_backoff(site, rejected->ns, own.card, rejected->ns, now_ms);
    const struct rejected_count all = node_backoff_count_all(site);
    if (all.n >= self->limit && all.n_spaces > 1 && !find_backoff(site, NULL, CARD_UNKNOWN) &&
        !find_backoff(site, NULL, all.card))
        begin_backoff(site, NULL, all.card, rejected->ns, now_ms);
}

static bool settle_recent(struct node_backoff *self, struct site *site, int64_t now_ms)
{
    bool changed = false;

    while (site->recent->len > 0) {
        const struct rejected *first = site->recent->pdata[0];
        if (first->since_ms == 0 || now_ms - first->since_ms < self->window_ms)
            break;
        node_backoff_change(self, site);
        g_ptr_array_remove_index(site->recent, 0);
        changed = true;
    }
    for (guint i = 0; i < site->recent->len; i++) {
        struct rejected *rejected = site->recent->pdata[i];
        if (rejected->since_ms != 0)
            continue;
        node_backoff_change(self, site);
        rejected->since_ms = now_ms;
        count_rejected(self, site, rejected, now_ms);
        changed = true;
    }
    return changed;
}

static bool settle_backoff(struct node_backoff *self, struct site *site, struct backoff *backoff,
                           int64_t now_ms)
{
    if (!backoff->probing && now_ms < backoff->until_ms)
        return false;
    const struct node *node = ledger_node(self->base->ledger, site->node);
    const bool probed = node_backoff_coming(node, site->dialect, backoff->ns, backoff) > 0;
    const bool known = probed == (backoff->probed_ms != 0);
    const bool begins = !backoff->probing ||
                        (probed && known && now_ms - backoff->probed_ms >= NODE_BACKOFF_PROBE_MS);
    if (known && !begins)
        return false;
    node_backoff_change(self, site);
    if (begins) {
        backoff->probing = true;
        note_former(backoff, node);
    } else {
        backoff->probed_ms = probed ? now_ms : 0;
    }
    return true;
}

static unsigned settle(void *of, int64_t now_ms)
{
    struct node_backoff *self = of;
    bool any = false;

    now_ms = CLAMP(now_ms, 1, NODE_BACKOFF_TIME_MAX);
    for (guint i = self->roll.entries->len; i > 0; i--) {
        struct site *site = self->roll.entries->pdata[i - 1];
        bool changed = settle_recent(self, site, now_ms);

        if (failed_places_settle(site->places, now_ms)) {
            node_backoff_change(self, site);
            changed = true;
        }
        for (guint j = 0; j < site->backoffs->len; j++)
            changed |= settle_backoff(self, site, site->backoffs->pdata[j], now_ms);
        if (changed) /* somebody may be let in */
            ledger_mark_freed(self->base->ledger, site->node);
        any |= changed;
        if (site->recent->len > 0 || site->backoffs->len > 0 || site->places->len > 0)
            continue;
        node_backoff_drop_site(self, site);
        any = true;
    }
    return any ? PART_OPENED : 0;
}

/* --- the end of a backoff ---------------------------------------------------------------------- */

static void note_started(struct node_backoff *self, const struct allocation *allocation)
{
    for (struct site *site = node_backoff_sites(self, allocation->node->name); site;
         site = site->next) {
        if (site->dialect != allocation->dialect)
            continue;
        if (failed_places_note_start(site->places, allocation))
            node_backoff_change(self, site);
        for (guint j = site->backoffs->len; j > 0; j--) {
            const struct backoff *backoff = site->backoffs->pdata[j - 1];
            if (!backoff->probing || !backoff_is_for(backoff, allocation->ns) ||
                !is_on(allocation, backoff->card) ||
                g_hash_table_contains(backoff->former, allocation->uid))
                continue;
            node_backoff_change(self, site);
            forget_of(site, backoff->ns);
            g_ptr_array_remove_index(site->backoffs, j - 1);
        }
    }
}

/* --- the part ----------------------------------------------------------------------------------- */

static void *start(const struct part_base *base, const void *settings)
{
    return node_backoff_new(base, settings);
}

static void stop(void *self)
{
    node_backoff_free(self);
}

static bool pod(void *of, const struct pod_change *change)
{
    struct node_backoff *self = of;
    const struct allocation *allocation = change->allocation;

    if (change->kind == POD_CHANGE_REJECTED)
        note_rejected(self, allocation, change->rejection);
    if (change->kind != POD_CHANGE_STARTED || !node_backoff_sites(self, allocation->node->name))
        return false;
    note_started(self, allocation);
    return true;
}

static bool node(void *of, const char *name, const struct node_view *view)
{
    struct node_backoff *self = of;
    const char *value = view ? string_pairs_get(&view->annotations, NODE_BACKOFF_RESUME) : NULL;

    if (!view) {
        g_hash_table_remove(self->resumed, name);
        node_backoff_drop_node(self, name);
        return false;
    }
    if (self->limit == 0 || g_strcmp0(g_hash_table_lookup(self->resumed, name), value) == 0)
        return false;
    if (!value) {
        g_hash_table_remove(self->resumed, name);
        return false;
    }
    g_hash_table_replace(self->resumed, g_strdup(name), g_strdup(value));
    return node_backoff_drop_node(self, name);
}

static bool order(void *self, const char *verb, const char *node)
{
    return g_str_equal(verb, "resume") && node_backoff_drop_node(self, node);
}

const struct part part_node_backoff = {
    .name = "node_backoff",
    .source = PART_OF_CALLS,
    .section = &section_node_backoff,
    .start = start,
    .stop = stop,
    .copy = node_backoff_copy,
    .pod = pod,
    .node = node,
    .order = order,
    .settle = settle,
    .image = &node_backoff_image,
};
