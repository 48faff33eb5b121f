/* SPDX-License-Identifier: Apache-2.0 */
/* What all that play a line need: whether it can be judged, and how a difference is told. */
#include "record/replay_state.h"
#include "inspect/views.h"
#include "store/kinds/kind.h"

#include <gpuledger/error.h>

bool replay_fail(GError **error, const char *what)
{
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, what);
    return false;
}

char *replay_text_of(const cJSON *value)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_value(&writer, value);
    return g_string_free(text, FALSE);
}

bool replay_is_complete(const struct replay *replay, enum verb verb)
{
    bool complete = replay->learned;

    for (int feed = 0; feed < kinds_n; feed++) {
        const bool needless = (kinds[feed]->unawaited && verb != VERB_PREEMPT) ||
                              !store_wants(replay->extender.store, (enum feed)feed);
        complete &= replay->listed[feed] || needless;
    }
    return complete;
}

void replay_differ(struct replay *replay, const struct record_line *line, char *take_what,
                   const char *recorded, const char *replayed, const char *node)
{
    struct replay_difference *difference = &replay->summary.difference;
    g_autoptr(GString) ledger = g_string_new(NULL);

    replay->summary.different++;
    if (difference->what) {
        g_free(take_what);
        return;
    }
    if (node)
        view_nodes_table(replay->extender.store, node, ledger);
    *difference = (struct replay_difference){
        .number = (uint64_t)line->number,
        .line = replay->summary.lines,
        .what = take_what,
        .recorded = g_strdup(recorded),
        .replayed = g_strdup(replayed),
        .ledger = g_string_free(g_steal_pointer(&ledger), FALSE),
    };
}
