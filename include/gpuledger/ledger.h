/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger: who holds how much of which card of which node.
 *
 * Nodes are keyed by name, allocations by pod UID. A node's usage is the sum of its allocations
 * and is kept as they come and go; ledger_verify recomputes it from nothing. Usage may exceed a
 * card's capacity (a pod bound by somebody else, a card that shrank): then the card has nothing
 * free, never a negative or wrapped amount.
 *
 * A part of an allocation whose card is not known (no annotation, an index that does not exist)
 * may sit on any card of its node, so it counts against every one of them; on a node with one
 * card it sits on that card.
 *
 * What pods take of the node itself (host.h) is counted for all of them: those of its allocations,
 * and those of its CPU-only pods, pods that hold no GPU. An UID is an allocation's or a CPU-only pod's, never both.
 *
 * Ownership: the ledger owns its nodes and allocations. Pointers that it hands out are borrowed
 * and live until the next call that takes a non-const ledger.
 * Threads: none of its own and no lock; the caller serialises (store/store.h).
 */
#include <gpuledger/names.h>
#include <gpuledger/pod_facts.h>
#include <gpuledger/reason.h>
#include <gpuledger/request.h>
#include <gpuledger/terms.h>

#pragma GCC visibility push(default)

#define NODE_CARDS_MAX 256
/* 16 TiB: no card is as large. Amounts saturate here, so that sums of any number of them fit. */
#define AMOUNT_BYTES_MAX (INT64_C(1) << 44)
#define CARD_UNKNOWN (-1)
/* Dialects whose node sides run on one node. */
#define NODE_DIALECTS_MAX 4
/* Dialects that a node names and does not offer; the table has fewer. */
#define NODE_AWAY_MAX 16
#define NODE_POOLS_MAX 64
#define CARD_TEXT_MAX 128 /* bytes of a card's model or mode; the rest is not read */
/* Of one allocation; who would have more holds every card (dialect/hold.h). */
#define ALLOCATION_SHARES_MAX 256

struct mig_profiles;
struct node_traits;

/* Where on its card a MIG instance is (mig.h). Places of different layouts exclude each other. */
struct mig_place {
    uint8_t layout, start, size; /* size 0: there is none */
};

/* Places of one layout that are not to be used, by slices. */
struct mig_left_out {
    uint8_t layout;
    uint64_t slices;
};

/* Why a card that may well work takes no new pods. */
enum closure {
    CLOSURE_NONE,
    CLOSURE_CORDON,       /* the administrator wants it */
    CLOSURE_CLASS,        /* what the administrator says of its shares cannot be read */
    CLOSURE_SLOTS,        /* likewise of how many holders it takes */
    CLOSURE_CORDON_MAYBE, /* the administrator wants it of a card that this one may be */
};

/* One GPU as its node side numbers it. */
struct card {
    /* What is asked of thousands of cards a call, together and first. */
    int32_t index;       /* the number that annotations carry */
    int32_t holders;     /* slots taken on it */
    int32_t exclusive;   /* shares on it that tolerate no other */
    int32_t core_used;   /* in the unit of `core`, see card_core */
    int32_t core;        /* capacity: thousandths, CORE_WHOLE unless the node side oversubscribes; or
                          * multiprocessors, each some thousandths */
    int32_t slots;       /* holders at most; 0: any number */
    int32_t multiprocessors; /* compute is handed out in these; 0: in any parts */
    int32_t parts;       /* no holder is promised more than one of so many of its compute; 0: any */
    int64_t memory;      /* capacity, bytes */
    int64_t memory_used; /* bytes; may exceed memory */
    struct mig_profiles *mig; /* mig.h: it is cut into instances; a reference, or NULL */
    enum closure closure;
    bool healthy;
    bool best_effort;    /* promises no compute: only who asks for none in particular */
    bool capped;         /* it would have more slots, were it not for gpuledger.io/slots */
    bool broken;         /* the node side itself says that it is not healthy */

