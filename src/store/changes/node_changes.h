/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nodes that are being changed to another configuration of their GPU plugin (WITHHELD_CHANGE), and since
 * when. What describes the cards of a node may be a minute older than what its plugin reports
 * (NVIDIA/k8s-device-plugin@v0.20.0:cmd/gpu-feature-discovery/main.go), no more. What contradicts itself
 * for longer is no change: then the node gives what it reports.
 *
 * Times are the caller's monotonic clock. Threads: the store's lock.
 */
#include <gpuledger/ledger.h>

#define CHANGE_MS 60000

struct changes;

struct changes *changes_new(void);
void changes_free(struct changes *changes);

/* The ledger has just been told the node's topology. Gives since when the node has been changed to what
 * it is being changed to, which is now if that is news; 0: it is not. */
int64_t changes_see(struct changes *changes, struct ledger *ledger, const char *node,
                    int64_t now_ms);
void changes_forget(struct changes *changes, const char *node);

/* Ends those that have lasted CHANGE_MS. Gives whether a node gives its devices again. */
bool changes_end(struct changes *changes, struct ledger *ledger, int64_t now_ms);
