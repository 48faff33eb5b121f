/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Local files of a known small size: kubeconfigs, tokens, certificates. Any thread.
 */
#include <glib.h>
#include <stddef.h>

/* The whole file, NUL-terminated; free with g_free. Works for pipes and process substitution too.
 * Larger than `max` bytes is GPULEDGER_ERROR_LIMIT, anything else GPULEDGER_ERROR_IO; the text
 * names the file. `ret_length` may be NULL. */
char *small_file_read(const char *path, size_t max, size_t *ret_length, GError **error);