    int64_t physical;    /* bytes that it really has, fewer than `memory`; 0: all of them */
    int64_t memory_promised; /* of memory_used, held by pods that accept no oversubscribed memory */
    uint64_t kind;           /* the same for cards of one size and model, and no others */
    int32_t numa;
    int32_t rank;        /* place in the node side's own order of equal cards */
    bool pressed;        /* the physical memory is in use, so the node says */
    uint64_t key;        /* card_key of its UUID; 0: known by index only */
    uint64_t former_key; /* of one that it had before; 0: none */
    int32_t
        minor; /* by what node sides that count /dev/nvidiaN call it (struct dialect, numbers) */
    struct mig_left_out left_out; /* of a what-if node alone: places that pods have failed in */
    char *uuid;          /* these three NULL if the node side does not tell; owned by the node */
    char *model;
    char *mode;
};

struct links;

/* A card as a dialect reads it from a Node object; zero means that nothing is said. */
struct topology_card {
    int64_t memory; /* bytes */
    int64_t physical; /* of these, if the rest is oversubscribed; 0: all */
    bool pressed;   /* the physical memory is in use */
    int32_t core;   /* thousandths; 0: CORE_WHOLE */
    int32_t slots;  /* 0: any number */
    int32_t numa;
    int32_t rank;
    bool unhealthy;
    enum closure closure;
    int32_t parts;          /* of compute; 0: a holder may have any part */
    int32_t multiprocessors; /* 0: compute is handed out in any parts */
    bool best_effort;
    bool capped;         /* as in struct card */
    int32_t minor;       /* likewise, if the topology is `numbered` */
    uint64_t former_key; /* card_key of a UUID that it had before, which older pods name; 0: none */
    struct mig_profiles *mig; /* a reference of the topology's, or NULL */
    const char *uuid; /* see topology_keep */
    const char *model;
    const char *mode;
};

/* Why kubelet has more devices of a pool than are given. */
enum withheld {
    WITHHELD_NONE,
    WITHHELD_CHANGE,    /* the node's configuration is being changed */
    WITHHELD_EXCLUSIVE, /* one of its cards takes one holder at a time */
    WITHHELD_MPS,       /* they may all be on one card, and its server takes no more clients */
    WITHHELD_SLOTS,     /* likewise, and the administrator lets it take no more holders */
};

/* How several devices are one card. Two kinds name their devices alike, and cannot be on one card. */
enum sharing {
    SHARING_UNKNOWN,
    SHARING_WHOLE,  /* a device is a card or instance */
    SHARING_SLICED, /* its holders take turns */
    SHARING_MPS,    /* a server divides it */
    SHARING_N,
};

/* What is not known of devices. */
enum doubt {
    DOUBT_NONE,
    DOUBT_UNSAID,       /* nothing says whether a device is a card */
    DOUBT_CONTRADICTED, /* what the node says of its cards is not what it reports */
};

/* Devices of one kind that kubelet hands out by count: which of them a pod gets, only the node
 * knows. */
struct pool {
    char *resource; /* "nvidia.com/mig-1g.5gb" */
    char *model;    /* or NULL */
    int32_t capacity;
    int32_t reported; /* by kubelet, of which `capacity` are given; and why, if they are fewer: */
    enum withheld withheld;
    uint64_t change; /* WITHHELD_CHANGE: a number for what the node is being changed to, */
    int32_t later;   /* and what is given if that lasts too long; */
    enum withheld later_withheld;
    int64_t used;   /* may exceed capacity */
    int32_t at_once; /* devices that one container may have; 0: any number */
    int64_t memory; /* bytes of one device; 0: not known */
    int32_t replicas; /* devices that are one card or instance, at most; 0: not known */
    int32_t divided;  /* likewise, of devices that are given now; 0: not known */
    enum sharing sharing;
    bool shared;    /* several devices are one card */
    enum doubt doubt;
    bool sliced; /* one device is a part of a card, whose other parts may be in whichever pool */
    enum isolation isolation; /* of the holders of one card or instance */
    uint64_t kind;  /* as struct card.kind; set by the node */
};

