/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects of the played cluster: pods and nodes of gpushare, as JSON, and what a test wants to read of them. */
#include "../killed/api.h"

#define UNITS 8 /* of a card */
#define MEM "aliyun.com/gpu-mem"
#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define GANG "gang.scheduling.koordinator.sh/"
#define GANG_WAITING_S 40

struct pod_wish {
    const char *ns, *name;
    int units, priority;
    const char *owner, *kind; /* NULL: nobody makes it again */
    const char *words;        /* more annotations, as ",\"key\":\"value\""; NULL: none */
    const char *node;         /* where it runs; NULL: it waits */
    int card;
    const char *spec; /* more of its spec, as "\"key\":value,"; NULL: nothing */
};

void pods_put(const struct pod_wish *wish);
void pods_put_node(const char *name, int cards);

/* Paths of all pods; free with g_ptr_array_unref. */
GPtrArray *pods_paths(void);
/* NULL: there is none. Borrowed. */
char *pods_path_of(const char *uid);
/* A path by chance; NULL: there is none. Of the namespace, or NULL. Free with g_free. */
char *pods_draw(const char *ns);

const char *pod_node(cJSON *pod);                  /* NULL: none */
const char *pod_word(cJSON *pod, const char *key); /* an annotation; NULL: none */
const char *pod_owner_kind(cJSON *pod);            /* NULL: no controller */
int pod_units(cJSON *pod);
int pod_card(cJSON *pod); /* -1: none */
int pod_priority(cJSON *pod);
bool pod_ends(cJSON *pod); /* somebody has deleted it */
/* Gates and another scheduler keep it from being asked about. */
bool pod_asks(cJSON *pod);
bool pod_is_mirror(cJSON *pod);
int64_t pod_started_us(cJSON *pod); /* wall clock; 0: not yet */
/* So much of a card is held. */
int pods_used(const char *node, int card);
