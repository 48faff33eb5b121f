/* SPDX-License-Identifier: Apache-2.0 */
/* PodGroups of scheduler-plugins, and those of Kubernetes. */
#include "store/kinds/kind.h"
#include "store/store_state.h"
#include "wire/pod_group.h"

KIND_ROW(pod_groups, 6);
KIND_ROW(native_pod_groups, 7);

static bool wanted(const struct store_options *options)
{
    return options->gangs;
}

static bool decode(struct json_arena *arena, const cJSON *object, void *ret_view, GError **error)
{
    return pod_group_view_decode(arena, object, false, ret_view, error);
}

static bool decode_native(struct json_arena *arena, const cJSON *object, void *ret_view,
                          GError **error)
{
    return pod_group_view_decode(arena, object, true, ret_view, error);
}

static void encode(struct json_writer *writer, const void *view)
{
    pod_group_view_encode(writer, view);
}

/* Of one that is gone there is only its name. */
static void encode_native(struct json_writer *writer, const void *view)
{
    struct pod_group_view group = *(const struct pod_group_view *)view;

    group.native = true;
    pod_group_view_encode(writer, &group);
}

static void note_change(struct store *store)
{
    store_tell_gangs(store);
    store_hope_groups(store);
}

static void apply(const struct kind_call *call, const void *view)
{
    const struct pod_group_view *group = view;

    if (!gangs_declare(call->store->gangs, group, call->generation)) {
        struct object_fault *fault =
            object_fault(call->faults, "the namespace has too many groups of pods; its pods wait",
                         g_strdup_printf("%s/%s", group->ns, group->name));
        fault->fields[0] = LOG_TEXT("group", fault->text);
        fault->counted = fault->limited = true;
    }
    note_change(call->store);
}

static void undeclare(struct store *store, const struct object_name *name, bool native)
{
    gangs_undeclare(store->gangs, name->ns, name->name, native);
    note_change(store);
}

static void forget(const struct kind_call *call, const struct object_name *name)
{
    undeclare(call->store, name, false);
}

static void forget_native(const struct kind_call *call, const struct object_name *name)
{
    undeclare(call->store, name, true);
}

static void sweep(const struct kind_call *call)
{
    gangs_sweep(call->store->gangs, false, call->generation);
    note_change(call->store);
}

static void sweep_native(const struct kind_call *call)
{
    gangs_sweep(call->store->gangs, true, call->generation);
    note_change(call->store);
}

const struct kind kind_pod_groups = {
    KIND_NAME("podgroup"),
    .feed = "podgroups",
    .resource = "podgroups",
    .kind = "PodGroup",
    .api = "/apis/scheduling.x-k8s.io/v1alpha1",
    .optional = true,
    .wanted = wanted,
    .size = sizeof(struct pod_group_view),
    .decode = decode,
    .encode = encode,
    .apply = apply,
    .remove = forget,
    .sweep = sweep,
};

const struct kind kind_native_pod_groups = {
    KIND_NAME("native-podgroup"),
    .feed = "podgroups.scheduling.k8s.io",
    .resource = "podgroups",
    .kind = "PodGroup",
    .api = "/apis/scheduling.k8s.io/v1beta1",
    .older_api = "/apis/scheduling.k8s.io/v1alpha2",
    .optional = true,
    .wanted = wanted,
    .size = sizeof(struct pod_group_view),
    .decode = decode_native,
    .encode = encode_native,
    .apply = apply,
    .remove = forget_native,
    .sweep = sweep_native,
};
