/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What HAMi, its ancestor 4paradigm and Volcano's vGPU have in common: containers ask for a number
 * of cards and for the same part of each; the plugin registers its cards by UUID on the node, and
 * hands each container what an annotation of its pod promises. The three differ in keys and in how
 * texts are put together, which is what a row of struct vgpu says.
 */
#include "core/bytes.h"
#include "dialect/rows.h"

#define VGPU_KEYS_MAX 2
/* Source: Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/device.go, pkg/util/types.go */
#define VGPU_MODE_MIG "mig"
#define VGPU_MODE_HOOK "hami-core"
#define VGPU_PHASE_ALLOCATING "allocating"
#define VGPU_PHASE_SUCCESS "success"
#define VGPU_PHASE_FAILED "failed"

struct vgpu {
    const struct dialect *dialect;
    /* Resources of a container: cards, and of each of them MiB, percent of its memory and percent
     * of its compute. */
    const char *count, *memory, *percentage, *cores;

    /* Annotations of the Node. */
    const char *registered;
    const char *cordoned; /* UUIDs that take no new pods, or NULL */
    const char *links;    /* how well cards are connected, or NULL */
    bool mig;             /* cards in MIG mode can be served (hami_mig.h) */
    const char *mig_group; /* MIG templates are called so, with a number behind; NULL: by number */
    bool short_register;  /* UUID,count,MiB,model,health,mode: instead of the longer forms */

    /* Annotations of the pod that a bind writes. */
    const char *node, *time, *phase, *bind_time;
    const char *allocated[VGPU_KEYS_MAX]; /* what it holds */
    const char *promised[VGPU_KEYS_MAX];  /* what its containers have not been given yet */
    const char *instances; /* what MIG instances it holds, or NULL */
    bool ends_each;  /* ';' after every container, else between two */
    bool init_first; /* init containers have a place in the text; else they cannot be served */
    bool several;    /* several GPU containers can be served */
    bool needs_phase;     /* where dialect.any_phase is: only pods that are being allocated */
    bool claims_unmarked; /* pods of these resources without any of these annotations count */
    bool factor;          /* dialect_options.hami_memory_factor holds */
    bool own_count;  /* `count` is nobody else's resource */
    bool hook_by_name; /* HOOK_NAMED switches the limits off as HOOK_OFF does */

    /* Annotations of the pod that its author writes; NULL: not known to this one. */
    const char *models, *models_not, *uuids, *uuids_not, *mode, *same_numa, *policy,
        *node_policy, *weights;
};

/* hami_registry.c */
bool vgpu_read_topology(const struct vgpu *vgpu, const struct node_view *view,
                        const struct dialect_options *options, struct topology *ret_topology,
                        char **ret_warning, GError **error);

/* As the plugin registers such cards. */
bool vgpu_write_profile(const struct vgpu *vgpu, const struct card_profile *profile,
                        const struct dialect_options *options, struct profile_words *words);

/* hami_handshake.c: as struct dialect has it. */
bool hami_read_heartbeat(const struct vgpu *vgpu, const struct node_view *view, int64_t *ret_ns,
                         char **ret_warning);

/* hami_links.c: NULL: nothing is said. */
struct links *vgpu_read_links(const struct vgpu *vgpu, const struct node_view *view,
                              const struct topology *topology, char **ret_warning);

/* hami_request.c. MiB in one of what nodes and pods say of memory: Volcano's gpuMemoryFactor, by
 * which its plugin divides what it registers, and multiplies what it is told
 * (Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/plugin/register.go, pkg/plugin/server.go;
 * volcano-sh/volcano@v1.15.1:pkg/scheduler/api/devices/nvidia/vgpu/mig.go). */
int64_t vgpu_told_mib(const struct vgpu *vgpu, const struct dialect_options *options);

/* The asks alone are what a pod that is bound was made with: its annotations may have
 * been edited since. */
struct request *vgpu_read_asks(const struct vgpu *vgpu, const struct pod_view *view,
                               const struct dialect_options *options, GError **error);
/* The same for as much as can be read, and at most as much as there may be; never an error. NULL: it
 * asks for nothing, or `ret_many` is set: more containers than REQUEST_ASKS_MAX ask. */
struct request *vgpu_take_asks(const struct vgpu *vgpu, const struct pod_view *view,
                               const struct dialect_options *options, bool *ret_many);
struct request *vgpu_read_request(const struct vgpu *vgpu, const struct pod_view *view,
                                  const struct dialect_options *options, GError **error);

/* hami_allocation.c */
struct allocation *vgpu_read_allocation(const struct vgpu *vgpu, const struct pod_view *view,
                                        const struct dialect_options *options,
                                        char **ret_warning);
void vgpu_write_annotations(const struct vgpu *vgpu, const struct allocation *allocation,
                            const struct node *node, struct annotations *annotations);
/* These as struct dialect has them, of a plugin that picks pods in any phase. */
bool vgpu_read_promise(const struct vgpu *vgpu, const struct pod_view *view,
                       struct device_promise *ret_promise);
void vgpu_write_revoked(const struct vgpu *vgpu, struct annotations *annotations);
void vgpu_write_assigned(const struct vgpu *vgpu, const struct allocation *allocation,
                         struct annotations *annotations);
