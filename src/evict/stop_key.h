/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The key that stops all evictions of this process: of the ConfigMap gpuledger-evictions in gpuledger's namespace,
 * the key `stop` with the value "true". A thread reads it every second, and tells the permits. Evictions go on
 * where there is no such ConfigMap or key, or it says "false"; whatever else it says, and what cannot be read, stops
 * them. So does what was read too long ago, however long an answer takes: together with an eviction that is sent right
 * before, that is less than 5 s.
 */
#include "evict/permits.h"
#include "kube/api_client.h"

#define STOP_KEY_CONFIGMAP "gpuledger-evictions"
#define STOP_KEY "stop"
#define STOP_KEY_STALE_MS 3500 /* of permits that it stops */

struct stop_key;

/* Borrows the client, which no other thread uses, and the permits. NULL, with an error: no thread can be had. */
struct stop_key *stop_key_start(struct api_client *client, const char *ns, struct permits *permits,
                                GError **error);
void stop_key_free(struct stop_key *key); /* NULL is ignored */
