/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/fit.h"

#include "core/fail.h"
#include "dialect/profile/card_profile.h"
#include "explain/card_place.h"
#include "explain/trial.h"
#include "explain/messages/messages.h"
#include "wire/constraints.h"

#include <gpuledger/ranking.h>
#include <string.h>

#define GET_POD_MS 2000

static void clear_place(gpointer data)
{
    g_free(((struct fit_place *)data)->node);
}

static void clear_card_place(gpointer data)
{
    card_place_clear(data);
}

static void clear_move(gpointer data)
{
    struct fit_move *move = data;

    g_free(move->ns);
    g_free(move->name);
    g_free(move->uid);
    g_free(move->from);
    g_free(move->to);
    g_free(move->why);
}

void fit_free(struct fit *fit)
{
    if (!fit)
        return;
    g_free(fit->ns);
    g_free(fit->name);
    g_free(fit->asks);
    g_array_unref(fit->places);
    g_array_unref(fit->moves);
    explanation_free(fit->rest);
    fit_group_free(fit->group);
    g_free(fit);
}

bool fit_is_whole(const struct fit *fit)
{
    if (fit->group && fit_group_reason(fit->group) != REASON_NONE)
        return false;
    return fit->stranded == 0 && (fit->no_gpu || fit->wanted == 0 || fit->fitting >= fit->wanted);
}

/* --- nodes like the template ----------------------------------------------------------------- */

/* One more node like the template; its name is one that nobody has. Under the copy's lock. */
static const struct node *add_node(const struct fit_query *query, struct store *copy, int64_t number)
{
    g_autofree char *name =
        g_strdup_printf("%s (new %" G_GINT64_FORMAT ")", query->template->name, number);

    store_unlock(copy);
    trial_add_node(copy, query->template, name);
    store_lock(copy);
    return ledger_node(store_ledger(copy), name);
}

/* What --card-profiles says of the template, unless a Node has its name: that one's own words count. */
static void profile_template(struct fit_query *query, struct store *copy, struct json_arena *arena,
                             struct node_view *template)
{
    if (!query->template || trial_knows(copy, query->template->name))
        return;
    *template = *query->template;
    card_profile_apply(&store_options(copy)->dialects, arena, template);
    query->template = template;
}

static bool is_new(const char *node)
{
    return strstr(node, " (new ") != NULL;
}

/* --- drained nodes -------------------------------------------------------------------------- */

/* What the closest node says. Free with g_free. */
static char *why_not(const struct explanation *explanation)
{
    if (explanation->nodes->len == 0)
        return g_strdup("no other node is there");
    const struct explained_node *closest =
        &g_array_index(explanation->nodes, struct explained_node, 0);
    return g_strdup_printf("%s: %s", closest->name, closest->why);
}

/* Under the copy's lock: notes who is there, and that they leave. */
static void empty(struct fit *fit, const struct node *node, const struct card_place *place,
                  GPtrArray *uids)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        if (!card_place_holds(place, one) ||
            g_ptr_array_find_with_equal_func(uids, one->uid, g_str_equal, NULL))
            continue;
        const struct fit_move move = {.ns = g_strdup(one->ns),
                                      .name = g_strdup(one->name),
                                      .uid = g_strdup(one->uid),
                                      .from = g_strdup(node->name)};
        g_array_append_val(fit->moves, move);
        g_ptr_array_add(uids, g_strdup(one->uid));
    }
}

static void close_places(struct ledger *ledger, const GArray *places)
{
    for (guint i = 0; i < places->len; i++) {
        const struct card_place *place = &g_array_index(places, struct card_place, i);
        if (place->card == CARD_UNKNOWN && ledger_node(ledger, place->node))
            ledger_remove_node(ledger, place->node);
        card_place_close(place, ledger);
    }
}

/* Under the copy's lock: takes the places out of service, and their pods off them. */
static bool empty_places(struct fit *fit, struct store *copy, const char *const *words,
                         GError **error)
{
    struct ledger *ledger = store_ledger(copy);
    g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) places = g_array_new(FALSE, TRUE, sizeof(struct card_place));

    g_array_set_clear_func(places, clear_card_place);
    for (guint n = 0; words[n]; n++) {
        if (n == FIT_DRAIN_MAX)
            return fail_with(error, GPULEDGER_ERROR_LIMIT,
                             "at most %d nodes can be drained at a time", FIT_DRAIN_MAX);
        g_array_set_size(places, n + 1);
        struct card_place *place = &g_array_index(places, struct card_place, n);
        const struct node *node =
            card_place_parse(words[n], place, error) ? card_place_find(place, ledger, error) : NULL;
        if (!node)
            return false;
        empty(fit, node, place, uids);
    }
    for (guint i = 0; i < uids->len; i++)
        ledger_drop(ledger, uids->pdata[i]);
    close_places(ledger, places);
    return true;
}

