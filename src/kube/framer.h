/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cuts a stream of JSON into objects as the bytes arrive, wherever the network cut them. Each byte
 * is looked at once; what is kept is the object under way, never a page. Only brackets and strings
 * are understood: whether an object is valid JSON is for the parser to say.
 *
 * FRAMER_SEQUENCE: top-level objects one after another, with or without white space between them
 * (a watch). FRAMER_LIST: one top-level object; the elements of its "items" array, which must be
 * objects, are handed out one by one, and the rest is kept as the envelope, with "items":[] (a
 * list of the API server, the output of kubectl).
 *
 * Threads: one at a time.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

enum framer_mode { FRAMER_SEQUENCE, FRAMER_LIST };

#define FRAMER_OBJECT_MAX ((size_t)16 << 20)

struct framer;

/* Called with one complete object, borrowed for the call. False, with an error, ends the feeding.
 */
typedef bool (*framer_emit)(const char *object, size_t length, void *data, GError **error);

/* `object_max` bytes for one object, and for the envelope; 0: FRAMER_OBJECT_MAX. */
struct framer *framer_new(enum framer_mode mode, size_t object_max, framer_emit emit, void *data);
void framer_free(struct framer *framer);
typedef struct framer framer; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(framer, framer_free)

/* Objects are handed out with the array of that name, which is copied, empty, wherever in them it
 * is: what nobody will look at is not worth parsing. Only where nothing but a comma or a bracket
 * stands before the key, and nothing around the colon after it, as the API server writes. */
void framer_skip(struct framer *framer, const char *key);

/* Starts over, with nothing read. */
void framer_clear(struct framer *framer);

/* False on bytes that cannot be part of such a stream (GPULEDGER_ERROR_INVALID), an object that
 * is too large (_LIMIT), or what `emit` said. The framer is unusable then until cleared. */
bool framer_feed(struct framer *framer, const char *bytes, size_t length, GError **error);

/* Nothing is half read: between objects, or after the list. */
bool framer_is_complete(const struct framer *framer);

/* FRAMER_LIST: the list without its items, as far as it has been read. Borrowed until the next call.
 */
const char *framer_envelope(const struct framer *framer, size_t *ret_length);
