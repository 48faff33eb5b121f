/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "../faults/sim.h"
#include "../prop/chance.h"
#include "ends.h"
#include "pods.h"

#include <stdlib.h>
#include <string.h>

#define SWITCH "gpuledger.io/switch"
#define UNDER_WAY_US (3 * MINUTE)

static GHashTable *facts;  /* uid -> struct fact * */
static GHashTable *trails; /* what and whose -> GArray of struct point */
static GHashTable *halves; /* group -> struct half * */
static GHashTable *marks;  /* node -> struct mark * */

/* From then on. */
struct point {
    int64_t at_us;
    int value;
};

struct half {
    bool is;
    int64_t since_us, until_us;
};

struct mark {
    char *text; /* the last that there was */
    bool begun; /* one in whose place it came was due: that switch goes on */
    int64_t until_us;
};

static void free_fact(gpointer data)
{
    struct fact *fact = data;

    g_free(fact->uid);
    g_free(fact->ns);
    g_free(fact->name);
    g_free(fact->node);
    g_free(fact->group);
    g_free(fact);
}

static void free_trail(gpointer trail)
{
    g_array_unref(trail);
}

static void free_mark(gpointer data)
{
    g_free(((struct mark *)data)->text);
    g_free(data);
}

void facts_reset(void)
{
    g_clear_pointer(&facts, g_hash_table_unref);
    g_clear_pointer(&trails, g_hash_table_unref);
    g_clear_pointer(&halves, g_hash_table_unref);
    g_clear_pointer(&marks, g_hash_table_unref);
    facts = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_fact);
    trails = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_trail);
    halves = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_mark);
}

const struct fact *facts_find(const char *uid)
{
    return uid ? g_hash_table_lookup(facts, uid) : NULL;
}

static bool is_recent(int64_t at_us)
{
    return sim_now_us() - at_us <= ends_lag_us();
}

/* --- trails ------------------------------------------------------------------------------------------ */

static GArray *trail_of(const char *what, const char *whose)
{
    g_autofree char *key = g_strconcat(what, " ", whose, NULL);
    GArray *trail = g_hash_table_lookup(trails, key);

    if (!trail) {
        trail = g_array_new(FALSE, FALSE, sizeof(struct point));
        g_hash_table_insert(trails, g_steal_pointer(&key), trail);
    }
    return trail;
}

static void note(GArray *trail, int value)
{
    const struct point point = {sim_now_us(), value};

    if (trail->len > 0 && g_array_index(trail, struct point, trail->len - 1).value == value)
        return;
    if (trail->len > 200)
        g_array_remove_range(trail, 0, 100);
    g_array_append_val(trail, point);
}

static int extreme(GArray *trail, bool most)
{
    int found = 0;

    for (guint i = trail->len; i-- > 0;) {
        const struct point *point = &g_array_index(trail, struct point, i);
        const int value = point->value;
        found = i + 1 == trail->len ? value : most ? MAX(found, value) : MIN(found, value);
        if (!is_recent(point->at_us))
            break; /* what was so before is long over */
    }
    return found;
}

int facts_most_held(const char *ns)
{
    return extreme(trail_of("held", ns), true);
}

int facts_least_held(const char *ns)
{
    return extreme(trail_of("held", ns), false);
}

int facts_most_min(const char *ns)
{
    return extreme(trail_of("min", ns), true);
}

int facts_least_min(const char *ns)
{
    return extreme(trail_of("min", ns), false);
}

void facts_min(const char *ns, int cards)
{
    note(trail_of("min", ns), cards * UNITS);
}

/* --- what follows from pods -------------------------------------------------------------------------- */

static void add_up(const char *ns)
{
    GHashTableIter iter;
    gpointer value;
    int held = 0;

    g_hash_table_iter_init(&iter, facts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct fact *fact = value;
        if (fact->exists && fact->node && !fact->ends && g_str_equal(fact->ns, ns))
            held += fact->units;
    }
    note(trail_of("held", ns), held);
}

static void judge_group(const char *group)
{
    struct half *half = g_hash_table_lookup(halves, group);
    GHashTableIter iter;
    gpointer value;
    int bound = 0, stay = 0, wait = 0, min = 0;

    g_hash_table_iter_init(&iter, facts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct fact *fact = value;
        if (!fact->exists || g_strcmp0(fact->group, group) != 0)
            continue;
        min = MAX(min, fact->min);
        bound += fact->node != NULL;
        stay += fact->node && !fact->ends;
        wait += !fact->node && !fact->ends && fact->asks;
    }
    if (!half) {
        half = g_new0(struct half, 1);
        g_hash_table_insert(halves, g_strdup(group), half);
    }
    const bool is = bound > 0 && stay < min && stay + wait >= min;
    if (is && !half->is && !is_recent(half->until_us))
        half->since_us = sim_now_us();
    if (half->is)
        half->until_us = sim_now_us();
    half->is = is;
}

