/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/keys.h"

#include "kube/key_places.h"

struct keys {
    struct seals *seals;
    struct api_client *client; /* NULL: they are in a file */
    struct keeper *keeper;
};

struct keys *keys_new(const struct config *config)
{
    if (!*config->seal_key_file && !*config->seal_secret)
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

static struct key_place *find_place(struct keys *keys, const struct config *config,
                                    const struct backend *backend, GError **error)
{
    if (*config->seal_key_file)
        return key_file_new(config->seal_key_file);
    keys->client = backend_new_client(backend, error);
    return keys->client ? key_secret_new(keys->client, config->seal_secret, error) : NULL;
}

bool keys_open(struct keys *keys, const struct config *config, const struct backend *backend,
               GError **error)
{
    const char *option = *config->seal_key_file ? "seal-key-file" : "seal-secret";

    if (!keys || keys->keeper || (!backend && !*config->seal_key_file))
        return true;
    struct key_place *place = find_place(keys, config, backend, error);
    keys->keeper = place ? keeper_new(place, keys->seals, error) : NULL;
    if (!keys->keeper)
        g_prefix_error(error, "option '--%s': ", option);
    return keys->keeper != NULL;
}

void keys_tend(struct keys *keys, struct store *store, struct cluster *cluster, bool serves)
{
    if (!keys)
        return;
    keeper_run(keys->keeper, store, serves);
    if (serves)
        sealing_run(store, cluster);
}
