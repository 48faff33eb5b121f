/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/keeper.h"

#include "base/log.h"

#include <gpuledger/error.h>

#define BEGIN_TRIES 5

struct keeper {
    struct key_storage *storage;
    struct seals *seals;
    char *version; /* of what was read last */
    int64_t next_ms;
    bool warned; /* that there is no place for another key */
};

static int64_t now_s(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

/* NULL, with an error; without keys: it is empty. */
static struct keyring *read_place(struct keeper *keeper, GError **error)
{
    g_autofree char *version = NULL;
    char *text = keeper->storage->ops->read(keeper->storage, &version, error);
    struct keyring *keyring = text ? keyring_parse(text, error) : NULL;

    keyring_text_free(text);
    if (keyring) {
        g_free(keeper->version);
        keeper->version = g_steal_pointer(&version);
    }
    return keyring;
}

/* Over what was read last. */
static enum outcome write_place(struct keeper *keeper, const struct keyring *keyring,
                                GError **error)
{
    char *text = keyring_format(keyring);
    const enum outcome outcome =
        keeper->storage->ops->write(keeper->storage, text, keeper->version, error);

    keyring_text_free(text);
    return outcome;
}

/* --- the start ------------------------------------------------------------------------------ */

static bool begin(struct keeper *keeper, GError **error)
{
    g_autoptr(GError) failure = NULL;

    for (int i = 0; i < BEGIN_TRIES; i++) {
        g_autoptr(keyring) keyring = read_place(keeper, error);
        if (!keyring)
            return false;
        if (keyring_size(keyring) > 0) {
            seals_set(keeper->seals, g_steal_pointer(&keyring));
            return true;
        }
        if (!keyring_add(keyring, now_s())) {
            g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO,
                                "no key can be made: there is no randomness");
            return false;
        }
        /* Whoever was first, it is read again. */
        g_clear_error(&failure);
        const enum outcome outcome = write_place(keeper, keyring, &failure);
        if (outcome != OUTCOME_OK && outcome != OUTCOME_CONFLICT && outcome != OUTCOME_UNKNOWN)
            break;
        if (outcome == OUTCOME_OK)
            log_event(LOG_LEVEL_INFO, "a key for seals was made",
                      LOG_TEXT("kept-in", keeper->storage->title));
    }
    if (failure)
        g_propagate_error(error, g_steal_pointer(&failure));
    else
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "'%s' stays empty, whatever is written",
                    keeper->storage->title);
    return false;
}

struct keeper *keeper_new(struct key_storage *take_storage, struct seals *seals, GError **error)
{
    struct keeper *keeper = g_new0(struct keeper, 1);

    keeper->storage = take_storage;
    keeper->seals = seals;
    keeper->next_ms = g_get_monotonic_time() / 1000 + KEEPER_EVERY_MS;
    if (!begin(keeper, error)) {
        keeper_free(keeper);
        return NULL;
    }
    g_autoptr(keyring) keyring = seals_keyring(seals);
    log_event(LOG_LEVEL_INFO, "grants are sealed", LOG_TEXT("keys", take_storage->title),
              LOG_TEXT("signs", keyring_signer(keyring, now_s())),
              LOG_TEXT("pods-without-a-seal", keyring_adopted(keyring) ? "count on every card"
                                                                       : "are adopted"));
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    keeper->storage->ops->release(keeper->storage);
    g_free(keeper->version);
    g_free(keeper);
}

/* --- later ---------------------------------------------------------------------------------- */

/* Every pod has its seal, or has been tried long enough. */
static bool adopt(struct keyring *keyring, struct store *store)
{
    if (keyring_adopted(keyring) != 0 || !store_is_synced(store))
        return false;
    store_lock(store);
    const bool done = sealing_has_tried(store_sealing(store));
    store_unlock(store);
    if (!done)
        return false;
    keyring_set_adopted(keyring, now_s());
    log_event(LOG_LEVEL_INFO, "pods that were there are sealed; others without a seal will not be "
                              "believed after a restart");
    return true;
}

static unsigned count_in_the_way(const struct keyring *keyring, struct store *store)
{
    store_lock(store);
    const unsigned pods = sealing_count_in_the_way(store_sealing(store), keyring);
    store_unlock(store);
    return pods;
}

/* Before anybody asks for another key, so that there is time to end those pods. */
static void warn_in_time(struct keeper *keeper, const struct keyring *keyring, struct store *store)
{
    const unsigned pods = count_in_the_way(keyring, store);

    if (pods > 0 && !keeper->warned)
        log_event(LOG_LEVEL_WARN,
                  "no other key for seals could be made: pods are sealed with the oldest; end them "
                  "before you ask for one",
                  LOG_TEXT("key", keyring_id(keyring, 0)), LOG_NUMBER("pods", pods));
    keeper->warned = pods > 0;
}

