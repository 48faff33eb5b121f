/* SPDX-License-Identifier: Apache-2.0 */
/* The table of classes, as the administrator writes it and as it is written down again. */
#include "dialect/classes/class_rows.h"

#include "core/fail.h"
#include "json/json.h"

#include <gpuledger/placement.h>
#include <gpuledger/terms.h>
#include <string.h>

#define NAME_MAX_LENGTH 63
#define TEXT_MAX_LENGTH 253 /* names of Kubernetes' objects */

static const char *const victim_names[] = {"first", "normal", "last", NULL};
static const char *const replica_names[] = {"any", "spread", NULL};
static const char *const group_names[] = {"optional", "required", NULL};
static const char *const isolation_choices[] = {"none", "hook", "kernel", "hardware", NULL};

const struct class_setting class_settings[] = {
    {"priority-classes",
     "The PriorityClasses whose pods are of the class; without it that of the class's own name.",
     .list = true},
    {"namespaces",
     "Whose pods may choose the class by the annotation or label " CLASS_KEY "; '*': all, which a "
     "class that gives an advantage cannot have.",
     .list = true},
    {"shares-with",
     "The classes whose pods may be on one card with its own, and 'unclassed' for pods of none; "
     "'*': all. An empty list: its pods are alone on their cards.",
     .list = true},
    {"victims", "Whom preemption ends before others, whatever their priorities.",
     .choices = victim_names},
    {"replicas",
     "Whether replicas of one Deployment, StatefulSet or Job go to cards and nodes that have the "
     "fewest of them, if they can.",
     .choices = replica_names},
    {"group", "Whether its pods have to name a pod group.", .choices = group_names},
    {"oversubscribe",
     "Its pods accept memory beyond what a card really has, unless they say otherwise.",
     .flag = true},
    {"isolation", "How well the holders of one card are kept apart at least.",
     .choices = isolation_choices},
    {"policy", "The policy of its pods, unless they name one; '': the node's or the cluster's."},
    {NULL},
};

/* --- one row ------------------------------------------------------------------------------------ */

static bool read_texts(const cJSON *value, char ***texts)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    const cJSON *item;

    if (!cJSON_IsArray(value) || cJSON_GetArraySize(value) > CLASS_NAMES_MAX)
        return false;
    cJSON_ArrayForEach (item, value) {
        if (!cJSON_IsString(item) || !*item->valuestring ||
            strlen(item->valuestring) > TEXT_MAX_LENGTH)
            return false;
        g_strv_builder_add(builder, item->valuestring);
    }
    g_strfreev(*texts);
    *texts = g_strv_builder_end(builder);
    return true;
}

/* The position among the names. */
static bool read_choice(const cJSON *value, const char *const *names, int32_t *ret_choice)
{
    for (int32_t i = 0; cJSON_IsString(value) && names[i]; i++) {
        if (g_str_equal(names[i], value->valuestring)) {
            *ret_choice = i;
            return true;
        }
    }
    return false;
}

static bool read_priority_classes(const cJSON *value, struct class_row *row)
{
    return read_texts(value, &row->priority_classes);
}

static bool read_namespaces(const cJSON *value, struct class_row *row)
{
    return read_texts(value, &row->namespaces);
}

static bool read_shares_with(const cJSON *value, struct class_row *row)
{
    return read_texts(value, &row->shares_with);
}

static bool read_victims(const cJSON *value, struct class_row *row)
{
    int32_t choice;

    if (!read_choice(value, victim_names, &choice))
        return false;
    row->work_class->victims = (enum victim_order)(choice + VICTIMS_FIRST);
    return true;
}

static bool read_replicas(const cJSON *value, struct class_row *row)
{
    int32_t choice;

    if (!read_choice(value, replica_names, &choice))
        return false;
    row->work_class->spread = choice == 1;
    return true;
}

static bool read_group(const cJSON *value, struct class_row *row)
{
    int32_t choice;

    if (!read_choice(value, group_names, &choice))
        return false;
    row->work_class->group = choice == 1;
    return true;
}

static bool read_oversubscribe(const cJSON *value, struct class_row *row)
{
    row->work_class->oversubscribes = cJSON_IsTrue(value);
    return cJSON_IsBool(value);
}

static bool read_isolation(const cJSON *value, struct class_row *row)
{
    return read_choice(value, isolation_choices, &row->work_class->isolation);
}

static bool read_policy(const cJSON *value, struct class_row *row)
{
    if (!cJSON_IsString(value))
        return false;
    row->work_class->policy = policy_find(value->valuestring);
    return row->work_class->policy || !*value->valuestring;
}

