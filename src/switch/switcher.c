/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/switcher.h"

#include "base/log.h"
#include "base/small_file.h"
#include "base/worker.h"
#include "core/fail.h"
#include "core/node_traits.h"
#include "kube/clock.h"
#include "kube/yaml_document.h"
#include "store/cluster.h"
#include "store/node_walk.h"

#include <string.h>

#define INTERVAL_MS 5000
#define CALM_MS 60000 /* between looks at nodes of which no switch was announced */
#define FILE_MAX ((size_t)1 << 20)

struct switcher {
    struct switcher_options options;
    struct worker worker;
    int64_t calm_ms;      /* when those are looked at again */
    GHashTable *observed; /* name of a node -> what was said last that would be done there */
};

struct calendar *calendar_load(const char *path, const char *replicas, GError **error)
{
    g_autofree char *text = small_file_read(path, FILE_MAX, NULL, error);
    cJSON *tree = text ? yaml_load(text, strlen(text), error) : NULL;
    struct calendar *calendar = tree ? calendar_new(tree, replicas, error) : NULL;

    cJSON_Delete(tree);
    if (!calendar)
        g_prefix_error(error, "file '%s': ", path);
    return calendar;
}

/* --- whom to look at ---------------------------------------------------------------------------- */

struct choice {
    const struct calendar *calendar;
    bool calm; /* also those of which nothing was announced */
    int64_t now_s;
    GPtrArray *names;
};

/* Also of a node whose annotations somebody has taken away. */
static bool is_tainted(const struct node *node)
{
    for (uint32_t i = 0; node->traits && i < node->traits->n_taints; i++) {
        if (g_strcmp0(node->traits->taints[i].key, SWITCH_TAINT) == 0)
            return true;
    }
    return false;
}

/* Under the store's lock. */
static void choose(const struct node *node, void *data)
{
    const struct choice *choice = data;
    struct calendar_answer answer;

    if (!node->present)
        return;
    if (node->switches_ns != 0 || is_tainted(node) ||
        (choice->calm && choice->calendar && node->traits &&
         calendar_ask(choice->calendar, &node->traits->labels, choice->now_s, &answer)))
        g_ptr_array_add(choice->names, g_strdup(node->name));
}

/* --- one node ------------------------------------------------------------------------------------ */

static void report(struct switcher *switcher, const char *node, const struct node_look *look)
{
    struct cluster *cluster = switcher->options.with.cluster;
    const bool failed =
        look->event == SWITCH_EVENT_GIVEN_UP || look->event == SWITCH_EVENT_ROLLED_BACK;
    const char *label = look->label ? look->label : "", *mark = look->mark ? look->mark : "";
    const char *why = look->waits ? look->waits : "";

    if (look->n_evicted > 0)
        log_event(LOG_LEVEL_INFO, "pods evicted for a switch", LOG_TEXT("node", node),
                  LOG_NUMBER("pods", look->n_evicted));
    if (look->unread)
        log_event_limited(LOG_LEVEL_WARN, "no pod is evicted for a switch", LOG_TEXT("node", node),
                          LOG_TEXT("why", look->unread));
    if (look->event == SWITCH_EVENT_NONE)
        return;
    metrics_count(COUNTER_SWITCHES, look->event);
    log_event(failed ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "switch", LOG_TEXT("node", node),
              LOG_TEXT("step", switch_events[look->event]), LOG_TEXT("label", label),
              LOG_TEXT("mark", mark), LOG_TEXT("why", why));
    if (!failed)
        return;
    g_autofree char *note =
        g_strdup_printf("%s was %s: %s", mark,
                        look->event == SWITCH_EVENT_GIVEN_UP ? "given up" : "rolled back", why);
    pod_event_post(
        cluster,
        &(struct pod_event){.cause = POD_EVENT_SWITCH, .name = node, .uid = node, .note = note});
}

