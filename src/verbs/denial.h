/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why bind will not touch a pod, before it asks for cards: what kube-scheduler looks at before it
 * calls us, looked at again, since a call of bind may come from anybody. Of each call: is the node
 * known, is the pod's scheduler one that we serve, do the pod's own words (queue/pod_rules.h) leave the
 * node out. Of one that filter has not let pass there lately (queue/books/passes.h), whether the node's sums
 * suffice, too.
 */
#include "verbs/lookups.h"
#include "base/metrics.h"
#include "queue/books/passes.h"
#include "queue/pod_rules.h"
#include "wire/extender.h"

struct denials {
    char **schedulers; /* those that are served, ends with NULL; NULL: all but those of dialects that
                        * have one of their own */
    bool filter_suffices; /* the pod's own words are not looked at where filter has let it pass */
    struct passes *passes;
    struct lookups lookups;
};

/* `names` with commas between; "": the usual ones. */
struct denials *denials_new(const char *names, bool filter_suffices);
void denials_free(struct denials *denials); /* NULL is ignored */

/* Whether pods of that scheduler are placed here; NULL: all are. */
bool denials_serve(const struct denials *denials, const char *scheduler);

/* The first that there is. `rules` NULL: nobody knows the pod, or it has a node; `node` NULL: nobody
 * knows it. With a denial a sentence is set; free with g_free. */
enum denial denials_find(const struct denials *denials, const struct bind_args *args,
                         const struct pod_rules *rules, const struct node *node, int64_t now_ms,
                         char **ret_text);

/* Whether the API server may be asked about the pod, which nobody here knows; counts. */
bool denials_may_ask(struct denials *denials, const struct bind_args *args, int64_t now_ms);
