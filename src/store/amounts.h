/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Amounts, requests and shares for people. Under the lock of the store that the node is of; texts are
 * the caller's (g_free).
 */
#include <gpuledger/dialect.h>

/* "8GiB", "6.5GiB", "512MiB". */
char *bytes_text(int64_t bytes);

/* What the request asks for, as a node reads it; NULL: as far as it can be said of no node. */
char *request_text(const struct node *node, const struct request *request);

/* Where a placement or an allocation is: "card 1 (8GiB)". */
char *shares_text(const struct node *node, const struct share *shares, uint32_t n);
