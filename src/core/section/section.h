/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A section: the options of one capability, which stand beside it in NAME_section.h and NAME_section.c: the
 * struct that holds their values, a row for each, and what they must not be together. The build finds the
 * line SECTION_ROW. Command line, environment, configuration file, help, manual page, completion, schema and
 * the chart's values are made from the rows by src/options. A configuration's values are read only: any
 * thread.
 */
#include <stdbool.h>
#include <stdint.h>

/* Where a listener listens. */
struct address {
    char host[256]; /* a name or a numeric address, no brackets for IPv6; "": all there are */
    int32_t port;   /* 0: any free one; ADDRESS_OFF: no listener */
};
#define ADDRESS_OFF (-1)

/* As options are read: "127.0.0.1:80", "[::1]:80", "off". Free with g_free. */
char *address_format(const struct address *address);

struct settings;
struct section; /* core/section/option.h */

/* In a header NAME_section.h below src, in one line. Sections are shown in the order of their ranks, of
 * which no two are equal. */
#define SECTION_ROW(name, rank) extern const struct section section_##name

/* The values of one configuration: a block for each section, zeroed at first. `sections` ends with NULL and
 * is borrowed. */
struct settings *settings_new(const struct section *const *sections);
/* The blocks; what their members point to is their owner's. */
void settings_free(struct settings *settings);
/* Of a section that it was made for. */
void *settings_block(const struct settings *settings, const struct section *section);

/* settings_of(settings, quotas) is a const struct quotas_settings *. */
#define settings_of(settings, name)                                                                \
    ((const struct name##_settings *)settings_block(settings, &section_##name))
