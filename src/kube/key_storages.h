/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the keys of seals are kept: a file of this machine, or a Secret. */
#include "verbs/keeper.h"
#include "kube/api_client.h"

/* A file that is missing is empty; it is written with rights for its owner alone. */
struct key_storage *key_file_new(const char *path);

/* "NAMESPACE/NAME" of a Secret that exists; its `keys` are the text. An item `rotate`, of whatever text,
 * asks for a new key. Borrows the client. NULL, with an error: that is no name. */
struct key_storage *key_secret_new(struct api_client *client, const char *name, GError **error);
