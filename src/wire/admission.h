/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A mutating admission webhook about MIG instances: containers that ask for memory of an instance
 * rather than for a profile by its name. Source: admission.k8s.io/v1 (AdmissionReview), RFC 6902.
 *
 * Of the pod only what the containers ask for is read; it may have no name and no UID yet. Views
 * borrow from the arena.
 */
#include "json/json.h"

#include <gpuledger/object.h>

/* What containers write; amounts of memory such as "15Gi", and whole compute slices at least. */
#define ADMISSION_MIG_MEMORY "gpuledger.io/mig-memory"
#define ADMISSION_MIG_SLICES "gpuledger.io/mig-slices"

struct admission_container {
    struct container_view view;
    size_t index;         /* among spec.containers, or spec.initContainers */
    const char *resource; /* the caller's choice: what the pod is to ask for instead; NULL: as it is */
};

struct admission_review {
    const char *uid; /* of the review */
    struct admission_container *containers;
    size_t n_containers;
};

/* An error: it is no review that could be answered. */
bool admission_review_parse(struct json_arena *arena, const char *text, size_t length,
                            struct admission_review *ret_review, GError **error);

/* Lets the pod be created, with the containers' choices. */
void admission_answer_encode(struct json_writer *writer, const struct admission_review *review);
/* Does not. */
void admission_refusal_encode(struct json_writer *writer, const struct admission_review *review,
                              const char *message);