/* What a node is known to be whose plugin was away when it was first seen. */
struct sketch {
    const struct dialect *dialect; /* of the plugin; NULL: it is not away, or was seen before */
    int64_t unit;                  /* bytes in one AMOUNT_NODE_UNITS; 0: the pods' amounts tell */
    int64_t mib_from;              /* amounts from here on are MiB, and smaller ones GiB */
    int32_t n_cards;               /* whose size only the pods tell; 0: not known */
};

/* A node's cards and pools as its dialects read them from a Node object. */
struct topology {
    const struct dialect *dialect; /* the one that is reading, afterwards the first that did */
    const struct dialect *dialects[NODE_DIALECTS_MAX];
    int32_t n_dialects; /* 0 stands for `dialect` alone */
    /* The Node names resources that only these read: kubelet may have given some of them to pods. */
    const struct dialect *away[NODE_AWAY_MAX];
    int32_t n_away;
    /* That gives devices by count, of a resource that the node reports for another one of them: it does
     * not run here, but may have before. NULL: none does. */
    const struct dialect *replaced;
    int64_t memory_unit; /* bytes in one AMOUNT_NODE_UNITS */
    int32_t compute;     /* CUDA compute capability, 100 * major + minor; 0: not known */
    int32_t driver;      /* see DRIVER_VERSION; 0: not known */
    enum isolation isolation; /* of the holders of a card, where it differs from node to node */
    const struct policy *policy; /* the node's own choice, or NULL */
    struct host host;    /* what the node has; 0: not known */
    int32_t n_cards;
    int32_t n_pools;
    bool numbered;       /* it is known what both kinds of numbers are of each card */
    struct links *links; /* links.h; a reference, or NULL */
    struct sketch sketch;
    struct sketch absent; /* of the one of `away` whose unit amounts are in; only its unit counts */
    struct topology_card cards[NODE_CARDS_MAX]; /* by index */
    struct pool pools[NODE_POOLS_MAX];          /* strings by topology_keep */
    GStringChunk *strings;
};

struct topology *topology_new(void);
void topology_free(struct topology *topology);
typedef struct topology topology; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(topology, topology_free)

/* A copy that lives as long as the topology. NULL gives NULL. */
char *topology_keep(struct topology *topology, const char *text);

enum allocation_state {
    ALLOCATION_ASSUMED,   /* its Binding is being sent */
    ALLOCATION_UNKNOWN,   /* the Binding's outcome is not known */
    ALLOCATION_BOUND,     /* the API server accepted the Binding; not yet seen in the watch */
    ALLOCATION_CONFIRMED, /* seen in the watch */
    ALLOCATION_HELD,      /* a place for a pod of a group, about which bind was not asked yet */
};
#define ALLOCATION_STATES (ALLOCATION_HELD + 1)

/* What is wrong with the words that should say which cards an allocation is on. */
enum distrust {
    DISTRUST_NONE,
    DISTRUST_UNMARKED,  /* there are none: whoever bound the pod wrote no card */
    DISTRUST_LOST,      /* the card is missing beside what was written together with it */
    DISTRUST_MALFORMED, /* the card cannot be read */
    DISTRUST_EDITED,    /* they contradict what the pod asks for; the card counts all the same */
    DISTRUST_UNREAD, /* what the pod asks for cannot be read, or not served: it counts as the most that
                      * it may be */
    DISTRUST_WAITED, /* its node side has not taken it for longer than anybody may wait */
    DISTRUST_MISTAKEN, /* the node side gave it what another pod was promised: it counts on every card */
    DISTRUST_UNSEALED, /* whoever may patch the pod may have written them: it counts on every card */
    DISTRUST_N
};

