/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rows of the table in dialect.c, one per file. */
#include <gpuledger/dialect.h>

extern const struct dialect dialect_gpushare;
extern const struct dialect dialect_volcano;
extern const struct dialect dialect_tencent;
