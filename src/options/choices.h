/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What options of the kind OPTION_CHOICE accept, for their rows in the table. Constant: any thread.
 */
#include "options/options.h"

bool choices_ranked(size_t i, struct choice *ret_choice);
bool choices_output(size_t i, struct choice *ret_choice);
bool choices_peer(size_t i, struct choice *ret_choice);
bool choices_color(size_t i, struct choice *ret_choice);
