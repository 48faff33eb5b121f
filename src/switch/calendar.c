/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/calendar.h"

#include "core/fail.h"
#include "dialect/marks/node_marks.h"
#include "dialect/nvidia/nvidia_replicas.h"
#include "json/json.h"
#include "plan/rate.h"
#include "wire/switch_mark.h"

#include <string.h>

#define MINUTE_S 60
#define HOUR_S (60 * MINUTE_S)
#define DAY_S (24 * HOUR_S)
#define LIMIT_MAX_S (7 * DAY_S)
#define DAYS 7
#define INSTANCES_MAX 64

const struct switch_limits switch_limits_default = {4 * HOUR_S, 30 * MINUTE_S, 15 * MINUTE_S, 0, 0};

struct window {
    bool days[DAYS + 1]; /* 1: Monday, as GDateTime has it */
    int from, to;        /* minutes of the day; to <= from: on the next one */
    char *target;
};

struct kind {
    char **labels; /* key, value, …, NULL */
    const struct node_mode *mode;
    GTimeZone *zone;
    GArray *windows; /* struct window */
};

struct layout {
    char *name;
    struct mode_value value;
};

struct calendar {
    struct switch_limits limits;
    char *replicas;
    GArray *kinds;   /* struct kind */
    GArray *layouts; /* struct layout */
};

static void clear_window(gpointer data)
{
    g_free(((struct window *)data)->target);
}

static void clear_kind(gpointer data)
{
    struct kind *kind = data;

    g_strfreev(kind->labels);
    g_clear_pointer(&kind->zone, g_time_zone_unref);
    g_clear_pointer(&kind->windows, g_array_unref);
}

static void clear_layout(gpointer data)
{
    g_free(((struct layout *)data)->name);
}

void calendar_free(struct calendar *calendar)
{
    if (!calendar)
        return;
    g_array_unref(calendar->kinds);
    g_array_unref(calendar->layouts);
    g_free(calendar->replicas);
    g_free(calendar);
}

const struct switch_limits *calendar_limits(const struct calendar *calendar)
{
    return &calendar->limits;
}

/* --- reading ------------------------------------------------------------------------------------ */

struct reading {
    struct json_arena *arena;
    struct calendar *calendar;
};

/* Decodes an object. A word that nobody knows may be a selector, or a bound, that somebody relies on. */
static bool read_object(const struct reading *reading, const cJSON *object,
                        const struct json_field *fields, void *ret_members, GError **error)
{
    const cJSON *item = cJSON_IsObject(object) ? object->child : NULL;

    for (; item; item = item->next) {
        const struct json_field *field = fields;
        while (field->path && !g_str_equal(field->path, item->string))
            field++;
        if (!field->path)
            return fail_with(error, GPULEDGER_ERROR_INVALID, "there is no field '%.64s'",
                             item->string);
    }
    return json_decode(reading->arena, object, fields, ret_members, error);
}

/* "4h", "30m", "90s". */
static bool read_limit(const char *key, const char *text, int64_t *seconds, GError **error)
{
    static const struct {
        const char *unit;
        int64_t s;
    } units[] = {{"s", 1}, {"m", MINUTE_S}, {"h", HOUR_S}};

    for (size_t i = 0; text && i < G_N_ELEMENTS(units); i++) {
        guint64 n;
        if (!g_str_has_suffix(text, units[i].unit))
            continue;
        g_autofree char *digits = g_strndup(text, strlen(text) - 1);
        if (g_ascii_string_to_unsigned(digits, 10, 1, (guint64)(LIMIT_MAX_S / units[i].s), &n,
                                       NULL)) {
            *seconds = (int64_t)n * units[i].s;
            return true;
        }
    }
    return !text ||
           fail_with(error, GPULEDGER_ERROR_INVALID,
                     "field '%s': '%.32s' is not like '30m', of seconds, minutes or hours, "
                     "at most a week",
                     key, text);
}

/* "08:30". */
static bool read_time(const char *text, int *ret_minutes)
{
    if (strlen(text) != 5 || text[2] != ':' || strspn(text, "0123456789:") != 5 || text[0] == ':' ||
        text[1] == ':' || text[3] == ':' || text[4] == ':')
        return false;
    const int hours = (text[0] - '0') * 10 + text[1] - '0';
    const int minutes = (text[3] - '0') * 10 + text[4] - '0';
    *ret_minutes = hours * 60 + minutes;
    return hours < 24 && minutes < 60;
}

