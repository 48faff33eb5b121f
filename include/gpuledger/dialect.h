/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A dialect is one project's way of asking for, counting and writing down shares of GPUs, as its
 * unchanged node-side plugin understands it. Each is a row: what it is called, what it owns, and
 * how to read and write it. Nothing outside src/dialect/ knows a dialect's keys.
 *
 * All functions are pure: no I/O, no clock, no state. Any thread, provided that the node they are
 * given is not being changed.
 */
#include <gpuledger/names.h>
#include <gpuledger/object.h>
#include <gpuledger/placement.h>

#pragma GCC visibility push(default)

struct classes;
struct work_meter;

/* How Tencent's gpu-manager orders cards with equal core free. */
enum tencent_order {
    TENCENT_ORDER_BLOCKS_MINOR, /* memory in blocks of 256 MiB, then by minor number */
    TENCENT_ORDER_BLOCKS_NVML,  /* memory in blocks, then in the order in which NVML counts */
    TENCENT_ORDER_BYTES_NVML,   /* memory in bytes */
};

/*
 * What the administrator says about the node side, all dialects together; zero is the default.
 *
 * Options of single dialects are fields here, and not opaque blocks that each row brings: some are read by
 * several rows (HAMi's by three), the program's table of options is constant and knows each by its offset, and
 * who uses the library sets them by name and type. So an option is the one part of a dialect that is
 * outside its folder; most dialects need none.
 */
struct dialect_options {
    int64_t gpushare_memory_unit;    /* bytes in one aliyun.com/gpu-mem; 0 guesses per node */
    int64_t tenant_isolation; /* enum isolation: pods of several namespaces share a card only where
                               * its holders are kept apart at least so */
    int64_t hami_default_memory; /* MiB of each card for a container that says nothing; 0: all */
    int64_t hami_memory_factor;  /* MiB in one nvidia.com/gpumem, for HAMi; 0: 1 */
    int64_t hami_default_cores;  /* percent of its compute likewise; 0: any share */
    int64_t hami_memory_scaling; /* percent that cards are registered with; 0: as much as they have */
    const char
        *hami_mig_templates; /* "MODEL=7x1g.5gb:5120,…;…": how plugins before v2.10 cut cards; NULL
                               * or "": as HAMi's chart has it */
    bool gpushare_any_on_single_card; /* the plugin serves any container on a one-card node */
    bool gpushare_multiprocessors;    /* compute is divided by whole multiprocessors */
    int64_t volcano_memory_factor;    /* MiB in one volcano.sh/gpu-memory or vgpu-memory; 0: 1 */
    int64_t tencent_order;           /* enum tencent_order */
    bool tencent_unchecked;          /* gpu-manager is not to compare its choice with ours */
    int64_t unplaced_everywhere; /* not 0: a pod that was bound without a card counts on every card of
                                  * its node, also where its node side gives it none */
    bool nvidia_fail_requests_greater_than_one; /* as in the plugin's sharing.timeSlicing */
    bool nvidia_mps_several;  /* its sharing.mps has failRequestsGreaterThanOne: false */
    bool nvidia_memory_guard; /* see dialect/nvidia/nvidia_guard.h */
    const char *nvidia_memory_label; /* a node label with a card's memory; NULL or "": none */
    const char
        *nvidia_config_replicas; /* "NAME=N,…": what nvidia.com/device-plugin.config makes of a
                                   * card; NULL or "": not known */
    const char
        *card_profiles; /* what nodes have that are not there yet (dialect/profile/card_profile.h);
                          * NULL or "": not known */
    struct classes *classes; /* dialect/classes/classes.h; NULL: there are no classes of work */
};

#define ANNOTATIONS_MAX (REQUEST_ASKS_MAX + 20)

/* Annotations to write; keys and values are owned. */
struct annotations {
    size_t n;
    struct {
        char *key;
        char *value;
    } items[ANNOTATIONS_MAX];
};

/* What the API server lets an object's annotations have together, keys and values; it does not count what a
 * Binding adds, and then refuses every later change of the pod, its phase included. Source:
 * kubernetes/apimachinery v0.37.1, pkg/api/validation/objectmeta.go, TotalAnnotationSizeLimitB. */
