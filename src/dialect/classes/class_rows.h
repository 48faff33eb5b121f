/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Classes as they stand in the table; for classes.c and class_rows.c alone. */
#include "dialect/classes/classes.h"

struct class_row {
    struct work_class *work_class;
    /* Lists end with NULL, and are never NULL themselves. */
    char **priority_classes;
    char **namespaces;
    char **shares_with;
};

struct classes {
    uint32_t n;
    struct class_row rows[WORK_CLASSES_MAX]; /* work_class->number counts them from 1 */
};