static bool read_days(const cJSON *list, struct window *window, GError **error)
{
    static const char *const names[] = {"", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    const cJSON *item;

    for (int i = 1; !list && i <= DAYS; i++)
        window->days[i] = true;
    cJSON_ArrayForEach (item, list) {
        int day = DAYS;
        while (day > 0 && g_strcmp0(item->valuestring, names[day]) != 0)
            day--;
        if (day == 0)
            return fail_with(
                error, GPULEDGER_ERROR_INVALID,
                "field 'days': '%.32s' is not one of Mon, Tue, Wed, Thu, Fri, Sat, Sun",
                item->valuestring ? item->valuestring : "");
        window->days[day] = true;
    }
    return !list || list->child ||
           fail_with(error, GPULEDGER_ERROR_INVALID, "field 'days': there are none");
}

struct window_object {
    const char *from, *to;
    const cJSON *days;
    bool targeted; /* by what, read_target reads */
};
static const struct json_field window_fields[] = {
    JSON_FIELD_STRING(struct window_object, from, "from", JSON_REQUIRED),
    JSON_FIELD_STRING(struct window_object, to, "to", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct window_object, days, "days", 0),
    JSON_FIELD_PRESENT(struct window_object, targeted, "target", 0),
    JSON_FIELD_END,
};

/* Numbers of slots are written without quotes, too. Free with g_free. */
static char *read_target(const cJSON *item, GError **error)
{
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(item, "target");

    if (cJSON_IsNumber(target) && target->valueint >= 0 &&
        target->valuedouble == (double)target->valueint)
        return g_strdup_printf("%d", target->valueint);
    if (cJSON_IsString(target))
        return g_strdup(target->valuestring);
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "field 'target': %s",
                target ? "expected a string" : "missing");
    return NULL;
}

static bool fail_unknown(const struct node_mode *mode, const char *target, GError **error)
{
    if (switch_mode_is_slots(mode))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'target': '%s' is neither a number from 1 to %d nor 'any'", target,
                         NODE_SLOTS_MAX);
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "field 'target': what '%s' makes of cards is not known: %s", target,
                     mode->recuts ? "say it in 'layouts'" : "say it with --nvidia-config-replicas");
}

static bool read_window(const struct reading *reading, const cJSON *item, struct kind *kind,
                        GError **error)
{
    struct window_object object = {0};
    struct window window = {.target = NULL};
    struct mode_value value;
    struct switch_mark mark;

    if (!read_object(reading, item, window_fields, &object, error) ||
        !read_days(object.days, &window, error))
        return false;
    g_autofree char *target = read_target(item, error);
    if (!target)
        return false;
    if (!read_time(object.from, &window.from) || !read_time(object.to, &window.to))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "fields 'from' and 'to': '%.16s' and '%.16s' are not like '08:30'",
                         object.from, object.to);
    g_autofree char *text =
        g_strdup_printf("%s=%s@2000-01-01T00:00:00Z", kind->mode->label, target);
    if (!switch_mark_parse(text, &mark))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'target': '%.64s' cannot be the value of a label", target);
    const bool chosen = g_str_equal(target, CALENDAR_AUTO);
    if (chosen && (!kind->mode->recuts || reading->calendar->layouts->len == 0))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'target': '" CALENDAR_AUTO "' takes one of 'layouts', which there "
                         "have to be, and is for 'label: %s' alone",
                         nvidia_modes[1].label);
    if (!chosen && !calendar_value(reading->calendar, kind->mode, target, NULL, &value))
        return fail_unknown(kind->mode, target, error);
    window.target = g_steal_pointer(&target);
    g_array_append_val(kind->windows, window);
    return true;
}

