/* SPDX-License-Identifier: Apache-2.0 */
#include "options/options.h"

#include <string.h>

/* The place of its section; ret_before: how many rows are before that. */
static size_t find_section(const struct option *option, size_t *ret_before)
{
    size_t i = 0;

    *ret_before = 0;
    while (option < sections[i]->rows || option >= sections[i]->rows + sections[i]->n_rows)
        *ret_before += sections[i++]->n_rows;
    return i;
}

const struct option *option_next(const struct option *option)
{
    size_t before, i;

    if (!option)
        return sections[0]->rows;
    i = find_section(option, &before);
    if (++option < sections[i]->rows + sections[i]->n_rows)
        return option;
    return sections[i + 1] ? sections[i + 1]->rows : NULL;
}

const struct section *option_section(const struct option *option)
{
    size_t before;

    return sections[find_section(option, &before)];
}

const struct option *option_find(const char *name, unsigned commands)
{
    options_each (option) {
        if ((option->commands & commands) && strcmp(option->name, name) == 0)
            return option;
    }
    return NULL;
}

size_t option_position(const struct option *option)
{
    size_t before;
    const struct section *section = sections[find_section(option, &before)];

    return before + (size_t)(option - section->rows);
}

char *option_variable(const struct option *option)
{
    if (option->flags & OPTION_FLAG_ONLY)
        return NULL;
    g_autofree char *capitals = g_ascii_strup(option->name, -1);
    return g_strconcat("GPULEDGER_", g_strdelimit(capitals, "-", '_'), NULL);
}

const struct note gone_options[] = {
    {"tencent-predicates-only", "name a bindVerb in kube-scheduler's configuration: filter books "
                                "nothing any more"},
    {"chart", "--output json has every point, for a program that draws"},
    {NULL, NULL},
};

const char *option_gone(const char *name)
{
    const struct note *gone = gone_options;
    while (gone->name && strcmp(gone->name, name) != 0)
        gone++;
    return gone->why;
}

const struct note ignored_variables[] = {
    {"THREADNESS", "every connection has its own thread, see --max-connections"},
    {NULL, NULL},
};
