/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a pod says in words rather than amounts: conditions on the cards it will accept, and names
 * that its node side wants to read again. Immutable once made, shared by reference between the
 * request, its duplicates and the allocation. Any thread may hold a reference.
 */
#include <gpuledger/names.h>
#include <gpuledger/work_class.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct card;
struct policy;

/* How well a node side keeps the holders of one card apart, weakest first. */
enum isolation {
    ISOLATION_NONE,     /* amounts are a promise */
    ISOLATION_HOOK,     /* the CUDA library is intercepted in the container */
    ISOLATION_KERNEL,   /* in the driver */
    ISOLATION_HARDWARE, /* a partition of the card, or the card as a whole */
    ISOLATION_N
};

/* Where the containers of one pod go. */
enum neighbours {
    NEIGHBOURS_ANY,
    NEIGHBOURS_SAME_CARD,
    NEIGHBOURS_DIFFERENT_CARDS,
};

/* What a card's parts in use count for where the fullest or the emptiest is looked for. */
struct weights {
    int32_t slots, core, memory;
};

/* A driver's version as one number: "535.104.05" is later than "535.104" and "535". */
#define DRIVER_VERSION(major, minor, revision) ((major)*100000 + (minor)*100 + (revision))
#define DRIVER_MAJOR_MAX 9999
#define DRIVER_MINOR_MAX 999
#define DRIVER_REVISION_MAX 99

/* Lists end with NULL; a list that is NULL says nothing. */
struct terms {
    char **models;        /* the card's model contains one of these, case ignored */
    char **models_not;    /* and none of these */
    char **uuids;         /* the card is one of these, which are in the order of strcmp */
    char **uuids_not;     /* and none of these, likewise */
    char *mode;           /* the card's mode is contained in this */
    enum neighbours neighbours;
    bool same_numa;       /* all cards of a container are on one NUMA node */
    bool near_numa;       /* they are, where that can be had */
    bool best_linked;     /* of a container's cards the best connected ones go together */
    bool idle;            /* cards without holders only */
    bool oversubscribes;  /* memory that the card does not really have will do */
    bool unshared;        /* devices of pools that are not shared only */
    int64_t memory_min;   /* bytes that a card or device must have as a whole */
    int64_t memory_wanted; /* bytes that it means to use of a shared device; 0: it says nothing */
    int32_t compute_min;  /* CUDA compute capability, 100 * major + minor */
    int32_t driver_min;   /* see DRIVER_VERSION */
    enum isolation isolation_min;
    char *tenant;         /* whose pods alone may share a card with it, unless the holders of one */
    enum isolation tenant_isolation; /* card are kept apart at least so; NULL: anybody's may */
    bool unlimited;                  /* of some container (struct card_ask) */
    bool unchecked;       /* the node side is to tell its own choice rather than compare it */
    struct weights weights; /* of what fills a card, all 0: the policy's own measure */
    const struct policy *policy; /* the pod's own choice, or NULL */
    const struct policy *node_policy; /* the same among nodes, where it is another */
    bool
        groupless; /* its class is for members of pod groups, and it is in none: no node takes it */
    struct work_class *work_class; /* the pod's, a reference; or NULL */
    uint64_t
        replica_of; /* the same for all replicas of one template that are to keep apart; 0: nobody's */

    char **devices;       /* where asks' and shares' `device` may point */
    char **containers;    /* names, as pod_view.containers has them; NULL: nobody will ask */
    int32_t n_init;       /* how many of these, the last ones, are init containers */
    int64_t told_mib;     /* MiB in one of what the node side is told of memory; 0: 1 */
};

/* Zeroed, with one reference; the maker fills it before it gives it away. Lists and strings are
 * owned (g_strfreev, g_free). */
struct terms *terms_new(void);
struct terms *terms_ref(struct terms *terms); /* NULL gives NULL */
void terms_unref(struct terms *terms);        /* NULL is ignored */
typedef struct terms terms;                   /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(terms, terms_unref)

/* Terms that say the same; NULL says nothing, but is not equal to terms that do. */
bool terms_equal(const struct terms *a, const struct terms *b);

/* Whether a card meets the terms, whatever is free on it; a card's or pool's model alone. NULL terms
 * accept everything, a NULL model is in no list. */
bool terms_accept_card(const struct terms *terms, const struct card *card);
bool terms_accept_model(const struct terms *terms, const char *model);

/* By what nodes are rated for a pod: its own choice, else `policy`, the cluster's. A node's only
 * chooses among its cards: ratings of two policies do not compare. */
const struct policy *terms_rating(const struct terms *terms, const struct policy *policy);

/* "none", "hook", "kernel", "hardware"; never NULL. */
const char *isolation_name(enum isolation isolation);
bool isolation_find(const char *name, enum isolation *ret_isolation);

#pragma GCC visibility pop
