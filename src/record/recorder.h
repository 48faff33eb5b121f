/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes down what happens to the store and what is decided from it (record/record.h), so that it can be
 * decided again elsewhere (record/replay.h).
 *
 * Numbers are given under the store's lock; a thread of the recorder's own puts the lines in order
 * and writes them. Nobody waits for the disk: while RECORDER_QUEUE_MAX bytes or RECORDER_OPEN_MAX
 * records have not been written, no numbers are given, and a line says how many records are missing.
 *
 * A file that has grown to the limit becomes FILE.1, and the next one begins with all that is known
 * by then; so does a file that is there at the start. One that cannot be written to any more is said
 * so once, and then nothing is recorded.
 */
#include "record/record.h"
#include "store/store.h"

#define RECORDER_QUEUE_MAX ((size_t)64 << 20)
#define RECORDER_OPEN_MAX 16384 /* a power of two */

struct recorder;

struct recorder_options {
    const char *path;
    int64_t file_max;    /* bytes */
    const char *options; /* what decisions depend on, as a JSON object */
};

/* GPULEDGER_ERROR_IO if there can be no such file; _LIMIT if there can be no thread. */
struct recorder *recorder_new(const struct recorder_options *options, GError **error);
/* Writes what is left; no number may be open. NULL is fine. */
void recorder_free(struct recorder *recorder);

/* Before there is anything to record: what happens to the store and in the verbs from now on is. The
 * recorder's thread, which holds no lock then, asks the store for what is known (store_tell_known)
 * where a file is full and where records were lost; its last line says what is in the ledger then. */
void recorder_observe(struct recorder *recorder, struct store *store);

/* What an observer does. Under the store's lock: the next number, or 0. */
uint64_t recorder_number(struct recorder *recorder);
/* Once for each number; never waits for the disk. NULL records are ignored. */
void recorder_take(struct recorder *recorder, struct record *take_record);
