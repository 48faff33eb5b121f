/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/wake.h"

#include "core/ledger.h"
#include "store/feasibility.h"
#include "base/log.h"
#include "base/metrics.h"

#include <pthread.h>

#define REFUSED_MAX 4096     /* pods remembered; others wait for kube-scheduler's own flush */
#define PER_RUN_MAX 20
#define GRACE_MS 1000        /* in most cases kube-scheduler asks again by itself, well before */
#define PAUSE_MAX_MS 60000
#define CALL_MS 5000
#define UNSEEN_MAX_MS 60000 /* that the watch may be behind filter, before a pod counts as gone */

/* Goes over the ledger's places, perhaps in several runs. */
struct wake_look {
    uint32_t place; /* it goes on there; 0: it has not begun */
    uint64_t began; /* ledger_freed then: what became free later is for the next one */
};

struct refused {
    char *uid, *ns, *name;
    uint64_t freed;        /* all room up to here has been tried */
    int64_t not_before_ms; /* monotonic */
    int64_t pause_ms;      /* after the next wake */
    int64_t ask_again_ms;  /* monotonic; whatever room there is by then; 0: not */
    int64_t seen_by_ms;    /* monotonic: when the watch must have shown the pod; 0: it has */
    uint64_t looked;       /* the turn of the last look that ended, of filter or here */
    struct wake_look look; /* that has not ended */
    GList *link;           /* in its namespace's queue */
};

struct wake {
    pthread_mutex_t lock;
    GHashTable *refused; /* the entry's uid -> struct refused * */
    GHashTable *queues;  /* namespace -> GQueue of its refused, who was asked about last at the end;
                          * none is empty */
    uint64_t turn;       /* counts looks */
    struct wake_work work;
};

static void refused_free(gpointer data)
{
    struct refused *refused = data;
    g_free(refused->uid);
    g_free(refused->ns);
    g_free(refused->name);
    g_free(refused);
}

static void queue_free(gpointer data)
{
    g_queue_free(data);
}

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

struct wake *wake_new(void)
{
    struct wake *wake = g_new0(struct wake, 1);

    pthread_mutex_init(&wake->lock, NULL);
    wake->refused = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, refused_free);
    wake->queues = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, queue_free);
    return wake;
}

void wake_free(struct wake *wake)
{
    if (!wake)
        return;
    g_hash_table_unref(wake->queues);
    g_hash_table_unref(wake->refused);
    pthread_mutex_destroy(&wake->lock);
    g_free(wake);
}

/* --- whom it remembers ---------------------------------------------------------------------- */

static void forget(struct wake *wake, struct refused *refused)
{
    GQueue *queue = g_hash_table_lookup(wake->queues, refused->ns);

    g_queue_delete_link(queue, refused->link);
    if (g_queue_is_empty(queue))
        g_hash_table_remove(wake->queues, refused->ns);
    g_hash_table_remove(wake->refused, refused->uid);
}

/* Of the namespace that has most, who was asked about the longest ago. A namespace alone fills all
 * places, and takes none of another's. */
static void make_room(struct wake *wake)
{
    GQueue *longest = NULL;
    GHashTableIter iter;
    gpointer queue;

    g_hash_table_iter_init(&iter, wake->queues);
    while (g_hash_table_iter_next(&iter, NULL, &queue)) {
        if (!longest || g_queue_get_length(queue) > g_queue_get_length(longest))
            longest = queue;
    }
    forget(wake, g_queue_peek_head(longest));
}

static struct refused *remember(struct wake *wake, const struct pod_view *pod)
{
    struct refused *refused = g_new0(struct refused, 1);

    if (g_hash_table_size(wake->refused) >= REFUSED_MAX)
        make_room(wake);
    refused->uid = g_strdup(pod->uid);
    refused->ns = g_strdup(pod->ns ? pod->ns : "");
    refused->name = g_strdup(pod->name);
    refused->pause_ms = GRACE_MS;
    refused->seen_by_ms = now_ms() + UNSEEN_MAX_MS;
    g_hash_table_insert(wake->refused, refused->uid, refused);
    GQueue *queue = g_hash_table_lookup(wake->queues, refused->ns);
    if (!queue) {
        queue = g_queue_new();
        g_hash_table_insert(wake->queues, g_strdup(refused->ns), queue);
    }
    g_queue_push_tail(queue, refused);
    refused->link = g_queue_peek_tail_link(queue);
    return refused;
}

