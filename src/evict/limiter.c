/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/limiter.h"

#include "plan/rate.h"

#define GOING_MS                                                                                   \
    600000 /* a pod that has not ended by then counts no more, and may be evicted again */

const char *const limit_texts[LIMIT_N] = {
    [LIMIT_NONE] = "",
    [LIMIT_AT_ONCE] = "as many pods as may end at once are on their way out",
    [LIMIT_CAPABILITY] = "as many pods as may have been evicted within a minute",
    [LIMIT_NAMESPACE] = "as many pods of its namespace as may have been evicted within a minute "
                        "(--evictions-per-namespace)",
    [LIMIT_CLUSTER] = "as many pods as may have been evicted within a minute by all capabilities "
                      "together (--evictions-per-minute)",
};

enum standing {
    STANDING_ASKED,   /* its eviction is under way */
    STANDING_DOUBTED, /* its outcome is unknown, and the pod is not seen to end */
    STANDING_GOING,
    STANDING_OVER, /* it counts in its minute only */
};

struct entry {
    enum ender ender;
    enum standing standing;
    int64_t at_ms;
    bool unknown; /* whether any pod has ended at all: it counts for its capability alone */
    char *ns;     /* NULL: it counts for every namespace */
    char *uid;    /* NULL: of no pod */
};

struct limiter {
    struct limits limits;
    GArray *entries; /* struct entry */
};

static void clear_entry(void *data)
{
    struct entry *entry = data;

    g_free(entry->ns);
    g_free(entry->uid);
}

struct limiter *limiter_new(const struct limits *limits)
{
    struct limiter *limiter = g_new(struct limiter, 1);

    *limiter = (struct limiter){*limits, g_array_new(FALSE, TRUE, sizeof(struct entry))};
    if (limits->per_minute > 0) /* others are not shut out */
        limiter->limits.for_reclaim = MIN(limits->for_reclaim, limits->per_minute - 1);
    if (limiter->limits.minute_ms == 0)
        limiter->limits.minute_ms = RATE_MINUTE_MS;
    g_array_set_clear_func(limiter->entries, clear_entry);
    return limiter;
}

void limiter_free(struct limiter *limiter)
{
    g_array_unref(limiter->entries);
    g_free(limiter);
}

static struct entry *entry_at(const struct limiter *limiter, guint i)
{
    return &g_array_index(limiter->entries, struct entry, i);
}

static bool is_recent(const struct limiter *limiter, const struct entry *entry, int64_t now_ms)
{
    return now_ms - entry->at_ms < limiter->limits.minute_ms;
}

static bool is_going(const struct entry *entry)
{
    return entry->standing != STANDING_OVER;
}

/* --- counts ----------------------------------------------------------------------------------- */

struct counts {
    uint32_t all, others; /* of all capabilities, and of all but reclaim */
    uint32_t own, going;  /* of the one that asks */
    uint32_t in_namespace;
};

static struct counts count(const struct limiter *limiter, enum ender ender, const char *ns,
                           int64_t now_ms)
{
    struct counts counts = {0};

    for (guint i = 0; i < limiter->entries->len; i++) {
        const struct entry *entry = entry_at(limiter, i);
        counts.going += entry->ender == ender && is_going(entry);
        if (!is_recent(limiter, entry, now_ms))
            continue;
        counts.own += entry->ender == ender;
        if (entry->unknown)
            continue;
        counts.all++;
        counts.others += entry->ender != ENDER_RECLAIM;
        counts.in_namespace += !entry->ns || g_strcmp0(entry->ns, ns) == 0;
    }
    return counts;
}

static bool is_full(uint32_t n, uint32_t most)
{
    return most > 0 && n >= most;
}

/* Of the minute of all, others than reclaim leave it its share. */
static bool is_cluster_full(const struct limits *limits, const struct counts *counts,
                            enum ender ender)
{
    if (limits->per_minute == 0)
        return false;
    return counts->all >= limits->per_minute ||
           (ender != ENDER_RECLAIM && counts->others + limits->for_reclaim >= limits->per_minute);
}

