/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/preemption.h"

#include "core/fail.h"
#include "wire/kubernetes.h"

/* --- victims -------------------------------------------------------------------------------- */

struct victims_object {
    const cJSON *pods;
    int64_t violations;
};

static const struct json_field victims_fields[] = {
    JSON_FIELD_ARRAY(struct victims_object, pods, "Pods", JSON_IGNORE_CASE),
    JSON_FIELD_INT64(struct victims_object, violations, "NumPDBViolations", JSON_IGNORE_CASE),
    JSON_FIELD_END,
};

/* A MetaPod, or a whole pod. */
struct victim_object {
    const char *meta_uid, *uid;
};

static const struct json_field victim_fields[] = {
    JSON_FIELD_STRING(struct victim_object, meta_uid, "UID", JSON_IGNORE_CASE),
    JSON_FIELD_STRING(struct victim_object, uid, "metadata.uid", 0),
    JSON_FIELD_END,
};

static bool decode_uids(struct json_arena *arena, const cJSON *pods, struct preemption_node *node,
                        GError **error)
{
    const cJSON *pod;
    unsigned position = 0;

    cJSON_ArrayForEach (pod, pods) {
        struct victim_object victim = {0};
        if (!cJSON_IsNull(pod)) {
            if (!json_decode(arena, pod, victim_fields, &victim, error))
                return false;
            const char *uid = victim.meta_uid ? victim.meta_uid : victim.uid;
            if (!uid || !*uid)
                return fail_with(error, GPULEDGER_ERROR_INVALID,
                                 "field 'Pods': item %u: the UID is missing", position);
            node->uids[node->n_uids++] = uid;
        }
        position++;
    }
    return true;
}

static bool decode_node(struct json_arena *arena, const cJSON *object, size_t *victims,
                        struct preemption_node *node, GError **error)
{
    struct victims_object fields = {0};

    node->name = object->string;
    if (!cJSON_IsNull(object) && !json_decode(arena, object, victims_fields, &fields, error))
        return false;
    const size_t n = (size_t)cJSON_GetArraySize(fields.pods);
    *victims += n;
    if (*victims > PREEMPTION_VICTIMS_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "more than %d victims, which is all that is accepted in one call",
                         PREEMPTION_VICTIMS_MAX);
    node->uids = json_arena_alloc(arena, (n + 1) * sizeof *node->uids);
    node->violations = CLAMP(fields.violations, 0, (int64_t)n);
    return decode_uids(arena, fields.pods, node, error);
}

static bool decode_nodes(struct json_arena *arena, const cJSON *map, const char *path,
                         struct preemption_args *args, GError **error)
{
    const size_t n = (size_t)cJSON_GetArraySize(map);
    const cJSON *object;
    size_t victims = 0;

    if (n > PREEMPTION_NODES_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "field '%s': %zu nodes, at most %d are accepted in one call", path, n,
                         PREEMPTION_NODES_MAX);
    args->nodes = json_arena_alloc(arena, (n + 1) * sizeof *args->nodes);
    cJSON_ArrayForEach (object, map) {
        if (!decode_node(arena, object, &victims, &args->nodes[args->n_nodes++], error))
            return fail_within(error, "field '%s': node '%s': ", path, object->string);
    }
    return true;
}

/* --- the pod -------------------------------------------------------------------------------- */

/* What kube-scheduler's filters look at besides sums, and the end of another pod may change. */
struct particulars {
    bool keeps_away, claims;
    const cJSON *spread, *volumes, *containers, *init_containers;
};

static const struct json_field particulars_fields[] = {
    JSON_FIELD_PRESENT(struct particulars, keeps_away, "spec.affinity.podAntiAffinity", 0),
    JSON_FIELD_PRESENT(struct particulars, claims, "spec.resourceClaims", 0),
    JSON_FIELD_ARRAY(struct particulars, spread, "spec.topologySpreadConstraints", 0),
    JSON_FIELD_ARRAY(struct particulars, volumes, "spec.volumes", 0),
    JSON_FIELD_ARRAY(struct particulars, containers, "spec.containers", 0),
    JSON_FIELD_ARRAY(struct particulars, init_containers, "spec.initContainers", 0),
    JSON_FIELD_END,
};

/* Volumes that everybody may have on any node, however many there are. */
struct volume {
    bool kinds[5];
};

#define VOLUME(i, path) JSON_FIELD_PRESENT(struct volume, kinds[i], path, 0)
static const struct json_field volume_fields[] = {
    VOLUME(0, "emptyDir"), VOLUME(1, "configMap"), VOLUME(2, "secret"),
    VOLUME(3, "hostPath"), VOLUME(4, "projected"), JSON_FIELD_END,
};