#define ANNOTATIONS_BYTES_MAX (256 * 1024)
/* Of that for what is written after the Binding: the node side's marks, the seal. */
#define ANNOTATIONS_BYTES_LATER (8 * 1024)
/* Fewer than these are not counted: whatever is written beside them finds room. */
#define ANNOTATIONS_BYTES_FEW (64 * 1024)

void annotations_add(struct annotations *annotations, const char *key, char *take_value);
void annotations_clear(struct annotations *annotations);
/* Whether they and what comes later find room on a pod that asks so, as the dialect that writes them reads it. */
bool annotations_fit(const struct annotations *annotations, const struct request *request);
typedef struct annotations annotations; /* for g_auto */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(annotations, annotations_clear)

/* What the administrator says of the cards of nodes that are not there yet. They are all alike. */
struct card_profile {
    const struct dialect *dialect;
    int64_t cards, memory; /* how many, and bytes of each */
    int64_t slots;         /* how many pods may share one; 0: as its node side has it by itself */
    const char *model;     /* NULL: not said */
};

/* By what annotations of a dialect call cards: two numbers that need not be the same. */
enum card_numbering {
    CARD_NUMBERS_NONE,  /* by none, or the node serves it alone */
    CARD_NUMBERS_NVML,  /* NVML's index, or a UUID: the ledger's cards are in its order */
    CARD_NUMBERS_MINOR, /* N of /dev/nvidiaN */
};

enum word_place {
    WORD_LABEL,
    WORD_ANNOTATION,
    WORD_RESOURCE, /* of capacity and allocatable */
};

#define PROFILE_WORDS_MAX 8

/* What a node side would have told of such cards. Keys are constant, values are owned. */
struct profile_words {
    size_t n;
    struct profile_word {
        enum word_place place;
        const char *key;
        char *value;
    } items[PROFILE_WORDS_MAX];
};

void profile_words_add(struct profile_words *words, enum word_place place, const char *key,
                       char *take_value);
/* Of a resource. */
void profile_words_amount(struct profile_words *words, const char *key, int64_t amount);
void profile_words_clear(struct profile_words *words);

/* What a pod's object promises: the node side would give it to whichever pod kubelet asks for. */
struct device_promise {
    const char *node;     /* whose node side; borrowed from the view */
    int64_t match_amount; /* only a pod of this size would be given it; 0: any */
    int64_t time;         /* the least is given first, in the dialect's unit; 0 if unknown */
};

/* What pods that the node side has not matched yet mean for the next one. */
struct in_flight {
    bool restricted;      /* some unmatched pod cannot be told apart from the new one */
    int32_t card;         /* the one card the new pod may join; CARD_UNKNOWN: none */
    int64_t since_ns;     /* Unix time at which the oldest of those pods was placed */
};

/* What people should know of a dialect: Markdown, a sentence or two each; `gpuledger dialects`
 * prints it. */
struct dialect_notes {
    const char *asks;   /* what pods write, with units */
    const char *nodes;  /* what is read of a node */
    const char *writes; /* what a bind writes, and who reads it */
    const char *played; /* node sides that the tests replay, with their versions */
    const char *limits; /* what is refused and why, what cannot be known */
    /* The scheduler that its authors wrote, and what that sees of pods that gpuledger has bound. NULL: there is
     * none, or it was not read. */
    const char *own_scheduler, *sees;
};

/* How a container asks for cards, for whoever says in another dialect what it asks for: the resources
 * and their units. NULL: that cannot be said. */
struct dialect_words {
    const char *count;   /* different cards, said beside what follows; NULL: a share is of one card */
    const char *memory;  /* of each card */
    int64_t memory_unit; /* bytes in one of it; 0: the node's own */
    const char *percent; /* instead: of each card's memory */
    const char *core;    /* hundredths of each card's compute */
    bool core_needed;    /* a share says both */
    const char *whole;   /* whole cards, said alone */
    int32_t whole_units; /* in one card */
};

