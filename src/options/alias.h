/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Variables of the gpushare extender that say the same as an option, in another language. Pure
 * functions, `read_alias` of their rows: any thread.
 */
#include "options/options.h"

/* PORT: a number. */
bool alias_read_port(const struct option *option, const char *text, void *value, GError **error);
