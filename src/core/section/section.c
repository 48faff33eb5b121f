/* SPDX-License-Identifier: Apache-2.0 */
#include "core/section/option.h"

#include <string.h>

struct settings {
    const struct section *const *sections;
    void **blocks; /* by the section's place */
};

char *address_format(const struct address *address)
{
    if (address->port == ADDRESS_OFF)
        return g_strdup("off");
    bool brackets = strchr(address->host, ':') != NULL;
    return g_strdup_printf("%s%s%s:%d", brackets ? "[" : "", address->host, brackets ? "]" : "",
                           address->port);
}

bool choice_at(const struct choice *choices, size_t n, size_t i, struct choice *ret_choice)
{
    if (i >= n)
        return false;
    *ret_choice = choices[i];
    return true;
}

bool option_choose(const struct option *option, const char *name, int64_t *ret_value)
{
    struct choice choice;

    for (size_t i = 0; option->choice(i, &choice); i++) {
        if (strcmp(choice.name, name) == 0) {
            *ret_value = choice.value;
            return true;
        }
    }
    return false;
}

struct settings *settings_new(const struct section *const *sections)
{
    struct settings *settings = g_new0(struct settings, 1);
    size_t n = 0;

    while (sections[n])
        n++;
    settings->sections = sections;
    settings->blocks = g_new0(void *, n);
    for (size_t i = 0; i < n; i++)
        settings->blocks[i] = g_malloc0(sections[i]->size);
    return settings;
}

void settings_free(struct settings *settings)
{
    if (!settings)
        return;
    for (size_t i = 0; settings->sections[i]; i++)
        g_free(settings->blocks[i]);
    g_free(settings->blocks);
    g_free(settings);
}

void *settings_block(const struct settings *settings, const struct section *section)
{
    size_t i = 0;

    while (settings->sections[i] && settings->sections[i] != section)
        i++;
    g_assert(settings->sections[i]);
    return settings->blocks[i];
}
