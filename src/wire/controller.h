/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who makes a pod again when it has ended: of metadata.ownerReferences the one with "controller": true.
 * Source: meta/v1 OwnerReference.
 */
#include "json/json.h"

#define CONTROLLER_UID_MAX 128 /* bytes; who has a longer one has none */

/* Borrowed from the arena. */
struct controller {
    const char *uid;
    const char *kind; /* "ReplicaSet"; "controller" for what can be no kind */
};

/* False: the object has none that can be read. */
bool controller_decode(struct json_arena *arena, const cJSON *object,
                       struct controller *ret_controller);
/* The same of metadata.ownerReferences alone. */
bool controller_find(struct json_arena *arena, const cJSON *owners,
                     struct controller *ret_controller);
