/* SPDX-License-Identifier: Apache-2.0 */
#include "migrate/migration.h"

#include "audit/audit.h"
#include "core/ledger.h"
#include "migrate/migration_steps.h"
#include "store/node_walk.h"

#include <string.h>

#define STUCK_MS 60000 /* as the audit has it */

void migration_free(struct migration *migration)
{
    g_array_unref(migration->obstacles);
    g_string_chunk_free(migration->texts);
    g_clear_pointer(&migration->steps, g_ptr_array_unref);
    g_clear_pointer(&migration->back, g_ptr_array_unref);
    g_free(migration);
}

static const char *keep(const struct migration *migration, const char *text)
{
    return text ? g_string_chunk_insert_const(migration->texts, text) : NULL;
}

/* Copies the texts. */
static void add_obstacle(struct migration *migration, const struct obstacle *from)
{
    const struct obstacle obstacle = {from->cause,
                                      keep(migration, from->ns),
                                      keep(migration, from->name),
                                      keep(migration, from->node),
                                      keep(migration, from->why),
                                      keep(migration, from->advice)};

    migration->n_obstacles++;
    if (migration->obstacles->len < OBSTACLES_MAX)
        g_array_append_val(migration->obstacles, obstacle);
}

/* --- nodes ------------------------------------------------------------------------------------ */

struct survey {
    struct migration *migration;
    const struct census *census;
    enum reason
        *refusals; /* of each pod of the census: REASON_NONE as soon as a node would serve it */
    bool *asked;   /* some node was */
};

static bool is_served(const struct peer *peer, const char *dialect)
{
    return g_strv_contains((const char *const *)peer->dialects, dialect);
}

/* What the node side cannot serve, whatever is free. */
static void ask_node(const struct survey *survey, const struct node *node, guint i)
{
    const struct census_pod *pod = survey->census->pods->pdata[i];

    for (const struct request *request = pod->request; request; request = request->alternative) {
        if (!request->dialect->refuse || !dialect_serves(node, request))
            continue;
        const enum reason reason = request->dialect->refuse(node, request, survey->census->options);
        if (reason == REASON_NONE || !survey->asked[i])
            survey->refusals[i] = reason;
        survey->asked[i] = true;
    }
}

/* Under the lock. */
static void visit_node(const struct node *node, void *data)
{
    const struct survey *survey = data;
    struct migration *migration = survey->migration;
    const struct peer *peer = migration->peer;
    bool is_peers = false;

    for (int32_t i = 0; i < node->n_dialects; i++)
        is_peers = is_peers || is_served(peer, node->dialects[i]->name);
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *pod = g_ptr_array_index(node->allocations, i);
        migration->under_way += pod->waiting && is_served(peer, pod->dialect->name);
    }
    if (!node->present)
        return;
    if (node->distrusted)
        add_obstacle(migration,
                     &(struct obstacle){OBSTACLE_NODE, .node = node->name,
                                        .why = "what it says of its cards cannot be read",
                                        .advice = "look at its device plugin"});
    if (!is_peers)
        return;
    migration->nodes++;
    migration->cards += (guint)node->n_cards;
    for (guint i = 0; i < survey->census->pods->len; i++) {
        if (survey->refusals[i] != REASON_NONE || !survey->asked[i])
            ask_node(survey, node, i);
    }
}

/* --- pods ------------------------------------------------------------------------------------- */

static void judge_pod(struct migration *migration, const struct survey *survey, guint i)
{
    const struct census_pod *pod = survey->census->pods->pdata[i];
    struct obstacle obstacle = {.ns = pod->ns, .name = pod->name, .node = pod->node};

    migration->pods += pod->node != NULL;
    migration->waiting += pod->node == NULL;
    if (pod->unread) {
        obstacle.cause = OBSTACLE_REFUSED;
        obstacle.why = pod->unread;
        obstacle.advice = "change what it asks for; until then it is refused, or counts as the "
                          "most that it may be";
        add_obstacle(migration, &obstacle);
    } else if (survey->asked[i] && survey->refusals[i] != REASON_NONE) {
        obstacle.cause = OBSTACLE_REFUSED;
        obstacle.why = reason_info(survey->refusals[i])->text;
        obstacle.advice = (pod->node ? "it keeps what it has; change its template, since gpuledger "
                                       "refuses its successor"
                                     : "change its template: gpuledger refuses it");
        add_obstacle(migration, &obstacle);
    }
    if (pod->group) {
        g_autofree char *why = g_strdup_printf("it comes with its group '%s'", pod->group);
        obstacle.cause = OBSTACLE_GROUP;
        obstacle.why = why;
        obstacle.advice =
            "leave it to its scheduler, or declare the group as docs/groups.md has it";
        add_obstacle(migration, &obstacle);
    }
}

