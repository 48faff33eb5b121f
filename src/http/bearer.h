/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A token that callers must show, in a file that is read again when it changes. Only its digest
 * is kept in memory; digests are compared in constant time. Any thread.
 */
#include <glib.h>
#include <stdbool.h>

struct bearer;

/* The file holds the token and nothing else; spaces around it do not count. Errors are
 * GPULEDGER_ERROR_IO, _LIMIT or _INVALID and name the file, never what stands in it. */
struct bearer *bearer_new(const char *path, GError **error);
void bearer_free(struct bearer *bearer);

/* Whether an Authorization header's value carries the token; NULL is fine and carries none. While
 * there is no token to be read, because the file was taken away, say, nobody has it. */
bool bearer_accepts(struct bearer *bearer, const char *authorization);

/* Reads the file at the next question, however recently it was. */
void bearer_refresh(struct bearer *bearer);
