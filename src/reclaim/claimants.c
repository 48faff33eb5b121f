/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/metrics.h"
#include "explain/reclaim/reclaim_plan.h"
#include "queue/pod_rules.h"
#include "reclaim/reclaimer_state.h"

#include <string.h>

#define PODS_MAX 32   /* for which it is worked out at a time */
#define ROUNDS_MAX 16 /* plans of which somebody may not be ended after all */
#define EVICTIONS_MS                                                                               \
    INT64_C(480000) /* that those for one pod may take: its claim lasts no longer than CLAIM_MS */
#define TOO_MANY                                                                                   \
    "more pods would have to end than the limits of evictions let end before the claim lapses"

/* --- new claims --------------------------------------------------------------------------------------------- */

/* A pod that has waited for long enough. */
struct claimant {
    char *uid, *ns;
    guint round; /* so many of its namespace go before it */
    int64_t priority, since_ms;
    bool again; /* it has not come before */
};

struct listing {
    struct reclaimer *reclaimer;
    GArray *list; /* struct claimant */
};

static void clear_claimant(gpointer data)
{
    struct claimant *claimant = data;

    g_free(claimant->uid);
    g_free(claimant->ns);
}

/* Those of a namespace stand together. */
static gint compare_claimants(gconstpointer a, gconstpointer b)
{
    const struct claimant *left = a, *right = b;
    const int by_ns = strcmp(left->ns, right->ns);

    if (by_ns != 0)
        return by_ns;
    if (left->again != right->again)
        return left->again ? 1 : -1;
    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    if (left->since_ms != right->since_ms)
        return left->since_ms < right->since_ms ? -1 : 1;
    return strcmp(left->uid, right->uid);
}

/* Namespaces take turns by their names, from the one after that which had the last turn on. */
static gint compare_turns(gconstpointer a, gconstpointer b, gpointer last)
{
    const struct claimant *left = a, *right = b;
    const bool left_waits = strcmp(left->ns, last) > 0, right_waits = strcmp(right->ns, last) > 0;

    if (left->round != right->round)
        return left->round < right->round ? -1 : 1;
    if (left_waits != right_waits)
        return left_waits ? -1 : 1;
    return strcmp(left->ns, right->ns);
}

static void take_turns(GArray *list, char *last)
{
    g_array_sort(list, compare_claimants);
    for (guint i = 1; i < list->len; i++) {
        struct claimant *claimant = &g_array_index(list, struct claimant, i);
        if (g_str_equal(claimant[-1].ns, claimant->ns))
            claimant->round = claimant[-1].round + 1;
    }
    g_array_sort_with_data(list, compare_turns, last);
}

static bool is_paused(const struct reclaimer *reclaimer, const char *ns, const char *controller)
{
    const struct claim_pause *pause =
        g_hash_table_lookup(claim_book_sheet(reclaimer->book)->pauses, ns);

    return (pause && reclaimer_now_s(reclaimer) < pause->until_s) ||
           pauses_left(reclaimer->pauses, ns, controller, reclaimer->now_ms) > 0;
}

static void list_one(const char *uid, int64_t since_ms, void *data)
{
    const struct listing *listing = data;
    struct reclaimer *reclaimer = listing->reclaimer;
    struct store *store = reclaimer->args.store;
    const struct memory *memory = g_hash_table_lookup(reclaimer->memories, uid);
    const struct allocation *held = ledger_get(store_ledger(store), uid);
    const struct room_claim *claim = nominations_claim(store_nominations(store), uid, NULL);
    const struct pod_rules *rules = store_rules(store, uid);

    if (reclaimer->now_ms - since_ms < reclaimer->args.options.delay_ms ||
        (memory && reclaimer->now_ms < memory->again_ms) || held ||
        (claim ? claim_counts(claim, reclaimer->now_ns)
               : nominations_have(store_nominations(store), uid)) ||
        !rules || is_paused(reclaimer, rules->ns, store_pending_controller(store, uid)) ||
        !denials_serve(reclaimer->args.denials, pod_rules_scheduler(rules)))
        return;
    const struct claimant claimant = {
        .uid = g_strdup(uid),
        .ns = g_strdup(rules->ns),
        .priority = store_pending_priority(store, uid),
        .since_ms = since_ms,
        .again = memory && memory->lapsed,
    };
    g_array_append_val(listing->list, claimant);
}

