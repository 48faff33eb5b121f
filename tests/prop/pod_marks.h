/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The annotations of a pod that is played: owned, and set one by one. */
#include <gpuledger/dialect.h>

struct pod_marks {
    struct string_pair items[ANNOTATIONS_MAX];
    size_t n;
};

/* Borrowed until the next change. */
static inline struct string_pairs pod_marks_view(const struct pod_marks *marks)
{
    return (struct string_pairs){marks->items, marks->n};
}

/* NULL: there is none of that key. */
static inline const char *pod_marks_get(const struct pod_marks *marks, const char *key)
{
    const struct string_pairs view = pod_marks_view(marks);
    return string_pairs_get(&view, key);
}

static inline void pod_marks_set(struct pod_marks *marks, const char *key, const char *value)
{
    size_t at = 0;

    while (at < marks->n && !g_str_equal(marks->items[at].key, key))
        at++;
    if (at == marks->n)
        marks->items[marks->n++].key = g_strdup(key);
    else
        g_free((char *)marks->items[at].value);
    marks->items[at].value = g_strdup(value);
}

static inline void pod_marks_apply(struct pod_marks *marks, const struct annotations *written)
{
    for (size_t i = 0; i < written->n; i++)
        pod_marks_set(marks, written->items[i].key, written->items[i].value);
}

/* After a copy byte by byte: both own what they have. */
static inline void pod_marks_dup(struct pod_marks *marks)
{
    for (size_t i = 0; i < marks->n; i++) {
        marks->items[i].key = g_strdup(marks->items[i].key);
        marks->items[i].value = g_strdup(marks->items[i].value);
    }
}

static inline void pod_marks_clear(struct pod_marks *marks)
{
    for (size_t i = 0; i < marks->n; i++) {
        g_free((char *)marks->items[i].key);
        g_free((char *)marks->items[i].value);
    }
    marks->n = 0;
}
