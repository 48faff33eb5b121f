/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changes/applying.h"

#include "cmd/audit_answer.h"
#include "cmd/changes/ending.h"
#include "cmd/changes/places.h"
#include "cmd/local.h"
#include "core/fail.h"
#include "options/command.h"
#include "options/maintenance_section.h"

#include <stdio.h>

#define HOUR_S 3600

/* What is wrong with the cluster, by the last look; and by the first, which was before the first step. */
struct work {
    const struct config *config;
    struct goal *goal;
    struct step_log *log;
    struct findings *now, *before;
};

void applied_clear(struct applied *applied)
{
    relocation_free(applied->plan);
    step_log_free(applied->log);
}

static void work_clear(struct work *work)
{
    findings_free(work->now);
    findings_free(work->before);
}
typedef struct work work_cleared;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(work_cleared, work_clear)

static void print_progress(void *data, const char *text)
{
    say("%s", text);
}

/* --- what the executor asks ------------------------------------------------------------------- */

static struct relocation *look(void *data, GError **error)
{
    struct work *work = data;

    findings_free(work->now);
    work->now = findings_new();
    return goal_look(work->config, work->goal, work->now, error);
}

/* What is there before the first step is known from here on. */
static void learn(struct work *work)
{
    g_auto(GStrv) texts = findings_texts(work->now);

    work->before = findings_new();
    for (char **text = texts; *text; text++) {
        g_autofree char *line = g_strdup_printf("the audit has found before: %s", *text);
        findings_learn(work->before, *text);
        print_progress(NULL, line);
    }
}

static bool may_go_on(void *data, const struct relocation *plan, GError **error)
{
    struct work *work = data;
    const char *nodes[RELOCATION_PLACES_MAX];
    const bool asks = config_on_command_line(work->config, "server") ||
                      config_on_command_line(work->config, "service");

    if (asks && !audit_answer_find(work->config, work->now, error))
        return fail_within(error, "stopped: ");
    if (!work->before)
        learn(work);
    relocation_places(plan, nodes);
    return findings_check(work->now, work->before, nodes, error);
}

static bool note(void *data, const struct executor_news *news, GError **error)
{
    const struct work *work = data;

    step_log_note(work->log, news, g_get_real_time() / G_USEC_PER_SEC);
    return true;
}

/* --- beforehand ------------------------------------------------------------------------------- */

static void collect(const char *node, const struct plan_mark *mark, bool lives, void *data)
{
    if (!lives)
        g_ptr_array_add(data, g_strdup(node));
}

/* What plans that were killed have said of nodes means nothing any more, and goes. */
static bool clean(const struct config *config, struct api_client *client, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(g_free);
    struct local local;
    bool ok = true;

    if (!local_open(config, &local, error))
        return false;
    store_lock(local.store);
    store_marks_each(local.store, collect, nodes);
    store_unlock(local.store);
    local_close(&local);
    for (guint i = 0; ok && i < nodes->len; i++)
        ok = keeping_clean(client, nodes->pdata[i], error);
    return ok;
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool close_place(const struct config *config, struct api_client *client, GError **error)
{
    const char *const words[] = {config_section(config, maintenance)->empty, NULL};
    g_autoptr(GPtrArray) changes = places_changes_new();

    return places_set(config, &(struct places_order){client, words, false}, changes, error);
}

static bool carry_out(struct work *work, struct applied *applied, bool *ret_stalled, GError **error)
{
    const int64_t since_s = work->goal->aim.waits ? g_get_real_time() / G_USEC_PER_SEC - HOUR_S : 0;
    g_autoptr(GArray) past = step_log_past(work->log, since_s);
    const struct config *config = work->config;
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    const struct goal *goal = work->goal;
    g_autoptr(api_client) client = places_client(config, error);

    if (!client || !clean(config, client, error))
        return false;
    ending_block_signals();
    g_autoptr(keeping) keeping = keeping_new(
        &(struct keeping_options){.client = client, .by = goal->by, .tell = print_progress});
    G_GNUC_UNUSED g_autoptr(ending) ending = ending_new(keeping);
    if (goal->aim.place.node && !close_place(config, client, error))
        return false;
    const struct moves moves = {client, maintenance->moves_namespace, MOVES_PLAN};
    const struct executor executor = {
        .client = client,
        .keeping = keeping,
        .budgets = {.per_owner = (uint32_t)maintenance->max_per_workload,
                    .per_node = (uint32_t)maintenance->max_per_node,
                    .per_namespace = (uint32_t)maintenance->max_per_namespace,
                    .per_hour = (uint32_t)maintenance->max_per_hour},
        .moves = &moves,
        .window = goal->window,
        .force = maintenance->force,
        .timeout_ms = maintenance->evict_timeout_ms,
        .ns = goal->aim.ns,
        .name = goal->aim.name,
        .stalled = ret_stalled,
        .past = past,
        .look = look,
        .may_go_on = may_go_on,
        .note = note,
        .tell = print_progress,
        .data = work,
    };
    return executor_run(&executor, &applied->plan, &applied->moved, error);
}

/* One after the other. Who cannot be helped after all is passed over. */
static bool serve_waiters(struct work *work, struct applied *applied, GError **error)
{
    struct goal *goal = work->goal;

    goal->passed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    while (applied->plan->steps->len > 0) {
        g_autofree char *uid = g_strdup(applied->plan->uid);
        g_autoptr(GError) failure = NULL;
        bool stalled = false;

        goal->aim.ns = g_strdup(applied->plan->ns);
        goal->aim.name = g_strdup(applied->plan->name);
        const bool ok = carry_out(work, applied, &stalled, &failure);
        g_clear_pointer(&goal->aim.ns, g_free);
        g_clear_pointer(&goal->aim.name, g_free);
        if (!ok && !stalled) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        if (!ok)
            print_progress(NULL, failure->message);
        if (uid)
            g_hash_table_add(goal->passed, g_steal_pointer(&uid));
        relocation_free(applied->plan);
        applied->plan = look(work, error);
        if (!applied->plan)
            return false;
    }
    return true;
}

bool applying_run(const struct config *config, struct goal *goal, struct applied *applied,
                  GError **error)
{
    g_auto(work_cleared) work = {.config = config, .goal = goal};
    bool stalled = false;

    work.log = applied->log = step_log_new();
    applied->plan = look(&work, error);
    if (!applied->plan)
        return false;
    return goal->aim.waits          ? serve_waiters(&work, applied, error)
           : applied->plan->reached ? carry_out(&work, applied, &stalled, error)
                                    : true;
}
