/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/key_storages.h"
#include "base/small_file.h"

#include <errno.h>
#include <gpuledger/error.h>
#include <sys/stat.h>
#include <unistd.h>

struct key_file {
    struct key_storage storage;
    char *path;
};

/* What stood in it is its version. */
static char *read_file(struct key_storage *storage, char **ret_version, GError **error)
{
    const struct key_file *file = (const struct key_file *)storage;
    char *text;

    if (access(file->path, F_OK) != 0 && errno == ENOENT)
        text = g_strdup("");
    else
        text = small_file_read(file->path, KEYRING_TEXT_MAX, NULL, error);
    *ret_version = text ? g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1) : NULL;
    return text;
}

static enum outcome write_file(struct key_storage *storage, const char *text, const char *version,
                               GError **error)
{
    const struct key_file *file = (const struct key_file *)storage;
    g_autoptr(GError) failure = NULL;
    g_autofree char *now = NULL;
    struct stat status;

    if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO,
                    "'%s' is no regular file, and keeps no key", file->path);
        return OUTCOME_REFUSED;
    }
    char *before = read_file(storage, &now, error);
    if (!before)
        return OUTCOME_REFUSED;
    keyring_text_free(before);
    if (g_strcmp0(now, version) != 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT, "%s has changed", file->path);
        return OUTCOME_CONFLICT;
    }
    if (g_file_set_contents_full(file->path, text, -1,
                                 G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0600,
                                 &failure))
        return OUTCOME_OK;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "%s", failure->message);
    return OUTCOME_REFUSED;
}

static void release_file(struct key_storage *storage)
{
    struct key_file *file = (struct key_file *)storage;

    g_free(file->path);
    g_free(file);
}

static const struct key_storage_ops ops = {read_file, write_file, release_file};

struct key_storage *key_file_new(const char *path)
{
    struct key_file *file = g_new0(struct key_file, 1);

    file->path = g_strdup(path);
    file->storage = (struct key_storage){&ops, file->path};
    return &file->storage;
}
