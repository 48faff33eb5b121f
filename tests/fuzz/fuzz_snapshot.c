/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any file is refused as a saved cluster with a message that names it, or is one whose ledger adds
 * up, that is in sync, and that lists what it has.
 */
#include "memory_file.h"
#include "views_check.h"

#include "snapshot/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct store_options options = {.policy = policies, .silent = true};
    g_autoptr(store) store = store_new(&options), other = store_new(&options);
    struct memory_file file = memory_file_new(data, size);
    g_autoptr(GError) error = NULL;
    struct cluster *cluster = snapshot_cluster_new(file.path, store, &error);

    FUZZ_CHECK(!cluster == !!error);
    FUZZ_CHECK(!error || strstr(error->message, file.path));
    if (cluster) {
        FUZZ_CHECK(store_is_synced(store));
        for (int feed = 0; feed < FEED_N; feed++)
            FUZZ_CHECK(cluster->ops->list(cluster, (enum feed)feed, other, NULL) == OUTCOME_OK);
        FUZZ_CHECK(ledger_size(store_lock(store)) == ledger_size(store_lock(other)));
        store_unlock(other);
        store_unlock(store);
        check_views(store);
        snapshot_cluster_free(cluster);
    }
    memory_file_close(&file);
    return 0;
}