/* Whether a share counts on the node that its pod is on. */
enum share_basis {
    SHARE_HELD,        /* it does */
    SHARE_ON_ONE_CARD, /* nobody wrote a card: the node side has one to give only if there is no other */
    SHARE_NOT_GIVEN,   /* nobody wrote a card, and without that the node side gives none */
    SHARE_OF_ITS_MAKE, /* of a card that is no other dialect's: where its own is read of the node */
    SHARE_BY_UUID,     /* one of two that stand for one card: where the node tells UUIDs */
    SHARE_BY_NUMBER,   /* the other one: where it tells none */
};

/* What one container (or the pod as a whole) holds of one card, or how many devices of a pool. */
struct share {
    struct amount memory;
    int32_t container;  /* as in struct card_ask */
    int32_t card;       /* index, or CARD_UNKNOWN */
    int32_t core;       /* thousandths */
    bool exclusive;
    bool init, sidecar; /* as in struct card_ask */
    bool named;         /* a card that an edit names beside the one that the pod was bound to: held
                         * only as long as the node side may still go by it */
    enum share_basis basis;
    struct mig_place place; /* of the instance that it is, on a card that is cut */
    int32_t devices;    /* of the pool `device` */
    int32_t replicas;   /* of the pool when the devices were given; 0: not known */
    enum sharing sharing; /* likewise */
    const char *device; /* as in struct card_ask, or DEVICE_ALL; NULL: a share of a card */
    const struct dialect *dialect; /* whose words it is read from; NULL: the allocation's */
    uint64_t key;       /* card_key of the UUID that names the card; `card` is then the ledger's to
                         * set, for the node as it is. 0: `card` is what was said */
    int32_t
        minor; /* the same of a card that was named by its minor number, and 1 more than that; 0: it
                         * was not */
};

#define DEVICE_ALL "*" /* every device of every pool of the node */

/* Only allocation_new makes one. */
struct allocation {
    const char *uid;  /* strings live in the allocation's own block */
    const char *ns;
    const char *name;
    struct node *node;
    const struct dialect *dialect;
    struct terms *terms; /* a reference, or NULL */
    enum allocation_state state;
    enum distrust distrust;
    bool oversubscribes;     /* accepts memory that its card does not really have */
    bool started;            /* kubelet has admitted it */
    bool
        placed; /* this program, or another replica, has bound it; else its author or somebody else */
    bool assigned;           /* the node side has taken it */
    bool waiting;            /* not assigned, and the node side may still match it */
    bool heeded;             /* the node side may still go by what its annotations say */
    bool awaited; /* its promise stands, and kubelet will ask for it (struct device_promise) */
    bool open;               /* the node side chooses the card, and has yet to write which */
    bool alternative;        /* others read the same resources of the pod: the node decides */
    struct host host;        /* of the pod as a whole */
    int64_t match_amount;    /* as in struct request */
    int64_t card_units; /* what its card had when it was placed, AMOUNT_NODE_UNITS; 0: not known */
    int64_t assume_time_ns;  /* Unix time at which it was placed; 0 if unknown */
    int64_t
        turn; /* of a booking: the time that its promise says, in the dialect's unit; 0: that time */
    int64_t since_ms;        /* caller's monotonic clock at the last change of state */
    bool refused;            /* of a booking: no Binding of it was, or will be, carried out */
    bool waited_out;         /* it has waited as long as anybody may, and never waits again */
    struct work_class *work_class; /* a reference, or NULL */
    bool class_open;         /* it was noted down without a class: what the pod says counts, once */
    uint64_t replica_of;     /* as in struct terms */
    int64_t priority;        /* these five say what the pod is worth to others, not what it holds */
    int64_t created_s;       /* Unix time; 0 if unknown */
    int64_t started_s; /* since when kubelet has it, Unix time; 0: it has not admitted it yet */
    struct pod_facts *facts;     /* a reference, or NULL */
    bool terminating;        /* it is being deleted, and holds its cards until it has ended */
    uint32_t n_shares;
    struct share shares[];
};

/* A pod that vanished while its node side had yet to take it, and may still be asked to. */
struct departed {
    const struct dialect *dialect;
    int64_t match_amount, assume_time_ns; /* as in struct allocation */
};

