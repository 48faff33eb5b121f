/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What to do, in order, to take a scheduler's place, and to give it back. For migration.c. */
#include "migrate/migration.h"

/* Arrays of struct migration_step *. */
GPtrArray *migration_steps(const struct census *census);
GPtrArray *migration_back(const struct census *census);