/* What the name of a resource says of one device: an instance that a card has been cut into. */
struct instance_size {
    int64_t memory, slices; /* bytes, of a card's compute; 0: not said */
    bool shared;            /* several devices are one instance */
};

struct dialect {
    const char *name;          /* "gpushare": options, metrics, JSON */
    const char *title;         /* for people */
    struct dialect_notes notes;
    /* Pod resources it reads; NULL-terminated. An item that ends with '*' stands for all that
     * begin so. Where two dialects read a pod, and see the same resources, the node decides. */
    const char *const *resources;

    /* Annotations and labels of pods that say what a pod was given: only schedulers and node sides
     * write them, users never; their own words, such as wishes, are not among them.
     * NULL-terminated, '*' as above; NULL: there are none. */
    const char *const *records;

    /* Annotations of pods that every Binding replaces, whole keys; NULL-terminated. NULL: there are none. */
    const char *const *replaces;

    /* The schedulerName of pods that its own scheduler places, without us; NULL: none that is known. */
    const char *scheduler;

    /* The node side obeys the card that the pod's annotations name. Pods of two such dialects may
     * share a node, on different cards; else a node serves one dialect at a time. */
    bool names_cards;
    enum card_numbering numbers;
    /* Its cards are of another make than those of all other rows: on a node that has others, too, only the
     * others are kept. Its shares are SHARE_OF_ITS_MAKE. */
    bool own_cards;

    /* Its pods' amounts are AMOUNT_NODE_UNITS; one dialect of a node at most. It has read_sketch. */
    bool node_units;
    enum isolation isolation;
    struct dialect_words words; /* all NULL: nobody is told to ask so */

    /* For a node side that chooses the card itself, by an order that must be foreseen; NULL: any
     * policy will do. */
    const struct policy *policy;

    /* Namespace and name prefix of ConfigMaps that say which cards are unhealthy; the rest of the
     * name is the node's. NULL if the dialect has none. */
    const char *health_namespace;
    const char *health_prefix;

    /* The annotation of a Node that lists by UUID which of its cards take no new pods, for whoever else
     * places pods of the dialect; NULL: there is none. */
    const char *cordon_key;

    /* Which of the administrator's annotations of a Node that not every row needs it reads: their keys, the
     * last followed by NULL. NULL: none. */
    const char *const *card_marks;

    /* The ConfigMap, in that namespace, whose key has a namespace's quotas of GPU models
     * (quota/quotas.h). NULL if the dialect has none. */
    const char *quotas_namespace;
    const char *quotas_name;
    const char *quotas_key;

    /* Keys of a ResourceQuota's spec.hard that limit what the pods of a namespace hold: MiB of their
     * cards' memory, and percent of their compute. Both or neither (NULL). */
    const char *quota_memory, *quota_core;

    /* False: the resource is none of instances. NULL: there are none in this dialect. */
    bool (*read_instance)(const char *resource, struct instance_size *ret_size);

    /* False without an error: the node is not of this dialect. With an error: it is, but what it
     * says is unusable. `ret_warning` may be set to what was ignored (free with g_free). */
    bool (*read_topology)(const struct node_view *view, const struct dialect_options *options,
                          struct topology *ret_topology, char **ret_warning, GError **error);

    /* What the Node object tells of a node whose plugin is away, beside the dialect; false: the node
     * has no cards. NULL: nothing is told. */
    bool (*read_sketch)(const struct node_view *view, const struct dialect_options *options,
                        struct sketch *ret_sketch);

    /* What the node side would tell of such cards; false: that cannot be said in this dialect. NULL:
     * nothing can. */
    bool (*write_profile)(const struct card_profile *profile, const struct dialect_options *options,
                          struct profile_words *words);

    /* When its node side has last reported, in Unix time, as the Node says it; HEARTBEAT_NONE_NS: it is known
     * not to. False: it does not say so on this node, or that cannot be read, which `ret_warning` then
     * says. NULL: it never does. */
    bool (*read_heartbeat)(const struct node_view *view, int64_t *ret_ns, char **ret_warning);

    /* What the pod asks for. NULL without an error: nothing. */
    struct request *(*read_request)(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error);

