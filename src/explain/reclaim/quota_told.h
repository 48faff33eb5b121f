/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* In which elastic quota a pod counts (quota/elastic/elastic_quotas.h), and by whose word, for people. */
#include "json/json.h"
#include "store/store.h"

struct quota_told {
    char *name; /* "ml", or "ml/quota" of one in a tree; NULL: in none */
    char *from; /* "its label"; NULL: its namespace */
    char *note; /* why what its label says does not count; NULL: it does, or there is none */
};

/* NULL: it counts in none of a tree, and asks for none. Takes the store's lock. */
struct quota_told *quota_told_find(struct store *store, const struct pod_view *pod);
void quota_told_free(struct quota_told *told); /* NULL is ignored */

void quota_told_encode(struct json_writer *writer, const struct quota_told *told);
void quota_told_write(GString *text, const struct quota_told *told);
