/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger.h"
#include "queue/mig/failed_places.h"
#include "queue/rejects_state.h"

#include <string.h>

#define SITE_REJECTS_MAX 256
#define SITE_PAUSES_MAX 64

/* --- parts ------------------------------------------------------------------------------------ */

static void reject_free(gpointer data)
{
    struct reject *reject = data;

    g_free(reject->uid);
    g_free(reject->ns);
    g_free(reject);
}

static void pause_free(gpointer data)
{
    struct pause *pause = data;

    g_free(pause->ns);
    g_free(pause->author);
    g_hash_table_unref(pause->former);
    g_free(pause);
}

/* With those of the node that follow it. */
static void sites_free(gpointer data)
{
    for (struct site *site = data, *next; site; site = next) {
        next = site->next;
        g_free(site->node);
        g_ptr_array_unref(site->recent);
        g_ptr_array_unref(site->pauses);
        g_ptr_array_unref(site->places);
        g_free(site);
    }
}

struct reject *reject_new(const char *uid, const char *ns, int32_t card, int64_t since_ms)
{
    struct reject *reject = g_new0(struct reject, 1);

    *reject = (struct reject){g_strdup(uid), g_strdup(ns), card, since_ms};
    return reject;
}

struct pause *pause_new(const char *ns, int32_t card, int64_t until_ms, int64_t length_ms)
{
    struct pause *pause = g_new0(struct pause, 1);

    *pause = (struct pause){.ns = g_strdup(ns),
                            .card = card,
                            .until_ms = until_ms,
                            .length_ms = length_ms,
                            .former = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    return pause;
}

struct rejects *rejects_new(int64_t limit, int64_t window_ms)
{
    struct rejects *rejects = g_new0(struct rejects, 1);

    rejects->limit = limit;
    rejects->window_ms = window_ms;
    roll_init(&rejects->roll);
    rejects->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, sites_free);
    rejects->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return rejects;
}

void rejects_free(struct rejects *rejects)
{
    g_hash_table_unref(rejects->nodes);
    g_hash_table_unref(rejects->marks);
    roll_clear(&rejects->roll);
    g_free(rejects);
}

static struct site *sites_of(const struct rejects *rejects, const char *node)
{
    return g_hash_table_lookup(rejects->nodes, node);
}

static void set_first(struct rejects *rejects, const char *node, struct site *first)
{
    gpointer key = NULL;

    if (!g_hash_table_steal_extended(rejects->nodes, node, &key, NULL))
        key = g_strdup(node);
    g_hash_table_insert(rejects->nodes, key, first);
}

/* In order of the dialect's name among those of the node. */
static void insert_site(struct rejects *rejects, struct site *site)
{
    struct site *before = NULL;

    site->next = sites_of(rejects, site->node);
    while (site->next && strcmp(site->next->dialect->name, site->dialect->name) < 0) {
        before = site->next;
        site->next = before->next;
    }
    if (before)
        before->next = site;
    else
        set_first(rejects, site->node, site);
}

struct site *rejects_site(struct rejects *rejects, const char *node, const struct dialect *dialect)
{
    for (struct site *site = sites_of(rejects, node); site; site = site->next) {
        if (site->dialect == dialect)
            return site;
    }
    struct site *site = g_new0(struct site, 1);
    site->node = g_strdup(node);
    site->dialect = dialect;
    site->recent = g_ptr_array_new_with_free_func(reject_free);
    site->pauses = g_ptr_array_new_with_free_func(pause_free);
    site->places = failed_places_new();
    insert_site(rejects, site);
    roll_add(&rejects->roll, &site->entry);
    return site;
}

static void change(struct rejects *rejects, struct site *site)
{
    roll_change(&rejects->roll, &site->entry);
}

/* All of a node. */
static bool drop_sites(struct rejects *rejects, const char *node)
{
    for (struct site *site = sites_of(rejects, node); site; site = site->next)
        roll_remove(&rejects->roll, &site->entry);
    return g_hash_table_remove(rejects->nodes, node);
}

static void drop_site(struct rejects *rejects, struct site *site)
{
    struct site *before = sites_of(rejects, site->node);

    if (before == site && !site->next) {
        drop_sites(rejects, site->node);
        return;
    }
    roll_remove(&rejects->roll, &site->entry);
    while (before != site && before->next != site)
        before = before->next;
    if (before == site)
        set_first(rejects, site->node, site->next);
    else
        before->next = site->next;
    site->next = NULL;
    sites_free(site);
}

void rejects_clear(struct rejects *rejects)
{
    g_ptr_array_set_size(rejects->roll.entries, 0);
    g_hash_table_remove_all(rejects->nodes);
}

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

static bool is_for(const struct pause *pause, const char *ns)
{
    return !pause->ns || g_str_equal(pause->ns, ns);
}

