/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/hints.h"
#include "core/ledger.h"

#include <string.h>

/* Those who go to one node; there is none without any. */
struct line {
    GPtrArray *hints; /* in order */
    int64_t booked_ms, pace_ms; /* the last of them, and how long that was after the one before; 0: none */
};

struct hints {
    GHashTable *pods;       /* uid -> struct hint * */
    GHashTable *nodes;      /* name -> struct line *: those that are not kept */
    GHashTable *kept;       /* name -> GPtrArray of struct hint *, in order; none is empty */
    GHashTable *namespaces; /* name -> how many */
    GPtrArray *left; /* names of nodes for which binds have waited in vain, or that were kept so */
    int64_t earliest_ms;    /* none ends earlier; INT64_MAX: there are none */
    uint64_t number;
};

static void hint_free(gpointer data)
{
    struct hint *hint = data;

    g_free(hint->uid);
    g_free(hint->ns);
    g_free(hint->node);
    g_free(hint->asked);
    request_free(hint->request);
    g_free(hint);
}

static void free_array(gpointer data)
{
    g_ptr_array_unref(data);
}

static void line_free(gpointer data)
{
    struct line *line = data;

    g_ptr_array_unref(line->hints);
    g_free(line);
}

struct hints *hints_new(void)
{
    struct hints *hints = g_new0(struct hints, 1);

    hints->pods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, hint_free);
    hints->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, line_free);
    hints->kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_array);
    hints->namespaces = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    hints->left = g_ptr_array_new_with_free_func(g_free);
    hints->earliest_ms = INT64_MAX;
    return hints;
}

void hints_free(struct hints *hints)
{
    g_ptr_array_unref(hints->left);
    g_hash_table_unref(hints->namespaces);
    g_hash_table_unref(hints->nodes);
    g_hash_table_unref(hints->kept);
    g_hash_table_unref(hints->pods);
    g_free(hints);
}

/* --- where pods go -------------------------------------------------------------------------- */

static void leave_node(struct hints *hints, struct hint *hint)
{
    if (!hint->node)
        return;
    GHashTable *nodes = hint->kept ? hints->kept : hints->nodes;
    gpointer entry = g_hash_table_lookup(nodes, hint->node);
    GPtrArray *list = hint->kept ? entry : ((struct line *)entry)->hints;
    if (hint->waits || hint->kept)
        g_ptr_array_add(hints->left, g_strdup(hint->node));
    hint->waits = hint->kept = false;
    g_ptr_array_remove(list, hint);
    if (list->len == 0)
        g_hash_table_remove(nodes, hint->node);
    g_clear_pointer(&hint->node, g_free);
}

/* What it leaves is not free. */
static void leave_quietly(struct hints *hints, struct hint *hint)
{
    const guint n_left = hints->left->len;

    leave_node(hints, hint);
    g_ptr_array_set_size(hints->left, (gint)n_left);
}

static void keep(struct hints *hints, struct hint *hint)
{
    GPtrArray *list = g_hash_table_lookup(hints->kept, hint->node);

    if (!list) {
        list = g_ptr_array_new();
        g_hash_table_insert(hints->kept, g_strdup(hint->node), list);
    }
    g_ptr_array_add(list, hint);
    hint->kept = true;
}

static void enter_node(struct hints *hints, struct hint *hint, const struct hint_about *about)
{
    const char *node = about->node;
    struct line *line = g_hash_table_lookup(hints->nodes, node);

    hint->node = g_strdup(node);
    if (about->kept) {
        keep(hints, hint);
        return;
    }
    if (!line) {
        line = g_new0(struct line, 1);
        line->hints = g_ptr_array_new();
        g_hash_table_insert(hints->nodes, g_strdup(node), line);
    }
    g_ptr_array_add(line->hints, hint);
}

/* --- how many ------------------------------------------------------------------------------- */

static guint count_of(const struct hints *hints, const char *ns)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(hints->namespaces, ns));
}

static void count(struct hints *hints, const char *ns, int sign)
{
    const guint n = count_of(hints, ns) + (guint)sign;

    if (n > 0)
        g_hash_table_insert(hints->namespaces, g_strdup(ns), GUINT_TO_POINTER(n));
    else
        g_hash_table_remove(hints->namespaces, ns);
}