bool facts_half(const char *group, int64_t for_us)
{
    const struct half *half = group ? g_hash_table_lookup(halves, group) : NULL;

    return half && (half->is || is_recent(half->until_us)) &&
           sim_now_us() - half->since_us >= for_us;
}

static void tell_pod(const char *type, cJSON *pod)
{
    const char *uid = api_text(pod, "metadata", "uid"), *group = pod_word(pod, GANG "name");
    struct fact *fact = g_hash_table_lookup(facts, uid);
    const char *least = pod_word(pod, GANG "min-available");

    if (!fact) {
        fact = g_new0(struct fact, 1);
        fact->uid = g_strdup(uid);
        fact->ns = g_strdup(api_text(pod, "metadata", "namespace"));
        fact->name = g_strdup(api_text(pod, "metadata", "name"));
        fact->units = pod_units(pod);
        fact->created_us = sim_now_us();
        fact->group = group ? g_strdup_printf("%s/%s", fact->ns, group) : NULL;
        g_hash_table_insert(facts, fact->uid, fact);
    }
    const bool pended = fact->exists && !fact->node && !fact->ends;
    fact->min = least ? atoi(least) : 0;
    fact->exists = !g_str_equal(type, "DELETED");
    fact->ends = pod_ends(pod);
    fact->asks = pod_asks(pod);
    fact->ours = pod_word(pod, "gpuledger.io/gang") != NULL;
    if (!fact->node)
        fact->node = g_strdup(pod_node(pod));
    if (pended)
        fact->waited_us = sim_now_us();
    if (!fact->exists)
        fact->gone_us = sim_now_us();
    add_up(fact->ns);
    if (fact->group)
        judge_group(fact->group);
}

bool facts_waits(const struct fact *fact)
{
    return fact && ((fact->exists && !fact->node && !fact->ends) || is_recent(fact->waited_us));
}

int64_t facts_waits_since(const struct fact *fact)
{
    int64_t since_us = fact->created_us;
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, facts);
    while (fact->group && g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct fact *other = value;
        if (g_strcmp0(other->group, fact->group) == 0 && facts_waits(other))
            since_us = MIN(since_us, other->created_us);
    }
    return since_us;
}

void facts_binding_sent(const char *uid)
{
    struct fact *fact = uid ? g_hash_table_lookup(facts, uid) : NULL;

    if (fact)
        fact->sent_us = sim_now_us();
}

int facts_under_way(const char *ns)
{
    GHashTableIter iter;
    gpointer value;
    int units = 0;

    g_hash_table_iter_init(&iter, facts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct fact *fact = value;
        if (fact->exists && !fact->node && fact->sent_us > 0 && g_str_equal(fact->ns, ns) &&
            sim_now_us() - fact->sent_us <= UNDER_WAY_US)
            units += fact->units;
    }
    return units;
}

void facts_evicted(const char *uid)
{
    struct fact *fact = g_hash_table_lookup(facts, uid);

    if (!fact || fact->evicted || !fact->node)
        return;
    fact->evicted = true;
    GArray *trail = trail_of("held", fact->ns);
    for (guint i = 0; i + 1 < trail->len; i++)
        g_array_index(trail, struct point, i).value -= fact->units;
}

/* --- nodes ------------------------------------------------------------------------------------------- */

static bool is_due(const struct mark *mark)
{
    const char *at = mark->text ? strrchr(mark->text, '@') : NULL;
    g_autoptr(GDateTime) due = at ? g_date_time_new_from_iso8601(at + 1, NULL) : NULL;

    return mark->begun || (due && g_date_time_to_unix(due) <= g_get_real_time() / 1000000);
}

static void tell_node(cJSON *node)
{
    const char *name = api_text(node, "metadata", "name");
    const char *text = pod_word(node, SWITCH);
    struct mark *mark = g_hash_table_lookup(marks, name);

    if (!mark) {
        mark = g_new0(struct mark, 1);
        g_hash_table_insert(marks, g_strdup(name), mark);
    }
    if (!text) {
        mark->until_us = MIN(mark->until_us, sim_now_us());
        return;
    }
    if (g_strcmp0(mark->text, text) != 0) {
        mark->begun = mark->until_us == INT64_MAX && is_due(mark);
        g_free(mark->text);
        mark->text = g_strdup(text);
    }
    mark->until_us = INT64_MAX;
}

bool facts_switched(const char *node)
{
    const struct mark *mark = node ? g_hash_table_lookup(marks, node) : NULL;

    return mark && is_due(mark) && (mark->until_us == INT64_MAX || is_recent(mark->until_us));
}

void facts_told(const char *path, const char *type, cJSON *object)
{
    ends_count_event();
    if (strstr(path, "/pods/"))
        tell_pod(type, object);
    else if (g_str_has_prefix(path, "/api/v1/nodes/"))
        tell_node(object);
}
