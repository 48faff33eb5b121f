/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reasons beside those of the library (gpuledger/reason.h): of rules that the program has, numbered from REASON_N on. */
#include <gpuledger/reason.h>

#define REASONS_MAX 128 /* of both; arrays by reason have this size */

/* From now on reason_info has these, too. Once, before the first of them is given to anybody; borrowed for good. */
void reasons_extend(const struct reason_info *rows, unsigned n);
/* How many there are: those below are known. Any thread. */
unsigned reasons_count(void);