/* On their way: pods of which kubelet has said nothing yet. */
static int64_t count_coming(const struct node *node, const struct dialect *dialect, const char *ns,
                            const struct pause *pause)
{
    int64_t n = 0;

    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        if (allocation->started || allocation->dialect != dialect ||
            (ns && !g_str_equal(ns, allocation->ns)))
            continue;
        n += !pause || (is_on(allocation, pause->card) &&
                        !g_hash_table_contains(pause->former, allocation->uid));
    }
    return n;
}

/* From now on it is for others to be tried. */
static void note_former(struct pause *pause, const struct node *node)
{
    g_hash_table_remove_all(pause->former);
    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        if (!allocation->started)
            g_hash_table_add(pause->former, g_strdup(allocation->uid));
    }
    pause->tried_ms = 0;
}

static struct pause *find_pause(const struct site *site, const char *ns, int32_t card)
{
    for (guint i = 0; i < site->pauses->len; i++) {
        struct pause *pause = site->pauses->pdata[i];
        if (g_strcmp0(pause->ns, ns) == 0 && pause->card == card)
            return pause;
    }
    return NULL;
}

/* --- counting --------------------------------------------------------------------------------- */

struct count {
    int64_t n;
    int32_t card;     /* that all of them are about, or CARD_UNKNOWN */
    int64_t n_spaces; /* namespaces that they are of */
};

static void add_count(struct count *count, const struct reject *reject)
{
    count->card = count->n == 0 || count->card == reject->card ? reject->card : CARD_UNKNOWN;
    count->n++;
}

/* Rejected pods of the namespace that a decision has found. */
static struct count count_of(const struct site *site, const char *ns)
{
    struct count count = {.n_spaces = 1};

    for (guint i = 0; i < site->recent->len; i++) {
        const struct reject *reject = site->recent->pdata[i];
        if (reject->since_ms != 0 && g_str_equal(reject->ns, ns))
            add_count(&count, reject);
    }
    return count;
}

/* The same of all. */
static struct count count_all(const struct site *site)
{
    g_autoptr(GHashTable) spaces = g_hash_table_new(g_str_hash, g_str_equal);
    struct count count = {0};

    for (guint i = 0; i < site->recent->len; i++) {
        const struct reject *reject = site->recent->pdata[i];
        if (reject->since_ms == 0)
            continue;
        g_hash_table_add(spaces, reject->ns);
        add_count(&count, reject);
    }
    count.n_spaces = g_hash_table_size(spaces);
    return count;
}

static void forget_of(struct site *site, const char *ns)
{
    for (guint i = site->recent->len; i > 0; i--) {
        const struct reject *reject = site->recent->pdata[i - 1];
        if (!ns || g_str_equal(reject->ns, ns))
            g_ptr_array_remove_index(site->recent, i - 1);
    }
}

void rejects_note(struct rejects *rejects, const struct allocation *allocation,
                  const struct rejection *rejection)
{
    if (rejects->limit == 0 || !allocation->dialect)
        return;
    struct site *site = rejects_site(rejects, allocation->node->name, allocation->dialect);
    change(rejects, site);
    const bool about_card = rejection->refused && allocation->dialect->names_cards &&
                            allocation->node->n_cards > 1;
    int64_t n = 0;

    if (rejection->refused)
        failed_places_note(site->places, allocation);
    site->total++;
    site->last = rejection->kind;
    /* Of a namespace more than the limit tell nothing more. */
    for (guint i = site->recent->len; i > 0; i--) {
        const struct reject *reject = site->recent->pdata[i - 1];
        if (g_str_equal(reject->ns, allocation->ns) && ++n >= rejects->limit)
            g_ptr_array_remove_index(site->recent, i - 1);
    }
    if (site->recent->len >= SITE_REJECTS_MAX)
        g_ptr_array_remove_index(site->recent, 0);
    g_ptr_array_add(site->recent,
                    reject_new(allocation->uid, allocation->ns,
                               about_card ? only_card(allocation) : CARD_UNKNOWN, 0));
}

/* --- pauses ----------------------------------------------------------------------------------- */

static void begin_pause(struct site *site, const char *ns, int32_t card, const char *author,
                        int64_t now_ms)
{
    if (site->pauses->len >= SITE_PAUSES_MAX)
        return;
    /* The node stands for its cards. */
    for (guint i = site->pauses->len; card == CARD_UNKNOWN && i > 0; i--) {
        const struct pause *pause = site->pauses->pdata[i - 1];
        if (g_strcmp0(pause->ns, ns) == 0)
            g_ptr_array_remove_index(site->pauses, i - 1);
    }
    struct pause *pause = pause_new(ns, card, now_ms + REJECTS_PAUSE_MS, REJECTS_PAUSE_MS);
    pause->author = g_strdup(author);
    g_ptr_array_add(site->pauses, pause);
}

