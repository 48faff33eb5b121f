/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kubernetes quantities as exact integers.
 *
 * Source of the format: the serialization rules of k8s.io/apimachinery/pkg/api/resource: an
 * optional sign, decimal digits with an optional fraction, then one of n u m "" k M G T P E,
 * Ki Mi Gi Ti Pi Ei, or a decimal exponent (e3, E-2). The API server re-emits quantities in
 * canonical form ("8000" becomes "8k"), so every form must be read.
 *
 * Pure functions; any thread.
 */
#include <gpuledger/names.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* Reads a whole, non-negative number of units, as extended resources must be. "1500m" is not
 * whole, "-1" is negative, "1e30" does not fit: each is an error that quotes the text. */
bool quantity_parse(const char *text, int64_t *ret_units, GError **error);

/* Reads thousandths ("250m" is 250, "2" is 2000), rounding a finer fraction up, as for CPU. */
bool quantity_parse_thousandths(const char *text, int64_t *ret_thousandths, GError **error);

#pragma GCC visibility pop
