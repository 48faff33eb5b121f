/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Of which class of work a pod is, and by whose word, for people. */
#include "json/json.h"

#include <gpuledger/dialect.h>

struct class_told {
    char *name;     /* NULL: of none */
    char *from;     /* "its PriorityClass 'batch'"; NULL: from nowhere */
    int64_t idle_s; /* for so long, as the source of usage tells; 0: it does not */
    char *note;     /* why what it says of itself does not count; NULL: it does */
};

/* `held`: what it holds already, which keeps the class that it came with; or NULL. NULL: it is of no
 * class, and says nothing of one. */
struct class_told *class_told_find(const struct dialect_options *options,
                                   const struct pod_view *pod, const struct allocation *held);
void class_told_free(struct class_told *told); /* NULL is ignored */

void class_told_encode(struct json_writer *writer, const struct class_told *told);
void class_told_write(GString *text, const struct class_told *told);