/* A node that is there, or a new one if that takes the pod. */
static const struct node *find_home(const struct fit_query *query, struct fit *fit,
                                    struct store *copy, const struct trial_pod *pod,
                                    const char *uid)
{
    const struct node *home = trial_settle(copy, pod, uid);

    if (home || !query->template || fit->made == FIT_TEMPLATE_MAX)
        return home;
    const struct node *added = add_node(query, copy, fit->made + 1);
    home = trial_settle(copy, pod, uid);
    if (home)
        fit->made++;
    else
        ledger_remove_node(store_ledger(copy), added->name);
    return home;
}

/* One pod of a drained node, as it would come back. The cluster is asked without a lock. */
static void move_one(const struct fit_query *query, struct fit *fit, struct store *copy,
                     guint number)
{
    struct fit_move *move = &g_array_index(fit->moves, struct fit_move, number);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    g_autofree char *uid = g_strdup_printf("moved-%u", number);
    struct moment moment;
    struct pod_view view;

    if (query->cluster->ops->get_pod(query->cluster, arena, move->ns, move->name,
                                     g_get_monotonic_time() / 1000 + GET_POD_MS, &view,
                                     &failure) != OUTCOME_OK) {
        move->why = g_strdup_printf("it cannot be read: %s", failure->message);
        return;
    }
    view.uid = NULL; /* whoever makes it again gives it another, and no node */
    view.node_name = NULL;
    g_autoptr(request) request =
        constraints_decode(arena, &view, &failure)
            ? dialect_read_request(&view, &store_options(copy)->dialects, &failure)
            : NULL;
    fit->overlooked |= view.constraints ? view.constraints->overlooked : 0;
    if (!request) {
        move->why = g_strdup(failure ? failure->message : "it asks for no GPU");
        return;
    }
    store_decide(copy, &moment);
    const struct trial_pod pod = {&view, request, &moment, NULL};
    const struct node *home = find_home(query, fit, copy, &pod, uid);
    if (home)
        move->to = g_strdup(home->name);
    store_unlock(copy);
    if (move->to)
        return;
    g_autoptr(explanation) explanation = explain_on(copy, &view, request);
    move->why = why_not(explanation);
}

static bool drain(const struct fit_query *query, struct fit *fit, struct store *copy,
                  GError **error)
{
    store_lock(copy);
    const bool emptied = empty_places(fit, copy, query->drain, error);
    store_unlock(copy);
    for (guint i = 0; emptied && i < fit->moves->len; i++) {
        move_one(query, fit, copy, i);
        fit->stranded += !g_array_index(fit->moves, struct fit_move, i).to;
    }
    return emptied;
}

/* --- one pod after the other ---------------------------------------------------------------- */

/* The nodes that take the pod, rated; a placement changes what one of them is worth. */
struct contest {
    struct store *copy;
    const struct pod_view *pod;
    const struct request *request;
    const struct policy *policy;
    const char *uid; /* of its pods, without their numbers */
    struct rank *ranks;
    guint n;
    guint n_max;
};

/* Under the copy's lock, and of what is there now. */
static void begin_question(const struct contest *contest, const struct moment *moment,
                           struct feasibility *ret_question)
{
    feasibility_init(
        ret_question, contest->copy,
        &(struct feasibility_about){GATE_BY_FIT, contest->pod, contest->request, moment});
}

static struct moment now(void)
{
    return (struct moment){.now_ns = g_get_real_time() * 1000,
                           .now_ms = g_get_monotonic_time() / 1000};
}

/* Rates the node, or says that it does not take the pod. */
static bool rate(const struct contest *contest, struct feasibility *question,
                 const struct node *node, struct rank *ret_rank)
{
    struct placement placement;

    if (!feasibility_takes(question, node, &placement))
        return false;
    feasibility_rate(question, contest->policy, node, &placement, ret_rank);
    return true;
}