static void drop(struct hints *hints, struct hint *hint)
{
    leave_node(hints, hint);
    count(hints, hint->ns, -1);
    g_hash_table_remove(hints->pods, hint->uid);
}

/* Of the namespace, or of all, the one that was noted the longest ago. */
static void drop_oldest(struct hints *hints, const char *ns)
{
    struct hint *oldest = NULL;
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, hints->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct hint *hint = value;
        if ((!ns || g_str_equal(hint->ns, ns)) && (!oldest || hint->number < oldest->number))
            oldest = hint;
    }
    if (oldest)
        drop(hints, oldest);
}

static const char *find_largest(const struct hints *hints)
{
    const char *largest = NULL;
    GHashTableIter iter;
    gpointer ns, n;
    guint most = 0;

    g_hash_table_iter_init(&iter, hints->namespaces);
    while (g_hash_table_iter_next(&iter, &ns, &n)) {
        if (GPOINTER_TO_UINT(n) > most ||
            (GPOINTER_TO_UINT(n) == most && strcmp(ns, largest) < 0)) {
            most = GPOINTER_TO_UINT(n);
            largest = ns;
        }
    }
    return largest;
}

/* One more of the namespace is coming: it gives up one of its own, or whoever has most does. */
static void make_room(struct hints *hints, const char *ns)
{
    if (count_of(hints, ns) >= HINTS_NAMESPACE_MAX)
        drop_oldest(hints, ns);
    else if (g_hash_table_size(hints->pods) >= HINTS_MAX)
        drop_oldest(hints, find_largest(hints));
}

/* --- one pod -------------------------------------------------------------------------------- */

struct hint *hints_find(const struct hints *hints, const char *uid)
{
    return uid ? g_hash_table_lookup(hints->pods, uid) : NULL;
}

static struct hint *add(struct hints *hints, const struct hint_about *about)
{
    const char *ns = about->ns ? about->ns : "";
    struct hint *hint = g_new0(struct hint, 1);

    make_room(hints, ns);
    hint->uid = g_strdup(about->uid);
    hint->ns = g_strdup(ns);
    g_hash_table_insert(hints->pods, hint->uid, hint);
    count(hints, ns, 1);
    return hint;
}

struct hint *hints_note(struct hints *hints, const struct hint_about *about)
{
    struct hint *hint = hints_find(hints, about->uid);

    if (!hint)
        hint = add(hints, about);
    if (hint->kept && about->kept && g_str_equal(hint->node, about->node))
        leave_quietly(hints, hint); /* it is the last in order now */
    else if (g_strcmp0(hint->node, about->node) != 0 || hint->kept != about->kept)
        leave_node(hints, hint);
    if (!hint->node && about->node)
        enter_node(hints, hint, about);
    if (!hint->request || !request_equal(hint->request, about->request)) {
        request_free(hint->request);
        hint->request = request_dup(about->request);
    }
    hint->number = ++hints->number;
    hint->until_ms = about->until_ms;
    hints->earliest_ms = MIN(hints->earliest_ms, hint->until_ms);
    return hint;
}

void hint_ask(struct hint *hint, const struct ledger *ledger, uint32_t place)
{
    if (hint->n_asked <= place) {
        const uint32_t n = (MAX(ledger_places(ledger), place + 1) + 7) / 8;
        hint->asked = g_realloc(hint->asked, n);
        memset(hint->asked + hint->n_asked / 8, 0, n - hint->n_asked / 8);
        hint->n_asked = n * 8;
    }
    hint->asked[place / 8] |= (uint8_t)(1 << place % 8);
}

bool hint_has_asked(const struct hint *hint, uint32_t place)
{
    return place < hint->n_asked && (hint->asked[place / 8] >> place % 8 & 1) != 0;
}

void hints_forget(struct hints *hints, const char *uid)
{
    struct hint *hint = hints_find(hints, uid);

    if (hint)
        drop(hints, hint);
}

