/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who may end whom, for whom, and on whose word: docs/security.md, "Whose pods may end". Held at each eviction that
 * the program sends, and at each pod that preempt names.
 */
#include "../killed/api.h"

void rules_reset(void);
/* As struct net_watcher has them. */
void rules_sent(const struct server_request *request);
void rules_heard(const struct server_request *request, long status, const char *body);
/* As api.changed. */
void rules_changed(const struct server_request *request, const char *path);
/* These of a node, by their UIDs, are to end for the pod. */
void rules_preempts(cJSON *pod, const char *node, const cJSON *victims);
