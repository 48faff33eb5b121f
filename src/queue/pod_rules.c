/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/pod_rules.h"

#include "wire/constraints.h"

#include <string.h>

/* A pod that was made by hand and says nothing has none. */
static void read_constraints(struct pod_rules *rules, const struct pod_view *pod)
{
    static const struct constraints none = {0};
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct pod_view view = *pod;

    if (constraints_decode(arena, &view, &failure))
        rules->constraints = constraints_dup(view.constraints ? view.constraints : &none);
    else
        rules->why = g_strdup(failure->message);
}

struct pod_rules *pod_rules_new(const struct pod_view *pod)
{
    struct pod_rules *rules = g_new0(struct pod_rules, 1);
    const char *scheduler = pod->scheduler_name;

    rules->ns = g_strdup(pod->ns ? pod->ns : "");
    rules->name = g_strdup(pod->name ? pod->name : "");
    if (scheduler && *scheduler && strcmp(scheduler, DEFAULT_SCHEDULER) != 0)
        rules->scheduler = g_strdup(scheduler);
    rules->host = host_of_pod(pod);
    read_constraints(rules, pod);
    rules->size = constraints_size(rules->constraints);
    return rules;
}

struct pod_rules *pod_rules_dup(const struct pod_rules *rules)
{
    struct pod_rules *copy = g_memdup2(rules, sizeof *rules);

    copy->ns = g_strdup(rules->ns);
    copy->name = g_strdup(rules->name);
    copy->scheduler = g_strdup(rules->scheduler);
    copy->constraints = constraints_dup(rules->constraints);
    copy->why = g_strdup(rules->why);
    return copy;
}

void pod_rules_free(struct pod_rules *rules)
{
    if (!rules)
        return;
    g_free(rules->ns);
    g_free(rules->name);
    g_free(rules->scheduler);
    g_free(rules->constraints);
    g_free(rules->why);
    g_free(rules);
}

const char *scheduler_of_pod(const struct pod_view *pod)
{
    return pod->scheduler_name && *pod->scheduler_name ? pod->scheduler_name : DEFAULT_SCHEDULER;
}

const char *pod_rules_scheduler(const struct pod_rules *rules)
{
    return rules->scheduler ? rules->scheduler : DEFAULT_SCHEDULER;
}
