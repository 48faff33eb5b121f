/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes down what happens to the store and what is decided from it (app/record.h), so that it can be
 * decided again elsewhere (app/replay.h).
 *
 * Numbers are given under the store's lock; a thread of the recorder's own puts the lines in order
 * and writes them. Nobody waits for the disk: while RECORDER_QUEUE_MAX bytes or RECORDER_OPEN_MAX
 * records have not been written, no numbers are given, and a line says how many records are missing.
 *
 * A file that has grown to the limit becomes FILE.1, and the next one begins with all that is known
 * by then; so does a file that is there at the start. One that cannot be written to any more is said
 * so once, and then nothing is recorded.
 */
#include "app/record.h"

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

/* `tell` gives a record, under a number that it returns (0: none), of what no file could tell that
 * begins after it; the next one does. It is called by the recorder's thread, which holds no lock, where
 * a file is full and where records were lost. Before the first number; NULL recorders are ignored. */
void recorder_ask(struct recorder *recorder, uint64_t (*tell)(void *data), void *data);

/* Under the store's lock: the next number, or 0: what happens now is not recorded. NULL gives 0. */
uint64_t recorder_number(struct recorder *recorder);

/* Once for each number, and without the store's lock but for a bind's look, which tells what the
 * ledger holds; never waits for the disk. NULL is ignored, both. */
void recorder_take(struct recorder *recorder, struct record *take_record);
