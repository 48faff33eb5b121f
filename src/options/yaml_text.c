/* SPDX-License-Identifier: Apache-2.0 */
#include "options/yaml_text.h"

#include "json/json.h"

#include <string.h>

/* What stays a string without quotes, for every reader of YAML 1.1 or 1.2. */
static bool is_plain(const char *text)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "y",
                                        "n"};

    if (!g_ascii_isalpha(*text))
        return false;
    for (const char *at = text; *at; at++) {
        if (!g_ascii_isalnum(*at) && !strchr("-_./", *at) && !(*at == ' ' && at[1]))
            return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_ascii_strcasecmp(text, words[i]) == 0)
            return false;
    }
    return true;
}

static void write_string(GString *text, const char *value)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    if (is_plain(value))
        g_string_append(text, value);
    else
        json_string(&writer, value); /* JSON's strings are YAML's in double quotes */
}

static void write_scalar(GString *text, const cJSON *value)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    if (cJSON_IsString(value))
        write_string(text, value->valuestring);
    else
        json_value(&writer, value);
    g_string_append_c(text, '\n');
}

/* Items on lines of their own. What begins where the cursor stands is not indented. */
static void write_value(GString *text, const cJSON *value, int indent, bool at_cursor)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, value) {
        const bool nested = item->child;
        g_string_append_printf(text, "%*s", at_cursor ? 0 : indent, "");
        at_cursor = false;
        if (cJSON_IsObject(value)) {
            write_string(text, item->string);
            g_string_append(text, nested ? ":\n" : ": ");
            if (nested)
                write_value(text, item, indent + 2, false);
        } else {
            g_string_append(text, "- ");
            if (nested)
                write_value(text, item, indent + 2, true);
        }
        if (!nested)
            write_scalar(text, item);
    }
}

bool yaml_text_write(const GString *json, GString *text, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, json->str, json->len, error);

    if (!document)
        return false;
    if (document->child)
        write_value(text, document, 0, false);
    else
        write_scalar(text, document);
    return true;
}
