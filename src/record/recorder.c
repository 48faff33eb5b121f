/* SPDX-License-Identifier: Apache-2.0 */
#include "record/recorder.h"

#include "base/log.h"
#include "record/record_state.h"
#include "base/version.h"
#include "base/worker.h"
#include "store/images/ledger_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <gpuledger/error.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAUSE_MS 20 /* lines of so long are written together */

struct place {
    struct record *record; /* NULL: not told yet */
    uint64_t lost;         /* before it; written with the number */
};

struct recorder {
    struct observer observer;
    struct worker worker; /* its lock guards the records in `places` and `told` */
    char *path, *old_path, *options;
    int64_t file_max;

    uint64_t number; /* the last that was given; this and the next under the store's lock */
    uint64_t lost;   /* since then */
    atomic_uint_fast64_t written; /* the last number that is in the file */
    atomic_size_t queued;         /* bytes that are told and not written */
    atomic_bool broken;

    struct store *store; /* NULL: none is observed */
    struct place places[RECORDER_OPEN_MAX]; /* by number */
    bool told;                              /* something, since the thread last looked */

    /* The thread's own. */
    int file;
    int64_t size, rotate_at;
    uint64_t rotate_after; /* the number of what was told for the next file; 0: none yet */
    bool amiss;            /* records were lost, and nothing was told since */
    struct ledger_reader *walking; /* by which is being told what the nodes hold; or NULL */
    uint64_t n_lost; /* in all */
    struct record_state *state;
};

/* --- any thread ----------------------------------------------------------------------------- */

static struct place *place_of(struct recorder *recorder, uint64_t number)
{
    return &recorder->places[number % RECORDER_OPEN_MAX];
}

uint64_t recorder_number(struct recorder *recorder)
{
    const uint64_t open = recorder->number - atomic_load(&recorder->written);
    if (open >= RECORDER_OPEN_MAX || atomic_load(&recorder->queued) >= RECORDER_QUEUE_MAX ||
        atomic_load(&recorder->broken)) {
        recorder->lost++;
        metrics_count(COUNTER_RECORDS, RECORD_RESULT_LOST);
        return 0;
    }
    recorder->number++;
    place_of(recorder, recorder->number)->lost = recorder->lost;
    recorder->lost = 0;
    return recorder->number;
}

static size_t size_of(const struct record *record)
{
    return record->text->len + (record->body ? record->body->len + record->reply->len : 0);
}

void recorder_take(struct recorder *recorder, struct record *take_record)
{
    if (!take_record)
        return;
    atomic_fetch_add(&recorder->queued, size_of(take_record));
    worker_lock(&recorder->worker);
    place_of(recorder, take_record->number)->record = take_record;
    if (!recorder->told)
        worker_wake(&recorder->worker);
    recorder->told = true;
    worker_unlock(&recorder->worker);
}

static uint64_t observer_numbers(struct observer *observer)
{
    return recorder_number((struct recorder *)observer);
}

static void observer_tells(struct observer *observer, const struct observation *observation)
{
    recorder_take((struct recorder *)observer, record_new(observation));
}

void recorder_observe(struct recorder *recorder, struct store *store)
{
    worker_lock(&recorder->worker);
    recorder->observer = (struct observer){observer_numbers, observer_tells};
    recorder->store = store;
    worker_unlock(&recorder->worker);
    store_set_observer(store, &recorder->observer);
}

/* --- the file ------------------------------------------------------------------------------- */

static void write_header(const struct recorder *recorder, GString *text)
{
    const char *version = version_text, *commit = version_commit;
    g_autofree char *time = micro_time_format(g_get_real_time());
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "kind", "header");
    json_key_int(&writer, "format", RECORD_FORMAT);
    json_key_string(&writer, "version", version);
    json_key_string(&writer, "commit", commit);
    json_key_string(&writer, "time", time);
    json_key_int(&writer, "before", (int64_t)atomic_load(&recorder->written));
    json_key(&writer, "options");
    json_raw(&writer, recorder->options, strlen(recorder->options));
    json_end_object(&writer);
    g_string_append_c(text, '\n');
}

static void give_up(struct recorder *recorder, const char *what)
{
    log_event(LOG_LEVEL_ERROR, "recording ends", LOG_TEXT("file", recorder->path),
              LOG_TEXT("what", what), LOG_TEXT("why", g_strerror(errno)));
    atomic_store(&recorder->broken, true);
}