static bool rate_again(const struct contest *contest, const struct node *node,
                       struct rank *ret_rank)
{
    const struct moment moment = now();
    struct feasibility question;

    begin_question(contest, &moment, &question);
    const bool takes = rate(contest, &question, node, ret_rank);
    feasibility_clear(&question);
    return takes;
}

static void enter(struct contest *contest, struct feasibility *question, const struct node *node)
{
    struct rank rank;

    if (!rate(contest, question, node, &rank))
        return;
    if (contest->n == contest->n_max) {
        contest->n_max = contest->n_max ? 2 * contest->n_max : 64;
        contest->ranks = g_renew(struct rank, contest->ranks, contest->n_max);
    }
    contest->ranks[contest->n++] = rank;
}

static void enter_all(struct contest *contest)
{
    const GPtrArray *nodes = ledger_nodes(store_ledger(contest->copy));
    const struct moment moment = now();
    struct feasibility question;

    contest->n = 0;
    begin_question(contest, &moment, &question);
    for (guint i = 0; i < nodes->len; i++)
        enter(contest, &question, nodes->pdata[i]);
    feasibility_clear(&question);
}

static void enter_new(struct contest *contest, const struct node *node)
{
    const struct moment moment = now();
    struct feasibility question;

    begin_question(contest, &moment, &question);
    enter(contest, &question, node);
    feasibility_clear(&question);
}

/* Of the pod of that number. Free with g_free. */
static char *uid_of(const char *uid, int64_t number)
{
    return g_strdup_printf("%s-%" G_GINT64_FORMAT, uid ? uid : "fit", number);
}

/* Under the lock: places one more pod; NULL: nothing takes it. */
static const char *place_one(struct contest *contest, int64_t number)
{
    const struct moment moment = now();
    const struct trial_pod pod = {contest->pod, contest->request, &moment, NULL};
    g_autofree char *uid = uid_of(contest->uid, number);
    struct placement placement;

    while (contest->n > 0) {
        const size_t winner = ranking_winner(contest->policy, contest->ranks, contest->n);
        const struct node *node =
            ledger_node(store_ledger(contest->copy), contest->ranks[winner].name);
        struct feasibility question;
        begin_question(contest, &moment, &question);
        const bool placed = feasibility_ask(&question, node, &placement) == REASON_NONE &&
                            trial_put(contest->copy, &pod, uid, node, &placement);
        feasibility_clear(&question);
        /* What a quota leaves is another matter for every node, and is asked again above. */
        if (!placed || !rate_again(contest, node, &contest->ranks[winner]))
            contest->ranks[winner] = contest->ranks[--contest->n];
        if (placed)
            return node->name;
    }
    return NULL;
}

static void note_place(struct fit *fit, const char *node, bool made)
{
    for (guint i = 0; i < fit->places->len; i++) {
        struct fit_place *place = &g_array_index(fit->places, struct fit_place, i);
        if (g_str_equal(place->node, node)) {
            place->pods++;
            return;
        }
    }
    const struct fit_place place = {g_strdup(node), 1, made};
    g_array_append_val(fit->places, place);
}

static void place_all(const struct fit_query *query, struct fit *fit, struct contest *contest)
{
    const int64_t most = fit->wanted > 0 ? MIN(fit->wanted, FIT_REPLICAS_MAX) : FIT_REPLICAS_MAX;
    int64_t made = fit->made;

    enter_all(contest);
    while (fit->fitting < most) {
        const char *node = place_one(contest, fit->fitting);
        if (!node) {
            /* Without a number there is no end to new nodes. */
            if (!query->template || fit->wanted == 0 || made == FIT_TEMPLATE_MAX ||
                made > fit->made)
                break;
            enter_new(contest, add_node(query, contest->copy, ++made));
            continue;
        }
        fit->made = is_new(node) ? made : fit->made;
        fit->fitting++;
        note_place(fit, node, is_new(node));
    }
    fit->capped = fit->fitting == FIT_REPLICAS_MAX && fit->wanted != fit->fitting;
    g_free(contest->ranks);
}

/* --- a group -------------------------------------------------------------------------------- */

