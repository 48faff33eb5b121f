/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files that are part of the program: the build turns each into an array (http/embed.py).
 */
#include <stddef.h>

extern const char resource_openapi[]; /* api/openapi.yaml */
extern const size_t resource_openapi_length;