static GArray *list_claimants(struct reclaimer *reclaimer)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(struct claimant));

    g_array_set_clear_func(list, clear_claimant);
    store_lock(reclaimer->args.store);
    store_waiting_each(reclaimer->args.store, list_one, &(struct listing){reclaimer, list});
    store_unlock(reclaimer->args.store);
    take_turns(list, reclaimer->last_ns);
    return list;
}

/* Pods that get room together, or none of them. */
struct party {
    char **uids; /* NULL: their group is not due */
    char *group; /* "NAMESPACE/NAME", or NULL */
    guint n;
    struct pod_view *views; /* of each, borrowed from the ground; NULL: not read yet */
};

static void party_clear(struct party *party)
{
    g_strfreev(party->uids);
    g_free(party->group);
    g_free(party->views);
}
typedef struct party party;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(party, party_clear)

/* Who comes with the pod, as many as its group lacks, itself first. */
static void list_members(struct reclaimer *reclaimer, const char *uid, struct party *party)
{
    struct store *store = reclaimer->args.store;
    const char *const alone[] = {uid, NULL};
    struct gang_row row;

    store_lock(store);
    const enum gang_answer answer = gangs_judge(store_gangs(store), uid, reclaimer->now_ms);
    if (answer == GANG_NONE) {
        party->uids = g_strdupv((char **)alone);
    } else if ((answer == GANG_YES || answer == GANG_NO_ROOM) &&
               gangs_tell(store_gangs(store), uid, &row)) {
        party->uids = gangs_without(store_gangs(store), uid);
        party->group = g_strdup_printf("%s/%s", row.ns, row.name);
    }
    store_unlock(store);
    party->n = party->uids ? g_strv_length(party->uids) : 0;
    if (!party->group)
        return;
    const guint have = row.bound + row.held;
    const guint lacks = row.min > have ? row.min - have : 1;
    if (party->n < lacks)
        g_clear_pointer(&party->uids, g_strfreev);
    for (guint i = lacks; i < party->n; i++)
        g_clear_pointer(&party->uids[i], g_free);
    party->n = party->n < lacks ? 0 : lacks;
}

/* False: it does not end, which is remembered. */
static bool verify_one(struct reclaimer *reclaimer, const struct reclaim_end *end)
{
    const struct door_order order = reclaimer_order(reclaimer, end->ns, end->name, end->uid);
    g_autoptr(GError) failure = NULL;
    g_auto(evictee) evictee = {0};
    enum door_answer answer = door_look(&order, &evictee, &failure);

    if (answer == DOOR_STAYS) {
        reclaimer_note_stay(reclaimer, &order, &evictee, failure->message);
        return false;
    }
    if (answer != DOOR_OPEN) { /* the watch will say */
        reclaimer_set_time(reclaimer->stays, end->uid, reclaimer->now_ms + RECLAIM_PAUSE_MS);
        return false;
    }
    answer = door_try(&order, &evictee, &failure);
    if (answer == DOOR_OPEN || answer == DOOR_LATER)
        return true;
    reclaimer_note_failure(&order, DOOR_FAILED, failure ? failure->message : "");
    reclaimer_set_time(reclaimer->stays, end->uid, reclaimer->now_ms + RECLAIM_STAYS_MS);
    return false;
}

static bool verify(struct reclaimer *reclaimer, const struct reclaim_plan *plan)
{
    for (guint i = 0; i < plan->ends->len; i++) {
        if (!verify_one(reclaimer, &g_array_index(plan->ends, struct reclaim_end, i)))
            return false;
    }
    return true;
}

