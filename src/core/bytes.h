/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Units of memory. */
#include <stdint.h>

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
