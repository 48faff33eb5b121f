/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a dialect may see of the API server's objects: views, not copies. All strings and arrays
 * are borrowed from whoever made the view (a parsed document, a test's literals) and live as
 * long as that owner says. A string that the object lacks is NULL; a list it lacks is empty.
 *
 * Source of the fields: core/v1 Pod, Node and ConfigMap.
 */
#include <gpuledger/names.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct string_pair {
    const char *key;
    const char *value;
};

struct string_pairs {
    const struct string_pair *items;
    size_t n;
};

/* The value of a key, or NULL. */
const char *string_pairs_get(const struct string_pairs *pairs, const char *key);

/* Whether a container's environment switches off what holds it to its part of a card; some node sides look at the
 * variable's value, others do not. */
enum hook_word {
    HOOK_UNSAID,
    HOOK_NAMED, /* the variable is there, and not true */
    HOOK_OFF,   /* it is true */
};

struct container_view {
    const char *name;
    bool init;                  /* from spec.initContainers */
    bool sidecar;               /* an init container with restartPolicy Always */
    struct string_pairs limits; /* resource name -> quantity */
    struct string_pairs requests;
    enum hook_word hook;
    bool reported;              /* kubelet says what it has: these two, of the container's status */
    struct string_pairs actual; /* resources.requests */
    struct string_pairs allocated; /* allocatedResources */
};

struct taint_view {
    const char *key;
    const char *value;
    const char *effect; /* "NoSchedule", "NoExecute", "PreferNoSchedule" */
};

struct constraints;
struct cJSON;

struct pod_view {
    const char *ns;
    const char *name;
    const char *uid;
    const char *node_name;      /* spec.nodeName; NULL or "" while unbound */
    const char *nominated_node; /* status.nominatedNodeName */
    const char *scheduler_name;
    const char *priority_class;   /* spec.priorityClassName */
    const char *scheduling_group; /* spec.schedulingGroup.podGroupName */
    const char *phase;
    const char *status_reason;  /* these two: why it is in that phase, as kubelet has it */
    const char *status_message;
    const char *resource_version;
    const char *created; /* RFC 3339, UTC, whole seconds */
    const char
        *controller; /* UID of what makes it again, by its author's word; NULL: nobody does */
    const char *controller_kind; /* "ReplicaSet"; NULL: not known, or no controller */
    bool terminating; /* metadata.deletionTimestamp is set */
    bool started;     /* status.startTime is set: kubelet has admitted the pod */
    const char *started_at;    /* that time, RFC 3339; NULL: not known, as in older records */
    int64_t active_deadline_s; /* spec.activeDeadlineSeconds: kubelet ends it then; 0: never */
    int64_t grace_s;           /* spec.terminationGracePeriodSeconds; 0: not said */
    bool particular;           /* it keeps other pods away */
    bool
        binds_late; /* it has volumes or devices that kube-scheduler sees to between filter and bind:
                       * claims of either kind, ephemeral volumes */
    int64_t priority;
    struct string_pairs labels;
    struct string_pairs annotations;
    int64_t
        unlisted_annotations; /* bytes of further annotations, keys and values, that a record leaves out */
    struct string_pairs overhead; /* spec.overhead */
    struct string_pairs
        level; /* spec.resources.requests: of the pod as a whole; and in its status: */
    struct string_pairs level_actual, level_allocated;
    bool level_reported;                     /* that status is there, if only with nothing in it */
    bool resize_infeasible;                  /* the node cannot give what the spec asks for now */
    const struct container_view *containers; /* spec.containers in order, then init containers */
    size_t n_containers;
    bool truncated;     /* there are more containers, which were not read; or see `unread` */
    const char *unread; /* why part of the object cannot be read; NULL: it can */
    const struct cJSON *object; /* that it was read from; NULL: it was made by hand */
    /* Which nodes kube-scheduler would leave out, whatever they have (core/constraints.h). NULL: not
     * looked at. It is for those who foresee kube-scheduler (wire/constraints.h); filter is asked
     * only about nodes that are left. */
    const struct constraints *constraints;
};

struct node_view {
    const char *name;
    const char *resource_version;
    bool cordoned; /* spec.unschedulable: kube-scheduler passes it over */
    bool
        as_new; /* a machine of this kind, and not this one: nothing counts that is said of its state, that is
                  * health, cordons, heartbeats, use, switches and reservations */
    const struct taint_view *taints;
    size_t n_taints;
    struct string_pairs labels;
    struct string_pairs annotations;
    struct string_pairs capacity;
    struct string_pairs allocatable;
};

struct configmap_view {
    const char *ns;
    const char *name;
    struct string_pairs data;
};

/* spec.nodeName is set. */
bool pod_view_is_bound(const struct pod_view *pod);

/* The mirror of a static pod, which kubelet runs from a file: to delete the mirror ends no container, and kubelet
 * makes another one. The API server lets no update add the annotation, and kubelet deletes mirrors that it has
 * no file of. Source: kubernetes/kubernetes 1.37.2, pkg/apis/core/validation/validation.go,
 * ValidatePodSpecificAnnotationUpdates; pkg/kubelet/kubelet.go, HandlePodCleanups. */
bool pod_view_is_mirror(const struct pod_view *pod);

/* The pod group that a pod says it is in, by what stands first: spec.schedulingGroup, the label of
 * scheduler-plugins, its older one, Koordinator's annotation. Borrowed from the pod; NULL: in none. What more
 * the pod says of that is in wire/pod_group.h. */
const char *pod_view_group(const struct pod_view *pod);

/* The first annotation by which a pod asks other programs to leave it where it is; NULL: there is none.
 *
 *   descheduler.alpha.kubernetes.io/prefer-no-eviction, .../eviction-in-progress    kubernetes-sigs/descheduler
 *   scheduling.koordinator.sh/refuse-to-migrate, .../eviction-cost: 2147483647      Koordinator
 *   cluster-autoscaler.kubernetes.io/safe-to-evict: "false"                       cluster-autoscaler
 *   karpenter.sh/do-not-disrupt: "true"                                           Karpenter
 */
const char *pod_view_opt_out(const struct pod_view *pod);

/* What may keep a pod from being ended, the most binding first; policy/victims/may_end.h says for which
 * caller each does. */
enum pod_tie {
    POD_TIE_MIRROR = 1 << 0,     /* pod_view_is_mirror */
    POD_TIE_DAEMON_SET = 1 << 1, /* its DaemonSet creates its successor on the same node */
    POD_TIE_OPT_OUT = 1 << 2,    /* pod_view_opt_out */
    POD_TIE_GROUP = 1 << 3,      /* pod_view_group */
    POD_TIE_BARE = 1 << 4,       /* no controller creates a successor */
    POD_TIE_UNIT = 1 << 5,       /* a PodGroup of Kubernetes, which may have to end as a whole */
};
#define POD_TIES_N 6

/* All that it has. */
unsigned pod_view_ties(const struct pod_view *pod);

/* Phase Succeeded or Failed: no container runs any more, the pod holds nothing. */
bool pod_view_is_terminal(const struct pod_view *pod);

/* After how many seconds on a node kubelet has ended it, whatever its author wants by then: the time that
 * it is given to end is his to choose, and counts. 0: nobody knows. An annotation says nothing here: who
 * lies would hold what others were promised. */
int64_t pod_view_lasts(const struct pod_view *pod);

/* A container's amount of an extended resource (limits equal requests there; either may be
 * given), as text, or NULL. */
const char *container_view_amount(const struct container_view *container, const char *resource);

#pragma GCC visibility pop
