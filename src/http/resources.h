/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files that are part of the program: the build turns each into an array (http/embed.py).
 */
#include <stddef.h>

extern const char resource_openapi[]; /* api/openapi.yaml */
extern const size_t resource_openapi_length;

/* A file of src/page. */
struct page_file {
    const char *name; /* "app.js" */
    const char *type; /* its content type */
    const char *data;
    size_t length;
    const char *packed; /* the same with gzip */
    size_t packed_length;
};

extern const struct page_file page_files[]; /* ends with one whose name is NULL */
