/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A command that is ended by SIGINT or SIGTERM keeps nothing any more (maintain/keeping.h). */
#include "maintain/keeping.h"

struct ending;

/* First of all, so that no other thread takes the signals: until there is an ending, they wait. */
void ending_block_signals(void);
/* From here on the signals end the program after that. Borrows. */
struct ending *ending_new(struct keeping *keeping);
void ending_free(struct ending *ending);
typedef struct ending ending; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ending, ending_free)
