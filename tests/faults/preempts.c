/* SPDX-License-Identifier: Apache-2.0 */
#include "preempts.h"
#include "../unit/objects.h"

#include "../prop/chance.h"
#include "sim.h"

#include <string.h>

#define MS 1000
#define BUDGETS 6

static uint64_t n_chosen;

/* --- calls ---------------------------------------------------------------------------------- */

static void append_victims(GString *text, int node, bool whole)
{
    const char *comma = "";

    g_string_append(text, "{\"Pods\":[");
    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &server.pods[i];
        if (!pod->exists || pod->node != node || !chance_percent(25))
            continue;
        g_autofree char *object = server_pod_json(pod);
        if (whole)
            g_string_append_printf(text, "%s%s", comma, object);
        else
            g_string_append_printf(text, "%s{\"UID\":\"%s\"}", comma, pod->uid);
        comma = ",";
    }
    if (!whole && chance_percent(10))
        g_string_append_printf(text, "%s{\"UID\":\"nobody\"}", comma);
    g_string_append_printf(text, "],\"NumPDBViolations\":%u}", chance_below(3));
}

void preempts_call(struct extender *extender, const struct pod *pod)
{
    const bool whole = chance_percent(30);
    g_autofree char *object = server_pod_json(pod);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    g_string_printf(body, "{\"Pod\":%s,\"%s\":{", object,
                    whole ? "NodeNameToVictims" : "NodeNameToMetaVictims");
    for (int node = 0; node < NODES; node++) {
        g_string_append_printf(body, "%s\"n%d\":", node ? "," : "", node);
        append_victims(body, node, whole);
    }
    g_string_append(body, "}}");
    if (extender_preempt(extender, body->str, body->len, reply, &error))
        n_chosen += strstr(reply->str, "\"UID\"") != NULL;
    sim_trace("preempt %s: %s", pod->uid, error ? error->message : reply->str);
}

uint64_t preempts_n_chosen(void)
{
    return n_chosen;
}

/* --- budgets -------------------------------------------------------------------------------- */

/* Those of more than one pod's label overlap. */
static void put_budget(struct store *store, int i)
{
    static const char *const values[] = {"a0", "a1", "a2"};
    const struct string_pair label = {"app", values[i % 3]}, disrupted = {"p1", "2026-01-01T00:00:00Z"};
    struct selector_expression expression = {
        .key = "app",
        .operator =(enum selector_operator) chance_below(SELECTOR_N),
        .values = (const char **)values,
        .n_values = chance_below(3),
    };
    g_autofree char *name = g_strdup_printf("b%d", i);

    store_put_budget(store, &(struct budget_view){
                                .ns = "ml",
                                .name = name,
                                .allowed = chance_below(3),
                                .selects = !chance_percent(5),
                                .labels = {&label, i < 3},
                                .expressions = &expression,
                                .n_expressions = i >= 3,
                                .disrupted = {&disrupted, chance_below(2)},
                            });
}

static void delete_budget(struct store *store, int i)
{
    g_autofree char *name = g_strdup_printf("b%d", i);
    store_drop_budget(store, "ml", name);
}

/* Takes its time, does not name all of them, and may fail midway. */
static void list_budgets(struct store *store)
{
    store_list_begin(store, FEED_BUDGETS);
    for (int i = 0; i < BUDGETS; i++) {
        if (chance_percent(70))
            put_budget(store, i);
        if (chance_percent(30))
            sim_sleep(chance_below(2000 * MS));
    }
    if (chance_percent(90))
        store_list_end(store, FEED_BUDGETS);
}

void preempts_feed_budgets(void *data)
{
    const struct preempts_feed *feed = data;

    while (!*feed->stopping) {
        sim_sleep(chance_below(1000 * MS));
        if (chance_percent(10))
            list_budgets(feed->store);
        else if (chance_percent(80))
            put_budget(feed->store, (int)chance_below(BUDGETS));
        else
            delete_budget(feed->store, (int)chance_below(BUDGETS));
    }
}