void wake_note_refusal(struct wake *wake, const struct pod_view *pod, uint64_t freed)
{
    pthread_mutex_lock(&wake->lock);
    struct refused *refused = g_hash_table_lookup(wake->refused, pod->uid);
    if (refused) {
        GQueue *queue = g_hash_table_lookup(wake->queues, refused->ns);
        g_queue_unlink(queue, refused->link);
        g_queue_push_tail_link(queue, refused->link);
    } else {
        refused = remember(wake, pod);
    }
    refused->freed = freed;
    refused->looked = ++wake->turn;
    refused->look = (struct wake_look){0};
    refused->ask_again_ms = 0;
    refused->not_before_ms = MAX(refused->not_before_ms, now_ms() + GRACE_MS);
    pthread_mutex_unlock(&wake->lock);
}

void wake_note_awaited(struct wake *wake, const char *uid, int64_t after_ms)
{
    pthread_mutex_lock(&wake->lock);
    struct refused *refused = g_hash_table_lookup(wake->refused, uid);
    if (refused)
        refused->ask_again_ms = now_ms() + after_ms;
    pthread_mutex_unlock(&wake->lock);
}

void wake_forget(struct wake *wake, const char *uid)
{
    pthread_mutex_lock(&wake->lock);
    struct refused *refused = g_hash_table_lookup(wake->refused, uid);
    if (refused)
        forget(wake, refused);
    pthread_mutex_unlock(&wake->lock);
}

/* --- who is to be woken --------------------------------------------------------------------- */

/* A copy, so that neither lock is needed for the call. */
struct candidate {
    char *uid, *ns, *name;
    uint64_t freed;
    uint64_t tried; /* the same after it was looked at */
    bool may_come;  /* the watch has not shown it at an earlier look, and may yet */
    bool unseen;    /* so it is still: nothing is known of it */
    bool gone;      /* bound, deleted, or not shown in time */
    bool overdue;   /* it was to be asked about again by now */
    bool admitted;
    bool ended;      /* the look */
    uint64_t looked; /* these two as the refused pod has them */
    struct wake_look look;
    guint rank; /* how many of its namespace are looked at before it */
};

static void candidate_clear(gpointer data)
{
    struct candidate *candidate = data;
    g_free(candidate->uid);
    g_free(candidate->ns);
    g_free(candidate->name);
}

static gint compare_looks(gconstpointer a, gconstpointer b)
{
    const struct candidate *left = a, *right = b;

    return left->looked < right->looked ? -1 : left->looked > right->looked;
}

static gint compare_ranks(gconstpointer a, gconstpointer b)
{
    const struct candidate *left = a, *right = b;

    return left->rank < right->rank ? -1 : left->rank > right->rank ? 1 : compare_looks(a, b);
}

/* Namespaces in turns, and the pods of each, since only so many are looked at, and woken, in a run. */
static void order(GArray *due)
{
    g_autoptr(GHashTable) ranks = g_hash_table_new(g_str_hash, g_str_equal);

    g_array_sort(due, compare_looks);
    for (guint i = 0; i < due->len; i++) {
        struct candidate *candidate = &g_array_index(due, struct candidate, i);
        candidate->rank = GPOINTER_TO_UINT(g_hash_table_lookup(ranks, candidate->ns));
        g_hash_table_insert(ranks, candidate->ns, GUINT_TO_POINTER(candidate->rank + 1));
    }
    g_array_sort(due, compare_ranks);
}