/* Stray promises (docs/design/promises.md) that the node side may give to pods of one size. */
struct promised {
    const struct dialect *dialect;
    int64_t match_amount, time; /* as in struct device_promise; the least time */
};

/* By dialect and amount. */
int promised_compare(const struct promised *a, const struct promised *b);

/* Without another report for so long, ten times what is usual, a node side counts as silent. */
#define HEARTBEAT_SILENCE_NS (INT64_C(300) * 1000000000)
#define HEARTBEAT_NONE_NS 1 /* it is known to be silent */

/* When the node side of a dialect has last said that it is there, if it does so from time to time. */
struct heartbeat {
    const struct dialect *dialect; /* NULL: none does */
    int64_t said_ns;               /* Unix time, as the Node says it */
    int64_t at_ns;                 /* the same, but no later than when that was first seen */
};

/* Only a ledger makes one. */
struct node {
    /* What filter asks of thousands of nodes a call, together and first. */
    const char *name;              /* lives in the node's own block */
    const struct dialect *dialect; /* the first of `dialects`; NULL: no node side runs here */
    int64_t memory_free_max;       /* bytes free on the emptiest healthy card */
    int64_t memory_unit;
    int32_t n_cards;
    int32_t n_waiting; /* allocations that the node side may still match to a container */
    int32_t n_unsealed; /* allocations that may be anywhere on it, since nobody knows (DISTRUST_UNSEALED) */
    int32_t n_choosy;   /* allocations of classes that do not share cards with everybody */
    int32_t n_strangers; /* allocations of dialects that are away or replaced */
    int32_t n_dialects;
    bool present;      /* the Node object exists */
    bool numbered;     /* as in struct topology */
    bool paused;       /* kubelet or plugin restarts: none of its cards counts as healthy */
    bool cordoned;     /* the owner's mark: kube-scheduler does not offer the node */
    int64_t
        switches_ns; /* likewise: Unix time from which it is made another kind of node; 0: it is not */
    int32_t
        slots_ahead; /* likewise: all that changes then is that a card takes so many holders; 0: more */
    GArray *departed;             /* struct departed, or NULL */
    GArray *promised;             /* struct promised, by promised_compare, or NULL */
    struct sketch sketch, absent; /* as in struct topology */

    struct heartbeat heartbeat; /* likewise */

    int32_t unplaced_holders;
    int32_t unplaced_exclusive;
    int64_t unplaced_memory; /* bytes of shares on no known card; counts on every card */
    int64_t unplaced_core;
    const struct dialect *dialects[NODE_DIALECTS_MAX];
    const struct dialect *away[NODE_AWAY_MAX]; /* these as in struct topology */
    int32_t n_away;
    const struct dialect *replaced;
    int32_t compute, driver;
    enum isolation isolation;
    bool limited; /* caller's: it has more than is served on one node, and so no cards here */
    bool distrusted;            /* caller's: what the Node says cannot be understood, or contradicts itself */
    const struct policy *policy;
    struct host host;      /* what the node has; 0: not known */
    struct host host_used; /* by allocations and CPU-only pods; may exceed it */
    uint32_t n_cpu_pods;
    int32_t n_pools;
    struct pool *pools;
    struct links *links; /* as in struct topology */
    struct card *cards;
    struct node_traits *traits; /* the owner's mark: labels and taints; a reference, or NULL */
    GArray *unhealthy;          /* int32_t card indices, or NULL */
    GPtrArray *allocations; /* struct allocation *, borrowed from the ledger */
};

/* Pods of several dialects may hold its cards. */
static inline bool node_is_mixed(const struct node *node)
{
    return node->n_dialects > 1 || node->n_strangers > 0;
}

/* The dialect's node side does not report any more, though it used to. */
static inline bool node_is_silent(const struct node *node, const struct dialect *dialect,
                                  int64_t now_ns)
{
    return dialect && node->heartbeat.dialect == dialect &&
           now_ns - node->heartbeat.at_ns > HEARTBEAT_SILENCE_NS;
}

