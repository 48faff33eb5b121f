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

/* What a bound pod of a dialect that is only counted holds: these shares (GArray of struct share);
 * it has its cards once kubelet has started it. */
struct allocation *dialect_hold(const struct dialect *dialect, const struct pod_view *view,
                                const GArray *shares);

/* What a bound pod holds that holds more shares of cards than REQUEST_ASKS_MAX: one, of any card, that
 * tolerates no other. */
struct allocation *dialect_hold_all(const struct dialect *dialect, const struct pod_view *view,
                                    char **ret_warning);