/* New nodes are added for as long as each takes one of the group that nobody took before. */
static void place_on_new_nodes(const struct fit_query *query, struct fit *fit, struct store *copy,
                               const struct pod_view *view)
{
    while (fit->group->fit < fit->group->uids->len && fit->made < FIT_TEMPLATE_MAX) {
        const struct node *added = add_node(query, copy, fit->made + 1);
        if (!fit_group_place(fit->group, copy, view)) {
            ledger_remove_node(store_ledger(copy), added->name);
            return;
        }
        fit->made++;
    }
}

static void place_group(const struct fit_query *query, struct fit *fit, struct store *copy,
                        const struct pod_view *view)
{
    struct fit_group *group = fit->group;
    const int64_t made = fit->made;

    if (fit->wanted == 0)
        fit->wanted = fit_group_lacks(group);
    fit_group_await(group, copy, view, fit->wanted);
    store_lock(copy);
    fit_group_place(group, copy, view);
    if (query->template)
        place_on_new_nodes(query, fit, copy, view);
    fit->fitting = group->fit;
    fit->capped = group->uids->len < fit->wanted && group->fit == group->uids->len;
    const bool comes = fit_group_reason(group) == REASON_NONE;
    for (guint i = 0; comes && i < group->uids->len; i++) {
        const struct allocation *held = ledger_get(store_ledger(copy), group->uids->pdata[i]);
        if (held)
            note_place(fit, held->node->name, is_new(held->node->name));
    }
    if (!comes)
        fit->made = made;
    store_unlock(copy);
}

/* --- the whole ------------------------------------------------------------------------------ */

static bool place_pods(const struct fit_query *query, struct fit *fit, struct store *copy,
                       GError **error)
{
    GError *failure = NULL;
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view = *query->pod;
    g_autoptr(request) request =
        constraints_decode(arena, &view, &failure)
            ? dialect_read_request(&view, &store_options(copy)->dialects, &failure)
            : NULL;

    fit->ns = g_strdup(query->pod->ns);
    fit->name = g_strdup(query->pod->name);
    fit->no_gpu = !request && !failure;
    if (failure)
        g_propagate_error(error, failure);
    if (!request)
        return fit->no_gpu;
    fit->asks = request_text(NULL, request);
    fit->overlooked |= view.constraints ? view.constraints->overlooked : 0;
    view.uid = NULL;
    struct contest contest = {
        .copy = copy,
        .pod = &view,
        .request = request,
        .policy = request->terms && request->terms->policy ? request->terms->policy
                                                           : store_options(copy)->policy,
        .uid = query->uid,
    };
    fit->group = query->store ? fit_group_new(query->store, query->pod) : NULL;
    if (fit->group) {
        place_group(query, fit, copy, &view);
    } else {
        store_lock(copy);
        place_all(query, fit, &contest);
        store_unlock(copy);
    }
    if (!fit->capped && (fit->wanted == 0 || fit->fitting < fit->wanted))
        fit->rest = explain_on(copy, &view, request);
    return true;
}

struct fit *fit_on(const struct fit_query *asked, struct store *copy, GError **error)
{
    struct fit *fit = g_new0(struct fit, 1);
    g_autoptr(json_arena) arena = json_arena_new();
    struct fit_query like = *asked;
    const struct fit_query *query = &like;
    struct node_view template;

    profile_template(&like, copy, arena, &template);
    fit->places = g_array_new(FALSE, FALSE, sizeof(struct fit_place));
    g_array_set_clear_func(fit->places, clear_place);
    fit->moves = g_array_new(FALSE, FALSE, sizeof(struct fit_move));
    g_array_set_clear_func(fit->moves, clear_move);
    fit->wanted = query->replicas;
    fit->drains = query->drain && *query->drain;
    if (!drain(query, fit, copy, error) ||
        (query->pod && !place_pods(query, fit, copy, error)))
        g_clear_pointer(&fit, fit_free);
    return fit;
}

struct fit *fit_find(const struct fit_query *query, GError **error)
{
    g_autoptr(store) copy = store_copy(query->store);

    return fit_on(query, copy, error);
}

void fit_take_back(const struct fit *fit, const struct fit_query *query, struct store *copy)
{
    struct ledger *ledger = store_lock(copy);

    for (int64_t i = 0; i < fit->fitting; i++) {
        g_autofree char *uid = uid_of(query->uid, i);
        ledger_drop(ledger, uid);
    }
    store_unlock(copy);
}