static void add_findings(struct migration *migration, struct store *store)
{
    g_autoptr(audit_report) report =
        audit_look(store, &(struct audit_options){.stuck_ms = STUCK_MS});

    for (guint i = 0; i < report->rows->len; i++) {
        const struct audit_row *row = report->rows->pdata[i];
        const struct audit_cause_info *info = audit_cause_info(row->cause);
        if (!info->difference)
            continue;
        g_autofree char *why =
            g_strconcat(info->text, row->cluster ? ": " : NULL, row->cluster, NULL);
        add_obstacle(migration, &(struct obstacle){info->code, row->ns, row->name, row->node, why,
                                                   info->advice});
    }
}

struct migration *migration_plan(struct store *store, const struct census *census)
{
    struct migration *migration = g_new0(struct migration, 1);
    const guint n = census->pods->len;
    g_autofree enum reason *refusals = g_new0(enum reason, n + 1);
    g_autofree bool *asked = g_new0(bool, n + 1);
    struct survey survey = {migration, census, refusals, asked};

    migration->peer = census->peer;
    migration->obstacles = g_array_new(FALSE, FALSE, sizeof(struct obstacle));
    migration->texts = g_string_chunk_new(4096);
    node_walk_all(store, visit_node, &survey);
    for (guint i = 0; i < n; i++)
        judge_pod(migration, &survey, i);
    add_findings(migration, store);
    migration->steps = migration_steps(census);
    migration->back = migration_back(census);
    return migration;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void encode_parts(struct json_writer *writer, const char *key, const GPtrArray *parts)
{
    json_key_array(writer, key);
    for (guint i = 0; i < parts->len; i++) {
        const struct census_part *part = parts->pdata[i];
        json_begin_object(writer);
        json_key_string(writer, "pod", part->pod);
        json_key_string(writer, "node", part->node);
        json_key_string(writer, "owner", part->owner);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void encode_steps(struct json_writer *writer, const char *key, const GPtrArray *steps)
{
    json_key_array(writer, key);
    for (guint i = 0; i < steps->len; i++) {
        const struct migration_step *step = steps->pdata[i];
        json_begin_object(writer);
        json_key_string(writer, "what", step->what);
        json_key_string(writer, "command", step->command);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void encode_obstacles(struct json_writer *writer, const struct migration *migration)
{
    json_key_array(writer, "obstacles");
    for (guint i = 0; i < migration->obstacles->len; i++) {
        const struct obstacle *obstacle = &g_array_index(migration->obstacles, struct obstacle, i);
        json_begin_object(writer);
        json_key_string(writer, "cause", obstacle->cause);
        json_key_string(writer, "namespace", obstacle->ns);
        json_key_string(writer, "name", obstacle->name);
        json_key_string(writer, "node", obstacle->node);
        json_key_string(writer, "why", obstacle->why);
        json_key_string(writer, "advice", obstacle->advice);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_key_int(writer, "obstaclesTotal", migration->n_obstacles);
}

void migration_encode(struct json_writer *writer, const struct migration *migration,
                      const struct census *census)
{
    json_begin_object(writer);
    json_key_string(writer, "from", migration->peer->name);
    json_key_string(writer, "title", migration->peer->title);
    encode_parts(writer, "schedulers", census->schedulers);
    encode_parts(writer, "nodeSides", census->node_sides);
    encode_parts(writer, "kubeSchedulers", census->kube_schedulers);
    json_key_int(writer, "nodes", migration->nodes);
    json_key_int(writer, "cards", migration->cards);
    json_key_int(writer, "pods", migration->pods);
    json_key_int(writer, "waiting", migration->waiting);
    json_key_int(writer, "underWay", migration->under_way);
    json_key_int(writer, "namedPlaced", census->named_placed);
    json_key_int(writer, "namedWaiting", census->named_waiting);
    json_key_array(writer, "changes");
    for (const char *const *change = migration->peer->changes; *change; change++)
        json_string(writer, *change);
    json_end_array(writer);
    encode_obstacles(writer, migration);
    encode_steps(writer, "steps", migration->steps);
    encode_steps(writer, "back", migration->back);
    json_end_object(writer);
}