/* Of the party's pod. */
static struct room_claim *make_claim(const struct reclaimer *reclaimer,
                                     const struct reclaim_plan *plan, const struct party *party,
                                     guint pod)
{
    g_autoptr(GPtrArray) ends = g_ptr_array_new();

    for (guint i = 0; i < plan->ends->len; i++) {
        const struct reclaim_end *end = &g_array_index(plan->ends, struct reclaim_end, i);
        if (end->pod == pod)
            g_ptr_array_add(ends, end->uid);
    }
    g_ptr_array_add(ends, NULL);
    struct room_claim *claim =
        claim_new(party->uids[pod], reclaimer_now_s(reclaimer),
                  g_array_index(plan->places, struct reclaim_place, pod).card,
                  (const char *const *)ends->pdata);
    claim->ns = g_strdup(party->views[pod].ns);
    claim->group = g_strdup(party->group);
    return claim;
}

struct claiming {
    const struct reclaimer *reclaimer;
    const struct reclaim_plan *plan;
    const struct party *party;
};

static void add_claims(struct claim_sheet *sheet, void *data)
{
    const struct claiming *claiming = data;

    for (guint i = 0; i < claiming->plan->places->len; i++)
        claim_sheet_add(sheet, g_array_index(claiming->plan->places, struct reclaim_place, i).node,
                        make_claim(claiming->reclaimer, claiming->plan, claiming->party, i));
}

static void remove_claims(struct claim_sheet *sheet, void *data)
{
    const struct claiming *claiming = data;

    for (guint i = 0; i < claiming->plan->places->len; i++)
        claim_sheet_remove(sheet,
                           g_array_index(claiming->plan->places, struct reclaim_place, i).node,
                           claiming->party->uids[i]);
}

/* All of them, or none. Where nobody knows whether they were written, they are taken back; if that fails, too, they
 * count. */
static bool write_claims(struct reclaimer *reclaimer, const struct reclaim_plan *plan,
                         const struct party *party, GError **error)
{
    struct claiming claiming = {reclaimer, plan, party};

    if (claim_book_change(reclaimer->book, add_claims, &claiming, error))
        return true;
    claim_book_change(reclaimer->book, remove_claims, &claiming, NULL);
    return false;
}

/* They wait by their controllers if they do not come. */
static void remember_controllers(struct reclaimer *reclaimer, const struct party *party)
{
    struct store *store = reclaimer->args.store;

    store_lock(store);
    for (guint i = 0; i < party->n; i++) {
        struct memory *memory = reclaimer_remember(reclaimer, party->uids[i]);
        g_free(memory->controller);
        memory->controller = g_strdup(store_pending_controller(store, party->uids[i]));
    }
    store_unlock(store);
}

static void tell_claimed(const struct reclaimer *reclaimer, const struct reclaim_plan *plan,
                         const struct pod_view *pod)
{
    const struct reclaim_end *first = &g_array_index(plan->ends, struct reclaim_end, 0);
    g_autofree char *name = g_strdup_printf("%s/%s", pod->ns, pod->name);
    bool others = false;
    int64_t gpus = 0;

    for (guint i = 0; i < plan->ends->len; i++) {
        const struct reclaim_end *end = &g_array_index(plan->ends, struct reclaim_end, i);
        gpus += end->gpus;
        others = others || !g_str_equal(end->ns, first->ns);
    }
    g_autofree char *cards = reclaimer_cards(gpus);
    g_autofree char *note =
        g_strdup_printf("its namespace is within its quota's min: %u pod%s of %s%s give%s back %s",
                        plan->ends->len, plan->ends->len == 1 ? "" : "s", first->ns,
                        others ? " and others" : "", plan->ends->len == 1 ? "s" : "", cards);
    metrics_add(COUNTER_RECLAIMS, RECLAIM_RESULT_CLAIMED, plan->places->len);
    log_event(LOG_LEVEL_INFO, "lent quota is taken back", LOG_TEXT("for", name),
              LOG_NUMBER("pods", plan->places->len), LOG_NUMBER("evictions", plan->ends->len),
              LOG_TEXT("cards", cards), LOG_TEXT("from", first->ns));
    reclaimer_post(reclaimer, POD_EVENT_RECLAIMS, pod, note);
}

