/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nodes of every dialect and mixture, as their plugins present them.
 */
#include "holders.h"

/* Any nodes, of any dialects and mixtures. */
void sites_draw(void);

/* A node of that kind: "gpushare", "hami" … or a mixture, "gpushare+volcano". */
void sites_put(int node, const char *kind, int cards, int64_t card_mib);