void hints_forget_all(struct hints *hints)
{
    g_autoptr(GPtrArray) over = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;

    hints->earliest_ms = INT64_MAX;
    g_hash_table_iter_init(&iter, hints->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct hint *hint = value;
        if (hint->kept)
            hints->earliest_ms = MIN(hints->earliest_ms, hint->until_ms);
        else
            g_ptr_array_add(over, hint);
    }
    for (guint i = 0; i < over->len; i++)
        drop(hints, over->pdata[i]);
    g_ptr_array_set_size(hints->left, 0);
}

static void end_late(struct hints *hints, int64_t now_ms)
{
    g_autoptr(GPtrArray) over = NULL;
    GHashTableIter iter;
    gpointer value;

    over = g_ptr_array_new();
    hints->earliest_ms = INT64_MAX;
    g_hash_table_iter_init(&iter, hints->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct hint *hint = value;
        if (hint->until_ms <= now_ms)
            g_ptr_array_add(over, hint);
        else
            hints->earliest_ms = MIN(hints->earliest_ms, hint->until_ms);
    }
    for (guint i = 0; i < over->len; i++)
        drop(hints, over->pdata[i]);
}

bool hints_end(struct hints *hints, struct ledger *ledger, int64_t now_ms)
{
    if (now_ms >= hints->earliest_ms)
        end_late(hints, now_ms);
    const bool any = hints->left->len > 0;
    for (guint i = 0; i < hints->left->len; i++)
        ledger_mark_freed(ledger, hints->left->pdata[i]);
    g_ptr_array_set_size(hints->left, 0);
    return any;
}

/* NULL: nobody is on the way there. */
static struct line *find_line(const struct hints *hints, const char *node)
{
    return g_hash_table_size(hints->nodes) == 0 ? NULL : g_hash_table_lookup(hints->nodes, node);
}

void hints_book(struct hints *hints, const char *uid, const char *node, int64_t now_ms)
{
    struct hint *hint = hints_find(hints, uid);
    if (hint) {
        if (g_strcmp0(hint->node, node) == 0) /* not in vain */
            leave_quietly(hints, hint);
        drop(hints, hint);
    }
    struct line *line = find_line(hints, node);
    if (!line)
        return;
    line->pace_ms = line->booked_ms > 0 ? MAX(now_ms - line->booked_ms, 1) : 0;
    line->booked_ms = now_ms;
}

bool hints_end_soon(const struct hints *hints, const char *node, int64_t now_ms)
{
    const struct line *line = find_line(hints, node);

    if (!line || line->pace_ms == 0)
        return false;
    return line->pace_ms <= HINT_BACK_MS / line->hints->len &&
           now_ms - line->booked_ms <= 2 * line->pace_ms; /* it goes on */
}

const GPtrArray *hints_kept_on(const struct hints *hints, const char *node)
{
    return !hints || g_hash_table_size(hints->kept) == 0 ? NULL
                                                         : g_hash_table_lookup(hints->kept, node);
}

bool hints_keep(const struct hints *hints, const char *uid)
{
    const struct hint *hint = hints ? hints_find(hints, uid) : NULL;

    return hint && hint->kept;
}

static gint compare_numbers(gconstpointer a, gconstpointer b)
{
    const struct hint *one = *(const struct hint *const *)a;
    const struct hint *other = *(const struct hint *const *)b;

    return (one->number > other->number) - (one->number < other->number);
}

GPtrArray *hints_list_kept(const struct hints *hints)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, hints->kept);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_extend(list, value, NULL, NULL);
    g_ptr_array_sort(list, compare_numbers);
    return list;
}

void hints_copy_kept(struct hints *hints, const struct hints *from)
{
    g_autoptr(GPtrArray) kept = hints_list_kept(from);

    for (guint i = 0; i < kept->len; i++) {
        const struct hint *one = kept->pdata[i];
        hints_note(hints, &(struct hint_about){one->uid, one->ns, one->node, one->request,
                                               one->until_ms, true});
    }
}

const GPtrArray *hints_of(const struct hints *hints, const char *node)
{
    const struct line *line = find_line(hints, node);

    return line ? line->hints : NULL;
}

void hints_flag(const struct hints *hints, struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, hints->nodes);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        ledger_flag(ledger, name);
    g_hash_table_iter_init(&iter, hints->kept);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        ledger_flag(ledger, name);
}
