/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a pod of any dialect may say about the cards that it accepts: our own annotations. */
#include <gpuledger/object.h>
#include <gpuledger/terms.h>

/* Adds the pod's conditions to `*terms`, which is made if it is NULL and there are any, and which
 * nobody else has a reference to yet. They go before the dialect's own words for the same. An error
 * names the annotation and what it should be; some conditions may have been added then. */
bool conditions_read(const struct pod_view *view, struct terms **terms, GError **error);

/* Of a bound pod: adds the memory that it means to use of a shared device, if it says that. */
void conditions_memory_wanted(const struct pod_view *view, struct terms **terms);

/* Whether the pod accepts memory that its card does not really have. */
bool conditions_oversubscribe(const struct pod_view *view);
/* Whether it says anything of that. */
bool conditions_say_oversubscribe(const struct pod_view *view);