    /* What a bound pod holds according to its annotations. Never fails: what cannot be trusted
     * becomes a share on CARD_UNKNOWN, and `ret_warning` says why. NULL: nothing. */
    struct allocation *(*read_allocation)(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning);

    /* What the node side cannot serve, whatever is free. A row whose pods are counted but never
     * placed, because their own scheduler does that, has none of what follows. */
    enum reason (*refuse)(const struct node *node, const struct request *request,
                          const struct dialect_options *options);

    /* Which pods on the node the node side could mistake for the new one; NULL: it never does. */
    void (*in_flight)(const struct node *node, const struct request *request,
                      struct in_flight *ret_in_flight);
    /* It is one pod at a time, whatever the sizes. */
    bool one_in_flight;

    /* Whether the node side may still hand out what the pod promises (docs/design/promises.md), in whatever
     * phase it is, bound or not. NULL: it goes by no promise of another pod. */
    bool (*read_promise)(const struct pod_view *view, struct device_promise *ret_promise);
    /* That may be so of pods that have started: then another's was handed out to them. */
    bool any_phase;
    /* The annotations that make it forget that promise. NULL: it ends by itself. */
    void (*write_revoked)(struct annotations *annotations);
    /* It may begin with the first pod of the cluster's list, of whatever node, and goes by the time of its promise
     * (queue/turns/turns.h). */
    bool whole_cluster;
    /* Whether write_annotations makes the node side prefer the new pod to a promise of that time on the
     * node. NULL: never. */
    bool (*outranks)(const struct node *node, int64_t time);

    /* The annotations that make the node side hand out the cards of `allocation`. */
    void (*write_annotations)(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations);

    /* The annotations by which the dialect's own scheduler sees pods of other dialects on a node that it
     * serves, too. Such a node takes no pods whose cards gpuledger does not choose. NULL: it sees none
     * of them, or by what their own dialect writes. */
    void (*write_seen)(const struct allocation *allocation, const struct node *node,
                       struct annotations *annotations);

    /* The annotation of a Node that names the pod which its plugin serves next, as
     * "TIME,NAMESPACE,NAME" with an RFC 3339 time; NULL: the plugin reads none. */
    const char *lock_key;

    /* A label of the pod that names its node, for what looks pods up by it; NULL: nothing does. */
    const char *node_label;

    /* The annotations that the node side itself writes when it takes the pod; a player and the
     * embedded cluster use them. NULL: it writes none. */
    void (*write_assigned)(const struct allocation *allocation, int64_t now_ns,
                           struct annotations *annotations);

    /* Card indices from a health ConfigMap: appends int32_t; `ret_warning` names bad items. NULL if
     * there is no health_prefix. */
    void (*read_health)(const struct configmap_view *view, GArray *indices, char **ret_warning);
};

/* Ends with NULL. */
extern const struct dialect *const dialects[];

const struct dialect *dialect_find(const char *name);

/* Whether the resource is one of those by which the dialect's pods ask. */
bool dialect_reads(const struct dialect *dialect, const char *resource);

/* The dialect whose ConfigMap of unhealthy cards it is, and the node that it is about; NULL: none. */
const struct dialect *dialect_of_health(const char *ns, const char *name, const char **ret_node);
/* The dialect whose ConfigMap of quotas it is; NULL: none. */
const struct dialect *dialect_of_quotas(const char *ns, const char *name);

/* What one device of the resource is, in whichever dialect; false: no instance of a card. */
bool dialect_read_instance(const char *resource, struct instance_size *ret_size);

/* What the pod asks for, in whichever dialect, as a chain of alternatives if several read the same
 * resources; NULL without an error: no GPU. A pod that asks in two ways is an error. */
struct request *dialect_read_request(const struct pod_view *view,
                                     const struct dialect_options *options, GError **error);

/* What a bound pod holds; NULL: nothing. */
struct allocation *dialect_read_allocation(const struct pod_view *view,
                                           const struct dialect_options *options,
                                           char **ret_warning);