/* What would be taken back, for a pod whose next look is far off; no claim is written. */
static void tell_observed(struct reclaimer *reclaimer, const struct reclaim_plan *plan,
                          const struct pod_view *pod)
{
    const struct reclaim_end *first = &g_array_index(plan->ends, struct reclaim_end, 0);
    struct memory *memory = reclaimer_remember(reclaimer, pod->uid);
    g_autofree char *name = g_strdup_printf("%s/%s", pod->ns, pod->name);
    g_autofree char *note =
        g_strdup_printf("its namespace is within its quota's min: %u pod%s of %s%s would give back "
                        "for it (--evictions-observe)",
                        plan->ends->len, plan->ends->len == 1 ? "" : "s", first->ns,
                        plan->ends->len == 1 ? "" : " and perhaps others");

    memory->again_ms = reclaimer->now_ms + RECLAIM_STAYS_MS;
    for (guint i = 0; i < plan->ends->len; i++)
        metrics_count_eviction(ENDER_RECLAIM, EVICTION_OUTCOME_OBSERVED);
    log_event(LOG_LEVEL_INFO, "lent quota would be taken back", LOG_TEXT("for", name),
              LOG_NUMBER("evictions", plan->ends->len), LOG_TEXT("from", first->ns));
    reclaimer_post(reclaimer, POD_EVENT_RECLAIMS, pod, note);
}

/* Once, until something else is found. */
static void tell_refused(struct reclaimer *reclaimer, const struct pod_view *pod, int answer,
                         const char *why)
{
    struct memory *memory = reclaimer_remember(reclaimer, pod->uid);
    g_autofree char *name = g_strdup_printf("%s/%s", pod->ns, pod->name);

    memory->again_ms = reclaimer->now_ms + RECLAIM_AGAIN_MS;
    if (memory->answer == answer)
        return;
    memory->answer = answer;
    metrics_count(COUNTER_RECLAIMS, RECLAIM_RESULT_REFUSED);
    log_event(LOG_LEVEL_INFO, "nobody gives back", LOG_TEXT("for", name), LOG_TEXT("why", why));
}

/* The namespaces of those that end for claims already and of those of the plan, one as often as there are pods; borrowed. */
static GPtrArray *list_ends(const GPtrArray *outstanding, const struct reclaim_plan *plan)
{
    GPtrArray *namespaces = g_ptr_array_new();

    for (guint i = 0; i < outstanding->len; i++)
        g_ptr_array_add(namespaces, outstanding->pdata[i]);
    for (guint i = 0; i < plan->ends->len; i++)
        g_ptr_array_add(namespaces, g_array_index(plan->ends, struct reclaim_end, i).ns);
    return namespaces;
}

/* False: it takes too long, or more than is kept track of. */
static bool is_moderate(const struct reclaimer *reclaimer, const struct reclaim_plan *plan,
                        const GPtrArray *outstanding)
{
    g_autofree guint *n = g_new0(guint, plan->places->len + 1);
    g_autoptr(GPtrArray) namespaces = list_ends(outstanding, plan);
    int64_t now_ms;
    bool fits =
        limiter_lets_end(permits_lock(reclaimer->permits, &now_ms), ENDER_RECLAIM,
                         (const char *const *)namespaces->pdata, namespaces->len, EVICTIONS_MS);

    permits_unlock(reclaimer->permits);
    for (guint i = 0; i < plan->ends->len; i++)
        fits &= ++n[g_array_index(plan->ends, struct reclaim_end, i).pod] <= CLAIM_ENDS_MAX;
    return fits;
}