struct kind_object {
    const char *label, *zone;
    struct string_pairs selector;
    const cJSON *windows;
};
static const struct json_field kind_fields[] = {
    JSON_FIELD_STRING(struct kind_object, label, "label", JSON_REQUIRED),
    JSON_FIELD_STRING(struct kind_object, zone, "timeZone", 0),
    JSON_FIELD_PAIRS(struct kind_object, selector, "selector", 0),
    JSON_FIELD_ARRAY(struct kind_object, windows, "windows", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool read_zone(const char *name, GTimeZone **ret_zone, GError **error)
{
    *ret_zone = name ? g_time_zone_new_identifier(name) : NULL;
    return *ret_zone || fail_with(error, GPULEDGER_ERROR_INVALID,
                                  "field 'timeZone': '%.64s' is not one of the time zones of this "
                                  "machine, such as 'Europe/Berlin' or 'UTC'",
                                  name ? name : "");
}

static char **dup_labels(const struct string_pairs *pairs)
{
    char **labels = g_new0(char *, 2 * pairs->n + 1);

    for (size_t i = 0; i < pairs->n; i++) {
        labels[2 * i] = g_strdup(pairs->items[i].key);
        labels[2 * i + 1] = g_strdup(pairs->items[i].value);
    }
    return labels;
}

static bool read_windows(const struct reading *reading, const cJSON *windows, struct kind *kind,
                         GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, windows) {
        if (kind->windows->len == CALENDAR_WINDOWS_MAX)
            return fail_with(error, GPULEDGER_ERROR_LIMIT, "more than %d windows",
                             CALENDAR_WINDOWS_MAX);
        if (!read_window(reading, item, kind, error))
            return fail_within(error, "window %u: ", kind->windows->len + 1);
    }
    return kind->windows->len > 0 ||
           fail_with(error, GPULEDGER_ERROR_INVALID, "there are no windows");
}

static bool read_kind(const struct reading *reading, const cJSON *item, const char *zone,
                      GError **error)
{
    struct kind_object object = {.zone = zone};
    struct kind kind = {0};

    if (!read_object(reading, item, kind_fields, &object, error))
        return false;
    kind.mode = switch_mode_find(object.label);
    if (!kind.mode)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'label': '%.64s' is not '%s', '%s' or '" NODE_SLOTS_KEY "'",
                         object.label, nvidia_modes[0].label, nvidia_modes[1].label);
    if (!read_zone(object.zone, &kind.zone, error))
        return false;
    kind.labels = dup_labels(&object.selector);
    kind.windows = g_array_new(FALSE, FALSE, sizeof(struct window));
    g_array_set_clear_func(kind.windows, clear_window);
    const bool read = read_windows(reading, object.windows, &kind, error);
    g_array_append_val(reading->calendar->kinds, kind); /* which frees it */
    return read;
}

/* Whole cards, "all-disabled"; no other name says how many of what there are. */
static bool is_whole(const char *name, struct mode_value *ret_value)
{
    for (size_t i = 0; i < NVIDIA_MODES_N; i++) {
        if (nvidia_mode_guess(&nvidia_modes[i], name, ret_value))
            return nvidia_mode_is_whole(ret_value);
    }
    return false;
}

static bool read_layout(const struct reading *reading, const cJSON *item, GError **error)
{
    struct layout layout = {.name = NULL};
    const cJSON *profile;

    if (!cJSON_IsObject(item) || reading->calendar->layouts->len == CALENDAR_LAYOUTS_MAX)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' is not like '{1g.5gb: 7}', or there are more than %d", item->string,
                         CALENDAR_LAYOUTS_MAX);
    if (!switch_value_is_valid(item->string))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "'%.64s' cannot be the value of a label",
                         item->string);
    cJSON_ArrayForEach (profile, item) {
        struct mode_instances *instances = &layout.value.profiles[layout.value.n_profiles];
        if (layout.value.n_profiles == MODE_PROFILES_MAX ||
            g_strlcpy(instances->profile, profile->string, sizeof instances->profile) >=
                sizeof instances->profile ||
            !cJSON_IsNumber(profile) || profile->valuedouble < 1 ||
            profile->valuedouble > INSTANCES_MAX)
            return fail_with(
                error, GPULEDGER_ERROR_INVALID,
                "'%s' is not like '{1g.5gb: 7}': at most %d profiles, of each from 1 to "
                "%d on a card",
                item->string, MODE_PROFILES_MAX, INSTANCES_MAX);
        instances->n = profile->valueint;
        layout.value.n_profiles++;
    }
    if (layout.value.n_profiles == 0 && !is_whole(item->string, &layout.value))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' does not say by its name alone what it makes of a card: say it, as "
                         "in '{1g.5gb: 7}'",
                         item->string);
    layout.name = g_strdup(item->string);
    g_array_append_val(reading->calendar->layouts, layout);
    return true;
}

