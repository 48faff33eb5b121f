/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An API server in memory: nodes, pods and ConfigMaps with resourceVersions, lists in pages, a log
 * that watches are served from and that is cut off at its old end, Bindings and merge patches as
 * kube-apiserver 1.36 carries them out. It does what it is asked at once and without fault; what
 * goes wrong on the way is net.c's business. Beside the objects stands what the oracle (truth.c)
 * wants to remember of them. Uses nothing of the program.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define NODES 4
#define PODS 24
#define CARDS_MAX 6
#define GROUPS 3
#define GROUPS_OF(group) ((group) + 1)

enum resource { NODE, POD, CONFIGMAP, RESOURCES };
enum pod_phase { PENDING, RUNNING, SUCCEEDED, FAILED };
enum key { IDX, DEV, TOTAL, ASSIGNED, ASSUME_TIME, WOKEN, GANG_MIN, KEYS };

struct pod {
    bool exists;
    char name[8], uid[24];
    int64_t version;
    int units;     /* 0: no GPU */
    int n_containers; /* that ask for the units, together */
    int priority, label; /* and more by which others judge it */
    bool particular;
    int group;     /* with whose pods it comes, GROUPS_OF of them at least; 0: with none */
    int node;      /* -1: unbound */
    enum pod_phase phase;
    bool terminating, started;
    bool rejected; /* FAILED, by kubelet */
    char *annotations[KEYS];

    /* For the oracle: */
    bool granted;   /* its node and card come from a Binding of the program */
    int64_t moved_us; /* when it was bound, or started, last */
    int late;       /* Bindings on their way that may still be carried out */
    int late_card;  /* what they say */
    int64_t known[RESOURCES]; /* the oldest state that a bind of it may be founded on; -1: none */
};

/* A node as it was from a version on; or its ConfigMap. */
struct shape {
    int64_t version;
    bool exists;
    int cards, units; /* of each card */
};
struct health {
    int64_t version;
    uint32_t sick; /* bits by index */
};

struct change {
    int64_t version;
    const char *type;
    char *object;
};

struct server {
    int64_t version;
    struct pod pods[PODS];
    GArray *shapes[NODES]; /* struct shape; the last one is what is */
    GArray *health[NODES]; /* struct health */
    bool has_configmap[NODES];
    GPtrArray *log[RESOURCES]; /* struct change * */
    uint64_t cut[RESOURCES];   /* changes that are no longer in the log */
    int64_t cut_version[RESOURCES];
    GHashTable *snapshots; /* token -> struct snapshot * */
    unsigned uids, tokens_given;
    int token, token_before; /* that are accepted; -1: none */
    bool groups;             /* some pods are of groups */
    GHashTable *bound;       /* uid -> node's number + 1, of all that were ever bound */

    /* Up to which version the program has been told everything: */
    int64_t known[RESOURCES];
    uint64_t n_requests, n_granted;
    void (*on_granted)(const struct pod *pod); /* called with every Binding that names a card */
};

extern struct server server;

void server_reset(void);
/* An empty log, no lists under way; and what they hold is given back. */
void server_start(void);
void server_end(void);

struct server_request {
    const char *method;
    const char *url; /* path and query */
    const char *body;
    const char *authorization; /* or NULL */
};

struct server_reply {
    long status;
    GString *body;         /* of a watch: empty */
    bool watch;            /* changes follow */
    enum resource resource; /* of a list or watch */
    uint64_t cursor;       /* of a watch: the first change that it is told */
    int64_t list_version;  /* of the last page of a list; else 0 */
};

void server_serve(const struct server_request *request, struct server_reply *reply);
/* Answers it if it lists or watches a collection; else false. */
bool server_collection(const struct server_request *request, struct server_reply *reply);
/* What a list of them has, as texts; by server.c or played.c. */
GPtrArray *server_objects(enum resource resource, const char *selector);
/* A Status object, by the server or whoever stands in its way. */
void server_refuse(struct server_reply *reply, long status, const char *reason, const char *message);
/* Adds a change of this version of the server to the log. */
void server_note(enum resource resource, const char *type, char *take_object);
/* The change of that number, NULL if there is none yet; `ret_gone` if no longer. */
const struct change *server_change(enum resource resource, uint64_t cursor, bool *ret_gone);
/* The pod and card that a request would bind; NULL: it is no Binding. */
struct pod *server_binding(const struct server_request *request, int *ret_card);

/* --- what happens to the objects ------------------------------------------------------------ */

struct pod *server_create_pod(int i, int units, int n_containers);
void server_delete_pod(struct pod *pod);
void server_annotate(struct pod *pod, enum key key, const char *value);
/* After any other change of it. `was_seen`: its phase was not terminal before. */
void server_touch_pod(struct pod *pod, bool was_seen);
void server_put_node(int node, int cards, int units); /* no cards: no GPUs */
void server_delete_node(int node);
void server_put_health(int node, uint32_t sick);
void server_delete_health(int node);
/* The log loses its older part, and the snapshots of lists are gone. */
void server_compact(void);

struct shape *server_shape(int node);
uint32_t server_sick(int node);
char *server_pod_json(const struct pod *pod);