/* There is no place for another key but that of the oldest one, with which pods are sealed, as far as is known. */
static bool would_lose_key(const struct keyring *keyring, struct store *store)
{
    if (keyring_size(keyring) < KEYRING_KEYS_MAX || keyring_forces_rotation(keyring))
        return false;
    const bool synced = store_is_synced(store);
    const unsigned pods = count_in_the_way(keyring, store);
    if (synced && pods == 0)
        return false;
    log_event_limited(
        LOG_LEVEL_ERROR,
        "no other key for seals is made: pods are sealed with the oldest, and would count on every "
        "card of their nodes without it; end them, or ask with 'rotate: force'",
        LOG_TEXT("key", keyring_id(keyring, 0)), LOG_NUMBER("pods", pods));
    return true;
}

static bool rotate(struct keyring *keyring, struct store *store)
{
    if (!keyring_wants_rotation(keyring) || would_lose_key(keyring, store) ||
        !keyring_add(keyring, now_s()))
        return false;
    keyring_set_rotation(keyring, false);
    log_event(LOG_LEVEL_INFO, "another key for seals was made",
              LOG_TEXT("key", keyring_id(keyring, keyring_size(keyring) - 1)),
              LOG_NUMBER("signs-in-s", KEYRING_SETTLE_S));
    return true;
}

/* Those by which nothing is sealed, once the one that signs has done so for long enough that no
 * Binding with another one is under way. */
static bool drop(struct keyring *keyring, struct store *store)
{
    g_autoptr(GStrvBuilder) used = g_strv_builder_new();

    if (keyring_size(keyring) < 2 || !store_is_synced(store))
        return false;
    const char *signer = keyring_signer(keyring, now_s());
    if (g_strcmp0(signer, keyring_signer(keyring, now_s() - 3 * KEYRING_SETTLE_S)) != 0)
        return false;
    store_lock(store);
    const struct sealing *sealing = store_sealing(store);
    for (unsigned i = 0; i < keyring_size(keyring); i++) {
        if (sealing_count(sealing, keyring_id(keyring, i)) > 0)
            g_strv_builder_add(used, keyring_id(keyring, i));
    }
    store_unlock(store);
    g_auto(GStrv) ids = g_strv_builder_end(used);
    const unsigned dropped = keyring_drop(keyring, (const char *const *)ids, now_s());
    if (dropped > 0)
        log_event(LOG_LEVEL_INFO, "keys by which nothing is sealed are dropped",
                  LOG_NUMBER("keys", dropped));
    return dropped > 0;
}

/* What others have made of it; what was lost is put back. */
static struct keyring *look(struct keeper *keeper, GError **error)
{
    struct keyring *keyring = read_place(keeper, error);

    if (!keyring || keyring_size(keyring) > 0)
        return keyring;
    keyring_free(keyring);
    keyring = seals_keyring(keeper->seals);
    log_event(LOG_LEVEL_WARN, "the keys of seals were lost; they are written again",
              LOG_TEXT("kept-in", keeper->storage->title));
    if (write_place(keeper, keyring, error) == OUTCOME_OK)
        return keyring;
    keyring_free(keyring);
    return NULL;
}

static void run(struct keeper *keeper, struct store *store, bool serves, GError **error)
{
    g_autoptr(keyring) keyring = look(keeper, error);

    if (!keyring)
        return;
    seals_set(keeper->seals, keyring_dup(keyring));
    if (!serves)
        return;
    const bool adopted = adopt(keyring, store), rotated = rotate(keyring, store);
    const bool dropped = drop(keyring, store);
    warn_in_time(keeper, keyring, store);
    /* Who was faster is read at the next look. */
    if ((adopted || rotated || dropped) && write_place(keeper, keyring, error) == OUTCOME_OK)
        seals_set(keeper->seals, g_steal_pointer(&keyring));
}

void keeper_look(struct keeper *keeper, struct store *store, bool serves)
{
    g_autoptr(GError) error = NULL;

    run(keeper, store, serves, &error);
    if (error)
        log_event_limited(LOG_LEVEL_ERROR, "the keys of seals stay as they were",
                          LOG_TEXT("kept-in", keeper->storage->title), LOG_TEXT("why", error->message));
}

void keeper_run(struct keeper *keeper, struct store *store, bool serves)
{
    const int64_t now_ms = g_get_monotonic_time() / 1000;

    if (now_ms < keeper->next_ms)
        return;
    keeper->next_ms = now_ms + KEEPER_EVERY_MS;
    keeper_look(keeper, store, serves);
}
