/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/keys.h"

#include "core/fail.h"
#include "base/log.h"
#include "kube/key_storages.h"
#include "options/command.h"
#include "verbs/sealer.h"
#include "store/seals/seals_section.h"
#include "options/cluster_section.h"

#include <signal.h>

#define RETRY_MS 500
#define DENIED_PATIENCE_MS 30000

struct keys {
    struct seals *seals;
    struct api_client *client; /* NULL: they are in a file */
    struct keeper *keeper;
};

struct keys *keys_new(const struct config *config)
{
    const struct seals_settings *seals = config_section(config, seals);

    if (!*seals->key_file && !*seals->secret)
        return NULL;
    struct keys *keys = g_new0(struct keys, 1);
    keys->seals = seals_new();
    return keys;
}

void keys_free(struct keys *keys)
{
    if (!keys)
        return;
    keeper_free(keys->keeper);
    api_client_free(keys->client);
    seals_free(keys->seals);
    g_free(keys);
}

struct seals *keys_seals(const struct keys *keys)
{
    return keys ? keys->seals : NULL;
}

static struct key_storage *find_storage(struct keys *keys, const struct config *config,
                                    const struct backend *backend, GError **error)
{
    const struct seals_settings *seals = config_section(config, seals);

    if (*seals->key_file)
        return key_file_new(seals->key_file);
    if (!keys->client)
        keys->client = backend_new_client(backend, error);
    return keys->client ? key_secret_new(keys->client, seals->secret, error) : NULL;
}

static bool open_storage(struct keys *keys, const struct config *config,
                       const struct backend *backend, GError **error)
{
    struct key_storage *storage = find_storage(keys, config, backend, error);

    keys->keeper = storage ? keeper_new(storage, keys->seals, error) : NULL;
    return keys->keeper != NULL;
}

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

/* Whoever wants the process to end is heard. */
static bool is_to_end(void)
{
    sigset_t pending;

    return sigpending(&pending) != 0 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGINT) == 1;
}

/* An API server that is away comes back, as for lists; a process that ended instead would be started
 * again after minutes only. One that has just come back denies what its roles allow until it has
 * read them, and a Role may be applied a moment after the Deployment. */
static bool is_to_wait(const GError *failure, int64_t waited_ms)
{
    return g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE) ||
           ((g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_DENIED) ||
             g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_CREDENTIALS)) &&
            waited_ms < DENIED_PATIENCE_MS);
}

bool keys_open(struct keys *keys, const struct config *config, const struct backend *backend,
               GError **error)
{
    const struct seals_settings *seals_options = config_section(config, seals);
    const char *option = *seals_options->key_file ? "seal-key-file" : "seal-secret";

    if (!keys || keys->keeper || (!backend && !*seals_options->key_file))
        return true;
    g_autoptr(GError) failure = NULL;
    int64_t reached_ms = now_ms(); /* when the API server was last away */
    while (!open_storage(keys, config, backend, &failure) && !is_to_end() &&
           is_to_wait(failure, now_ms() - reached_ms)) {
        if (g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE))
            reached_ms = now_ms();
        log_event_limited(LOG_LEVEL_WARN, "the keys of seals are waited for",
                          LOG_TEXT("why", failure->message));
        g_clear_error(&failure);
        g_usleep(RETRY_MS * 1000);
    }
    if (failure)
        g_propagate_prefixed_error(error, g_steal_pointer(&failure), "option '--%s': ", option);
    return keys->keeper != NULL;
}

void keys_tend(struct keys *keys, struct store *store, struct cluster *cluster, bool serves)
{
    if (!keys)
        return;
    keeper_run(keys->keeper, store, serves);
    if (serves)
        sealer_run(store, cluster);
}

/* --- looking only ----------------------------------------------------------------------------- */

struct keys *keys_new_checking(void)
{
    struct keys *keys = g_new0(struct keys, 1);

    keys->seals = seals_new_checking();
    return keys;
}

static struct keyring *read_once(struct key_storage *storage, GError **error)
{
    g_autofree char *version = NULL;
    char *text = storage->ops->read(storage, &version, error);
    g_autoptr(keyring) keyring = text ? keyring_parse(text, error) : NULL;

    keyring_text_free(text);
    if (!keyring || keyring_size(keyring) > 0)
        return g_steal_pointer(&keyring);
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "there is no key in '%s'; 'gpuledger serve' makes one", storage->title);
    return NULL;
}

/* Names that read as if both were there are an error, as serve says it. */
static bool check_storages(const struct config *config, GError **error)
{
    const struct seals_settings *seals = config_section(config, seals);

    if (!*seals->secret || (!*seals->key_file && !*config_section(config, cluster)->snapshot))
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID, "'%s' is given as well; keep one of them",
                     *seals->key_file ? "--seal-key-file" : "--snapshot");
}

bool keys_read(struct keys *keys, const struct config *config, const struct backend *backend,
               GError **error)
{
    const struct seals_settings *seals = config_section(config, seals);
    const bool file = *seals->key_file, secret = *seals->secret;

    /* A file before the cluster, a Secret with what calls it. */
    if ((!file && !secret) || (backend != NULL) == (file && !secret))
        return true;
    struct key_storage *storage =
        check_storages(config, error) ? find_storage(keys, config, backend, error) : NULL;
    struct keyring *keyring = storage ? read_once(storage, error) : NULL;
    if (storage)
        storage->ops->release(storage);
    if (keyring)
        seals_set(keys->seals, keyring);
    else
        g_prefix_error(error, "option '--%s': ", secret ? "seal-secret" : "seal-key-file");
    return keyring != NULL;
}

void keys_say_unchecked(const struct keys *keys)
{
    if (seals_unchecked(keys->seals))
        complain("seals were not checked, since no key is given (--seal-key-file, --seal-secret): "
                 "pods are believed as they are annotated");
}
