/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/movers.h"

#include "evict/eviction.h"
#include "kube/clock.h"
#include "wire/constraints.h"

#define LIST_MS 30000

struct movers {
    struct cluster *cluster;
    bool force;
    const struct pauses *paused;   /* of controllers whose pods stay; NULL: none */
    const struct permits *permits; /* NULL: how long a pod has run does not matter */
    int64_t most;                  /* the priority above which they stay */
    struct json_arena *arena;
    GPtrArray *list; /* struct mover */
};

static void mover_free(void *data)
{
    struct mover *mover = data;

    request_free(mover->request);
    g_free(mover->stays);
    g_free(mover);
}

struct movers *movers_new(struct cluster *cluster, bool force)
{
    struct movers *movers = g_new(struct movers, 1);

    *movers = (struct movers){cluster,
                              force,
                              NULL,
                              NULL,
                              INT64_MAX,
                              json_arena_new(),
                              g_ptr_array_new_with_free_func(mover_free)};
    return movers;
}

void movers_spare_above(struct movers *movers, int64_t priority)
{
    movers->most = priority;
}

void movers_spare_paused(struct movers *movers, const struct pauses *paused)
{
    movers->paused = paused;
}

void movers_spare_new(struct movers *movers, const struct permits *permits)
{
    movers->permits = permits;
}

void movers_free(struct movers *movers)
{
    if (!movers)
        return;
    g_ptr_array_unref(movers->list);
    json_arena_free(movers->arena);
    g_free(movers);
}

guint movers_n(const struct movers *movers)
{
    return movers->list->len;
}

const struct mover *movers_get(const struct movers *movers, guint i)
{
    return movers->list->pdata[i];
}

/* --- who stays ---------------------------------------------------------------------------------- */

/* Under the store's lock. A budget that has something to give has it again when the successor is Ready,
 * so it does not matter how many pods draw on it. */
static const char *short_of_budget(const struct store *store, const char *uid)
{
    const struct allocation *holder = ledger_get(store_ledger(store), uid);
    const struct budgets *budgets = store_budgets(store);
    g_autofree int64_t *allowed = g_new0(int64_t, budgets_n(budgets) + 1);
    uint32_t places[2];
    const uint32_t n = holder ? budgets_of(budgets, holder, places, G_N_ELEMENTS(places)) : 0;

    budgets_allowed(budgets, allowed);
    if (n > 1)
        return "several PodDisruptionBudgets cover it, and the Eviction API refuses such pods";
    return n == 1 && allowed[places[0]] <= 0 ? "its PodDisruptionBudget has nothing to give now"
                                             : NULL;
}

char *movers_why_stays(const struct pod_view *pod, enum ender ender, bool force)
{
    char *why = may_end_why_not(ender, force, pod);

    return !why && pod->terminating ? g_strdup("it ends already") : why;
}

/* --- pods --------------------------------------------------------------------------------------- */

static void read_mover(const struct movers *movers, const struct pod_view *pod,
                       const struct dialect_options *dialects, struct mover *mover)
{
    g_autoptr(GError) failure = NULL;

    *mover = (struct mover){.view = *pod, .uid = pod->uid};
    if (pod->object)
        controller_decode(movers->arena, pod->object, &mover->controller);
    mover->stays = movers_why_stays(&mover->view, ENDER_PLAN, movers->force);
    if (!mover->stays && pod->priority > movers->most)
        mover->stays = g_strdup("it is more important than the pod that is to find room, so its "
                                "successor would take that");
    if (!mover->stays && movers->paused && mover->controller.uid &&
        pauses_left(movers->paused, pod->ns, mover->controller.uid, clock_ms()) > 0)
        mover->stays =
            g_strdup("within the last hour another pod of its controller was to move, and has "
                     "not");
    if (!mover->stays && permits_young_ms(movers->permits, ENDER_PLAN, evictee_started_s(pod)) > 0)
        mover->stays = g_strdup(PERMITS_YOUNG);
    mover->view.uid = NULL;
    mover->view.node_name = NULL;
    if (constraints_decode(movers->arena, &mover->view, &failure))
        mover->request = dialect_read_request(&mover->view, dialects, &failure);
    if (failure && !mover->stays)
        mover->stays = g_strdup(failure->message);
}

bool movers_read(struct movers *movers, struct store *store, const char *node, GError **error)
{
    const struct dialect_options *dialects = &store_options(store)->dialects;
    struct pod_view *pods;
    size_t n;

    if (movers->cluster->ops->list_pods_on(movers->cluster, movers->arena, node,
                                           g_get_monotonic_time() / 1000 + LIST_MS, &pods, &n,
                                           error) != OUTCOME_OK) {
        g_prefix_error(error, "pods of node '%s': ", node);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct mover *mover = g_new(struct mover, 1);
        read_mover(movers, &pods[i], dialects, mover);
        if (!mover->request && !mover->stays) { /* it asks for no GPU */
            mover_free(mover);
            continue;
        }
        store_lock(store);
        const bool holds = ledger_get(store_ledger(store), mover->uid) != NULL;
        const char *lack = mover->stays ? NULL : short_of_budget(store, mover->uid);
        store_unlock(store);
        mover->stays = lack ? g_strdup(lack) : mover->stays;
        if (holds)
            g_ptr_array_add(movers->list, mover);
        else
            mover_free(mover);
    }
    return true;
}