/* As class_settings has them. */
static const struct reader {
    bool (*take)(const cJSON *value, struct class_row *row);
    const char *expected;
} readers[] = {
    {read_priority_classes, "a list of PriorityClasses, such as ['batch']"},
    {read_namespaces, "a list of namespaces, such as ['research'], or ['*']"},
    {read_shares_with, "a list of classes, such as ['interactive', 'unclassed'], or ['*'], or []"},
    {read_victims, "first, normal or last"},
    {read_replicas, "any or spread"},
    {read_group, "optional or required"},
    {read_oversubscribe, "true or false"},
    {read_isolation, "none, hook, kernel or hardware"},
    {read_policy, "a policy, such as 'binpack' or 'oc', or ''"},
};

static char *setting_names(void)
{
    GString *text = g_string_new(NULL);

    for (const struct class_setting *setting = class_settings; setting->name; setting++)
        g_string_append_printf(text, "%s%s", text->len ? ", " : "", setting->name);
    return g_string_free(text, FALSE);
}

static bool read_setting(const cJSON *value, struct class_row *row, GError **error)
{
    const char *name = row->work_class->name;
    size_t i = 0;

    while (class_settings[i].name && !g_str_equal(class_settings[i].name, value->string))
        i++;
    if (!class_settings[i].name) {
        g_autofree char *known = setting_names();
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field '%s.%.64s': there is no such setting; write some of %s", name,
                         value->string, known);
    }
    return readers[i].take(value, row) ||
           fail_with(error, GPULEDGER_ERROR_INVALID, "field '%s.%s': write %s", name,
                     class_settings[i].name, readers[i].expected);
}

/* --- the table ---------------------------------------------------------------------------------- */

static char **one_text(const char *text)
{
    return g_strsplit(text, "\n", 1);
}

/* The three that are built in begin with what they are; others as pods of no class. */
static void begin_row(struct class_row *row, const char *name, uint32_t number)
{
    struct work_class *work_class = work_class_new();

    work_class->name = g_strdup(name);
    work_class->number = number;
    *row = (struct class_row){work_class, one_text(name), g_new0(char *, 1), one_text(CLASS_EVERY)};
    if (g_str_equal(name, "interactive")) {
        work_class->victims = VICTIMS_FIRST;
        work_class->oversubscribes = true;
        g_strfreev(row->namespaces);
        row->namespaces = one_text(CLASS_EVERY);
    } else if (g_str_equal(name, "inference")) {
        work_class->victims = VICTIMS_LAST;
        work_class->spread = true;
    } else if (g_str_equal(name, "training")) {
        work_class->group = true;
        g_strfreev(row->shares_with);
        row->shares_with = g_new0(char *, 1);
    }
}

static bool is_name(const char *name)
{
    for (const char *at = name; *at; at++) {
        if (!g_ascii_islower(*at) && !g_ascii_isdigit(*at) && *at != '-')
            return false;
    }
    return g_ascii_isalnum(name[0]) && g_ascii_isalnum(name[strlen(name) - 1]) &&
           strlen(name) <= NAME_MAX_LENGTH && !g_str_equal(name, CLASS_OTHERS) &&
           !g_str_equal(name, CLASS_DEFAULTS);
}

static bool read_row(const cJSON *object, struct classes *classes, GError **error)
{
    const char *name = object->string;
    const cJSON *value;

    if (!is_name(name))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field '%.64s': a class has a name of at most %d lower-case letters, "
                         "digits and '-', and not '" CLASS_OTHERS "' or '" CLASS_DEFAULTS "'",
                         name, NAME_MAX_LENGTH);
    if (!cJSON_IsObject(object) && !cJSON_IsNull(object))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field '%s': write the class's settings, or {} to have it as it is", name);
    if (classes_find(classes, name))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "field '%s': it is there twice", name);
    if (classes->n == WORK_CLASSES_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "field '%s': more than %d classes", name,
                         WORK_CLASSES_MAX);
    struct class_row *row = &classes->rows[classes->n++];
    begin_row(row, name, classes->n);
    cJSON_ArrayForEach (value, object) {
        if (!read_setting(value, row, error))
            return false;
    }
    return true;
}

static bool has(char *const *texts, const char *text)
{
    return g_strv_contains((const char *const *)texts, text);
}

/* The classes that a row names become bits. */
static bool settle_company(const struct classes *classes, struct class_row *row, GError **error)
{
    struct work_class *work_class = row->work_class;

    work_class->shares_with = has(row->shares_with, CLASS_EVERY) ? WORK_CLASS_ANY : 0;
    for (char **name = row->shares_with; *name; name++) {
        const struct work_class *other = classes_find(classes, *name);
        if (other || g_str_equal(*name, CLASS_OTHERS))
            work_class->shares_with |= UINT32_C(1) << (other ? other->number : 0);
        else if (!g_str_equal(*name, CLASS_EVERY))
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field '%s.shares-with': there is no class '%.64s'; write classes of "
                             "this table, '" CLASS_OTHERS "' or '" CLASS_EVERY "'",
                             work_class->name, *name);
    }
    return true;
}

