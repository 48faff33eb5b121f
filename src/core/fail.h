/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An error of ours and the answer to the caller in one line: return fail_with(error, …). Macros, so that
 * the compiler sees what is returned. Any thread.
 */
#include <gpuledger/error.h>
#include <stdbool.h>

/* Sets the error, unless `error` is NULL. Always false. */
#define fail_with(error, code, ...) (g_set_error(error, GPULEDGER_ERROR, code, __VA_ARGS__), false)

/* Says before the text of the error where it arose. Always false. */
#define fail_within(error, ...) (g_prefix_error(error, __VA_ARGS__), false)
