/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cluster each of whose calls ends after a while. The verbs give a call all the time that they
 * have themselves; a connection that hangs would use it up, where a second attempt on another one
 * succeeds at once.
 */
#include "store/cluster.h"

/* Borrows `inner`; free with g_free. Any thread. */
struct cluster *limited_cluster_new(struct cluster *inner, int64_t timeout_ms);