static bool has_attached_volume(struct json_arena *arena, const cJSON *volumes)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, volumes) {
        struct volume volume = {0};
        bool harmless = false;
        if (!json_decode(arena, item, volume_fields, &volume, NULL))
            return true;
        for (size_t i = 0; i < G_N_ELEMENTS(volume.kinds); i++)
            harmless |= volume.kinds[i];
        if (!harmless)
            return true;
    }
    return false;
}

struct container_ports {
    const cJSON *ports;
};

static const struct json_field ports_fields[] = {
    JSON_FIELD_ARRAY(struct container_ports, ports, "ports", 0),
    JSON_FIELD_END,
};

struct port {
    int64_t host_port;
};

static const struct json_field port_fields[] = {
    JSON_FIELD_INT64(struct port, host_port, "hostPort", 0),
    JSON_FIELD_END,
};

static bool has_host_port(struct json_arena *arena, const cJSON *containers)
{
    const cJSON *item, *one;

    cJSON_ArrayForEach (item, containers) {
        struct container_ports container = {0};
        if (!json_decode(arena, item, ports_fields, &container, NULL))
            return true;
        cJSON_ArrayForEach (one, container.ports) {
            struct port port = {0};
            if (!json_decode(arena, one, port_fields, &port, NULL) || port.host_port != 0)
                return true;
        }
    }
    return false;
}

static bool is_particular(struct json_arena *arena, const cJSON *pod)
{
    struct particulars found = {0};

    return !json_decode(arena, pod, particulars_fields, &found, NULL) || found.keeps_away ||
           found.claims || cJSON_GetArraySize(found.spread) > 0 ||
           has_attached_volume(arena, found.volumes) || has_host_port(arena, found.containers) ||
           has_host_port(arena, found.init_containers);
}

/* --- both ----------------------------------------------------------------------------------- */

struct preemption_body {
    const cJSON *pod, *victims, *meta_victims;
};

#define BODY(member, path, flags)                                                                  \
    JSON_FIELD_OBJECT(struct preemption_body, member, path, (flags) | JSON_IGNORE_CASE)
static const struct json_field body_fields[] = {
    BODY(pod, "Pod", JSON_REQUIRED),
    BODY(victims, "NodeNameToVictims", 0),
    BODY(meta_victims, "NodeNameToMetaVictims", 0),
    JSON_FIELD_END,
};

bool preemption_args_decode(struct json_arena *arena, const cJSON *body,
                            struct preemption_args *ret_args, GError **error)
{
    struct preemption_body fields = {0};
    struct preemption_args args = {0};

    if (!json_decode(arena, body, body_fields, &fields, error))
        return false;
    if (fields.victims && fields.meta_victims)
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "expected one of 'NodeNameToVictims' and 'NodeNameToMetaVictims', got both");
    if (!pod_view_decode(arena, fields.pod, &args.pod, error))
        return fail_within(error, "field 'Pod': ");
    args.particular = args.pod.particular || is_particular(arena, fields.pod);
    if (!(fields.victims ? decode_nodes(arena, fields.victims, "NodeNameToVictims", &args, error)
                         : decode_nodes(arena, fields.meta_victims, "NodeNameToMetaVictims", &args,
                                        error)))
        return false;
    *ret_args = args;
    return true;
}

static void write_nodes(struct json_writer *writer, const struct preemption_node *nodes, size_t n)
{
    json_key_object(writer, "NodeNameToMetaVictims");
    for (size_t i = 0; i < n; i++) {
        json_key_object(writer, nodes[i].name);
        json_key_array(writer, "Pods");
        for (size_t j = 0; j < nodes[i].n_uids; j++) {
            json_begin_object(writer);
            json_key_string(writer, "UID", nodes[i].uids[j]);
            json_end_object(writer);
        }
        json_end_array(writer);
        json_key_int(writer, "NumPDBViolations", nodes[i].violations);
        json_end_object(writer);
    }
    json_end_object(writer);
}

void preemption_args_encode(struct json_writer *writer, const struct preemption_args *args)
{
    struct pod_view pod = args->pod;

    pod.particular = args->particular;
    json_begin_object(writer);
    json_key(writer, "Pod");
    pod_view_encode(writer, &pod);
    write_nodes(writer, args->nodes, args->n_nodes);
    json_end_object(writer);
}

void preemption_result_encode(struct json_writer *writer, const struct preemption_node *nodes,
                              size_t n)
{
    json_begin_object(writer);
    write_nodes(writer, nodes, n);
    json_end_object(writer);
}
