/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/chooser.h"

#include "base/log.h"
#include "base/worker.h"
#include "policy/demand.h"
#include "policy/policy_choice.h"

#include <sched.h>
#include <time.h>

#define INTERVAL_MS (10 * 60 * 1000)
#define SYNC_POLL_MS 200
/* Times the CPU time that a look took, before the next. */
#define REST_FACTOR 19

struct chooser {
    struct store *store;
    int64_t interval_ms;
    gint stopping; /* atomic */
    struct worker worker;

    /* Under the worker's lock: */
    bool on;                     /* the policy is auto */
    const struct policy *wanted; /* of the store, with this patience */
    int64_t patience_ms;
    unsigned wishes;          /* how often these two were changed */
    const struct policy *now; /* what was chosen last */
    unsigned looks, looks_taken;
    struct policy_figure figures[POLICY_CHOICE_N];
};

bool chooser_look(struct policy_choice *choice, struct store *store, const gint *cancelled)
{
    g_autoptr(store) copy = store_copy(store);
    struct ledger *ledger = store_lock(copy); /* nobody else has it */
    const bool changed = policy_choice_look(choice, ledger, store_demand(copy), cancelled);

    store_unlock(copy);
    return changed;
}

static int64_t cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void log_look(const struct chooser *chooser, const struct policy *before, int64_t took_ms)
{
    for (size_t i = 0; i < POLICY_CHOICE_N; i++) {
        const struct policy_figure *figure = &chooser->figures[i];
        g_autofree char *allocated = g_strdup_printf("%.2f", figure->allocated);
        g_autofree char *gain = g_strdup_printf("%+.2f", figure->gain);
        g_autofree char *lead = g_strdup_printf("%.2f", figure->lead);
        g_autofree char *missing = g_strdup_printf("%.2f", POLICY_CHOICE_LEAD - figure->lead);
        if (figure->policy == chooser->now && before != chooser->now)
            log_event(LOG_LEVEL_INFO, "policy chosen", LOG_TEXT("policy", chooser->now->name),
                      LOG_TEXT("before", before->name), LOG_TEXT("allocated_percent", allocated),
                      LOG_TEXT("gain_points", gain), LOG_NUMBER("looks", chooser->looks_taken));
        log_event(LOG_LEVEL_DEBUG, "looked ahead", LOG_TEXT("policy", figure->policy->name),
                  LOG_TEXT("allocated_percent", allocated), LOG_TEXT("gain_points", gain),
                  LOG_TEXT("lead_points", lead),
                  LOG_TEXT("missing_points", figure->policy == chooser->now ? "none" : missing),
                  LOG_NUMBER("cpu_ms", took_ms));
    }
}

/* Gives the store what is wanted, without the worker's lock. Somebody may want something else meanwhile;
 * whoever comes last looks again. */
static void set_store(struct chooser *chooser)
{
    unsigned wishes;

    worker_lock(&chooser->worker);
    do {
        const struct policy *policy = chooser->wanted;
        const int64_t patience_ms = chooser->patience_ms;
        wishes = chooser->wishes;
        worker_unlock(&chooser->worker);
        store_set_policy(chooser->store, policy, patience_ms);
        worker_lock(&chooser->worker);
    } while (wishes != chooser->wishes);
    worker_unlock(&chooser->worker);
}

/* What came of a look, unless auto is no longer wanted. */
static void take_over(struct chooser *chooser, const struct policy_choice *choice, int64_t took_ms)
{
    const struct policy_figure *figures = policy_choice_figures(choice);

    worker_lock(&chooser->worker);
    const struct policy *before = chooser->now;
    chooser->now = policy_choice_now(choice);
    chooser->looks = policy_choice_looks(choice);
    chooser->looks_taken = policy_choice_looks_taken(choice);
    for (size_t i = 0; i < POLICY_CHOICE_N; i++)
        chooser->figures[i] = figures[i];
    const bool changed = chooser->on && chooser->now != before;
    if (changed) {
        chooser->wanted = chooser->now;
        chooser->wishes++;
    }
    if (chooser->on)
        log_look(chooser, before, took_ms);
    worker_unlock(&chooser->worker);
    if (changed)
        set_store(chooser);
}

/* Only while nobody else wants the CPU. A kernel that does not know the class runs it as any other. */
static void stand_back(void)
{
    const struct sched_param param = {0};

    sched_setscheduler(0, SCHED_IDLE, &param);
}

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static void *choose(void *data)
{
    struct chooser *chooser = data;
    struct policy_choice *choice = policy_choice_new();
    int64_t next_ms = 0;

    stand_back();
    while (!store_is_synced(chooser->store) && worker_rest(&chooser->worker, SYNC_POLL_MS))
        continue;
    worker_lock(&chooser->worker);
    while (worker_wait(&chooser->worker, chooser->on ? next_ms : WORKER_FOREVER)) {
        if (!chooser->on || now_ms() < next_ms)
            continue;
        worker_unlock(&chooser->worker);
        const int64_t start_ms = cpu_ms();
        chooser_look(choice, chooser->store, &chooser->stopping);
        const int64_t took_ms = cpu_ms() - start_ms;
        take_over(chooser, choice, took_ms);
        next_ms = now_ms() + MAX(chooser->interval_ms, REST_FACTOR * took_ms);
        worker_lock(&chooser->worker);
    }
    worker_unlock(&chooser->worker);
    policy_choice_free(choice);
    return NULL;
}

