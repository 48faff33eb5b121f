/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What commands that show an answer have in common. */
#include "options/command.h"

/* Whether the answer is wanted as a document rather than as columns. */
bool print_is_document(const struct config *config);

/* Whether tables on standard output have colours. */
bool print_has_colours(const struct config *config);

/* Prints a JSON text as the options want it; columns are printed as they are. Complains and fails if
 * it is not JSON after all, or about the error that came instead. */
enum exit_code print_answer(const struct config *config, const GString *body,
                            const GError *failure);
