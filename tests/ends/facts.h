/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was so, and until when: the program learns of a change later than the API server, and what it does then is
 * right by what it could know.
 */
#include "../killed/api.h"

/* A pod, also one that is gone. */
struct fact {
    char *uid, *ns, *name, *node;
    char *group; /* "NAMESPACE/NAME"; NULL: none */
    int units, min;
    bool ours, asks; /* it has the word that its group's Binding leaves */
    bool exists, ends, evicted;
    int64_t created_us, gone_us;
    int64_t waited_us; /* when it was pending last; now, if it is */
    int64_t sent_us;   /* when its Binding was sent last */
};

void facts_reset(void);
/* As api.told. */
void facts_told(const char *path, const char *type, cJSON *object);
/* The program has evicted it, and knows so. */
void facts_evicted(const char *uid);
void facts_min(const char *ns, int cards);

const struct fact *facts_find(const char *uid); /* NULL: there never was one */
/* Pending now, or not long ago. */
bool facts_waits(const struct fact *fact);
/* When the first came of those that wait with it: the pods of its group, which get room together. */
int64_t facts_waits_since(const struct fact *fact);
/* Units that pods of the namespace hold that are not about to end; the most and the least of the last while. */
int facts_most_held(const char *ns);
int facts_least_held(const char *ns);
/* Units of pods whose Binding was sent not long ago and may still be carried out. */
int facts_under_way(const char *ns);
void facts_binding_sent(const char *uid);
int facts_most_min(const char *ns); /* in units */
int facts_least_min(const char *ns);
/* The group was half, with pods that wait for the rest, for at least so long, and is or was not long ago. */
bool facts_half(const char *group, int64_t for_us);
/* The Node's switch is due, or was not long ago. */
bool facts_switched(const char *node);
