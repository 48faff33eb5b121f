/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What happens to a cluster: pods come, run and end, nodes change, tokens are replaced, the clock is
 * set. Without any regard to the program.
 */
#include "../prop/chance.h"

extern const struct chance_action happenings[];

/* Puts the first nodes and the first token. `others_meddle`: another scheduler binds pods, and
 * somebody edits annotations. */
void happen_begin(bool others_meddle, const char *token_path);
