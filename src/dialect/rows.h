/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a file adds a dialect to the table. The build finds the line; nobody else lists it.
 *
 * Of two rows that read the same pods or nodes, the one with the smaller position is asked first:
 *   60, 70  KAI and Koordinator come before those that claim nvidia.com/gpu without a mark;
 *   80      NVIDIA comes before HAMi, to which it leaves all pods with a word of HAMi's;
 *   85      4paradigm, too: HAMi claims pods of these resources without a mark.
 * Elsewhere the position only orders documents. Rows with the same one go by name.
 */
#include <gpuledger/dialect.h>

#define DIALECT_ROW(name, position) extern const struct dialect dialect_##name

#define DIALECTS_MAX 64

/* How many rows dialects[] has. */
extern const size_t dialects_n;
