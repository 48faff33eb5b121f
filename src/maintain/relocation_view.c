/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/relocation.h"

#include "core/constraints.h"
#include "maintain/plans/step_log.h"
#include "wire/constraints.h"

char *relocation_awaits(const struct relocation_step *step)
{
    return step->owner_kind && step->to ? g_strdup_printf("a Ready pod of its %s", step->owner_kind)
                                        : g_strdup("its end");
}

static void encode_step(struct json_writer *writer, const struct relocation_step *step)
{
    g_autofree char *waits = relocation_awaits(step);

    json_begin_object(writer);
    json_key_string(writer, "namespace", step->ns);
    json_key_string(writer, "name", step->name);
    json_key_string(writer, "from", step->from);
    json_key_string(writer, "frees", step->frees);
    json_key_string(writer, "to", step->to);
    json_key_string(writer, "takes", step->takes);
    json_key_bool(writer, "ends", !step->to);
    json_key_string(writer, "waitsFor", waits);
    overlooked_encode(writer, step->overlooked);
    json_end_object(writer);
}

static void encode_seats(struct json_writer *writer, const GArray *seats)
{
    json_key_array(writer, "pods");
    for (guint i = 0; i < seats->len; i++) {
        const struct relocation_seat *seat = &g_array_index(seats, struct relocation_seat, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", seat->ns);
        json_key_string(writer, "name", seat->name);
        json_key_string(writer, "node", seat->node);
        json_key_string(writer, "cards", seat->cards);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void relocation_places(const struct relocation *plan, const char *ret_nodes[RELOCATION_PLACES_MAX])
{
    const struct relocation_step *step =
        plan->steps->len > 0 ? &g_array_index(plan->steps, struct relocation_step, 0) : NULL;
    int n = 0;

    if (step) {
        ret_nodes[n++] = step->from;
        if (step->to)
            ret_nodes[n++] = step->to;
    }
    if (plan->node)
        ret_nodes[n++] = plan->node;
    ret_nodes[n] = NULL;
}

void relocation_encode(struct json_writer *writer, const struct relocation *plan, guint moved,
                       const struct step_log *log)
{
    json_begin_object(writer);
    json_key_string(writer, "goal", plan->goal);
    json_key_bool(writer, "reached", plan->reached);
    json_key_bool(writer, "fewest", plan->fewest);
    json_key_string(writer, "why", plan->why);
    json_key_string(writer, "node", plan->node);
    json_key_string(writer, "cards", plan->cards);
    json_key_int(writer, "moved", moved);
    if (plan->measured) {
        json_key_object(writer, "fragmentedGpuThousandths");
        json_key_int(writer, "now", plan->fragmented);
        json_key_int(writer, "then", plan->fragmented_then);
        json_key_int(writer, "most", plan->fragmented_most);
        json_end_object(writer);
    }
    if (log) {
        json_key(writer, "taken");
        step_log_encode(writer, log);
    }
    json_key_int(writer, "nodes", plan->n_nodes);
    json_key_int(writer, "nodesLookedAt", plan->n_looked);
    json_key_array(writer, "steps");
    for (guint i = 0; i < plan->steps->len; i++)
        encode_step(writer, &g_array_index(plan->steps, struct relocation_step, i));
    json_end_array(writer);
    if (plan->seats->len > 0)
        encode_seats(writer, plan->seats);
    json_key_array(writer, "stays");
    for (guint i = 0; i < plan->stays->len; i++) {
        const struct relocation_stay *stay = &g_array_index(plan->stays, struct relocation_stay, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", stay->ns);
        json_key_string(writer, "name", stay->name);
        json_key_string(writer, "node", stay->node);
        json_key_string(writer, "why", stay->why);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}