enum limit limiter_forbids(const struct limiter *limiter, enum ender ender, const char *ns,
                           int64_t now_ms)
{
    const struct limits *limits = &limiter->limits;
    const struct counts counts = count(limiter, ender, ns, now_ms);

    if (is_full(counts.going, limits->of[ender].at_once))
        return LIMIT_AT_ONCE;
    if (is_full(counts.own, limits->of[ender].per_minute))
        return LIMIT_CAPABILITY;
    if (is_full(counts.in_namespace, limits->per_namespace))
        return LIMIT_NAMESPACE;
    return is_cluster_full(limits, &counts, ender) ? LIMIT_CLUSTER : LIMIT_NONE;
}

/* --- places ----------------------------------------------------------------------------------- */

static void add(struct limiter *limiter, const struct entry *take_entry)
{
    g_array_append_val(limiter->entries, *take_entry);
}

/* The eviction of the pod that this capability has under way: others may have one, too. */
static bool is_asked(const struct entry *entry, enum ender ender, const char *uid)
{
    return entry->standing == STANDING_ASKED && entry->ender == ender &&
           g_strcmp0(entry->uid, uid) == 0;
}

/* What is known of the pod from before. */
static void drop_known(struct limiter *limiter, const char *uid)
{
    for (guint i = limiter->entries->len; i > 0; i--) {
        const struct entry *entry = entry_at(limiter, i - 1);
        if (g_strcmp0(entry->uid, uid) == 0 && entry->standing != STANDING_ASKED)
            g_array_remove_index_fast(limiter->entries, i - 1);
    }
}

/* Entries of capabilities of which no caller looks after pods that end go by their age. */
static void drop_old(struct limiter *limiter, int64_t now_ms)
{
    for (guint i = limiter->entries->len; i > 0; i--) {
        const struct entry *entry = entry_at(limiter, i - 1);
        if (entry->standing != STANDING_ASKED && now_ms - entry->at_ms >= GOING_MS &&
            !is_recent(limiter, entry, now_ms))
            g_array_remove_index_fast(limiter->entries, i - 1);
    }
}

void limiter_take(struct limiter *limiter, enum ender ender, const char *ns, const char *uid,
                  int64_t now_ms)
{
    drop_old(limiter, now_ms);
    add(limiter, &(struct entry){.ender = ender,
                                 .standing = STANDING_ASKED,
                                 .at_ms = now_ms,
                                 .ns = g_strdup(ns),
                                 .uid = g_strdup(uid)});
}

/* A pod has one place, however often its eviction was sent. */
static void conclude(struct limiter *limiter, enum ender ender, const char *uid,
                     enum standing standing, int64_t now_ms)
{
    drop_known(limiter, uid);
    for (guint i = 0; i < limiter->entries->len; i++) {
        struct entry *entry = entry_at(limiter, i);
        if (!is_asked(entry, ender, uid))
            continue;
        entry->standing = standing;
        entry->at_ms = now_ms;
    }
}

void limiter_done(struct limiter *limiter, enum ender ender, const char *uid, int64_t now_ms)
{
    conclude(limiter, ender, uid, STANDING_GOING, now_ms);
}

void limiter_doubt(struct limiter *limiter, enum ender ender, const char *uid, int64_t now_ms)
{
    conclude(limiter, ender, uid, STANDING_DOUBTED, now_ms);
}

void limiter_withdraw(struct limiter *limiter, enum ender ender, const char *uid)
{
    for (guint i = limiter->entries->len; i > 0; i--) {
        if (is_asked(entry_at(limiter, i - 1), ender, uid))
            g_array_remove_index_fast(limiter->entries, i - 1);
    }
}

void limiter_note_going(struct limiter *limiter, enum ender ender, const char *ns, const char *uid,
                        int64_t now_ms)
{
    limiter_take(limiter, ender, ns, uid, now_ms);
    limiter_done(limiter, ender, uid, now_ms);
}

void limiter_note_ended(struct limiter *limiter, enum ender ender, const char *ns, const char *uid,
                        int64_t now_ms)
{
    limiter_take(limiter, ender, ns, uid, now_ms);
    conclude(limiter, ender, uid, STANDING_OVER, now_ms);
}

