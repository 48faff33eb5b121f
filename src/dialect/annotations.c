/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/annotations.h"

#include <string.h>

void annotations_add(struct annotations *annotations, const char *key, char *take_value)
{
    g_assert(annotations->n < ANNOTATIONS_MAX);
    annotations->items[annotations->n].key = g_strdup(key);
    annotations->items[annotations->n].value = take_value;
    annotations->n++;
}

void annotations_clear(struct annotations *annotations)
{
    for (size_t i = 0; i < annotations->n; i++) {
        g_free(annotations->items[i].key);
        g_free(annotations->items[i].value);
    }
    annotations->n = 0;
}

/* --- how much there may be -------------------------------------------------------------------- */

/* What a Binding adds at most, about: keys, the node's name and times, and what it says of each card. */
#define BYTES_OF_BINDING 512
#define BYTES_OF_CARD 256

static int64_t bytes_of(const char *key, const char *value)
{
    return (int64_t)(strlen(key) + (value ? strlen(value) : 0));
}

static bool is_replaced(const struct dialect *dialect, const char *key)
{
    for (const char *const *own = dialect->replaces; own && *own; own++) {
        if (strcmp(*own, key) == 0)
            return true;
    }
    return false;
}

int64_t annotations_left(const struct pod_view *pod, const struct dialect *dialect)
{
    int64_t bytes = pod->unlisted_annotations;

    for (size_t i = 0; i < pod->annotations.n; i++) {
        const struct string_pair *one = &pod->annotations.items[i];
        if (!is_replaced(dialect, one->key))
            bytes += bytes_of(one->key, one->value);
    }
    return bytes < ANNOTATIONS_BYTES_FEW ? 0 : bytes;
}

static bool leaves_room(const struct request *request, int64_t added)
{
    return request->annotations == 0 ||
           request->annotations + added + ANNOTATIONS_BYTES_LATER <= ANNOTATIONS_BYTES_MAX;
}

bool annotations_may_fit(const struct request *request)
{
    int64_t n = 0;

    if (request->annotations == 0)
        return true;
    for (uint32_t i = 0; i < request->n_asks; i++)
        n += request->asks[i].count;
    return leaves_room(request, BYTES_OF_BINDING + n * BYTES_OF_CARD);
}

bool annotations_fit(const struct annotations *annotations, const struct request *request)
{
    int64_t added = 0;

    for (size_t i = 0; i < annotations->n; i++)
        added += bytes_of(annotations->items[i].key, annotations->items[i].value);
    return leaves_room(request, added);
}
