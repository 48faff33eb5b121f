/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the process uses: CPU time, memory, files. The names are those that Prometheus client libraries agree on.
 */
#include <glib.h>

/* For Prometheus. A value that cannot be read is left out. */
void process_metrics_write(GString *text);
