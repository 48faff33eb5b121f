/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/simulation_gangs.h"

#include "simulate/memory_cluster.h"

#include <string.h>

struct simulation_gang {
    char *ns, *name;
    bool native;
    GArray *kinds;  /* guint: places in simulation->kinds */
    unsigned times; /* how often it has come */
};

static void gang_free(gpointer data)
{
    struct simulation_gang *gang = data;

    g_free(gang->ns);
    g_free(gang->name);
    g_array_unref(gang->kinds);
    g_free(gang);
}

GPtrArray *simulation_gangs_new(void)
{
    return g_ptr_array_new_with_free_func(gang_free);
}

struct simulation_gang *simulation_gang_join(struct simulation *simulation,
                                             const struct pod_view *pod)
{
    const struct pod_group_claim claim = pod_group_claim(pod);
    const guint kind = simulation->kinds->len;
    struct simulation_gang *gang = NULL;

    if (!simulation->options->gangs || !claim.name)
        return NULL;
    for (guint i = 0; i < simulation->gangs->len && !gang; i++) {
        struct simulation_gang *known = simulation->gangs->pdata[i];
        if (known->native == claim.native && g_str_equal(known->name, claim.name) &&
            g_str_equal(known->ns, pod->ns))
            gang = known;
    }
    if (!gang) {
        gang = g_new0(struct simulation_gang, 1);
        gang->ns = g_strdup(pod->ns);
        gang->name = g_strdup(claim.name);
        gang->native = claim.native;
        gang->kinds = g_array_new(FALSE, FALSE, sizeof(guint));
        g_ptr_array_add(simulation->gangs, gang);
    }
    g_array_append_val(gang->kinds, kind);
    return gang;
}

bool simulation_gangs_declare(struct simulation *simulation, GError **error)
{
    const GPtrArray *groups = simulation->options->scenario->groups;
    g_autoptr(json_arena) arena = json_arena_new();

    for (guint i = 0; simulation->options->gangs && i < groups->len; i++) {
        const struct scenario_group *group = groups->pdata[i];
        struct pod_group_view view;
        json_arena_clear(arena);
        const cJSON *object = json_parse(arena, group->text, strlen(group->text), error);
        if (!object || !pod_group_view_decode(arena, object, group->native, &view, error))
            return false;
        store_apply_object(simulation->store,
                           group->native ? FEED_NATIVE_POD_GROUPS : FEED_POD_GROUPS, &view);
    }
    return true;
}

bool simulation_gang_begins(const struct simulation *simulation, const struct kind_of_pod *kind)
{
    return !kind->gang || &g_array_index(simulation->kinds, struct kind_of_pod,
                                         g_array_index(kind->gang->kinds, guint, 0)) == kind;
}

void simulation_gang_each(struct simulation *simulation, struct kind_of_pod *kind,
                          void (*visit)(struct simulation *simulation, guint kind))
{
    if (!kind->gang)
        visit(simulation, (guint)(kind - (struct kind_of_pod *)(void *)simulation->kinds->data));
    for (guint i = 0; kind->gang && i < kind->gang->kinds->len; i++)
        visit(simulation, g_array_index(kind->gang->kinds, guint, i));
}

/* --- one comes -------------------------------------------------------------------------------- */

struct member {
    struct kind_of_pod *kind;
    struct led_pod *led;
    bool bound;
    bool held; /* it asks for no GPU, and was bound before its group found room */
    GError *failure;
};

static void member_clear(gpointer data)
{
    struct member *member = data;

    led_pod_free(member->led);
    g_clear_error(&member->failure);
}

/* Where nobody else of its name has been: as many are needed as the first time. */
static void declare_again(struct simulation *simulation, const struct simulation_gang *gang,
                          const char *ns)
{
    const struct pod_group_claim claim = {.name = gang->name, .native = gang->native};
    struct gang_row row = {0};

    store_lock(simulation->store);
    const bool known = gangs_tell_claimed(store_gangs(simulation->store), gang->ns, &claim, &row);
    store_unlock(simulation->store);
    if (known && row.min > 0)
        store_apply_object(simulation->store,
                           gang->native ? FEED_NATIVE_POD_GROUPS : FEED_POD_GROUPS,
                           &(struct pod_group_view){.ns = ns,
                                                    .name = gang->name,
                                                    .native = gang->native,
                                                    .min = row.min,
                                                    .timeout_ms = POD_GROUP_TIMEOUT_MS});
}

