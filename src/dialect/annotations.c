/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/dialect.h>

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
