/* SPDX-License-Identifier: Apache-2.0 */
#include "options/alias.h"

#include "core/fail.h"
#include "base/log.h"

#include <string.h>

/* PORT says nothing about the address, so that of the file stays, or what `alias_base` has. */
bool alias_read_port(const struct option *option, const char *text, void *value, GError **error)
{
    guint64 port;
    if (!g_ascii_string_to_unsigned(text, 10, 0, UINT16_MAX, &port, NULL))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' is not valid, expected a port from 0 to 65535", text);
    ((struct address *)value)->port = (int32_t)port;
    return true;
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
