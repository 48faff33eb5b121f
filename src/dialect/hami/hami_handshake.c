/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When HAMi's plugin has last reported, in its Node's annotation hami.io/node-handshake.
 *
 * Sources: Project-HAMi/HAMi@v2.7.1:pkg/device-plugin/nvidiadevice/nvinternal/plugin/register.go
 * (the plugin), pkg/scheduler/scheduler.go (the scheduler, also of v2.4.1 and v2.9.0).
 *
 * The plugin up to v2.7 writes "Reported " and Go's form of the time every 30 s, whether or not
 * anybody asks; no version of it reads the annotation, and since v2.8 none writes it. Schedulers up
 * to v2.7 answer with "Requesting_" and the time, and with "Deleted_" after 60 s without another
 * word of the plugin; those since v2.9 stamp "Requesting_" on every node, which nobody answers
 * there. So the annotation counts where the plugin is one that writes it: up to v2.7 it registers
 * cards in the form with colons, since v2.8 in JSON. The schedulers' times are
 * "2006.01.02 15:04:05" (v2.4) or "2006-01-02 15:04:05", in their own zone, which is not said.
 */
#include "dialect/hami/hami.h"
#include "dialect/warning.h"

#include <string.h>

/* Source: Project-HAMi/HAMi@v2.9.0:pkg/device/nvidia/device.go */
#define KEY "hami.io/node-handshake"
#define REPORTED "Reported "
#define REQUESTING "Requesting_"
#define DELETED "Deleted_"

#define DATE_LENGTH 10
#define NS_PER_S INT64_C(1000000000)

#define LAST_ZONE "-1200" /* where it is earliest on a clock */

/* "2006-01-02 15:04:05" and what follows up to a blank, with '.' or '-' in the date. */
static bool read_time(const char *text, const char *zone, int64_t *ret_ns)
{
    const size_t clock = strlen(text) > DATE_LENGTH ? strcspn(text + DATE_LENGTH + 1, " ") : 0;

    if (clock == 0 || text[DATE_LENGTH] != ' ')
        return false;
    g_autofree char *date = g_strndup(text, DATE_LENGTH);
    g_autofree char *iso = g_strdup_printf("%sT%.*s%.5s", g_strdelimit(date, ".", '-'), (int)clock,
                                           text + DATE_LENGTH + 1, zone);
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(iso, NULL);
    const int64_t seconds = time ? g_date_time_to_unix(time) : 0;
    if (seconds <= 0 || seconds > INT64_MAX / NS_PER_S / 2)
        return false;
    *ret_ns = seconds * NS_PER_S;
    return true;
}

/* "2006-01-02 15:04:05.999999999 -0700 MST m=+0.5": how Go prints a time. */
static bool read_go_time(const char *text, int64_t *ret_ns)
{
    const char *blank = strlen(text) > DATE_LENGTH ? strchr(text + DATE_LENGTH + 1, ' ') : NULL;

    return blank && read_time(text, blank + 1, ret_ns);
}

bool hami_read_heartbeat(const struct vgpu *vgpu, const struct node_view *view, int64_t *ret_ns,
                         char **ret_warning)
{
    const char *registered = string_pairs_get(&view->annotations, vgpu->registered);
    const char *text = string_pairs_get(&view->annotations, KEY);
    bool read = false;

    if (!registered || *registered == '[' || !text || !*text)
        return false;
    if (g_str_has_prefix(text, REPORTED)) {
        read = read_go_time(text + strlen(REPORTED), ret_ns);
    } else if (g_str_has_prefix(text, REQUESTING)) {
        /* The latest that it may have been: if that is still to come, what counts is when it was seen. */
        read = read_time(text + strlen(REQUESTING), LAST_ZONE, ret_ns);
    } else if (g_str_has_prefix(text, DELETED)) {
        *ret_ns = HEARTBEAT_NONE_NS;
        read = true;
    }
    if (!read)
        warn(ret_warning,
             g_strdup_printf("node '%s': annotation '" KEY "' is '%.64s', which cannot be "
                             "read; its plugin is taken to report",
                             view->name, text));
    return read;
}