static GArray *take_due(struct wake *wake)
{
    GArray *due = g_array_new(FALSE, FALSE, sizeof(struct candidate));
    const int64_t now = now_ms();
    GHashTableIter iter;
    gpointer queue;

    g_array_set_clear_func(due, candidate_clear);
    pthread_mutex_lock(&wake->lock);
    g_hash_table_iter_init(&iter, wake->queues);
    while (g_hash_table_iter_next(&iter, NULL, &queue)) {
        for (const GList *link = g_queue_peek_head_link(queue); link; link = link->next) {
            const struct refused *refused = link->data;
            if (refused->not_before_ms > now)
                continue;
            struct candidate candidate = {
                .uid = g_strdup(refused->uid),
                .ns = g_strdup(refused->ns),
                .name = g_strdup(refused->name),
                .freed = refused->freed,
                .overdue = refused->ask_again_ms != 0 && refused->ask_again_ms <= now,
                .may_come = refused->seen_by_ms > now,
                .looked = refused->looked,
                .look = refused->look,
            };
            g_array_append_val(due, candidate);
        }
    }
    pthread_mutex_unlock(&wake->lock);
    order(due);
    return due;
}

/* What one run has to look with. */
struct looking {
    struct store *store;
    const struct demand *demand;
    uint64_t steps; /* that it has taken */
};

/* Under the store's lock: from where the look is on, whether a node takes the pod now; false also if it has not
 * ended yet. */
static bool look_on(struct looking *looking, struct candidate *candidate,
                    struct feasibility *question)
{
    const bool anywhere = gates_freed(&question->gates, question->ledger, candidate->freed);
    const uint32_t n = ledger_places(question->ledger);
    const uint64_t most = looking->steps + WAKE_HOLD_STEPS;
    bool found = false;

    for (; candidate->look.place < n && !found && looking->steps < most; candidate->look.place++) {
        const struct node *node = ledger_node_at(question->ledger, candidate->look.place);
        looking->steps++;
        if (!node || (!anywhere && ledger_freed_on(question->ledger, node) <= candidate->freed))
            continue;
        looking->steps += WAKE_ASK_STEPS;
        found = feasibility_ask(question, node, NULL) == REASON_NONE;
    }
    candidate->ended = found || candidate->look.place >= n;
    return found;
}

/* Under the store's lock: whether a node on which something became free takes the pod now. What a
 * quota leaves may have become free anywhere. The order of arrival is left to filter, which will be
 * asked: no record tells that somebody has looked. */
static bool has_room(struct looking *looking, struct candidate *candidate,
                     const struct moment *moment)
{
    struct store *store = looking->store;
    const struct pod_view pod = {
        .uid = candidate->uid,
        .ns = candidate->ns,
        .priority = store_pending_priority(store, candidate->uid),
    };
    struct feasibility question;

    feasibility_init(&question, store,
                     &(struct feasibility_about){GATE_BY_WAKE, &pod,
                                                 store_pending(store, candidate->uid), moment,
                                                 WITHOUT_ORDER | WITHOUT_WAITING, looking->demand});
    const bool found = look_on(looking, candidate, &question);
    feasibility_clear(&question);
    return found;
}

/* Under the store's lock: its group, if it has one, does not hold it back anyway. */
static bool group_may_come(struct store *store, const char *uid, const struct moment *moment)
{
    const enum gang_answer answer = gangs_judge(store_gangs(store), uid, moment->now_ms);

    return answer == GANG_NONE || answer == GANG_YES;
}

/* One at a time, and of a large cluster a part: there may be thousands, and others want the lock. */
static void look_once(struct looking *looking, struct candidate *candidate)
{
    struct store *store = looking->store;
    struct moment moment;
    struct ledger *ledger = store_decide(store, &moment);

    if (candidate->look.place == 0)
        candidate->look.began = ledger_freed(ledger);
    const struct allocation *held = ledger_get(ledger, candidate->uid);
    const bool placed = held && held->state == ALLOCATION_HELD; /* by another pod of its group */
    const bool pending = store_pending(store, candidate->uid) != NULL;
    candidate->ended = true;
    candidate->unseen = !pending && !held && candidate->may_come;
    candidate->gone = !candidate->unseen && (!pending || (held && !placed));
    candidate->admitted =
        !candidate->gone && !candidate->unseen &&
        (candidate->overdue || (candidate->freed != candidate->look.began &&
                                (placed || (group_may_come(store, candidate->uid, &moment) &&
                                            has_room(looking, candidate, &moment)))));
    /* Who is woken may have all there is now; else what became free behind the look is for the next one. */
    candidate->tried = candidate->admitted ? ledger_freed(ledger) : candidate->look.began;
    store_unlock(store);
}

