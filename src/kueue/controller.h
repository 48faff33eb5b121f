/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The admission check of Kueue: answers Workloads by what the cards of the cluster can hold (--kueue).
 *
 * One thread decides and writes; two reflectors, of AdmissionChecks and of Workloads, tell it what to look
 * at. What it decides by is read from the API server again first, and the answer names the version that it
 * is for. Whoever may not serve (verbs/leadership.h) only watches. Nothing of it is on disk: what was let in
 * shortly before a start is read from the Workloads' own checks.
 */
#include "kube/api_client.h"
#include "kube/reflector.h"
#include "store/store.h"
#include "verbs/leadership.h"

struct kueue;

/* Zero means the default. */
struct kueue_options {
    int64_t round_ms; /* from one round of answers to the next, at least: 500 */
    const struct reflector_options *reflector;
};

/* Borrows all; leadership NULL: the only replica. NULL, with an error, if no thread can be had. */
struct kueue *kueue_start(struct api_client *client, struct store *store,
                          struct leadership *leadership, const struct kueue_options *options,
                          GError **error);

/* Waits for the call under way. NULL is fine. */
void kueue_free(struct kueue *kueue);
