/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/share.h"

#include <gpuledger/dialect.h>

void share_encode(struct json_writer *writer, const struct share *share)
{
    json_begin_object(writer);
    json_key_int(writer, "memory", share->memory.value);
    json_key_bool(writer, "units", share->memory.kind == AMOUNT_NODE_UNITS);
    if (share->memory.kind == AMOUNT_THOUSANDTHS)
        json_key_bool(writer, "thousandths", true);
    if (share->memory.at_least > 0)
        json_key_int(writer, "least", share->memory.at_least);
    json_key_int(writer, "card", share->card);
    json_key_int(writer, "core", share->core);
    json_key_int(writer, "container", share->container);
    json_key_bool(writer, "exclusive", share->exclusive);
    if (share->init)
        json_key_bool(writer, "init", true);
    if (share->sidecar)
        json_key_bool(writer, "sidecar", true);
    if (share->basis != SHARE_HELD)
        json_key_int(writer, "basis", share->basis);
    if (share->key) {
        g_autofree char *key = g_strdup_printf("%016" G_GINT64_MODIFIER "x", share->key);
        json_key_string(writer, "gpu", key);
    }
    if (share->dialect)
        json_key_string(writer, "dialect", share->dialect->name);
    if (share->place.size > 0) {
        json_key_int(writer, "layout", share->place.layout);
        json_key_int(writer, "start", share->place.start);
        json_key_int(writer, "size", share->place.size);
    }
    if (share->device) {
        json_key_string(writer, "device", share->device);
        json_key_int(writer, "devices", share->devices);
        json_key_int(writer, "replicas", share->replicas);
        if (share->sharing != SHARING_UNKNOWN)
            json_key_int(writer, "sharing", share->sharing);
    }
    json_end_object(writer);
}

struct said_share {
    int64_t memory, least, card, core, container, devices, replicas, layout, start, size, basis,
        sharing;
    bool units, thousandths, exclusive, init, sidecar;
    const char *device, *gpu, *dialect;
};

static const struct json_field share_fields[] = {
    JSON_FIELD_INT64(struct said_share, memory, "memory", JSON_REQUIRED),
    JSON_FIELD_INT64(struct said_share, least, "least", 0),
    JSON_FIELD_BOOL(struct said_share, units, "units", 0),
    JSON_FIELD_BOOL(struct said_share, thousandths, "thousandths", 0),
    JSON_FIELD_INT64(struct said_share, card, "card", JSON_REQUIRED),
    JSON_FIELD_INT64(struct said_share, core, "core", 0),
    JSON_FIELD_INT64(struct said_share, container, "container", 0),
    JSON_FIELD_BOOL(struct said_share, exclusive, "exclusive", 0),
    JSON_FIELD_BOOL(struct said_share, init, "init", 0),
    JSON_FIELD_BOOL(struct said_share, sidecar, "sidecar", 0),
    JSON_FIELD_STRING(struct said_share, device, "device", 0),
    JSON_FIELD_INT64(struct said_share, devices, "devices", 0),
    JSON_FIELD_INT64(struct said_share, replicas, "replicas", 0),
    JSON_FIELD_INT64(struct said_share, sharing, "sharing", 0),
    JSON_FIELD_INT64(struct said_share, layout, "layout", 0),
    JSON_FIELD_INT64(struct said_share, start, "start", 0),
    JSON_FIELD_INT64(struct said_share, size, "size", 0),
    JSON_FIELD_INT64(struct said_share, basis, "basis", 0),
    JSON_FIELD_STRING(struct said_share, gpu, "gpu", 0),
    JSON_FIELD_STRING(struct said_share, dialect, "dialect", 0),
    JSON_FIELD_END,
};

/* These two are of pods that the ledger has confirmed; a booking knows a card by its number, and is in
 * one dialect. */
static bool decode_confirmed(const struct said_share *said, struct share *share)
{
    guint64 key = 0;

    share->dialect = said->dialect ? dialect_find(said->dialect) : NULL;
    if ((said->dialect && !share->dialect) ||
        (said->gpu && !g_ascii_string_to_unsigned(said->gpu, 16, 1, G_MAXUINT64, &key, NULL)))
        return false;
    share->key = key;
    return true;
}

bool share_decode(struct json_arena *arena, const cJSON *object, struct share *ret_share)
{
    struct said_share share = {.container = CONTAINER_POD};

    if (!json_decode(arena, object, share_fields, &share, NULL) || share.memory < 0 ||
        share.least < 0 || share.card < CARD_UNKNOWN || share.card > INT32_MAX || share.core < 0 ||
        share.core > INT32_MAX || share.container < CONTAINER_POD || share.container > INT32_MAX ||
        share.devices < 0 || share.devices > INT32_MAX || share.replicas < 0 ||
        share.replicas > INT32_MAX || share.basis < SHARE_HELD || share.basis > SHARE_BY_NUMBER ||
        share.sharing < SHARING_UNKNOWN || share.sharing >= SHARING_N ||
        ((share.layout | share.start | share.size) & ~INT64_C(255)) != 0)
        return false;
    *ret_share = (struct share){
        .memory = {share.memory,
                   share.thousandths ? AMOUNT_THOUSANDTHS
                   : share.units     ? AMOUNT_NODE_UNITS
                                     : AMOUNT_BYTES,
                   share.least},
        .container = (int32_t)share.container,
        .card = (int32_t)share.card,
        .core = (int32_t)share.core,
        .exclusive = share.exclusive,
        .init = share.init,
        .sidecar = share.sidecar,
        .place = {(uint8_t)share.layout, (uint8_t)share.start, (uint8_t)share.size},
        .devices = (int32_t)share.devices,
        .replicas = (int32_t)share.replicas,
        .sharing = (enum sharing)share.sharing,
        .device = share.device,
        .basis = (enum share_basis)share.basis,
    };
    return decode_confirmed(&share, ret_share);
}
