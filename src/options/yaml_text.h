/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON as YAML for people, in block style. Any thread. */
#include <glib.h>
#include <stdbool.h>

/* Appends the YAML of a JSON text. */
bool yaml_text_write(const GString *json, GString *text, GError **error);
