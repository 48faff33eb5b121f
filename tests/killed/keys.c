/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of seals in a Secret: made, written down as adopted, rotated, lost and written again, dropped. Whoever
 * starts at any moment has to find each key with which a pod is sealed. */
#include "../faults/sim.h"
#include "../prop/chance.h"
#include "life.h"
#include "scenarios.h"

#include "kube/key_storages.h"
#include "store/seals/seals.h"

#include <string.h>

#define SECRET "/api/v1/namespaces/" API_NS "/secrets/seal"
#define S INT64_C(1000000)
#define OWN_PODS 3

static int64_t begun_us;
static bool asked, emptied;
static char *first; /* id of the first key */

static void build(void)
{
    begun_us = sim_now_us();
    asked = emptied = false;
    g_clear_pointer(&first, g_free);
    api_put(SECRET, "{\"metadata\":{\"namespace\":\"" API_NS "\",\"name\":\"seal\"}}");
    life_put_node("n0", 2, 8);
    life_put_pod("ml", "was-there", 4, "n0", 0, NULL, "");
    life_put_pod("ml", "comes", 4, NULL, 0, NULL, "");
}

static void options(struct store_options *options)
{
    options->seals = seals_new();
}

/* As keys_open() and keys_tend() do it. */
static void begin(struct replica *replica)
{
    struct keeper *keeper = NULL;

    while (!keeper && !replica->stopping) {
        keeper = keeper_new(key_secret_new(replica->client, API_NS "/seal", NULL),
                            replica->options.seals, NULL);
        sim_sleep(S);
    }
    while (!replica->stopping) {
        keeper_run(keeper, replica->store, replica->serves);
        sim_sleep(S);
    }
}

/* NULL: there is none, or it is empty. */
static struct keyring *read_keys(void)
{
    const char *coded = api_text(api_get(SECRET), "data", "keys");
    gsize length;

    if (!coded || !*coded)
        return NULL;
    g_autofree guchar *text = g_base64_decode(coded, &length);
    g_autofree char *copy = g_strndup((const char *)text, length);
    g_autoptr(GError) error = NULL;
    struct keyring *keyring = keyring_parse(copy, &error);
    HOLDS(keyring, "%s", error->message);
    return keyring;
}

static void patch_secret(const char *key, const char *value)
{
    cJSON *secret = api_get(SECRET), *data = cJSON_GetObjectItemCaseSensitive(secret, "data");

    if (!data)
        data = cJSON_AddObjectToObject(secret, "data");
    cJSON_DeleteItemFromObjectCaseSensitive(data, key);
    cJSON_AddStringToObject(data, key, value);
    api_touch(SECRET);
}

/* What people do. */
static void live(void)
{
    const int64_t passed_us = sim_now_us() - begun_us;
    g_autoptr(keyring) keyring = read_keys();

    if (!first && keyring)
        first = g_strdup(keyring_id(keyring, 0));
    if (!asked && passed_us > 60 * S) {
        asked = true;
        patch_secret("rotate", "bm93");
        life_put_pod("ml", "later", 4, NULL, 0, NULL, "");
    }
    if (!emptied && passed_us > 130 * S && keyring_size(keyring) > 1) {
        emptied = true;
        patch_secret("keys", "");
    }
}

static const char *why_not(const struct keyring *keyring)
{
    static const char *const names[OWN_PODS] = {"was-there", "comes", "later"};

    if (!asked || !emptied || api_text(api_get(SECRET), "data", "rotate"))
        return "no other key is made";
    if (keyring_size(keyring) != 1 || g_strcmp0(keyring_id(keyring, 0), first) == 0)
        return "the first key is not dropped";
    if (keyring_adopted(keyring) == 0)
        return "pods are still adopted";
    for (int i = 0; i < OWN_PODS; i++) {
        g_autofree char *path = api_pod_path("ml", names[i]);
        if (!api_annotation(path, SEAL_ANNOTATION))
            return "a pod has no seal";
    }
    return NULL;
}

static const char *look(void)
{
    g_autoptr(GPtrArray) paths = api_paths("/api/v1/namespaces/ml/pods/");
    g_autoptr(keyring) keyring = read_keys();

    /* Until that is written down, whoever starts takes pods as they are annotated: also when all keys are lost. */
    for (guint i = 0; keyring && keyring_adopted(keyring) > 0 && i < paths->len; i++) {
        const char *seal = api_annotation(paths->pdata[i], SEAL_ANNOTATION), *key;
        HOLDS(!seal || keyring_check(keyring, seal, &key),
              "nobody who starts now knows the key of %s", (char *)paths->pdata[i]);
    }
    return keyring ? why_not(keyring) : "there is no key";
}

static void check(bool calm)
{
}

const struct scenario keys_scenario = {.name = "keys",
                                       .build = build,
                                       .options = options,
                                       .begin = begin,
                                       .live = live,
                                       .look = look,
                                       .check = check,
                                       .patience_s = 1800};