static void look(struct wake *wake, struct looking *looking, struct candidate *candidate)
{
    do {
        const uint64_t before = looking->steps;
        look_once(looking, candidate);
        wake->work.steps += looking->steps - before;
        wake->work.most_at_once = MAX(wake->work.most_at_once, looking->steps - before);
    } while (!candidate->ended && looking->steps < WAKE_RUN_STEPS);
}

/* Before a call: whatever becomes of it, this room has had its turn. */
static void set_tried(struct wake *wake, const struct candidate *candidate)
{
    pthread_mutex_lock(&wake->lock);
    struct refused *refused = g_hash_table_lookup(wake->refused, candidate->uid);
    const bool same =
        refused && refused->looked == candidate->looked; /* nobody has asked meanwhile */
    if (same)
        refused->look = candidate->ended ? (struct wake_look){0} : candidate->look;
    if (same && candidate->ended)
        refused->looked = ++wake->turn;
    if (refused)
        refused->seen_by_ms = 0;
    if (refused && candidate->ended)
        refused->freed = MAX(refused->freed, candidate->tried);
    if (refused && candidate->admitted) {
        refused->ask_again_ms = 0;
        refused->not_before_ms = now_ms() + refused->pause_ms;
        refused->pause_ms = MIN(refused->pause_ms * 2, PAUSE_MAX_MS);
    }
    pthread_mutex_unlock(&wake->lock);
}

static enum wake_result call(struct cluster *cluster, const struct candidate *candidate)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format_iso8601(now);
    g_autofree char *pod = g_strdup_printf("%s/%s", candidate->ns, candidate->name);
    const struct pod_annotation annotation = {
        .ns = candidate->ns,
        .name = candidate->name,
        .uid = candidate->uid,
        .key = WAKE_ANNOTATION,
        .value = time,
    };

    if (cluster->ops->annotate_pod(cluster, &annotation, now_ms() + CALL_MS, &failure) ==
        OUTCOME_OK) {
        log_event(LOG_LEVEL_INFO,
                  candidate->overdue ? "woken: those whom preempt has named have not ended"
                                     : "woken: there is room now",
                  LOG_TEXT("pod", pod));
        return WAKE_RESULT_WOKEN;
    }
    log_event(LOG_LEVEL_WARN, "pod cannot be woken", LOG_TEXT("pod", pod),
              LOG_TEXT("why", failure->message));
    return WAKE_RESULT_FAILED;
}

unsigned wake_run(struct wake *wake, struct store *store, struct cluster *cluster)
{
    unsigned woken = 0;

    if (!cluster->ops->annotate_pod)
        return 0;
    g_autoptr(GArray) due = take_due(wake);
    if (due->len == 0)
        return 0;
    g_autoptr(demand) demand = store_demand_copy(store);
    struct looking looking = {store, demand};
    for (guint i = 0; i < due->len && woken < PER_RUN_MAX && looking.steps < WAKE_RUN_STEPS; i++) {
        struct candidate *candidate = &g_array_index(due, struct candidate, i);
        look(wake, &looking, candidate);
        if (candidate->gone) {
            wake_forget(wake, candidate->uid);
            continue;
        }
        if (candidate->unseen)
            continue; /* what has become free is still to be tried */
        set_tried(wake, candidate);
        if (candidate->admitted) {
            metrics_count(COUNTER_WAKES, call(cluster, candidate));
            woken++;
        }
    }
    return woken;
}

struct wake_work wake_work(const struct wake *wake)
{
    return wake->work;
}
