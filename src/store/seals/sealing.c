/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seals/sealing.h"

#include <string.h>

#define DUE_MAX 100   /* at a time */
#define PAUSE_MS 2000 /* until the watch shows it; doubles */
#define PAUSE_MAX_MS 600000
#define TRIES_MAX 5

struct attempt {
    int64_t next_ms, pause_ms;
    unsigned tries;
};

struct sealing {
    GHashTable *keys;   /* uid -> const char *, interned: the key of its seal, "" without */
    GHashTable *n;      /* key, as there -> how many pods */
    GHashTable *wanted; /* uid -> struct attempt * */
    const char *signer; /* as it was looked for last, interned */
};

struct sealing *sealing_new(void)
{
    struct sealing *sealing = g_new0(struct sealing, 1);

    sealing->keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    sealing->n = g_hash_table_new(NULL, NULL);
    sealing->wanted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return sealing;
}

void sealing_free(struct sealing *sealing)
{
    g_hash_table_unref(sealing->keys);
    g_hash_table_unref(sealing->n);
    g_hash_table_unref(sealing->wanted);
    g_free(sealing);
}

static void want(struct sealing *sealing, const char *uid)
{
    if (g_hash_table_contains(sealing->wanted, uid))
        return;
    struct attempt *attempt = g_new0(struct attempt, 1);
    attempt->pause_ms = PAUSE_MS;
    g_hash_table_insert(sealing->wanted, g_strdup(uid), attempt);
}

static void count(struct sealing *sealing, const char *name, int change)
{
    const int n = name ? GPOINTER_TO_INT(g_hash_table_lookup(sealing->n, name)) + change : 0;

    if (n > 0)
        g_hash_table_insert(sealing->n, (gpointer)name, GINT_TO_POINTER(n));
    else
        g_hash_table_remove(sealing->n, name);
}

void sealing_note(struct sealing *sealing, const char *uid, const char *key, bool complete)
{
    const char *name = g_intern_string(key ? key : "");
    const char *before = g_hash_table_lookup(sealing->keys, uid);

    if (before != name) {
        g_hash_table_insert(sealing->keys, g_strdup(uid), (gpointer)name);
        count(sealing, before, -1);
        count(sealing, name, 1);
    }
    if (key && complete && (!sealing->signer || name == sealing->signer))
        g_hash_table_remove(sealing->wanted, uid);
    else
        want(sealing, uid);
}

void sealing_forget(struct sealing *sealing, const char *uid)
{
    count(sealing, g_hash_table_lookup(sealing->keys, uid), -1);
    g_hash_table_remove(sealing->keys, uid);
    g_hash_table_remove(sealing->wanted, uid);
}

unsigned sealing_count(const struct sealing *sealing, const char *key)
{
    return key ? GPOINTER_TO_UINT(g_hash_table_lookup(sealing->n, g_intern_string(key)))
               : g_hash_table_size(sealing->wanted);
}

unsigned sealing_count_in_the_way(const struct sealing *sealing, const struct keyring *keyring)
{
    return keyring_size(keyring) < KEYRING_KEYS_MAX
               ? 0
               : sealing_count(sealing, keyring_id(keyring, 0));
}

bool sealing_has_tried(const struct sealing *sealing)
{
    GHashTableIter iter;
    gpointer attempt;

    g_hash_table_iter_init(&iter, sealing->wanted);
    while (g_hash_table_iter_next(&iter, NULL, &attempt)) {
        if (((const struct attempt *)attempt)->tries < TRIES_MAX)
            return false;
    }
    return true;
}

bool sealing_concerns(const struct allocation *allocation)
{
    return allocation->distrust != DISTRUST_UNSEALED && allocation->distrust != DISTRUST_UNREAD &&
           allocation->dialect->write_annotations;
}

void sealing_set_signer(struct sealing *sealing, const char *key)
{
    const char *signer = g_intern_string(key);
    GHashTableIter iter;
    gpointer uid, name;

    if (!signer || signer == sealing->signer)
        return;
    sealing->signer = signer;
    g_hash_table_iter_init(&iter, sealing->keys);
    while (g_hash_table_iter_next(&iter, &uid, &name)) {
        if (name != signer)
            want(sealing, uid);
    }
}

static void sealed_pod_clear(gpointer data)
{
    struct sealed_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->uid);
    g_free(pod->facts);
}

GArray *sealing_take_due(struct sealing *sealing, const struct ledger *ledger, int64_t now_ms)
{
    GArray *due = g_array_new(FALSE, FALSE, sizeof(struct sealed_pod));
    GHashTableIter iter;
    gpointer uid, value;

    g_array_set_clear_func(due, sealed_pod_clear);
    g_hash_table_iter_init(&iter, sealing->wanted);
    while (due->len < DUE_MAX && g_hash_table_iter_next(&iter, &uid, &value)) {
        struct attempt *attempt = value;
        const struct allocation *held = ledger_get(ledger, uid);
        if (!held || !sealing_concerns(held)) {
            g_hash_table_iter_remove(&iter);
            continue;
        }
        if (attempt->next_ms > now_ms || held->state != ALLOCATION_CONFIRMED)
            continue;
        attempt->tries++;
        attempt->next_ms = now_ms + attempt->pause_ms;
        attempt->pause_ms = MIN(attempt->pause_ms * 2, PAUSE_MAX_MS);
        struct sealed_pod pod = {g_strdup(held->ns), g_strdup(held->name), g_strdup(held->uid),
                                 seal_describe(held)};
        g_array_append_val(due, pod);
    }
    return due;
}