static bool create_all(struct simulation *simulation, struct simulation_gang *gang, GArray *members,
                       GError **error)
{
    g_autofree char *ns =
        gang->times == 0 ? g_strdup(gang->ns) : g_strdup_printf("%s.%u", gang->ns, gang->times + 1);
    bool ok = true;

    if (gang->times++ > 0)
        declare_again(simulation, gang, ns);
    for (guint i = 0; i < gang->kinds->len && ok; i++) {
        struct member member = {
            .kind = &g_array_index(simulation->kinds, struct kind_of_pod,
                                   g_array_index(gang->kinds, guint, i)),
        };
        member.led = led_pod_new(simulation, member.kind, ns, error);
        ok = member.led;
        if (ok)
            g_array_append_val(members, member);
    }
    return ok;
}

/* Filter about all of them; then all have come to bind, and none waits for another. */
static void place_all(struct simulation *simulation, GArray *members)
{
    for (guint i = 0; i < members->len; i++) {
        struct member *member = &g_array_index(members, struct member, i);
        if (member->held)
            continue;
        member->bound =
            scheduler_cycle_choose(simulation->cycle, &member->led->pod, &member->led->node,
                                   &member->led->took_ns, &member->failure);
    }
    struct moment now;
    store_decide(simulation->store, &now);
    for (guint i = 0; i < members->len; i++) {
        const struct member *member = &g_array_index(members, struct member, i);
        if (member->bound && !member->held)
            gangs_arrive(store_gangs(simulation->store), member->led->pod.uid, now.now_ms, NULL);
    }
    store_unlock(simulation->store);
    for (guint i = 0; i < members->len; i++) {
        struct member *member = &g_array_index(members, struct member, i);
        if (member->bound && !member->held)
            member->bound =
                scheduler_cycle_bind(simulation->cycle, &member->led->pod, member->led->node,
                                     &member->led->took_ns, &member->failure);
    }
}

static guint count_bound(const GArray *members)
{
    guint bound = 0;

    for (guint i = 0; i < members->len; i++) {
        const struct member *member = &g_array_index(members, struct member, i);
        bound += member->bound && member->kind->filtered;
    }
    return bound;
}

static void settle(struct simulation *simulation, struct member *member, double x)
{
    simulation_note_led(simulation, member->kind,
                        &(struct led_end){x, member->bound, member->led->node, member->led->took_ns,
                                          member->failure});
    if (!member->bound)
        memory_cluster_remove(simulation->cluster, member->led->pod.ns, member->led->pod.name);
}

bool simulation_gang_arrive(struct simulation *simulation, struct kind_of_pod *kind, double x,
                            GError **error)
{
    g_autoptr(GArray) members = g_array_new(FALSE, TRUE, sizeof(struct member));

    g_array_set_clear_func(members, member_clear);
    if (!create_all(simulation, kind->gang, members, error))
        return false;
    place_all(simulation, members);
    simulation->result->groups++;
    simulation->result->groups_refused += count_bound(members) == 0;
    for (guint i = 0; i < members->len; i++)
        settle(simulation, &g_array_index(members, struct member, i), x);
    return true;
}

/* --- where pods leave ------------------------------------------------------------------------- */

/* One that has come; mean lifetimes. */
struct gang_arrival {
    GArray *members; /* struct member */
    double since, stays, gpus;
};

static void arrival_free(gpointer data)
{
    struct gang_arrival *arrival = data;

    g_array_unref(arrival->members);
    g_free(arrival);
}

GPtrArray *simulation_queue_new(void)
{
    return g_ptr_array_new_with_free_func(arrival_free);
}