struct ledger;

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger);
typedef struct ledger ledger; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ledger, ledger_free)

/* --- nodes ---------------------------------------------------------------------------------- */

/* The node of that name, or NULL. */
struct node *ledger_node(const struct ledger *ledger, const char *name);

/* All nodes in order of name. The array is the ledger's. */
const GPtrArray *ledger_nodes(const struct ledger *ledger);

/* Replaces a node's cards; its allocations stay and are charged to the new cards. NULL: the node
 * exists but shares no GPU. */
struct node *ledger_set_topology(struct ledger *ledger, const char *name,
                                 const struct topology *topology);

/* The Node object reports none of its cards just now: what is known of them stays, and they are not
 * healthy until they are reported again. Its pods keep what they hold. */
struct node *ledger_pause_node(struct ledger *ledger, const char *name);

/* The Node object is gone. Its pods keep counting until they end; a node without pods vanishes. */
void ledger_remove_node(struct ledger *ledger, const char *name);

/* Adds a node of another ledger as it is, its allocations included, for trying what would be: what
 * becomes of the copy is nobody else's business. A pod that the ledger knows on another node moves
 * to this one. */
struct node *ledger_copy_node(struct ledger *ledger, const struct node *from);

/* Marks exactly these cards unhealthy; NULL or empty for none. Indices of cards that do not exist
 * (yet) are kept. */
void ledger_set_unhealthy(struct ledger *ledger, const char *name, const int32_t *indices,
                          size_t n);

/* Says exactly who has departed from the node; NULL or empty for nobody. */
void ledger_set_departed(struct ledger *ledger, const char *name, const struct departed *departed,
                         size_t n);
/* Says exactly which stray promises the node has, in the order of promised_compare, if the ledger knows it;
 * NULL or empty for none. */
void ledger_set_promised(struct ledger *ledger, const char *name, const struct promised *promised,
                         size_t n);

/* --- allocations ---------------------------------------------------------------------------- */

/* A new allocation outside any ledger, with zeroed shares. */
struct allocation *allocation_new(const char *uid, const char *ns, const char *name,
                                  size_t n_shares);
/* A copy outside any ledger. */
struct allocation *allocation_dup(const struct allocation *allocation);
void allocation_free(struct allocation *allocation);
typedef struct allocation allocation; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(allocation, allocation_free)

/* Whose words a share of the allocation is read from. */
const struct dialect *allocation_share_dialect(const struct allocation *allocation,
                                               const struct share *share);

/* On the same card, or devices of the same pool. */
bool share_same_place(const struct share *a, const struct share *b);

/* Same pod, node, dialect, distrust, flags, amounts of the node, assume time, memory wanted and shares; state,
 * since_ms and what the pod is worth apart. */
bool allocation_equal(const struct allocation *a, const struct allocation *b);

struct allocation *ledger_get(const struct ledger *ledger, const char *uid);

/* Records what the API server says, whatever it is: takes the allocation, replaces an earlier one
 * of the same UID. Returns the recorded one. */
struct allocation *ledger_put(struct ledger *ledger, const char *node,
                              struct allocation *take_allocation);

/* The allocation as it would be recorded on the node, outside any ledger. */
struct allocation *ledger_foresee(const struct node *node, struct allocation *take_allocation);

/* Adds a new allocation only if every share fits its card beside all others; else frees it,
 * changes nothing and says why. */
struct allocation *ledger_reserve(struct ledger *ledger, const char *node,
                                  struct allocation *take_allocation, enum reason *ret_reason);

/* Moves an allocation on; never back from CONFIRMED. */
void ledger_set_state(struct ledger *ledger, struct allocation *allocation,
                      enum allocation_state state);

/* Records a pod that holds no GPU, whatever was known of its UID; returns whether it is a new one.
 * The generation is the caller's mark, for sweeping after a fresh list. */
