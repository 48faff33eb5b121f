/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Two made-up gates that object to nothing and count which askers ask them: one asked by all, one that all leave out. */
#include "gate/gate.h"

extern unsigned counted_asked[GATE_ASKERS_N], counted_left_out[GATE_ASKERS_N];