static void append(struct recorder *recorder, const GString *text)
{
    size_t done = 0;

    while (done < text->len && !atomic_load(&recorder->broken)) {
        const ssize_t n = write(recorder->file, text->str + done, text->len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            give_up(recorder, "it cannot be written to");
    }
    recorder->size += (int64_t)done;
}

/* A device must not be moved out of the way; a link may, and what it leads to stays where it is. */
static bool may_move(const char *path)
{
    struct stat status;

    if (lstat(path, &status) < 0)
        return errno == ENOENT;
    if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))
        return true;
    errno = S_ISDIR(status.st_mode) ? EISDIR : ENOTSUP;
    return false;
}

/* Begins a file; the one that is there is kept as the old one. */
static bool open_file(struct recorder *recorder)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (!may_move(recorder->path) || !may_move(recorder->old_path))
        return false;
    if (rename(recorder->path, recorder->old_path) < 0 && errno != ENOENT)
        return false;
    recorder->file = open(recorder->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (recorder->file < 0)
        return false;
    write_header(recorder, text);
    if (recorder->state)
        record_state_write(recorder->state, text);
    recorder->size = 0;
    recorder->rotate_after = 0;
    append(recorder, text);
    /* What is known may take more room than there should be. */
    recorder->rotate_at = MAX(recorder->file_max, 2 * recorder->size);
    return true;
}

static void rotate(struct recorder *recorder)
{
    close(recorder->file);
    if (!open_file(recorder))
        give_up(recorder, "it cannot be begun anew");
    else
        log_event(LOG_LEVEL_INFO, "record begun anew", LOG_TEXT("file", recorder->path),
                  LOG_NUMBER("bytes", recorder->size));
}

/* --- the thread ----------------------------------------------------------------------------- */

static void write_lost(struct recorder *recorder, uint64_t number, uint64_t lost, GString *text)
{
    struct json_writer writer;

    recorder->n_lost += lost;
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_int(&writer, "n", (int64_t)number);
    json_key_string(&writer, "kind", "lost");
    json_key_int(&writer, "count", (int64_t)lost);
    json_end_object(&writer);
    g_string_append_c(text, '\n');
}

/* Of a call so far only what it was about is in the text. */
static void finish_call(struct record *record)
{
    const size_t begun = record->text->len;
    struct json_writer writer = {record->text, true};
    bool understood;

    json_key(&writer, "body");
    understood = record_body_encode(&writer, record->verb, record->body);
    writer.comma = true;
    json_key(&writer, "reply");
    understood = understood && record_reply_encode(&writer, record->verb, record->reply);
    if (!understood || record->text->len > RECORD_LINE_MAX) {
        g_string_truncate(record->text, begun);
        writer.comma = true;
        json_key_int(&writer, "left-out", (int64_t)record->body->len);
    }
    json_end_object(&writer);
}

static void write_record(struct recorder *recorder, struct record *record, GString *text)
{
    if (record->body)
        finish_call(record);
    record_state_note(recorder->state, record);
    g_string_append_len(text, record->text->str, (gssize)record->text->len);
    g_string_append_c(text, '\n');
    metrics_count(COUNTER_RECORDS, RECORD_RESULT_WRITTEN);
}

/* The next record in order, if it has been told. */
static struct record *next_record(struct recorder *recorder, uint64_t *ret_lost)
{
    struct place *place = place_of(recorder, atomic_load(&recorder->written) + 1);

    worker_lock(&recorder->worker);
    struct record *record = g_steal_pointer(&place->record);
    recorder->told = recorder->told && record;
    worker_unlock(&recorder->worker);
    *ret_lost = record ? place->lost : 0;
    return record;
}

#define WRITE_BYTES ((size_t)1 << 20)

static void write_told(struct recorder *recorder)
{
    g_autoptr(GString) text = g_string_sized_new(WRITE_BYTES);
    struct record *record;
    uint64_t lost;

    while ((record = next_record(recorder, &lost))) {
        const size_t size = size_of(record);
        if (lost > 0) {
            write_lost(recorder, record->number, lost, text);
            record_state_lose(recorder->state);
            recorder->amiss = true;
        }
        write_record(recorder, record, text);
        record_free(record);
        atomic_fetch_add(&recorder->written, 1);
        atomic_fetch_sub(&recorder->queued, size);
        const bool last = atomic_load(&recorder->written) == recorder->rotate_after;
        if (text->len < WRITE_BYTES && !last)
            continue;
        append(recorder, text);
        g_string_truncate(text, 0);
        if (last)
            rotate(recorder);
    }
    append(recorder, text);
}

