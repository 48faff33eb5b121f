/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that only end, where cards are not what the pod lacks: a quota, say, in which they count. */
#include "core/ledger.h"
#include "maintain/relocation_work.h"

#include <string.h>

#define TRIES_MAX 256 /* sets of pods: all of 8 */

/* Some of the pods. */
struct choice {
    struct work *work;
    const GArray *pods; /* struct plan_pod */
    guint *at;          /* of these, ascending */
    guint n, tries;
};

static const struct plan_pod *pod_at(const struct choice *choice, guint i)
{
    return &g_array_index(choice->pods, struct plan_pod, choice->at[i]);
}

static void free_step(gpointer data)
{
    struct plan_step *step = data;

    allocation_free(step->frees);
    g_free(step->from);
    g_free(step);
}

static GPtrArray *steps_of(const struct choice *choice)
{
    GPtrArray *steps = g_ptr_array_new_with_free_func(free_step);

    store_lock(choice->work->copy);
    for (guint i = 0; i < choice->n; i++) {
        const struct plan_pod *pod = pod_at(choice, i);
        const struct allocation *holder = ledger_get(store_ledger(choice->work->copy), pod->uid);
        struct plan_step *step = g_new0(struct plan_step, 1);
        step->pod = pod;
        step->frees = allocation_dup(holder);
        step->from = g_strdup(holder->node->name);
        g_ptr_array_add(steps, step);
    }
    store_unlock(choice->work->copy);
    return steps;
}

/* --- bounds ------------------------------------------------------------------------------------- */

static bool is_within(uint32_t n, uint32_t most)
{
    return most == 0 || n <= most;
}

/* No controller, node or namespace loses more than it may. */
static bool is_allowed(const struct work *work, const GPtrArray *steps)
{
    const struct relocation_query *query = work->query;

    for (guint i = 0; i < steps->len; i++) {
        const struct plan_step *step = steps->pdata[i];
        const struct mover *mover = step->pod->tag;
        uint32_t of_owner = 0, of_node = 0, of_ns = 0;
        for (guint j = 0; j < steps->len; j++) {
            const struct plan_step *other = steps->pdata[j];
            const struct mover *its = other->pod->tag;
            of_owner += step->pod->owner && g_strcmp0(step->pod->owner, other->pod->owner) == 0;
            of_node += g_str_equal(step->from, other->from);
            of_ns += g_str_equal(mover->view.ns, its->view.ns);
        }
        if (!is_within(of_owner, query->per_owner) || !is_within(of_node, query->per_node) ||
            !is_within(of_ns, query->per_namespace))
            return false;
    }
    return true;
}

/* --- the search --------------------------------------------------------------------------------- */

static gint compare_pods(gconstpointer a, gconstpointer b)
{
    const struct plan_pod *one = a, *other = b;

    return one->cost != other->cost ? (one->cost < other->cost ? -1 : 1)
                                    : strcmp(one->uid, other->uid);
}

/* The next as many, the cheapest changed last. False: there are none. */
static bool go_on(struct choice *choice)
{
    guint i = choice->n;

    while (i > 0 && choice->at[i - 1] == choice->pods->len - choice->n + i - 1)
        i--;
    if (i == 0)
        return false;
    choice->at[i - 1]++;
    for (; i < choice->n; i++)
        choice->at[i] = choice->at[i - 1] + 1;
    return true;
}

/* Of as many. NULL: none does, or it has given up. */
static GPtrArray *find_of(struct choice *choice)
{
    for (guint i = 0; i < choice->n; i++)
        choice->at[i] = i;
    do {
        if (choice->tries++ == TRIES_MAX)
            return NULL;
        g_autoptr(GPtrArray) steps = steps_of(choice);
        if (is_allowed(choice->work, steps) && work_try(choice->work, steps))
            return g_steal_pointer(&steps);
    } while (!choice->work->cut && go_on(choice));
    return NULL;
}

GPtrArray *work_find_ends(struct work *work, GArray *pods, bool *ret_fewest)
{
    g_autofree guint *at = g_new(guint, pods->len + 1);
    struct choice choice = {.work = work, .pods = pods, .at = at};
    const guint most = MIN(pods->len, work->query->moves_max);
    GPtrArray *steps = NULL;

    g_array_sort(pods, compare_pods);
    while (!steps && !work->cut && choice.n < most && choice.tries <= TRIES_MAX) {
        choice.n++;
        steps = find_of(&choice);
    }
    *ret_fewest = choice.tries <= TRIES_MAX && !work->cut;
    return steps;
}
