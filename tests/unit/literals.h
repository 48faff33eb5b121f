/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Views of Kubernetes objects as literals. */
#include <glib.h>
#include <gpuledger/object.h>

#define PAIRS(...)                                                                                 \
    ((struct string_pairs){(const struct string_pair[]){__VA_ARGS__},                              \
                           G_N_ELEMENTS(((const struct string_pair[]){__VA_ARGS__}))})

#define CONTAINERS(...)                                                                            \
    .containers = (const struct container_view[]){__VA_ARGS__},                                    \
    .n_containers = G_N_ELEMENTS(((const struct container_view[]){__VA_ARGS__}))