/* Adds to `outstanding` the namespaces of those that will end for it. */
static void serve(struct reclaimer *reclaimer, struct reclaim_ground *ground, struct party *party,
                  GPtrArray *outstanding)
{
    const guint n = party->n;
    struct pod_view *views = party->views = g_new0(struct pod_view, n);
    g_autofree struct reclaim_pod *pods = g_new0(struct reclaim_pod, n);
    g_autoptr(GError) failure = NULL;

    for (guint i = 0; i < n; i++) {
        if (!reclaim_ground_pod(ground, party->uids[i], &views[i], &pods[i])) {
            reclaimer_remember(reclaimer, party->uids[0])->again_ms =
                reclaimer->now_ms + RECLAIM_AGAIN_MS;
            return;
        }
    }
    for (int round = 0; round < ROUNDS_MAX && worker_goes_on(&reclaimer->worker); round++) {
        g_autoptr(reclaim_plan) plan = reclaim_plan_make(ground, pods, n);
        if (plan->answer != RECLAIM_FOUND) {
            tell_refused(reclaimer, &views[0], (int)plan->answer, reclaim_text(plan->answer));
            return;
        }
        if (!is_moderate(reclaimer, plan, outstanding)) {
            reclaim_plan_undo(ground);
            tell_refused(reclaimer, &views[0], RECLAIM_N, TOO_MANY);
            return;
        }
        if (!verify(reclaimer, plan)) {
            reclaim_plan_undo(ground);
            continue;
        }
        if (permits_observe(reclaimer->permits, ENDER_RECLAIM)) {
            tell_observed(reclaimer, plan, &views[0]);
            return;
        }
        if (leadership_term(reclaimer->args.leadership) != reclaimer->term ||
            !write_claims(reclaimer, plan, party, &failure)) {
            reclaim_plan_undo(ground);
            reclaimer_remember(reclaimer, party->uids[0])->again_ms =
                reclaimer->now_ms + RECLAIM_AGAIN_MS;
            log_event_limited(LOG_LEVEL_WARN, "claim cannot be written",
                              LOG_TEXT("why", failure ? failure->message : "no leader any more"));
            return;
        }
        reclaimer_remember(reclaimer, party->uids[0])->answer = RECLAIM_FOUND;
        remember_controllers(reclaimer, party);
        tell_claimed(reclaimer, plan, &views[0]);
        for (guint i = 0; i < plan->ends->len; i++)
            g_ptr_array_add(outstanding,
                            g_strdup(g_array_index(plan->ends, struct reclaim_end, i).ns));
        return;
    }
    tell_refused(reclaimer, &views[0], RECLAIM_N + 1, "too many of those who have borrowed stay");
    return;
}

/* Under the copy's lock. */
static bool stays(const struct allocation *allocation, void *data)
{
    struct reclaimer *reclaimer = data;

    return reclaimer_is_before(reclaimer->stays, allocation->uid, reclaimer->now_ms) ||
           reclaimer_ends(reclaimer, allocation->uid);
}

/* Of those that are still to end for claims. */
static GPtrArray *list_outstanding(const struct reclaimer *reclaimer, const GArray *rows)
{
    GPtrArray *namespaces = g_ptr_array_new_with_free_func(g_free);
    const struct ledger *ledger = store_ledger(reclaimer->args.store);

    store_lock(reclaimer->args.store);
    for (guint i = 0; i < rows->len; i++) {
        const struct room_claim *claim = g_array_index(rows, struct claim_row, i).claim;
        for (char **uid = claim->ends; *uid; uid++) {
            const struct allocation *ending = ledger_get(ledger, *uid);
            if (ending)
                g_ptr_array_add(namespaces, g_strdup(ending->ns));
        }
    }
    store_unlock(reclaimer->args.store);
    return namespaces;
}

void claimants_serve(struct reclaimer *reclaimer, const GArray *rows)
{
    const int64_t most = reclaimer->args.options.at_once;
    g_autoptr(GHashTable) handled = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(reclaim_ground) ground = NULL;
    g_autoptr(GPtrArray) outstanding = list_outstanding(reclaimer, rows);
    guint looked = 0;

    if (outstanding->len >= most)
        return;
    g_autoptr(GArray) list = list_claimants(reclaimer);
    for (guint i = 0; i < list->len && looked < PODS_MAX && outstanding->len < most &&
                      worker_goes_on(&reclaimer->worker);
         i++) {
        const struct claimant *claimant = &g_array_index(list, struct claimant, i);
        const char *uid = claimant->uid;
        if (g_hash_table_contains(handled, uid))
            continue;
        g_auto(party) party = {0};
        list_members(reclaimer, uid, &party);
        for (guint j = 0; j < party.n; j++)
            g_hash_table_add(handled, g_strdup(party.uids[j]));
        if (party.n == 0)
            continue;
        if (!ground)
            ground = reclaim_ground_new(reclaimer->args.store, stays, reclaimer);
        serve(reclaimer, ground, &party, outstanding);
        g_free(reclaimer->last_ns);
        reclaimer->last_ns = g_strdup(claimant->ns);
        looked++;
    }
}
