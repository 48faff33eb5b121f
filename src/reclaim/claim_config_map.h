/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The ConfigMap of claims (wire/claim_sheet.h) at the API server. Any thread. */
#include "kube/api_client.h"

/* What the ConfigMap says; the strings are its own. */
struct claim_file {
    char *version; /* NULL: there is no such ConfigMap */
    char *text, *sum;
};
void claim_file_clear(struct claim_file *file);
typedef struct claim_file claim_file;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(claim_file, claim_file_clear)

/* How it is read and written, for tests to have it otherwise. */
struct claim_files {
    /* There may be none, which is OUTCOME_OK. */
    enum outcome (*read)(void *data, struct claim_file *ret_file, GError **error);
    /* Only if it still has that version, or none: else OUTCOME_CONFLICT. `ret_version`: the new one, free with
     * g_free. */
    enum outcome (*write)(void *data, const struct claim_file *file, char **ret_version,
                          GError **error);
};

/* Where it is; borrowed. */
struct claim_config_map {
    struct api_client *client;
    const char *ns;
};

/* Their data: a struct claim_config_map. */
extern const struct claim_files claim_config_map_files;
