/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of kubectl's JSONPath that people use: text, and in braces paths ({.nodes[0].name},
 * {.nodes[*].name}), quoted text ({"\n"}) and {range PATH}…{end}. Several values of one
 * path have a space between them; what is not there is nothing. Filters and slices are an error.
 *
 * Source: kubernetes.io/docs/reference/kubectl/jsonpath.
 */
#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>

/* Appends what the template makes of the document. False: it is not understood; the error says where. */
bool jsonpath_write(const char *template, const cJSON *document, GString *text, GError **error);
