/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Parts of the Prometheus text format, appended to a text.
 *
 * Source: prometheus.io, "Exposition formats", version 0.0.4.
 */
#include <glib.h>
#include <stdint.h>

/* The lines HELP and TYPE of a metric. */
void metrics_append_head(GString *text, const char *name, const char *type, const char *help);

/* Appends `value` as it must stand between the quotes of a label. */
void metrics_append_label(GString *text, const char *value);

/* Microseconds as seconds, with a decimal point in every locale. */
void metrics_append_seconds(GString *text, uint64_t us);
