/* SPDX-License-Identifier: Apache-2.0 */
#include "rates.h"

#include "../faults/sim.h"
#include "../killed/api.h"
#include "../prop/chance.h"
#include "facts.h"

#include <string.h>

#define AGAIN_US (15 * S) /* within which what was not heard of is sent again */
#define GOING_US (10 * MINUTE)

struct entry {
    enum capability capability;
    char by;
    char *ns, *uid;
    int64_t sent_us, last_us, accepted_us; /* 0: it was not, as far as is known */
    bool asked, doubted, heard, refused;
    bool named; /* by a claim, when the replica that serves began */
};

static GArray *entries;
static int64_t begun_us;
static uint64_t counts[CAPABILITIES];

static void clear_entry(gpointer data)
{
    struct entry *entry = data;

    g_free(entry->ns);
    g_free(entry->uid);
}

void rates_reset(void)
{
    g_clear_pointer(&entries, g_array_unref);
    entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
    g_array_set_clear_func(entries, clear_entry);
}

static struct entry *at(guint i)
{
    return &g_array_index(entries, struct entry, i);
}

void rates_begin(void)
{
    const char *claims = api_text(api_get(SHEET), "data", "claims");

    begun_us = sim_now_us();
    for (guint i = 0; i < entries->len; i++) {
        g_autofree char *quoted = g_strdup_printf("\"%s\"", at(i)->uid);
        at(i)->named = claims && strstr(claims, quoted);
    }
}

uint64_t rates_n(enum capability capability)
{
    return counts[capability];
}

unsigned rates_n_ended(int64_t within_us)
{
    unsigned n = 0;

    for (guint i = 0; i < entries->len; i++)
        n += at(i)->accepted_us > 0 && sim_now_us() - at(i)->accepted_us < within_us;
    return n;
}

static struct entry *find(enum capability capability, const char *uid)
{
    for (guint i = entries->len; i-- > 0;) {
        if (at(i)->capability == capability && g_str_equal(at(i)->uid, uid))
            return at(i);
    }
    return NULL;
}

/* It may have ended its pod, as far as the replica that sends now can know: what another one has sent only if that
 * was done before this one began. */
static bool counts_for(const struct entry *entry, char by)
{
    if (entry->by == by)
        return !entry->refused || entry->accepted_us > 0;
    return entry->accepted_us > 0 && entry->accepted_us < begun_us;
}

/* Beside the pod with that UID: a pod takes one place, however often its eviction is sent. */
static unsigned count_recent(int capability, char by, const char *ns, const char *uid, bool others)
{
    g_autoptr(GHashTable) uids = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < entries->len; i++) {
        const struct entry *entry = at(i);
        if ((capability < 0 || (int)entry->capability == capability) &&
            (entry->by == by || others) && (!ns || g_str_equal(entry->ns, ns)) &&
            !g_str_equal(entry->uid, uid) && sim_now_us() - entry->sent_us < MINUTE &&
            counts_for(entry, by))
            g_hash_table_add(uids, entry->uid);
    }
    return g_hash_table_size(uids);
}

/* It ends, or may: what was not answered counts for a minute. */
static bool is_going(const struct entry *entry)
{
    const struct fact *fact = facts_find(entry->uid);
    const int64_t most_us = entry->accepted_us > 0 ? GOING_US : entry->refused ? 0 : MINUTE;

    return fact && fact->exists && sim_now_us() - entry->sent_us < most_us;
}

/* Of what another replica has evicted, those that the claims name. */
static unsigned count_going(char by, const char *uid)
{
    g_autoptr(GHashTable) uids = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < entries->len; i++) {
        if (at(i)->capability == RECLAIM && (at(i)->by == by || at(i)->named) &&
            !g_str_equal(at(i)->uid, uid) && is_going(at(i)))
            g_hash_table_add(uids, at(i)->uid);
    }
    return g_hash_table_size(uids);
}

static void check_hour(enum capability capability, unsigned most, const char *uid)
{
    g_autoptr(GHashTable) uids = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < entries->len; i++) {
        if (at(i)->capability == capability && !g_str_equal(at(i)->uid, uid) &&
            sim_now_us() - at(i)->sent_us < HOUR - S && (!at(i)->refused || at(i)->accepted_us > 0))
            g_hash_table_add(uids, at(i)->uid);
    }
    const unsigned n = g_hash_table_size(uids);
    HOLDS(most == 0 || n < most, "%s: more than %u in an hour", capability_names[capability], most);
}

static void check(enum capability capability, char by, const char *ns, const char *uid)
{
    const char *name = capability_names[capability];
    const unsigned all = count_recent(-1, by, NULL, uid, false);
    const unsigned reclaims = count_recent(RECLAIM, by, NULL, uid, false);
    const unsigned own = count_recent((int)capability, by, NULL, uid, true);
    const unsigned in_ns = count_recent(-1, by, ns, uid, false);

    HOLDS(all < settings.per_minute, "%s: more than %u in a minute", name, settings.per_minute);
    HOLDS(capability == RECLAIM || all - reclaims + settings.for_reclaim < settings.per_minute,
          "%s: nothing of the minute is left for reclaim", name);
    HOLDS(in_ns < settings.per_namespace, "%s: more than %u of %s in a minute", name,
          settings.per_namespace, ns);
    HOLDS(capability != RECLAIM || own < settings.reclaim_minute, "more than %u in a minute",
          settings.reclaim_minute);
    HOLDS(capability != RECLAIM || count_going(by, uid) < settings.reclaim_at_once,
          "more than %u at once", settings.reclaim_at_once);
    HOLDS(capability != STRICT || own < settings.strict_minute, "more than %u in a minute",
          settings.strict_minute);
    HOLDS(capability != STRICT || sim_now_us() - begun_us >= MINUTE,
          "%s: in the first minute of a term", name);
    if (capability == PLANS)
        check_hour(PLANS, settings.plans_hour, uid);
    if (capability == SWITCH)
        check_hour(SWITCH, settings.switch_hour, uid);
}

bool rates_sent(enum capability capability, char by, const char *ns, const char *uid)
{
    struct entry *old = find(capability, uid);

    if (old && old->by == by && !old->heard && sim_now_us() - old->last_us < AGAIN_US) {
        old->last_us = sim_now_us();
        old->asked = true;
        return false;
    }
    check(capability, by, ns, uid);
    counts[capability]++;
    const struct entry entry = {.capability = capability,
                                .by = by,
                                .ns = g_strdup(ns),
                                .uid = g_strdup(uid),
                                .asked = true,
                                .sent_us = sim_now_us(),
                                .last_us = sim_now_us()};
    g_array_append_val(entries, entry);
    return true;
}

/* 5xx, and no answer, say nothing. What has found no connection was not sent. */
void rates_heard(enum capability capability, const char *uid, long status)
{
    struct entry *entry = find(capability, uid);

    if (!entry || !entry->asked)
        return;
    entry->asked = false;
    entry->heard = status > 0 && status < 500;
    entry->doubted |= !entry->heard;
    entry->refused = entry->heard && status >= 300 && !entry->doubted;
}

void rates_accepted(enum capability capability, const char *uid)
{
    struct entry *entry = find(capability, uid);

    if (entry && entry->accepted_us == 0)
        entry->accepted_us = sim_now_us();
}
