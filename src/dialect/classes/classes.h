/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Classes of work: rows of settings that the administrator writes down once, and which pod is of which.
 * The one place where a pod's own words and those of its class become what counts for it.
 *
 * A pod is of the class
 *   1. that the administrator gives to its PriorityClass (spec.priorityClassName never changes, and a
 *      ResourceQuota can say in which namespaces it may be used);
 *   2. else that its annotation or label gpuledger.io/class names, where its namespace may choose it.
 * A class that gives its pods something that others have not (a card to themselves, to be ended last) is
 * not for every namespace to choose: classes_read refuses such a row.
 *
 * Immutable once read; any thread.
 */
#include <cjson/cJSON.h>
#include <gpuledger/error.h>
#include <gpuledger/object.h>
#include <gpuledger/request.h>

#define CLASS_KEY "gpuledger.io/class"
#define CLASS_DEFAULTS "default" /* instead of rows: the three that are built in, as they are */
#define CLASS_OTHERS "unclassed" /* in shares-with: pods of no class */
#define CLASS_EVERY "*"
#define CLASS_NAMES_MAX 256 /* in one list */

struct classes;

/* From an object with a row for each class; from "default", or null: no classes, and NULL without an
 * error. Errors name the field and what it may be. */
struct classes *classes_read(const cJSON *value, GError **error);
void classes_free(struct classes *classes);
/* All of it, as classes_read reads it; NULL gives "". Free with g_free. */
char *classes_format(const struct classes *classes);
/* Whether some class is for members of pod groups only. NULL: none is. */
bool classes_want_groups(const struct classes *classes);
/* Whether preemption ends the pods of some class before others. NULL: of none. */
bool classes_have_first(const struct classes *classes);

/* What a row may say, for people and for a schema. */
struct class_setting {
    const char *name;
    const char *help;
    bool list;                  /* of texts; else one of `choices`, or a text, or true and false */
    const char *const *choices; /* ends with NULL; NULL: any text */
    bool flag;
};
extern const struct class_setting class_settings[]; /* ends with a name of NULL */

enum class_source {
    CLASS_OF_NOTHING,
    CLASS_OF_PRIORITY,   /* the PriorityClass */
    CLASS_OF_ANNOTATION, /* the pod's own word, or its label's */
};

/* The pod's class; NULL without an error: it is of none. The class is borrowed. */
struct work_class *classes_choose(const struct classes *classes, const struct pod_view *view,
                                  enum class_source *ret_source, GError **error);
/* By name; NULL: there is none. */
struct work_class *classes_find(const struct classes *classes, const char *name);

/* Adds to the request's terms what the pod's class says, where the pod says nothing of its own. False:
 * its class cannot be told. */
bool classes_apply(const struct classes *classes, const struct pod_view *view,
                   struct request *request, GError **error);

/* Of a pod that is on a node, which counts whatever it says: its class. `ret_warning` says why it is of
 * none that it names. A reference. */
struct work_class *classes_of_bound(const struct classes *classes, const struct pod_view *view,
                                    char **ret_warning);
/* Whether a pod on a node accepts memory that its card does not really have. */
bool classes_oversubscribe(const struct work_class *work_class, const struct pod_view *view);

/* The same number for all replicas of a Deployment, StatefulSet or Job; 0: it is of none, or its class
 * does not keep replicas apart. */
uint64_t classes_replica_of(const struct work_class *work_class, const struct pod_view *view);
