/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The word by which a command names a pod: NAMESPACE/NAME, or NAME with --namespace. */
#include "options/config.h"

/* Makes the last word NAMESPACE/NAME, if --namespace says which; before anything reads it. */
bool pod_word_complete(const struct config *config, GError **error);