/* Whether there is something to be written after which a file may end, or after which what was lost
 * matters no more. If no number was to be had, the next time will do. */
static bool is_told(struct recorder *recorder)
{
    const bool full = recorder->size >= recorder->rotate_at && recorder->rotate_after == 0;

    if ((!full && !recorder->amiss) || !recorder->store || atomic_load(&recorder->broken))
        return false;
    if (!recorder->walking)
        recorder->walking = ledger_reader_new(recorder->store, true);
    if (store_tell_ledger(recorder->store, recorder->walking))
        return true;
    g_clear_pointer(&recorder->walking, ledger_reader_free);
    const uint64_t number = store_tell_known(recorder->store);
    if (number > 0) {
        recorder->rotate_after = full ? number : recorder->rotate_after;
        recorder->amiss = false;
    }
    return number > 0;
}

static void write_all(struct recorder *recorder)
{
    do
        write_told(recorder);
    while (is_told(recorder));
}

static void *run(void *data)
{
    struct recorder *recorder = data;
    struct worker *worker = &recorder->worker;

    worker_lock(worker);
    while (worker_wait(worker, WORKER_FOREVER)) {
        worker_unlock(worker);
        g_usleep(PAUSE_MS * 1000);
        write_all(recorder);
        worker_lock(worker);
    }
    worker_unlock(worker);
    return NULL;
}

/* What is in the ledger, a few nodes at a time: nothing changes it any more, for that would have had a
 * number. */
static void write_ledger(struct recorder *recorder, struct json_writer *writer)
{
    g_autoptr(ledger_reader) reader = ledger_reader_new(recorder->store, false);
    g_autoptr(record_pods) pods = record_pods_new();
    const GArray *nodes;

    while ((nodes = ledger_reader_next(reader))) {
        for (guint i = 0; i < nodes->len; i++) {
            const struct held_node *node = &g_array_index(nodes, struct held_node, i);
            for (guint j = 0; j < node->pods->len; j++)
                record_pods_add(pods, node->name, &g_array_index(node->pods, struct held_pod, j));
        }
    }
    record_pods_encode(writer, pods, NULL);
}

static void write_end(struct recorder *recorder)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "kind", "end");
    json_key_int(&writer, "last", (int64_t)atomic_load(&recorder->written));
    json_key_int(&writer, "lost", (int64_t)(recorder->n_lost + recorder->lost));
    /* What was lost last changed something that a replay does not know. */
    if (recorder->store && recorder->lost == 0) {
        json_key(&writer, "object");
        write_ledger(recorder, &writer);
    }
    json_end_object(&writer);
    g_string_append_c(text, '\n');
    append(recorder, text);
}

static void release(struct recorder *recorder)
{
    if (recorder->file >= 0)
        close(recorder->file);
    worker_release(&recorder->worker);
    ledger_reader_free(recorder->walking);
    if (recorder->state)
        record_state_free(recorder->state);
    g_free(recorder->path);
    g_free(recorder->old_path);
    g_free(recorder->options);
    g_free(recorder);
}

struct recorder *recorder_new(const struct recorder_options *options, GError **error)
{
    struct recorder *recorder = g_new0(struct recorder, 1);

    worker_init(&recorder->worker);
    recorder->path = g_strdup(options->path);
    recorder->old_path = g_strconcat(options->path, ".1", NULL);
    recorder->options = g_strdup(options->options);
    recorder->file_max = options->file_max;
    recorder->file = -1;
    if (!open_file(recorder)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "'%s' cannot be begun: %s",
                    recorder->path, g_strerror(errno));
        release(recorder);
        return NULL;
    }
    recorder->state = record_state_new();
    if (!worker_start(&recorder->worker, run, recorder, error)) {
        release(recorder);
        return NULL;
    }
    return recorder;
}

void recorder_free(struct recorder *recorder)
{
    if (!recorder)
        return;
    worker_stop(&recorder->worker);
    write_all(recorder);
    if (!atomic_load(&recorder->broken))
        write_end(recorder);
    release(recorder);
}
