/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte chooses the mode and whether arrays are skipped, the second seeds the cuts, the
 * rest is the stream. However it is cut, the same objects come out and the same verdict; no object
 * exceeds the limit, and each stands between braces.
 */
#include "target.h"

#include "kube/framer.h"

#include <string.h>

#define OBJECT_MAX 512

struct outcome {
    GString *objects; /* one after another, with NULs between */
    GString *envelope;
    bool ok;
    bool complete;
};

static bool collect(const char *object, size_t length, void *data, GError **error)
{
    struct outcome *outcome = data;

    FUZZ_CHECK(length >= 2 && length <= OBJECT_MAX);
    FUZZ_CHECK(object[0] == '{' && object[length - 1] == '}');
    g_string_append_len(outcome->objects, object, (gssize)length);
    g_string_append_c(outcome->objects, '\0');
    return true;
}

/* `step` 0: all at once; else the cuts follow from it. */
static void run(uint8_t mode, const char *bytes, size_t size, unsigned step,
                struct outcome *outcome)
{
    struct framer *framer =
        framer_new(mode & 1 ? FRAMER_LIST : FRAMER_SEQUENCE, OBJECT_MAX, collect, outcome);
    g_autoptr(GError) error = NULL;
    size_t length;

    if (mode & 2)
        framer_skip(framer, "a");
    outcome->objects = g_string_new(NULL);
    outcome->ok = true;
    for (size_t at = 0; at < size && outcome->ok;) {
        const size_t left = size - at;
        const size_t n = step ? MIN(left, 1 + step % 7) : left;
        /* A copy of its own, so that reading past its end is seen. */
        g_autofree char *piece = g_memdup2(bytes + at, n);

        outcome->ok = framer_feed(framer, piece, n, &error);
        at += n;
        step = step ? step * 5 + 3 : 0;
    }
    FUZZ_CHECK(outcome->ok == !error);
    outcome->complete = framer_is_complete(framer);
    FUZZ_CHECK(outcome->ok || !outcome->complete);
    const char *envelope = framer_envelope(framer, &length);
    FUZZ_CHECK(length <= OBJECT_MAX);
    outcome->envelope = g_string_new_len(envelope, (gssize)length);
    framer_free(framer);
}

static void release(struct outcome *outcome)
{
    g_string_free(outcome->objects, TRUE);
    g_string_free(outcome->envelope, TRUE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole, pieces;

    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 2;

    run(data[0], bytes, size - 2, 0, &whole);
    run(data[0], bytes, size - 2, data[1] + 1u, &pieces);
    FUZZ_CHECK(g_string_equal(whole.objects, pieces.objects));
    FUZZ_CHECK(whole.ok == pieces.ok && whole.complete == pieces.complete);
    /* Where a stream fails, pieces may have kept less of it. */
    FUZZ_CHECK(!whole.ok || g_string_equal(whole.envelope, pieces.envelope));
    release(&whole);
    release(&pieces);
    return 0;
}
