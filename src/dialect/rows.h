/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rows of the table in dialect.c, one per file. */
#include <gpuledger/dialect.h>

extern const struct dialect dialect_gpushare;
extern const struct dialect dialect_volcano;
extern const struct dialect dialect_tencent;
extern const struct dialect dialect_elastic, dialect_elastic_com, dialect_nano_io, dialect_nano;
extern const struct dialect dialect_hami;
extern const struct dialect dialect_4paradigm;
extern const struct dialect dialect_volcano_vgpu;
extern const struct dialect dialect_intel, dialect_kai, dialect_koordinator, dialect_qgpu;
extern const struct dialect dialect_nvidia;
