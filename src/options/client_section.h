/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of commands that ask an extender, or print what they know by themselves. */
#include "core/section/section.h"

enum output_format {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_JSON,
    OUTPUT_YAML,
    OUTPUT_NAME,
    OUTPUT_JSONPATH,
};

enum color_when {
    COLOR_AUTO,
    COLOR_ALWAYS,
    COLOR_NEVER,
};

struct client_settings {
    const char *server;
    const char *token_file;
    const char *ca_file;
    const char *service;        /* "NAMESPACE/NAME"; "": --server is asked directly */
    const char *pods_namespace; /* "": all of them */
    const char *pod_namespace;  /* of the pod that is named; "": its name says it */
    bool all_namespaces;
    const char *filename;        /* of a pod, or what makes pods */
    int64_t replicas;            /* 0: as the file says, or as many as fit */
    const char *drain;           /* node names with commas between */
    const char *template;        /* a file */
    int64_t output;              /* enum output_format */
    const char *output_template; /* of OUTPUT_JSONPATH; else perhaps NULL */
    const char *sort_by;         /* "": as the server sends it */
    bool watch;
    int64_t color; /* enum color_when */
};
SECTION_ROW(client, 800);