/* The pod that was tried was rejected. */
static void prolong(struct pause *pause, const struct reject *reject, int64_t now_ms)
{
    if (pause->ns || g_strcmp0(pause->author, reject->ns) != 0)
        pause->length_ms = MIN(2 * pause->length_ms, REJECTS_PAUSE_MAX_MS);
    g_free(pause->author);
    pause->author = g_strdup(reject->ns);
    pause->until_ms = now_ms + pause->length_ms;
    pause->what_if = false;
    pause->tried_ms = 0;
}

/* A decision has found the reject. */
static void count_reject(struct rejects *rejects, struct site *site, const struct reject *reject,
                  int64_t now_ms)
{
    int32_t failed_card = CARD_UNKNOWN; /* of a what-if node that was everybody's */
    bool failed = false;

    for (guint i = 0; i < site->pauses->len; i++) {
        struct pause *pause = site->pauses->pdata[i];
        if (!pause->what_if || !is_for(pause, reject->ns) ||
            (pause->card != CARD_UNKNOWN && pause->card != reject->card) ||
            g_hash_table_contains(pause->former, reject->uid))
            continue;
        prolong(pause, reject, now_ms);
        failed |= !pause->ns;
        failed_card = pause->ns ? failed_card : pause->card;
    }
    const struct count own = count_of(site, reject->ns);
    if (failed && !find_pause(site, reject->ns, CARD_UNKNOWN) &&
        !find_pause(site, reject->ns, failed_card))
        begin_pause(site, reject->ns, failed_card, reject->ns, now_ms);
    if (own.n >= rejects->limit && !find_pause(site, reject->ns, CARD_UNKNOWN) &&
        !find_pause(site, reject->ns, own.card))
        begin_pause(site, reject->ns, own.card, reject->ns, now_ms);
    const struct count all = count_all(site);
    if (all.n >= rejects->limit && all.n_spaces > 1 && !find_pause(site, NULL, CARD_UNKNOWN) &&
        !find_pause(site, NULL, all.card))
        begin_pause(site, NULL, all.card, reject->ns, now_ms);
}

static bool settle_recent(struct rejects *rejects, struct site *site, int64_t now_ms)
{
    bool changed = false;

    while (site->recent->len > 0) {
        const struct reject *first = site->recent->pdata[0];
        if (first->since_ms == 0 || now_ms - first->since_ms < rejects->window_ms)
            break;
        change(rejects, site);
        g_ptr_array_remove_index(site->recent, 0);
        changed = true;
    }
    for (guint i = 0; i < site->recent->len; i++) {
        struct reject *reject = site->recent->pdata[i];
        if (reject->since_ms != 0)
            continue;
        change(rejects, site);
        reject->since_ms = now_ms;
        count_reject(rejects, site, reject, now_ms);
        changed = true;
    }
    return changed;
}

static bool settle_pause(struct rejects *rejects, struct site *site, struct pause *pause,
                         const struct ledger *ledger, int64_t now_ms)
{
    if (!pause->what_if && now_ms < pause->until_ms)
        return false;
    const struct node *node = ledger_node(ledger, site->node);
    const bool tried = count_coming(node, site->dialect, pause->ns, pause) > 0;
    const bool known = tried == (pause->tried_ms != 0);
    const bool begins =
        !pause->what_if || (tried && known && now_ms - pause->tried_ms >= REJECTS_TRIAL_MS);
    if (known && !begins)
        return false;
    change(rejects, site);
    if (begins) {
        pause->what_if = true;
        note_former(pause, node);
    } else {
        pause->tried_ms = tried ? now_ms : 0;
    }
    return true;
}

bool rejects_settle(struct rejects *rejects, struct ledger *ledger, int64_t now_ms)
{
    bool any = false;

    now_ms = CLAMP(now_ms, 1, REJECTS_TIME_MAX);
    for (guint i = rejects->roll.entries->len; i > 0; i--) {
        struct site *site = rejects->roll.entries->pdata[i - 1];
        bool changed = settle_recent(rejects, site, now_ms);

        if (failed_places_settle(site->places, now_ms)) {
            change(rejects, site);
            changed = true;
        }
        for (guint j = 0; j < site->pauses->len; j++)
            changed |= settle_pause(rejects, site, site->pauses->pdata[j], ledger, now_ms);
        if (changed) /* somebody may be let in */
            ledger_mark_freed(ledger, site->node);
        any |= changed;
        if (site->recent->len > 0 || site->pauses->len > 0 || site->places->len > 0)
            continue;
        drop_site(rejects, site);
        any = true;
    }
    return any;
}

