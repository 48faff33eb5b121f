/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lists of words that a pod's annotations contain, in any dialect: the one place that bounds how many
 * words they have and how long a word is. Each word is compared with each card of each node under the
 * store's lock. Pure functions.
 */
#include <gpuledger/object.h>
#include <glib.h>
#include <stdbool.h>

#define WORD_LIST_ITEMS_MAX 64
#define WORD_LIST_BYTES_MAX 128 /* of one word */

/* False with an error, whose text is constant for the key: the annotation has more words, or a longer one.
 * `key` or `text` NULL: there is nothing to check. */
bool word_list_check(const char *key, const char *text, GError **error);

/* The words of the annotation, without blanks around them and without empty ones. NULL: there are none,
 * or more than word_list_check accepts. Free with g_strfreev. */
char **word_list_read(const struct pod_view *view, const char *key);
