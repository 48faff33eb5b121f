/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * POST …/filter-dryrun: filter's answer without any effect, for an autoscaler, of nodes too that come
 * whole and that the cluster has not: empty ones of their kind, with the cards that they name
 * themselves or that --card-profiles names for them. Of several pods ("Pods") the answer is where each
 * goes if all come, one after the other as they stand there. Pods need no UID. Any thread.
 */
#include "store/store.h"

void dry_run_answer(struct store *store, const char *body, size_t length, GString *reply);
