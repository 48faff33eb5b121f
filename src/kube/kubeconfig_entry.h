/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One named entry of a kubeconfig's lists, and what a configuration takes from it. For
 * kubeconfig.c only.
 */
#include "kube/kubeconfig.h"
#include "json/json.h"

/* Borrowed from the file that it stands in. */
struct config_entry {
    struct json_arena *arena; /* for decoding */
    const char *path;         /* of the file */
    const char *directory;    /* from which relative paths count */
    const char *list;         /* "cluster": what the entry is, and the key of its value */
    const char *name;
    const cJSON *value; /* may be NULL */
};

/* The "name" of one item of a list; "" if it has none. */
const char *config_item_name(const cJSON *item);

/* Errors of these name the file, the entry and the field. */
bool config_entry_decode(const struct config_entry *entry, const struct json_field *fields,
                         void *ret, GError **error);
bool config_entry_refuse(const struct config_entry *entry, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* "https://host[:port][/path]" without a slash at its end; NULL if it is nothing of the kind. */
char *config_server_dup(const char *server);

/* The user comes first: what a cluster says about its credential command is kept with that. */
bool config_entry_take_user(const struct config_entry *entry, struct kube_config *config,
                            GError **error);
bool config_entry_take_cluster(const struct config_entry *entry, struct kube_config *config,
                               GError **error);