/* What it would do, once for each step of a node. */
static void report_observed(struct switcher *switcher, const char *node,
                            const struct node_look *look)
{
    const char *label = look->label ? look->label : "", *mark = look->mark ? look->mark : "";
    char *told = g_strdup_printf("%s %s", switch_events[look->event], mark);

    if (g_strcmp0(g_hash_table_lookup(switcher->observed, node), told) == 0) {
        g_free(told);
        return;
    }
    g_hash_table_replace(switcher->observed, g_strdup(node), told);
    if (look->event == SWITCH_EVENT_NONE)
        return;
    for (guint i = 0; i < look->n_holders; i++)
        metrics_count_eviction(ENDER_SWITCH, EVICTION_OUTCOME_OBSERVED);
    log_event(LOG_LEVEL_INFO, "a node would be switched (--evictions-observe)",
              LOG_TEXT("node", node), LOG_TEXT("step", switch_events[look->event]),
              LOG_TEXT("label", label), LOG_TEXT("mark", mark),
              LOG_NUMBER("pods", look->n_holders));
}

/* Whether somebody has to look. */
static bool look_at(struct switcher *switcher, const char *node, uint64_t term)
{
    const bool observes = permits_observe(switcher->options.with.permits, ENDER_SWITCH);
    struct node_switch with = switcher->options.with;
    struct node_look look;
    g_autoptr(GError) failure = NULL;

    with.leadership = switcher->options.leadership;
    with.term = term;
    with.dry_run = observes;
    const enum outcome outcome = node_switch_look(&with, node, NULL, &look, &failure);
    const bool stuck = look.stuck;

    if (outcome == OUTCOME_OK && observes)
        report_observed(switcher, node, &look);
    else if (outcome == OUTCOME_OK)
        report(switcher, node, &look);
    else if (outcome != OUTCOME_CONFLICT && outcome != OUTCOME_NOT_FOUND)
        log_event_limited(LOG_LEVEL_WARN, "a node cannot be switched", LOG_TEXT("node", node),
                          LOG_TEXT("why", failure->message));
    node_look_clear(&look);
    return stuck;
}

static gboolean is_not_among(gpointer node, gpointer told, gpointer names)
{
    return !g_ptr_array_find_with_equal_func(names, node, g_str_equal, NULL);
}

static void look_at_all(struct switcher *switcher, uint64_t term)
{
    struct store *store = switcher->options.with.store;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const bool calm = clock_ms() >= switcher->calm_ms;
    int64_t n_stuck = 0;

    struct choice choice = {switcher->options.with.calendar, calm,
                            g_get_real_time() / G_USEC_PER_SEC, names};
    node_walk_all(store, choose, &choice);
    if (calm) { /* these are all that there are */
        switcher->calm_ms = clock_ms() + CALM_MS;
        g_hash_table_foreach_remove(switcher->observed, is_not_among, names);
    }
    for (guint i = 0; i < names->len && worker_goes_on(&switcher->worker) &&
                      leadership_term(switcher->options.leadership) == term;
         i++)
        n_stuck += look_at(switcher, names->pdata[i], term);
    metrics_set(GAUGE_SWITCHES_STUCK, n_stuck);
}

/* --- the thread ----------------------------------------------------------------------------------- */

static void *run(void *data)
{
    struct switcher *switcher = data;
    const int64_t interval_ms = switcher->options.interval_ms;

    do {
        if (!store_is_synced(switcher->options.with.store))
            continue;
        const uint64_t term = leadership_term(switcher->options.leadership);
        if (term != 0)
            look_at_all(switcher, term);
        else
            metrics_set(GAUGE_SWITCHES_STUCK, 0); /* whoever serves counts */
    } while (worker_rest(&switcher->worker, interval_ms > 0 ? interval_ms : INTERVAL_MS));
    return NULL;
}

struct switcher *switcher_start(const struct switcher_options *options, GError **error)
{
    struct switcher *switcher = g_new0(struct switcher, 1);

    switcher->options = *options;
    switcher->options.with.calendar = options->take_calendar;
    switcher->observed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    worker_init(&switcher->worker);
    if (worker_start(&switcher->worker, run, switcher, error))
        return switcher;
    switcher_free(switcher);
    return NULL;
}

void switcher_free(struct switcher *switcher)
{
    if (!switcher)
        return;
    worker_stop(&switcher->worker);
    worker_release(&switcher->worker);
    calendar_free(switcher->options.take_calendar);
    g_hash_table_unref(switcher->observed);
    g_free(switcher);
}
