/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any lines are played or refused with an error; whatever was played leaves a ledger whose sums add
 * up, and no more decisions than were compared or left unchecked.
 */
#include "target.h"

#include "base/log.h"
#include "record/replay.h"
#include "gate/node_backoff/node_backoff.h"

#include <string.h>

static const struct store_options base = {
    .patience_ms = 10000, .hold_ms = 5000, .n_places = 4, NODE_BACKOFF_SETTINGS(2, 60000)};

static bool configure(void *data, const cJSON *options, struct store_options *ret_options,
                      struct extender *ret_extender, GError **error)
{
    *ret_options = base;
    ret_options->policy = policies;
    return true;
}

static void check_ledger(struct replay *replay)
{
    struct store *store = replay_store(replay);

    if (!store)
        return;
    FUZZ_CHECK(ledger_verify(store_lock(store), NULL));
    store_unlock(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(replay) replay = replay_new(&(struct replay_options){.configure = configure});
    const struct replay_summary *summary = replay_summary(replay);
    const char *text = (const char *)data;
    bool played = true;

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    for (size_t at = 0; at < size && played;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - text) - at : size - at;
        g_autoptr(GError) error = NULL;
        played = replay_line(replay, text + at, length, &error);
        FUZZ_CHECK(played == !error);
        check_ledger(replay);
        at += length + 1;
    }
    FUZZ_CHECK(summary->different <= summary->compared);
    FUZZ_CHECK(!played ||
               summary->compared + summary->unchecked + summary->orphans ==
                   summary->calls + summary->looks + summary->what_was_learned);
    FUZZ_CHECK((summary->difference.what != NULL) == (summary->different > 0));
    return 0;
}