struct calendar_object {
    const char *zone, *notice, *drain, *deadline;
    int64_t max_per_hour, max_per_namespace;
    const cJSON *nodes, *layouts;
};
static const struct json_field calendar_fields[] = {
    JSON_FIELD_STRING(struct calendar_object, zone, "timeZone", 0),
    JSON_FIELD_STRING(struct calendar_object, notice, "notice", 0),
    JSON_FIELD_STRING(struct calendar_object, drain, "drain", 0),
    JSON_FIELD_STRING(struct calendar_object, deadline, "deadline", 0),
    JSON_FIELD_INT64(struct calendar_object, max_per_hour, "maxPerHour", 0),
    JSON_FIELD_INT64(struct calendar_object, max_per_namespace, "maxPerNamespace", 0),
    JSON_FIELD_ARRAY(struct calendar_object, nodes, "nodes", JSON_REQUIRED),
    JSON_FIELD_OBJECT(struct calendar_object, layouts, "layouts", 0),
    JSON_FIELD_END,
};

static bool read_most(const char *key, int64_t said, int64_t at_most, uint32_t *most,
                      GError **error)
{
    *most = (uint32_t)CLAMP(said, 0, at_most);
    return (int64_t)*most == said ||
           fail_with(error, GPULEDGER_ERROR_RANGE,
                     "field '%s': expected 0 (any number) to %" G_GINT64_FORMAT, key, at_most);
}

static bool read_all(const struct reading *reading, const cJSON *tree, GError **error)
{
    struct switch_limits *limits = &reading->calendar->limits;
    struct calendar_object object = {0};
    const cJSON *item;
    unsigned n = 0;

    if (!cJSON_IsObject(tree))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "it is no mapping");
    if (!read_object(reading, tree, calendar_fields, &object, error) ||
        !read_limit("notice", object.notice, &limits->notice_s, error) ||
        !read_limit("drain", object.drain, &limits->drain_s, error) ||
        !read_limit("deadline", object.deadline, &limits->deadline_s, error) ||
        !read_most("maxPerHour", object.max_per_hour, RATE_HOUR_MAX, &limits->max_per_hour,
                   error) ||
        !read_most("maxPerNamespace", object.max_per_namespace, SWITCH_EVICTIONS_MAX,
                   &limits->max_per_namespace, error))
        return false;
    cJSON_ArrayForEach (item, object.layouts) {
        if (!read_layout(reading, item, error))
            return fail_within(error, "field 'layouts': ");
    }
    cJSON_ArrayForEach (item, object.nodes) {
        n++;
        if (n > CALENDAR_NODES_MAX)
            return fail_with(error, GPULEDGER_ERROR_LIMIT, "field 'nodes': more than %d",
                             CALENDAR_NODES_MAX);
        if (!read_kind(reading, item, object.zone, error))
            return fail_within(error, "field 'nodes': item %u: ", n);
    }
    return true;
}

struct calendar *calendar_new(const cJSON *tree, const char *replicas, GError **error)
{
    g_autoptr(calendar) calendar = g_new0(struct calendar, 1);
    g_autoptr(json_arena) arena = json_arena_new();

    calendar->limits = switch_limits_default;
    calendar->replicas = g_strdup(replicas);
    calendar->kinds = g_array_new(FALSE, FALSE, sizeof(struct kind));
    calendar->layouts = g_array_new(FALSE, FALSE, sizeof(struct layout));
    g_array_set_clear_func(calendar->kinds, clear_kind);
    g_array_set_clear_func(calendar->layouts, clear_layout);
    return read_all(&(struct reading){arena, calendar}, tree, error) ? g_steal_pointer(&calendar)
                                                                     : NULL;
}

/* --- asking ------------------------------------------------------------------------------------- */

