/* SPDX-License-Identifier: Apache-2.0 */
#include "base/no_proxy.h"

#include <arpa/inet.h>
#include <glib.h>
#include <string.h>

struct address {
    int family; /* 0: it is none */
    unsigned char bytes[16];
};

static struct address parse_address(const char *text)
{
    struct address address = {0};

    if (inet_pton(AF_INET, text, address.bytes) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, text, address.bytes) == 1)
        address.family = AF_INET6;
    return address;
}

/* `range`: ADDRESS/BITS; is changed. */
static bool is_in_range(char *range, const struct address *address)
{
    char *slash = strchr(range, '/');
    guint64 bits;

    *slash = '\0';
    const struct address first = parse_address(range);
    const guint64 most = first.family == AF_INET ? 32 : 128;
    if (first.family == 0 || first.family != address->family ||
        !g_ascii_string_to_unsigned(slash + 1, 10, 0, most, &bits, NULL))
        return false;
    const size_t whole = bits / 8;
    const unsigned char mask = (unsigned char)(0xff00 >> bits % 8);
    return memcmp(first.bytes, address->bytes, whole) == 0 &&
           (bits % 8 == 0 || ((first.bytes[whole] ^ address->bytes[whole]) & mask) == 0);
}

/* Takes ":443" or brackets off; false: it is of another port. */
static bool take_port(char *entry, int port)
{
    char *colon = strrchr(entry, ':');
    const bool bracketed = *entry == '[';
    const bool has_port = colon && (bracketed ? colon[-1] == ']' : strchr(entry, ':') == colon);
    guint64 said = 0;

    if (has_port && (!g_ascii_string_to_unsigned(colon + 1, 10, 0, 65535, &said, NULL) ||
                     said != (guint64)port))
        return false;
    if (has_port)
        *colon = '\0';
    if (bracketed && g_str_has_suffix(entry, "]")) {
        entry[strlen(entry) - 1] = '\0';
        memmove(entry, entry + 1, strlen(entry));
    }
    return true;
}

static bool is_below(const char *host, const char *domain)
{
    const size_t length = strlen(host), end = strlen(domain);

    return length > end && host[length - end - 1] == '.' &&
           g_ascii_strcasecmp(host + length - end, domain) == 0;
}

static bool names(char *entry, const char *host, int port)
{
    const struct address address = parse_address(host);

    if (strcmp(entry, "*") == 0)
        return true;
    if (strchr(entry, '/'))
        return is_in_range(entry, &address);
    if (!take_port(entry, port))
        return false;
    const struct address said = parse_address(entry);
    if (said.family != 0 || address.family != 0)
        return said.family == address.family &&
               memcmp(said.bytes, address.bytes, sizeof said.bytes) == 0;
    if (g_str_has_prefix(entry, "*."))
        entry++;
    if (*entry == '.')
        return is_below(host, entry + 1);
    return *entry && (g_ascii_strcasecmp(host, entry) == 0 || is_below(host, entry));
}

bool no_proxy_names(const char *list, const char *host, int port)
{
    g_auto(GStrv) entries = g_strsplit_set(list ? list : "", ", \t", -1);

    for (char **entry = entries; *entry; entry++) {
        if (**entry && names(*entry, host, port))
            return true;
    }
    return false;
}
