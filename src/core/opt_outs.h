/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Annotations by which a pod's author asks that the pod not be evicted (pod_view_opt_out). */
#include <stddef.h>

struct opt_out {
    const char *key;
    const char *value; /* NULL: any but "false" */
};

extern const struct opt_out opt_outs[]; /* the last one has no key */