/* --- the end of pauses ------------------------------------------------------------------------ */

bool rejects_note_start(struct rejects *rejects, const struct allocation *allocation)
{
    bool ended = false;

    for (struct site *site = sites_of(rejects, allocation->node->name); site; site = site->next) {
        if (site->dialect != allocation->dialect)
            continue;
        if (failed_places_note_start(site->places, allocation)) {
            change(rejects, site);
            ended = true;
        }
        for (guint j = site->pauses->len; j > 0; j--) {
            const struct pause *pause = site->pauses->pdata[j - 1];
            if (!pause->what_if || !is_for(pause, allocation->ns) ||
                !is_on(allocation, pause->card) ||
                g_hash_table_contains(pause->former, allocation->uid))
                continue;
            change(rejects, site);
            forget_of(site, pause->ns);
            g_ptr_array_remove_index(site->pauses, j - 1);
            ended = true;
        }
    }
    return ended;
}

bool rejects_resume(struct rejects *rejects, const char *node)
{
    return drop_sites(rejects, node);
}

bool rejects_see_mark(struct rejects *rejects, const char *node, const char *value)
{
    const bool same = g_strcmp0(g_hash_table_lookup(rejects->marks, node), value) == 0;

    if (rejects->limit == 0 || same)
        return false;
    if (value)
        g_hash_table_replace(rejects->marks, g_strdup(node), g_strdup(value));
    else
        g_hash_table_remove(rejects->marks, node);
    return value && rejects_resume(rejects, node);
}

void rejects_forget_node(struct rejects *rejects, const char *node)
{
    g_hash_table_remove(rejects->marks, node);
    rejects_resume(rejects, node);
}

/* --- questions -------------------------------------------------------------------------------- */

bool rejects_concern(const struct rejects *rejects, const struct node *node)
{
    return g_hash_table_size(rejects->nodes) > 0 && node && sites_of(rejects, node->name);
}

/* Whether a node side of the node would read the request. */
static bool reads(const struct node *node, const struct dialect *dialect,
                  const struct request *request)
{
    while (request && (request->dialect != dialect || !node_offers(node, dialect)))
        request = request->alternative;
    return request;
}

static bool is_closed(const struct site *site, const struct pause *pause, const struct node *node)
{
    return !pause->what_if || count_coming(node, site->dialect, pause->ns, pause) > 0;
}

/* As many have been rejected and are on their way as may be lost. */
static bool is_suspect(const struct rejects *rejects, const struct site *site,
                       const struct node *node, const char *ns)
{
    const struct count own = count_of(site, ns), all = count_all(site);

    return (own.n > 0 &&
            own.n + count_coming(node, site->dialect, ns, NULL) > rejects->limit) ||
           (all.n_spaces > 1 &&
            all.n + count_coming(node, site->dialect, NULL, NULL) > rejects->limit);
}

/* `card` CARD_UNKNOWN: the node itself. */
static bool site_closes(const struct rejects *rejects, const struct site *site,
                        const struct node *node, const char *ns, int32_t card)
{
    bool paused = false;

    for (guint i = 0; i < site->pauses->len; i++) {
        const struct pause *pause = site->pauses->pdata[i];
        if (!is_for(pause, ns))
            continue;
        paused = true;
        if (pause->card == card && is_closed(site, pause, node))
            return true;
    }
    return card == CARD_UNKNOWN && !paused && is_suspect(rejects, site, node, ns);
}

static bool closes(const struct rejects *rejects, const struct node *node,
                   const struct request *request, const char *ns, int32_t card)
{
    if (!rejects_concern(rejects, node))
        return false;
    for (const struct site *site = sites_of(rejects, node->name); site; site = site->next) {
        if (reads(node, site->dialect, request) && site_closes(rejects, site, node, ns, card))
            return true;
    }
    return false;
}

bool rejects_close(const struct rejects *rejects, const struct node *node,
                   const struct request *request, const char *ns)
{
    return closes(rejects, node, request, ns, CARD_UNKNOWN);
}

bool rejects_close_card(const struct rejects *rejects, const struct node *node,
                        const struct request *request, const char *ns, int32_t card)
{
    return closes(rejects, node, request, ns, card);
}

bool rejects_leave_places_out(const struct rejects *rejects, const struct node *node,
                              const struct request *request, const char *ns, struct card *card)
{
    bool any = false;

    for (const struct site *site = sites_of(rejects, node->name); site; site = site->next) {
        if (!reads(node, site->dialect, request))
            continue;
        any |= failed_places_concern(site->places, ns, card->index);
        failed_places_leave_out(site->places, ns, card);
    }
    return any;
}

void rejects_flag(const struct rejects *rejects, struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, rejects->nodes);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        ledger_flag(ledger, name);
}