/* What a pod holds from now on of whom `known` says what it held: that stays as it is in dialect, cards
 * and amounts, whatever its annotations are made to say, but for what the node side has to say itself
 * (struct allocation.open) and for cards that had not been named. `take_fresh`, read of the pod as it is
 * now, tells how far the node side has come. A card that only `fresh` names is held beside the others
 * as long as the node side may still go by it. `ret_edited`, unless NULL, says whether `fresh` names
 * other cards. */
struct allocation *dialect_continue(const struct allocation *known, struct allocation *take_fresh,
                                    bool *ret_edited);

/* Whether the dialect's promise in the pod stands, and whether kubelet will ask for it: the pod is bound to
 * that node, was not started, and asks in that dialect. */
bool dialect_read_promise(const struct dialect *dialect, const struct pod_view *view,
                          struct device_promise *ret_promise, bool *ret_awaited);

/* The node's cards and pools by all dialects that claim it; false: none does (or the word of the
 * first is unusable, then with an error). Where several do, they must agree on the number of cards;
 * a card has the least memory that anyone says, and is unhealthy if anyone says so. */
bool dialect_read_topology(const struct node_view *view, const struct dialect_options *options,
                           struct topology *ret_topology, char **ret_warning, GError **error);

/* The Node object, of which nothing could be read, names a resource of which the node has given, and none
 * of it: kubelet does so while it has restarted, and the node's plugin has not registered again. */
bool dialect_is_paused(const struct node *node, const struct node_view *view);

/* The same of a node that nobody knows: `ret_topology` gets its sketch. False: it is none. */
bool dialect_read_sketch(const struct node_view *view, const struct dialect_options *options,
                         struct topology *ret_topology);

/* Which node side of the node reports from time to time, and when it last has; of `ret_heartbeat` not
 * when that was first seen, which only the caller knows. */
void dialect_read_heartbeat(const struct node_view *view, struct heartbeat *ret_heartbeat,
                            char **ret_warning);

enum admission {
    ADMISSION_YES,
    ADMISSION_WAIT, /* there is room, but not before the node side has matched an earlier pod */
    ADMISSION_NO,
};

struct admission_query {
    const struct request *request;
    const struct policy *policy;
    const struct dialect_options *options;
    int64_t now_ns;      /* Unix time */
    int64_t patience_ns; /* how long an unmatched pod is expected to stay unmatched */
    bool awaits_plugin;  /* ADMISSION_WAIT, not _NO, where the node's plugin is away for a while */
    const struct demand *demand; /* NULL: nothing is known of it */
    struct work_meter *work;     /* the program's own; NULL */
};

/* The one question that filter, bind and every explanation ask: may this pod go to this node, and
 * where? ADMISSION_WAIT turns into ADMISSION_NO when the pod waited for is older than the
 * patience. `ret_placement` is set for ADMISSION_YES, and for ADMISSION_WAIT to where the pod would
 * go if it were now; it may be NULL for whoever only asks whether, which is much cheaper. */
enum admission dialect_admit(const struct node *node, const struct admission_query *query,
                             struct placement *ret_placement, enum reason *ret_reason);

/* The same without where and why, and so much cheaper. */
enum admission dialect_admits(const struct node *node, const struct admission_query *query);

/* The least time of the stray promises of the node that a new pod of the dialect outranks; INT64_MAX: there is
 * none. */
int64_t dialect_outranked(const struct node *node, const struct dialect *dialect);

/* Whether some node side there reads what the pod asks for, room or not. */
bool dialect_serves(const struct node *node, const struct request *request);
/* Whether the end of a pod may keep this one from a node: where the node side picks the card itself. */
bool dialect_is_fickle(const struct request *request);
/* Whether the pod asks for a share of one card, and who is not on that card, or may not be, does not keep
 * it from there. */
bool dialect_asks_one_card(const struct node *node, const struct request *request);

/* What a pod waits for on a node of which dialect_admit says ADMISSION_WAIT, for people. */
enum reason dialect_why_wait(const struct node *node, const struct request *request);
/* Unix time at which patience ends there, and with it ADMISSION_WAIT. INT64_MAX: what is waited for has
 * no time of its own. */
int64_t dialect_wait_ends(const struct node *node, const struct admission_query *query);

#pragma GCC visibility pop
