/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the policies of `gpuledger guard` share: the keys that the program and the dialects write, from
 * the tables that the program itself goes by, as lists of CEL.
 */
#include <glib.h>

/* Sorted; the keys are constant, the array is the caller's. One that ends with '*' stands for all keys that
 * begin so. Of pods: annotations that Bindings and patches write, and what node sides write beside them. */
GPtrArray *policy_pod_keys(void);
/* Annotations of Nodes that the program writes. */
GPtrArray *policy_node_keys(void);
/* Labels of Nodes that a switch writes. */
GPtrArray *policy_node_labels(void);
/* Annotations that keep a pod from being evicted. */
GPtrArray *policy_opt_outs(void);

enum policy_part {
    POLICY_KEYS,     /* whole ones */
    POLICY_PREFIXES, /* those that end with '*', without it */
};

/* A variable of a policy. */
void policy_write_list(GString *text, const char *name, const GPtrArray *keys,
                       enum policy_part part);

/* A variable: the annotations or labels of an object; none where there is no object. */
#define POLICY_MAP(name, object, field)                                                            \
    "    - name: " name "\n"                                                                       \
    "      expression: >-\n"                                                                       \
    "        " object " != null && has(" object ".metadata." field ") ? " object                   \
    ".metadata." field " : {}\n"

/* The ValidatingAdmissionPolicy of what gpuledger's own account may write, and its binding. */
void own_writes_print(GString *text);
