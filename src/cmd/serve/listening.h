/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The listeners of serve, kube-scheduler's and that of operations, with their certificates and token. One thread. */
#include "http/routes.h"
#include "options/command.h"

struct listening {
    struct operations asked; /* what the second one's routes are given */
    struct routes scheduler_table, operations_table;
    struct outgoing *outgoing;
    struct server *scheduler, *operations; /* NULL: not open */
    struct tls *tls, *operations_tls;      /* NULL: none */
    struct bearer *bearer;                 /* NULL: none */
};

/* Reads certificates and the token, then opens both. What is borrowed outlives the listeners. After a failure, too,
 * listening_close is due. */
bool listening_open(struct listening *listening, const struct config *config,
                    struct extender *extender, const struct operations *operations, GError **error);
/* Reads certificates and the token anew. */
void listening_refresh(struct listening *listening);
void listening_close(struct listening *listening);
