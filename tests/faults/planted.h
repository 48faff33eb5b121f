/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What tenants write into their pods: keys of every dialect, with values that mean something and values that mean
 * nothing. By chance.h. */
#include "played.h"

#define CLASS_KEY "gpuledger.io/class"

/* Any key of an annotation, and of a label. */
const char *planted_key(void);
const char *planted_label_key(void);

/* A value for that key; the caller frees it. */
char *planted_value(const char *key);

/* Gives the pod a few keys, mostly of one family: then they mean something together. */
void planted_add(struct played_pod *pod);