void limiter_fill(struct limiter *limiter, enum ender ender, int64_t now_ms)
{
    const struct limits *limits = &limiter->limits;
    const uint32_t most = limits->of[ender].per_minute;

    for (uint32_t i = count(limiter, ender, NULL, now_ms).own; i < most; i++)
        add(limiter, &(struct entry){ender, STANDING_OVER, now_ms, .unknown = true});
}

/* --- pods ------------------------------------------------------------------------------------- */

bool limiter_counts(const struct limiter *limiter, const char *uid, int64_t now_ms)
{
    for (guint i = 0; i < limiter->entries->len; i++) {
        const struct entry *entry = entry_at(limiter, i);
        if (g_strcmp0(entry->uid, uid) == 0 && is_recent(limiter, entry, now_ms))
            return true;
    }
    return false;
}

bool limiter_has(const struct limiter *limiter, const char *uid)
{
    for (guint i = 0; i < limiter->entries->len; i++) {
        if (g_strcmp0(entry_at(limiter, i)->uid, uid) == 0 && is_going(entry_at(limiter, i)))
            return true;
    }
    return false;
}

GHashTable *limiter_going(const struct limiter *limiter)
{
    GHashTable *going = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < limiter->entries->len; i++) {
        const struct entry *entry = entry_at(limiter, i);
        if (entry->uid && is_going(entry))
            g_hash_table_add(going, g_strdup(entry->uid));
    }
    return going;
}

static void settle_one(const struct limiter *limiter, struct entry *entry, enum limiter_pod seen,
                       int64_t now_ms)
{
    if (entry->standing == STANDING_DOUBTED && seen == LIMITER_ENDS)
        entry->standing = STANDING_GOING;
    const int64_t most_ms =
        entry->standing == STANDING_DOUBTED ? limiter->limits.minute_ms : GOING_MS;
    if (seen == LIMITER_ENDED || now_ms - entry->at_ms >= most_ms)
        entry->standing = STANDING_OVER;
}

void limiter_settle(struct limiter *limiter, enum limiter_pod (*look)(const char *uid, void *data),
                    void *data, int64_t now_ms)
{
    for (guint i = limiter->entries->len; i > 0; i--) {
        struct entry *entry = entry_at(limiter, i - 1);
        if (entry->standing == STANDING_DOUBTED || entry->standing == STANDING_GOING)
            settle_one(limiter, entry, look(entry->uid, data), now_ms);
        if (entry->standing == STANDING_OVER && !is_recent(limiter, entry, now_ms))
            g_array_remove_index_fast(limiter->entries, i - 1);
    }
}

/* --- many ------------------------------------------------------------------------------------- */

bool limiter_lets_end(const struct limiter *limiter, enum ender ender,
                      const char *const *namespaces, size_t n, int64_t within_ms)
{
    const struct limits *limits = &limiter->limits;
    const int64_t minutes = limits->minute_ms > 0 ? within_ms / limits->minute_ms : UINT32_MAX;
    /* Others may use all but reclaim's share. */
    const uint32_t sure = ender == ENDER_RECLAIM && limits->for_reclaim > 0 ? limits->for_reclaim
                                                                            : limits->per_minute;
    const uint32_t most[] = {limits->of[ender].per_minute, sure};

    for (size_t i = 0; i < G_N_ELEMENTS(most); i++) {
        if (most[i] > 0 && (int64_t)n > minutes * most[i])
            return false;
    }
    return limits->per_namespace == 0 ||
           limiter_spreads(namespaces, n,
                           (uint32_t)MIN(minutes * limits->per_namespace, UINT32_MAX));
}

/* --- spread ----------------------------------------------------------------------------------- */

bool limiter_spreads(const char *const *namespaces, size_t n, uint32_t most)
{
    g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t i = 0; most > 0 && i < n; i++) {
        const char *ns = namespaces[i] ? namespaces[i] : "";
        const guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, ns)) + 1;
        if (count > most)
            return false;
        g_hash_table_insert(counts, (gpointer)ns, GUINT_TO_POINTER(count));
    }
    return true;
}
