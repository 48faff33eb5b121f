/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changes/goal.h"

#include "base/small_file.h"
#include "cmd/local.h"
#include "cmd/pod_word.h"
#include "core/fail.h"
#include "explain/explain.h"
#include "maintain/named_pods.h"
#include "maintain/waiting.h"
#include "snapshot/manifest.h"
#include "options/client_section.h"
#include "options/maintenance_section.h"

#include <string.h>

#define GET_POD_MS 30000
#define STUCK_MS 60000 /* as the command audit has it */

void goal_clear(struct goal *goal)
{
    plan_aim_clear(&goal->aim);
    g_free(goal->file);
    g_free(goal->by);
    g_strfreev(goal->only);
    g_clear_pointer(&goal->passed, g_hash_table_unref);
    g_clear_pointer(&goal->ends, g_hash_table_unref);
    window_free(goal->window);
}

bool goal_read(const struct config *config, struct goal *goal, GError **error)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    const struct client_settings *client_options = config_section(config, client);

    if (!pod_word_complete(config, error))
        return false;
    const char *pod = config->words->len ? config->words->pdata[0] : "";
    const struct {
        const char *word, *text, *title;
    } aims[] = {
        {"pod", pod, NULL},
        {"group", maintenance->group, "option '--group': "},
        {"empty", maintenance->empty, "option '--empty': "},
        {"waiting", maintenance->waiting, "option '--waiting': "},
        {"defragment", maintenance->defragment, "option '--defragment': "},
    };
    int n = *client_options->filename != '\0';

    goal->fragmented_most = -1;
    goal->only = *maintenance->only ? g_strsplit(maintenance->only, ",", 0) : NULL;
    goal->window = *maintenance->window ? window_parse(maintenance->window, error) : NULL;
    if (*maintenance->window && !goal->window)
        return fail_within(error, "option '--window': ");
    for (size_t i = 0; i < G_N_ELEMENTS(aims); i++)
        n += *aims[i].text != '\0';
    if (n != 1)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "what is the goal? A pod NAMESPACE/NAME, one in a file with -f, --group "
                         "NAMESPACE/NAME, "
                         "--empty NODE[/CARD], --waiting TIME or --defragment GPUS");
    if (maintenance->end && (!*maintenance->only || !*pod))
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "option '--end': it ends the pods of --only, for a pod NAMESPACE/NAME of the "
            "cluster");
    for (size_t i = 0; i < G_N_ELEMENTS(aims); i++) {
        if (*aims[i].text && !plan_aim_read(&goal->aim, aims[i].word, aims[i].text, error))
            return aims[i].title ? fail_within(error, "%s", aims[i].title) : false;
    }
    if (!*client_options->filename)
        return true;
    g_autoptr(json_arena) arena = json_arena_new();
    struct manifest manifest;
    goal->file = small_file_read(client_options->filename, MANIFEST_MAX, NULL, error);
    return (goal->file &&
            manifest_parse(arena, goal->file, strlen(goal->file), &manifest, error)) ||
           fail_within(error, "option '--filename': ");
}

/* The pod to admit. */
static bool read_pod(const struct local *local, const struct goal *goal, struct json_arena *arena,
                     struct pod_view *ret_pod, GError **error)
{
    struct manifest manifest;

    if (!goal->file)
        return explain_read_pod(backend_cluster(local->backend), arena, goal->aim.ns,
                                goal->aim.name, g_get_monotonic_time() / 1000 + GET_POD_MS, ret_pod,
                                error);
    if (!manifest_parse(arena, goal->file, strlen(goal->file), &manifest, error))
        return fail_within(error, "option '--filename': ");
    *ret_pod = manifest.pod;
    if (goal->by && !ret_pod->uid)
        ret_pod->uid = goal->by; /* room is kept for it, which is not to be in its own way */
    return true;
}

static void look_around(struct store *store, struct findings *findings)
{
    g_autoptr(audit_report) report =
        audit_look(store, &(struct audit_options){.stuck_ms = STUCK_MS});

    findings_add_report(findings, report);
}

/* Later on those that have moved have other names, or others have theirs. */
static bool check_names(const struct config *config, struct goal *goal, struct store *store,
                        GError **error)
{
    const char *const *names = (const char *const *)goal->only;

    goal->named = goal->named || named_pods_check(store, names, error);
    if (!goal->named)
        return fail_within(error, "option '--only': ");
    if (config_section(config, maintenance)->end && !goal->ends)
        goal->ends = named_pods_uids(store, names);
    return true;
}

struct relocation *goal_look(const struct config *config, struct goal *goal,
                             struct findings *findings, GError **error)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    const bool admits = goal->aim.name || goal->file;
    g_autoptr(json_arena) arena = json_arena_new();
    struct relocation *relocation = NULL;
    GError *failure = NULL;
    struct local local;
    struct pod_view pod;

    if (!local_open(config, &local, error))
        return NULL;
    struct cluster *cluster = backend_cluster(local.backend);
    struct relocation_query query = {
        .store = local.store,
        .cluster = cluster,
        .admit = admits ? &pod : NULL,
        .empty = goal->aim.place.node ? &goal->aim.place : NULL,
        .group_ns = goal->aim.group_ns,
        .group = goal->aim.group,
        .less = goal->aim.less,
        .fragmented_most = goal->fragmented_most,
        .moves_max = (uint32_t)maintenance->max_moves,
        .per_owner = (uint32_t)maintenance->max_per_workload,
        .per_node = (uint32_t)maintenance->max_per_node,
        .per_namespace = (uint32_t)maintenance->max_per_namespace,
        .only = (const char *const *)goal->only,
        .force = maintenance->force,
    };
    struct waiting_query waiters = {
        .waited_ms = goal->aim.waited_ms,
        .now_s = g_get_real_time() / G_USEC_PER_SEC,
        .passed = goal->passed,
    };
    /* Others do without PodDisruptionBudgets; here a pod must not be moved against one. */
    if (cluster->ops->list(cluster, FEED_BUDGETS, local.store, error) == OUTCOME_OK &&
        check_names(config, goal, local.store, error) &&
        (!admits || read_pod(&local, goal, arena, &pod, &failure))) {
        query.ends = goal->ends;
        waiters.relocation = query;
        relocation = goal->aim.waits && !admits ? waiting_find(&waiters, error)
                                                : relocation_find(&query, error);
    }
    if (goal->aim.waits && g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND)) {
        relocation = waiting_gone(goal->aim.ns, goal->aim.name);
        g_clear_error(&failure);
    }
    if (failure)
        g_propagate_error(error, failure);
    if (relocation && relocation->measured)
        goal->fragmented_most = MAX(relocation->fragmented_most, -1);
    if (findings)
        look_around(local.store, findings);
    local_close(&local);
    return relocation;
}