/* What a pod gains by a class is not for every tenant to take. */
static bool check_choice(const struct class_row *row, GError **error)
{
    const struct work_class *work_class = row->work_class;
    const char *gain = work_class_is_choosy(work_class)      ? "shares-with"
                       : work_class->victims == VICTIMS_LAST ? "victims"
                                                             : NULL;

    return !gain || !has(row->namespaces, CLASS_EVERY) ||
           fail_with(error, GPULEDGER_ERROR_INVALID,
                     "field '%s.namespaces': '" CLASS_EVERY "' would let every tenant choose what "
                     "'%s' gives the class over others; list the namespaces, or leave that out",
                     work_class->name, gain);
}

static bool check_priorities(const struct classes *classes, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (uint32_t i = 0; i < classes->n; i++) {
        for (char **name = classes->rows[i].priority_classes; *name; name++) {
            if (!g_hash_table_add(seen, *name))
                return fail_with(error, GPULEDGER_ERROR_INVALID,
                                 "field '%s.priority-classes': '%.64s' is there already, and a "
                                 "PriorityClass stands for one class",
                                 classes->rows[i].work_class->name, *name);
        }
    }
    return true;
}

static bool settle(struct classes *classes, GError **error)
{
    for (uint32_t i = 0; i < classes->n; i++) {
        if (!settle_company(classes, &classes->rows[i], error) ||
            !check_choice(&classes->rows[i], error))
            return false;
    }
    return check_priorities(classes, error);
}

static struct classes *defaults(void)
{
    static const char *const names[] = {"interactive", "inference", "training"};
    struct classes *classes = g_new0(struct classes, 1);

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        begin_row(&classes->rows[classes->n++], names[i], (uint32_t)i + 1);
    settle(classes, NULL);
    return classes;
}

struct classes *classes_read(const cJSON *value, GError **error)
{
    const cJSON *row;

    if (cJSON_IsNull(value) || (cJSON_IsString(value) && !*value->valuestring))
        return NULL;
    if (cJSON_IsString(value) && g_str_equal(value->valuestring, CLASS_DEFAULTS))
        return defaults();
    if (!cJSON_IsObject(value)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "write '" CLASS_DEFAULTS "', or classes with their settings, such as "
                    "{training: {priority-classes: [batch]}}");
        return NULL;
    }
    struct classes *classes = g_new0(struct classes, 1);
    bool good = true;
    cJSON_ArrayForEach (row, value)
        good = good && read_row(row, classes, error);
    if (good && settle(classes, error) && classes->n > 0)
        return classes;
    classes_free(classes);
    return NULL;
}

void classes_free(struct classes *classes)
{
    if (!classes)
        return;
    for (uint32_t i = 0; i < classes->n; i++) {
        work_class_unref(classes->rows[i].work_class);
        g_strfreev(classes->rows[i].priority_classes);
        g_strfreev(classes->rows[i].namespaces);
        g_strfreev(classes->rows[i].shares_with);
    }
    g_free(classes);
}

/* --- and back ----------------------------------------------------------------------------------- */

static void write_texts(struct json_writer *writer, const char *key, char *const *texts)
{
    json_key_array(writer, key);
    for (; *texts; texts++)
        json_string(writer, *texts);
    json_end_array(writer);
}

static void write_row(struct json_writer *writer, const struct class_row *row)
{
    const struct work_class *work_class = row->work_class;

    json_key_object(writer, work_class->name);
    write_texts(writer, "priority-classes", row->priority_classes);
    write_texts(writer, "namespaces", row->namespaces);
    write_texts(writer, "shares-with", row->shares_with);
    json_key_string(writer, "victims", victim_names[work_class->victims - VICTIMS_FIRST]);
    json_key_string(writer, "replicas", replica_names[work_class->spread]);
    json_key_string(writer, "group", group_names[work_class->group]);
    json_key_bool(writer, "oversubscribe", work_class->oversubscribes);
    json_key_string(writer, "isolation", isolation_choices[work_class->isolation]);
    json_key_string(writer, "policy", work_class->policy ? work_class->policy->name : "");
    json_end_object(writer);
}

char *classes_format(const struct classes *classes)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    if (!classes)
        return g_string_free(text, FALSE);
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    for (uint32_t i = 0; i < classes->n; i++)
        write_row(&writer, &classes->rows[i]);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}