struct chooser *chooser_start(struct store *store, const struct chooser_options *options,
                              GError **error)
{
    struct chooser *chooser = g_new0(struct chooser, 1);
    struct policy_choice *first = policy_choice_new();

    chooser->store = store;
    chooser->interval_ms = options->interval_ms > 0 ? options->interval_ms : INTERVAL_MS;
    chooser->now = policy_choice_now(first);
    policy_choice_free(first);
    worker_init(&chooser->worker);
    if (!worker_start(&chooser->worker, choose, chooser, error))
        g_clear_pointer(&chooser, chooser_free);
    return chooser;
}

void chooser_free(struct chooser *chooser)
{
    if (!chooser)
        return;
    g_atomic_int_set(&chooser->stopping, 1);
    worker_stop(&chooser->worker);
    worker_release(&chooser->worker);
    g_free(chooser);
}

void chooser_set(struct chooser *chooser, const struct policy *policy, int64_t patience_ms)
{
    worker_lock(&chooser->worker);
    chooser->on = policy == &policy_auto;
    chooser->wanted = chooser->on ? chooser->now : policy;
    chooser->patience_ms = patience_ms;
    chooser->wishes++;
    worker_wake(&chooser->worker);
    worker_unlock(&chooser->worker);
    set_store(chooser);
}

#define IN_USE "gpuledger_policy_in_use"
#define AHEAD "gpuledger_policy_lookahead_allocated_ratio"
#define LEAD "gpuledger_policy_lead_points"
#define MISSING "gpuledger_policy_lead_missing_points"
#define LOOKS "gpuledger_policy_lookaheads_total"

/* Of one figure of those that are not negative. */
static void append_points(GString *text, const char *metric, const struct policy *policy,
                          double points)
{
    const int hundredths = (int)(100 * points + 0.5);

    g_string_append_printf(text, "%s{policy=\"%s\"} %d.%02d\n", metric, policy->name,
                           hundredths / 100, hundredths % 100);
}

static void append_leads(const struct chooser *chooser, GString *text)
{
    g_string_append(text,
                    "# HELP " LEAD
                    " With --policy auto: points of the GPU by which looks ahead have seen the "
                    "policy before the one in use, added up.\n# TYPE " LEAD " gauge\n");
    for (size_t i = 0; chooser->looks > 0 && i < POLICY_CHOICE_N; i++)
        append_points(text, LEAD, chooser->figures[i].policy, chooser->figures[i].lead);
    g_string_append(text, "# HELP " MISSING
                          " With --policy auto: what is missing in the policy's lead until it is "
                          "chosen.\n# TYPE " MISSING " gauge\n");
    for (size_t i = 0; chooser->looks > 0 && i < POLICY_CHOICE_N; i++) {
        const struct policy_figure *figure = &chooser->figures[i];
        if (figure->policy != chooser->now)
            append_points(text, MISSING, figure->policy, POLICY_CHOICE_LEAD - figure->lead);
    }
}

void chooser_metrics(struct chooser *chooser, GString *text)
{
    worker_lock(&chooser->worker);
    if (!chooser->on) {
        worker_unlock(&chooser->worker);
        return;
    }
    g_string_append(text,
                    "# HELP " IN_USE " With --policy auto: 1 for the policy that it has chosen.\n"
                    "# TYPE " IN_USE " gauge\n");
    for (size_t i = 0; chooser->looks > 0 && i < POLICY_CHOICE_N; i++)
        g_string_append_printf(text, IN_USE "{policy=\"%s\"} %d\n",
                               chooser->figures[i].policy->name,
                               chooser->figures[i].policy == chooser->now);
    if (chooser->looks == 0)
        g_string_append_printf(text, IN_USE "{policy=\"%s\"} 1\n", chooser->now->name);
    g_string_append(
        text, "# HELP " AHEAD
              " With --policy auto: the part of all GPUs that would be allocated under the policy, "
              "by the last look ahead.\n# TYPE " AHEAD " gauge\n");
    for (size_t i = 0; chooser->looks > 0 && i < POLICY_CHOICE_N; i++)
        g_string_append_printf(text, AHEAD "{policy=\"%s\"} %d.%04d\n",
                               chooser->figures[i].policy->name,
                               (int)(chooser->figures[i].allocated / 100),
                               (int)(chooser->figures[i].allocated * 100) % 10000);
    append_leads(chooser, text);
    g_string_append_printf(
        text, "# HELP " LOOKS " Looks ahead so far.\n# TYPE " LOOKS " counter\n" LOOKS " %u\n",
        chooser->looks);
    worker_unlock(&chooser->worker);
}
