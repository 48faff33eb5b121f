/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fail.h"
#include "record/replay_state.h"
#include "inspect/views.h"

#include <string.h>

static void collect_open(struct allocation *allocation, void *data)
{
    if (allocation->state != ALLOCATION_CONFIRMED)
        g_ptr_array_add(data, g_strdup(allocation->uid));
}

/* What is known counts for a guess until the next lists. */
static bool lose(struct replay *replay, const struct record_line *line, GError **error)
{
    g_autoptr(GPtrArray) open = g_ptr_array_new_with_free_func(g_free);
    struct ledger *ledger = store_lock(replay->extender.store);

    ledger_each(ledger, collect_open, open);
    for (guint i = 0; i < open->len; i++)
        ledger_drop(ledger, open->pdata[i]);
    store_unlock(replay->extender.store);
    memset(replay->begun, 0, sizeof replay->begun);
    memset(replay->listed, 0, sizeof replay->listed);
    replay->learned = false;
    replay->summary.lost += (uint64_t)MAX(line->count, 0);
    return true;
}

static const char *version_of(const struct record_line *line)
{
    return line->version ? line->version : "unknown";
}

static bool check_format(const struct record_line *line, GError **error)
{
    if (line->format >= RECORD_FORMAT_1 && line->format <= RECORD_FORMAT)
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "format %" G_GINT64_FORMAT " is not understood, only %d to %d are; use the "
                     "version that recorded it ('%s')",
                     line->format, RECORD_FORMAT_1, RECORD_FORMAT, version_of(line));
}

/* What a file that goes on from an older one must say for decisions to be comparable. */
static bool check_beginning(const struct record_line *line, const struct store_options *options,
                            GError **error)
{
    static const char *const unsaid[RECORD_FORMAT] = {
        [RECORD_FORMAT_1] = "says neither what policies had learned by then nor which "
                            "PodDisruptionBudgets there were",
        [RECORD_FORMAT_3] = "does not say which pods had asked by then ('--arrival-hold')",
        [RECORD_FORMAT_2] = "does not say which places were kept by then ('--arrival-hold')",
    };

    if (line->before == 0 || line->format >= RECORD_FORMAT_4 ||
        (line->format >= RECORD_FORMAT_2 && options->hold_ms == 0))
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "the file goes on from an older one, and in format %" G_GINT64_FORMAT
                     " it %s; use "
                     "the version that recorded it ('%s'), or the first file of that process",
                     line->format, unsaid[line->format], version_of(line));
}

static bool read_header(struct replay *replay, const struct record_line *line, GError **error)
{
    struct store_options options = {0};

    if (replay->extender.store)
        return replay_fail(error, "a second header: each file is played by itself");
    if (!check_format(line, error))
        return false;
    if (!line->options)
        return replay_fail(error, "field 'options': missing");
    if (!replay->options.configure(replay->options.data, line->options, &options,
                                   &replay->extender, error) ||
        !check_beginning(line, &options, error))
        return false;
    if (replay->options.policy)
        options.policy = replay->options.policy;
    options.silent = true;
    options.claims_on_nodes = line->format <= RECORD_FORMAT_4;
    replay->extender.store = store_new(&options);
    replay->learned = line->before == 0; /* then nothing is known, and that is all */
    for (int feed = 0; feed < kinds_n; feed++)
        replay->listed[feed] = replay->learned;
    replay->summary.version = g_strdup(line->version ? line->version : "");
    replay->summary.commit = g_strdup(line->commit ? line->commit : "");
    return true;
}

static bool note_end(struct replay *replay, const struct record_line *line, GError **error)
{
    struct record_line at = *line;

    replay->summary.ended = true;
    at.number = (int64_t)replay->summary.last;
    return !line->object || replay_ledger(replay, &at, error);
}

static bool play(struct replay *replay, const struct record_line *line, GError **error)
{
    return line->kind == RECORD_HEADER ? read_header(replay, line, error)
           : line->kind == RECORD_END  ? note_end(replay, line, error)
           : line->kind == RECORD_LOST ? lose(replay, line, error)
                                       : replay_event(replay, line, error);
}

/* Numbers follow each other; lines of what was known before have none. */
static bool check_number(struct replay *replay, const struct record_line *line, GError **error)
{
    struct replay_summary *summary = &replay->summary;
    const uint64_t number = (uint64_t)line->number;

    if (line->number == 0 || line->kind == RECORD_LOST)
        return true;
    if (line->number < 0 || (summary->last != 0 && number != summary->last + 1))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "number %" G_GINT64_FORMAT " where %" G_GUINT64_FORMAT " was expected",
                         line->number, summary->last + 1);
    if (replay->options.until != 0 && number > replay->options.until) {
        replay->done = true;
        return true;
    }
    if (summary->first == 0)
        summary->first = number;
    summary->last = number;
    return true;
}

bool replay_line(struct replay *replay, const char *text, size_t length, GError **error)
{
    struct record_line line;

    replay->summary.lines++;
    json_arena_clear(replay->arena);
    if (!record_line_decode(replay->arena, text, length, &line, error))
        return false;
    if (!replay->extender.store && line.kind != RECORD_HEADER)
        return replay_fail(error, "a record begins with a header");
    if ((record_rows[line.kind].has_object && !line.object) ||
        (record_rows[line.kind].has_booking && !line.booking))
        return replay_fail(error, "field 'object' or 'booking': missing");
    if (!check_number(replay, &line, error))
        return false;
    if (replay->done)
        return true;
    if (replay->extender.store)
        store_set_moment(replay->extender.store, &line.moment);
    replay->summary.events += record_rows[line.kind].is_event;
    const bool played = play(replay, &line, error);
    if (replay->extender.store)
        store_set_moment(replay->extender.store, NULL);
    return played;
}

bool replay_is_done(const struct replay *replay)
{
    return replay->done;
}

const struct replay_summary *replay_summary(const struct replay *replay)
{
    return &replay->summary;
}

struct store *replay_store(struct replay *replay)
{
    return replay->extender.store;
}

struct replay *replay_new(const struct replay_options *options)
{
    struct replay *replay = g_new0(struct replay, 1);

    replay->options = *options;
    replay->arena = json_arena_new();
    replay->binds = replay_binds_new();
    return replay;
}

void replay_free(struct replay *replay)
{
    struct replay_summary *summary = &replay->summary;

    g_hash_table_unref(replay->binds);
    store_free(replay->extender.store);
    json_arena_free(replay->arena);
    g_free(summary->version);
    g_free(summary->commit);
    g_free(summary->difference.what);
    g_free(summary->difference.recorded);
    g_free(summary->difference.replayed);
    g_free(summary->difference.ledger);
    g_free(replay);
}
