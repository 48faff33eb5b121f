/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each node and dialect, and copies of it. */
#include "gate/node_backoff/failed_places.h"
#include "gate/node_backoff/node_backoff_state.h"
#include "core/ledger.h"

#include <string.h>

static void rejected_free(gpointer data)
{
    struct rejected *rejected = data;

    g_free(rejected->uid);
    g_free(rejected->ns);
    g_free(rejected);
}

static void backoff_free(gpointer data)
{
    struct backoff *backoff = data;

    g_free(backoff->ns);
    g_free(backoff->author);
    g_hash_table_unref(backoff->former);
    g_free(backoff);
}

/* With those of the node that follow it. */
static void sites_free(gpointer data)
{
    for (struct site *site = data, *next; site; site = next) {
        next = site->next;
        g_free(site->node);
        g_ptr_array_unref(site->recent);
        g_ptr_array_unref(site->backoffs);
        g_ptr_array_unref(site->places);
        g_free(site);
    }
}

struct rejected *rejected_new(const char *uid, const char *ns, int32_t card, int64_t since_ms)
{
    struct rejected *rejected = g_new0(struct rejected, 1);

    *rejected = (struct rejected){g_strdup(uid), g_strdup(ns), card, since_ms};
    return rejected;
}

struct backoff *backoff_new(const char *ns, int32_t card, int64_t until_ms, int64_t length_ms)
{
    struct backoff *backoff = g_new0(struct backoff, 1);

    *backoff =
        (struct backoff){.ns = g_strdup(ns),
                         .card = card,
                         .until_ms = until_ms,
                         .length_ms = length_ms,
                         .former = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    return backoff;
}

struct node_backoff *node_backoff_new(const struct part_base *base,
                                      const struct node_backoff_settings *settings)
{
    struct node_backoff *self = g_new0(struct node_backoff, 1);

    self->base = base;
    self->limit = settings ? settings->limit : 0;
    self->window_ms = settings ? settings->window_ms : 0;
    roll_init(&self->roll);
    self->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, sites_free);
    self->resumed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return self;
}

void node_backoff_free(struct node_backoff *self)
{
    g_hash_table_unref(self->nodes);
    g_hash_table_unref(self->resumed);
    roll_clear(&self->roll);
    g_free(self);
}

/* The gate is asked about a node as long as it has sites. */
static void mark(struct node_backoff *self, const char *node, bool on)
{
    if (self->base)
        ledger_mark(self->base->ledger, node, self->base->bit, on);
}

struct site *node_backoff_sites(const struct node_backoff *self, const char *node)
{
    return g_hash_table_lookup(self->nodes, node);
}

static void set_first(struct node_backoff *self, const char *node, struct site *first)
{
    gpointer key = NULL;

    if (!g_hash_table_steal_extended(self->nodes, node, &key, NULL))
        key = g_strdup(node);
    g_hash_table_insert(self->nodes, key, first);
}

/* In order of the dialect's name among those of the node. */
static void insert_site(struct node_backoff *self, struct site *site)
{
    struct site *before = NULL;

    site->next = node_backoff_sites(self, site->node);
    while (site->next && strcmp(site->next->dialect->name, site->dialect->name) < 0) {
        before = site->next;
        site->next = before->next;
    }
    if (before)
        before->next = site;
    else
        set_first(self, site->node, site);
}

struct site *node_backoff_site(struct node_backoff *self, const char *node,
                               const struct dialect *dialect)
{
    for (struct site *site = node_backoff_sites(self, node); site; site = site->next) {
        if (site->dialect == dialect)
            return site;
    }
    struct site *site = g_new0(struct site, 1);
    site->node = g_strdup(node);
    site->dialect = dialect;
    site->recent = g_ptr_array_new_with_free_func(rejected_free);
    site->backoffs = g_ptr_array_new_with_free_func(backoff_free);
    site->places = failed_places_new();
    insert_site(self, site);
    mark(self, node, true);
    roll_add(&self->roll, &site->entry);
    return site;
}

void node_backoff_change(struct node_backoff *self, struct site *site)
{
    roll_change(&self->roll, &site->entry);
}

/* All of a node. */
bool node_backoff_drop_node(struct node_backoff *self, const char *node)
{
    for (struct site *site = node_backoff_sites(self, node); site; site = site->next)
        roll_remove(&self->roll, &site->entry);
    mark(self, node, false);
    return g_hash_table_remove(self->nodes, node);
}

void node_backoff_drop_site(struct node_backoff *self, struct site *site)
{
    struct site *before = node_backoff_sites(self, site->node);

    if (before == site && !site->next) {
        node_backoff_drop_node(self, site->node);
        return;
    }
    roll_remove(&self->roll, &site->entry);
    while (before != site && before->next != site)
        before = before->next;
    if (before == site)
        set_first(self, site->node, site->next);
    else
        before->next = site->next;
    site->next = NULL;
    sites_free(site);
}

void node_backoff_clear(struct node_backoff *self)
{
    for (guint i = 0; i < self->roll.entries->len; i++)
        mark(self, ((const struct site *)self->roll.entries->pdata[i])->node, false);
    g_ptr_array_set_size(self->roll.entries, 0);
    g_hash_table_remove_all(self->nodes);
}

/* --- copies ----------------------------------------------------------------------------------- */

static void copy_backoff(struct site *site, const struct backoff *from)
{
    struct backoff *backoff = backoff_new(from->ns, from->card, from->until_ms, from->length_ms);
    GHashTableIter iter;
    gpointer uid;

    backoff->probing = from->probing;
    backoff->probed_ms = from->probed_ms;
    backoff->author = g_strdup(from->author);
    g_hash_table_iter_init(&iter, from->former);
    while (g_hash_table_iter_next(&iter, &uid, NULL))
        g_hash_table_add(backoff->former, g_strdup(uid));
    g_ptr_array_add(site->backoffs, backoff);
}

/* One that is there already is as the other is now. */
void node_backoff_copy_site(const struct roll_entry *entry, void *data)
{
    const struct site *known = (const struct site *)entry;
    struct site *site = node_backoff_site(data, known->node, known->dialect);

    site->total = known->total;
    site->last = known->last;
    g_ptr_array_set_size(site->recent, 0);
    g_ptr_array_set_size(site->backoffs, 0);
    for (guint i = 0; i < known->recent->len; i++) {
        const struct rejected *rejected = known->recent->pdata[i];
        g_ptr_array_add(site->recent, rejected_new(rejected->uid, rejected->ns, rejected->card,
                                                   rejected->since_ms));
    }
    for (guint i = 0; i < known->backoffs->len; i++)
        copy_backoff(site, known->backoffs->pdata[i]);
    failed_places_copy(site->places, known->places);
}

bool node_backoff_copy(void *self, const void *from_self, struct part_cursor *at)
{
    const struct node_backoff *from = from_self;
    const struct roll_entry *entry;

    for (int i = 0; i < NODE_BACKOFF_COPIED && (entry = roll_walk(&from->roll, &at->members)); i++)
        node_backoff_copy_site(entry, self);
    return at->members > 0;
}
