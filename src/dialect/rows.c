/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in the table. */
#include "dialect/rows.h"

#include <string.h>

const struct dialect *dialect_find(const char *name)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (g_strcmp0(dialects[i]->name, name) == 0)
            return dialects[i];
    }
    return NULL;
}

bool dialect_reads(const struct dialect *dialect, const char *resource)
{
    for (const char *const *own = dialect->resources; *own; own++) {
        const size_t stem = strlen(*own) - 1;
        if ((*own)[stem] == '*' ? strncmp(resource, *own, stem) == 0 : g_str_equal(resource, *own))
            return true;
    }
    return false;
}

const struct dialect *dialect_of_health(const char *ns, const char *name, const char **ret_node)
{
    for (size_t i = 0; name && dialects[i]; i++) {
        const struct dialect *dialect = dialects[i];
        if (dialect->health_prefix && g_strcmp0(ns, dialect->health_namespace) == 0 &&
            g_str_has_prefix(name, dialect->health_prefix)) {
            *ret_node = name + strlen(dialect->health_prefix);
            return dialect;
        }
    }
    return NULL;
}

const struct dialect *dialect_of_quotas(const char *ns, const char *name)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (dialects[i]->quotas_name && g_strcmp0(ns, dialects[i]->quotas_namespace) == 0 &&
            g_strcmp0(name, dialects[i]->quotas_name) == 0)
            return dialects[i];
    }
    return NULL;
}

bool dialect_read_instance(const char *resource, struct instance_size *ret_size)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (dialects[i]->read_instance && dialects[i]->read_instance(resource, ret_size))
            return true;
    }
    return false;
}
