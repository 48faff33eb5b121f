/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Command lines that no cluster could make sense of, beyond what single options know. */
#include "options/command.h"

/* Whether it is one; it has been complained about. */
bool misuse_found(const struct command *command, const struct config *config);