bool ledger_put_cpu_pod(struct ledger *ledger, const char *node, const char *uid, struct host host,
                      uint32_t generation);

/* Forgets an allocation or a CPU-only pod; false if there is none. */
bool ledger_drop(struct ledger *ledger, const char *uid);

/* Allocations; CPU-only pods do not count. */
size_t ledger_size(const struct ledger *ledger);

typedef void (*ledger_visit)(struct allocation *allocation, void *data);
void ledger_each(const struct ledger *ledger, ledger_visit visit, void *data);

/* --- arithmetic ----------------------------------------------------------------------------- */

/* Bytes of an amount, at most AMOUNT_BYTES_MAX. Of AMOUNT_THOUSANDTHS only card_bytes knows. */
int64_t amount_bytes(struct amount amount, int64_t memory_unit);

/* Bytes of an amount on a card of the node; NULL: on the node's largest. Thousandths are rounded
 * down, as the node sides do. */
int64_t card_bytes(const struct node *node, const struct card *card, struct amount amount);

/* What a share of so many thousandths takes of the card's core: whole multiprocessors, where compute
 * is handed out in those. */
int32_t card_core(const struct card *card, int32_t core);

/* Thousandths for people, of what counts in the unit of the card's core. */
int32_t card_core_told(const struct card *card, int64_t core);

/* Whether several holders may be on one card of the pool. */
bool pool_may_be_shared(const struct pool *pool);

/* Whether devices of the pool may be what the pod asks for, as far as anything is said of them. */
bool pool_is_known(const struct pool *pool, const struct terms *terms);

/* A number that stands for a UUID, never 0. */
uint64_t card_key(const char *uuid);

/* What is left of a card, unplaced shares of the node counted; never negative. */
int64_t card_memory_free(const struct node *node, const struct card *card);

/* Of that, what may be given to a pod that accepts oversubscribed memory, or to one that does not.
 * Nobody gets any of a card whose physical memory is in use, or promised to those who do not. */
int64_t card_memory_room(const struct node *node, const struct card *card, bool oversubscribes);

int32_t card_core_free(const struct node *node, const struct card *card);
/* Whether it may take new pods, as far as its state goes. */
bool card_is_open(const struct card *card);

int32_t card_slots_free(const struct node *node, const struct card *card);

/* What is left of the node itself; never negative, INT64_MAX if it is not known what it has. */
struct host node_host_free(const struct node *node);

/* The card of that index, or NULL. */
const struct card *node_card(const struct node *node, int32_t index);

/* The card that a share is on, or NULL if that is not known. */
const struct card *node_share_card(const struct node *node, const struct share *share);

/* The pool of that resource, or NULL. */
const struct pool *node_pool(const struct node *node, const char *resource);

/* Whether a node side of this dialect runs on the node. */
bool node_offers(const struct node *node, const struct dialect *dialect);

/* Whether a pod of another dialect holds something of the card; `card` NULL: of the node. */
bool node_taken_by_other(const struct node *node, const struct card *card,
                         const struct dialect *dialect);

/* How well the node keeps holders of one card apart, of which the request's would be one. */
enum isolation node_isolation(const struct node *node, const struct request *request);

/* Whether a pod of another namespace holds something of the card, or may; of the pool, if `card` is
 * NULL. */
bool node_taken_by_tenant(const struct node *node, const struct card *card, const char *pool,
                          const char *ns);

/* Whether a pod that does not share cards with the class, or with which the class does not, holds
 * something of the card, or may; of the pool, if `card` is NULL. */
bool node_taken_by_class(const struct node *node, const struct card *card, const struct pool *pool,
                         const struct work_class *work_class);

/* How many pods of that template hold something of the card; `card` NULL: of the node. */
int32_t node_replicas(const struct node *node, const struct card *card, uint64_t replica_of);

/* Recomputes every node's usage from its allocations and compares. */
bool ledger_verify(const struct ledger *ledger, GError **error);

#pragma GCC visibility pop