bool calendar_value(const struct calendar *calendar, const struct node_mode *mode,
                    const char *value, const char *replicas, struct mode_value *ret_value)
{
    if (switch_mode_is_slots(mode)) {
        *ret_value = (struct mode_value){0};
        return node_slots_parse(value).readable;
    }
    if (!mode->recuts) {
        *ret_value = (struct mode_value){
            .replicas = nvidia_replicas_find(calendar ? calendar->replicas : replicas, value)};
        return ret_value->replicas > 0;
    }
    for (guint i = 0; calendar && i < calendar->layouts->len; i++) {
        const struct layout *layout = &g_array_index(calendar->layouts, struct layout, i);
        if (!g_str_equal(layout->name, value))
            continue;
        *ret_value = layout->value;
        return layout->value.n_profiles > 0;
    }
    return nvidia_mode_guess(mode, value, ret_value);
}

const char *calendar_layout(const struct calendar *calendar, guint i, struct mode_value *ret_value)
{
    if (i >= calendar->layouts->len)
        return NULL;
    const struct layout *layout = &g_array_index(calendar->layouts, struct layout, i);
    *ret_value = layout->value;
    return layout->name;
}

void calendar_add_layout(struct calendar *calendar, const char *name,
                         const struct mode_value *value)
{
    const struct layout layout = {g_strdup(name), *value};
    struct mode_value known;
    const char *other;

    for (guint i = 0; (other = calendar_layout(calendar, i, &known)); i++) {
        if (g_str_equal(other, name)) {
            g_free(layout.name);
            return;
        }
    }
    g_array_append_val(calendar->layouts, layout);
}

static bool selects(const struct kind *kind, const struct string_pairs *labels)
{
    for (char **label = kind->labels; *label; label += 2) {
        if (g_strcmp0(string_pairs_get(labels, label[0]), label[1]) != 0)
            return false;
    }
    return true;
}

/* That minute of the day that is so many days after `day`, Unix time. */
static int64_t moment_of(const struct kind *kind, GDateTime *day, int days, int minutes)
{
    g_autoptr(GDateTime) date = g_date_time_add_days(day, days);
    g_autoptr(GDateTime) time =
        g_date_time_new(kind->zone, g_date_time_get_year(date), g_date_time_get_month(date),
                        g_date_time_get_day_of_month(date), minutes / 60, minutes % 60, 0);

    return time ? g_date_time_to_unix(time) : 0;
}

static void ask_window(const struct kind *kind, const struct window *window, GDateTime *day,
                       int64_t now_s, struct calendar_answer *answer)
{
    for (int i = -2; i <= DAYS + 1; i++) {
        g_autoptr(GDateTime) date = g_date_time_add_days(day, i);
        if (!window->days[g_date_time_get_day_of_week(date)])
            continue;
        const int64_t from_s = moment_of(kind, day, i, window->from);
        const int64_t to_s = moment_of(kind, day, i + (window->to <= window->from), window->to);
        if (from_s <= now_s && now_s < to_s && (!answer->now || from_s >= answer->since_s)) {
            answer->now = window->target;
            answer->since_s = from_s;
            answer->until_s = to_s;
        }
        if (from_s > now_s && from_s < to_s && (!answer->next || from_s < answer->next_s)) {
            answer->next = window->target;
            answer->next_s = from_s;
        }
    }
}

bool calendar_ask(const struct calendar *calendar, const struct string_pairs *labels, int64_t now_s,
                  struct calendar_answer *ret_answer)
{
    const struct kind *kind = NULL;

    for (guint i = 0; !kind && i < calendar->kinds->len; i++) {
        const struct kind *one = &g_array_index(calendar->kinds, struct kind, i);
        kind = selects(one, labels) ? one : NULL;
    }
    g_autoptr(GDateTime) utc = g_date_time_new_from_unix_utc(now_s);
    g_autoptr(GDateTime) local = kind && utc ? g_date_time_to_timezone(utc, kind->zone) : NULL;
    if (!local)
        return false;
    /* Noon, so that no change of the clock makes days of it that are missing or come twice. */
    g_autoptr(GDateTime) day =
        g_date_time_new(kind->zone, g_date_time_get_year(local), g_date_time_get_month(local),
                        g_date_time_get_day_of_month(local), 12, 0, 0);
    *ret_answer = (struct calendar_answer){.mode = kind->mode};
    for (guint i = 0; day && i < kind->windows->len; i++)
        ask_window(kind, &g_array_index(kind->windows, struct window, i), day, now_s, ret_answer);
    return true;
}