double simulation_gang_gpus(const struct simulation *simulation, const struct kind_of_pod *kind)
{
    double gpus = 0;

    for (guint i = 0; i < kind->gang->kinds->len; i++)
        gpus += g_array_index(simulation->kinds, struct kind_of_pod,
                              g_array_index(kind->gang->kinds, guint, i))
                    .gpus;
    return gpus;
}

static void note_departures(const struct gang_arrival *arrival, double at, GSequence *departures)
{
    for (guint i = 0; i < arrival->members->len; i++) {
        const struct member *member = &g_array_index(arrival->members, struct member, i);
        if (member->bound)
            simulation_add_departure(departures, member->kind, member->led->ns,
                                     g_strdup(member->led->name), member->led->node, at);
    }
}

static void settle_all(struct simulation *simulation, const struct gang_arrival *arrival,
                       double now)
{
    for (guint i = 0; i < arrival->members->len; i++)
        settle(simulation, &g_array_index(arrival->members, struct member, i), now);
}

/* False: it finds no room; only those are bound that ask for no GPU. */
static bool try_arrival(struct simulation *simulation, const struct gang_arrival *arrival,
                        double now, GSequence *departures)
{
    for (guint i = 0; i < arrival->members->len; i++) {
        struct member *member = &g_array_index(arrival->members, struct member, i);
        g_clear_error(&member->failure);
        member->led->took_ns = 0;
    }
    place_all(simulation, arrival->members);
    if (count_bound(arrival->members) == 0) {
        for (guint i = 0; i < arrival->members->len; i++) {
            struct member *member = &g_array_index(arrival->members, struct member, i);
            member->held = member->bound;
        }
        return false;
    }
    simulation->result->group_wait_s +=
        (now - arrival->since) * (double)simulation->options->lifetime_ms / 1000;
    note_departures(arrival, now + arrival->stays, departures);
    settle_all(simulation, arrival, now);
    return true;
}

bool simulation_gang_queue(struct simulation *simulation, struct kind_of_pod *kind, double now,
                           double stays, GSequence *departures, GError **error)
{
    struct gang_arrival *arrival = g_new0(struct gang_arrival, 1);

    *arrival = (struct gang_arrival){g_array_new(FALSE, TRUE, sizeof(struct member)), now, stays,
                                     simulation_gang_gpus(simulation, kind)};
    g_array_set_clear_func(arrival->members, member_clear);
    if (!create_all(simulation, kind->gang, arrival->members, error)) {
        arrival_free(arrival);
        return false;
    }
    simulation->result->groups++;
    if (try_arrival(simulation, arrival, now, departures))
        arrival_free(arrival);
    else
        g_ptr_array_add(simulation->queue, arrival);
    return true;
}

static double give_up(struct simulation *simulation, const struct gang_arrival *arrival, double now,
                      GSequence *departures)
{
    simulation->result->groups_refused++;
    note_departures(arrival, now, departures);
    settle_all(simulation, arrival, now);
    return arrival->gpus;
}

double simulation_gangs_try(struct simulation *simulation, double now, GSequence *departures)
{
    double refused = 0;

    for (guint i = 0; i < simulation->queue->len;) {
        struct gang_arrival *arrival = simulation->queue->pdata[i];
        const bool came = try_arrival(simulation, arrival, now, departures);
        const bool over = !came && now - arrival->since >= 1;
        refused += over ? give_up(simulation, arrival, now, departures) : 0;
        if (came || over)
            g_ptr_array_remove_index(simulation->queue, i);
        else
            i++;
    }
    return refused;
}

double simulation_gangs_give_up(struct simulation *simulation, GSequence *departures)
{
    double refused = 0;

    for (guint i = 0; i < simulation->queue->len; i++)
        refused += give_up(simulation, simulation->queue->pdata[i],
                           1 + (double)simulation->options->lifetimes, departures);
    g_ptr_array_set_size(simulation->queue, 0);
    simulation->result->group_wait_s /=
        MAX((double)(simulation->result->groups - simulation->result->groups_refused), 1);
    return refused;
}
