/* SPDX-License-Identifier: Apache-2.0 */
#include "options/nearest.h"
#include "options/options.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <gpuledger/placement.h>
#include <string.h>

static const char *const nothing[] = {NULL};

static struct config *defaults(void)
{
    const struct config_inputs inputs = {COMMAND_SERVE, nothing, nothing};
    g_autoptr(GError) error = NULL;
    struct config *config = config_load(&inputs, &error);
    ck_assert_msg(config != NULL, "%s", error ? error->message : "");
    return config;
}

static const struct option *find(const char *name)
{
    const struct option *option = option_find(name, COMMAND_ANY);
    ck_assert_msg(option != NULL, "no option %s", name);
    return option;
}

/* --- the table as a whole ----------------------------------------------------------------------
 */

START_TEST(every_option_is_explained)
{
    options_each (option) {
        ck_assert_msg(option->help && strlen(option->help) > 10, "--%s: no help", option->name);
        ck_assert_msg(g_str_has_suffix(option->help, "."), "--%s: no sentence", option->name);
        ck_assert_msg(strlen(option->name) > 2 &&
                          strspn(option->name, "abcdefghijklmnopqrstuvwxyz-") ==
                              strlen(option->name),
                      "--%s: not a plain name", option->name);
        ck_assert_msg((option->kind == OPTION_BOOL) == (option->metavar == NULL),
                      "--%s: a metavar is for what takes a value", option->name);
        ck_assert_msg(option->commands != 0, "--%s: no command takes it", option->name);
        ck_assert_msg(!option->read_alias || option->alias, "--%s: alias without a name",
                      option->name);
        ck_assert_msg(!option->alias || option->alias_help, "--%s: alias not explained",
                      option->name);
        g_autofree char *accepts = option_accepts(option);
        ck_assert_msg(accepts && *accepts, "--%s: accepts nothing", option->name);
    }
}
END_TEST

START_TEST(names_letters_and_places_are_unique)
{
    struct config *config = defaults();
    size_t n = 0;

    options_each (a) {
        for (const struct option *b = option_next(a); b; b = option_next(b)) {
            ck_assert(!(a->commands & b->commands) || !g_str_equal(a->name, b->name));
            ck_assert_msg(option_value(a, config) != option_value(b, config),
                          "--%s and --%s share a place", a->name, b->name);
            ck_assert_msg(!(a->commands & b->commands) || !a->letter || a->letter != b->letter,
                          "--%s and --%s share -%c", a->name, b->name, a->letter);
        }
        ck_assert_ptr_eq(option_find(a->name, a->commands), a);
        ck_assert_uint_eq(option_position(a), n++);
    }
    config_free(config);
}
END_TEST

/* A Service named gpuledger puts GPULEDGER_PORT, GPULEDGER_PORT_…, GPULEDGER_SERVICE_… into the
 * environment of every pod of its namespace. */
START_TEST(no_variable_is_one_that_kubelet_sets)
{
    options_each (option) {
        g_autofree char *variable = option_variable(option);
        if (!variable)
            continue;
        ck_assert_msg(g_str_has_prefix(variable, "GPULEDGER_"), "%s", variable);
        ck_assert_str_ne(variable, "GPULEDGER_PORT");
        ck_assert_msg(!g_str_has_prefix(variable, "GPULEDGER_PORT_") &&
                          !g_str_has_prefix(variable, "GPULEDGER_SERVICE_"),
                      "%s", variable);
    }
}
END_TEST

START_TEST(defaults_are_written_as_they_are_read)
{
    struct config *config = defaults();
    options_each (option) {
        g_autofree char *text = option_format(option, config);
        ck_assert_msg(strcmp(text, option->fallback) == 0, "--%s: default '%s' reads as '%s'",
                      option->name, option->fallback, text);
    }
    config_free(config);
}
END_TEST

/* As it is written down again: with every setting. */
#define CLASSES                                                                                    \
    "{\"interactive\":{\"priority-classes\":[\"interactive\"],\"namespaces\":[],"                  \
    "\"shares-with\":[\"*\"],\"victims\":\"last\",\"replicas\":\"any\",\"group\":\"optional\","    \
    "\"oversubscribe\":true,\"isolation\":\"none\",\"policy\":\"\"}}"

/* Values other than the default, one per kind and bound. */
static GPtrArray *samples(const struct option *option)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    struct choice choice;
    struct config *scratch = defaults();
    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_PATH:
        g_ptr_array_add(texts, g_strdup("a b: #'\"\\é"));
        break;
    case OPTION_NAMESPACE:
        g_ptr_array_add(texts, g_strdup("0"));
        g_ptr_array_add(texts, g_strdup("gpu-system"));
        break;
    case OPTION_LIST:
        g_ptr_array_add(texts, g_strdup(option->list->example));
        break;
    case OPTION_CLASSES:
        g_ptr_array_add(texts, g_strdup(CLASSES));
        break;
    case OPTION_BOOL:
        g_ptr_array_add(texts, g_strdup("true"));
        g_ptr_array_add(texts, g_strdup("false"));
        break;
    case OPTION_ADDRESS:
        g_ptr_array_add(texts, g_strdup("[::1]:0"));
        g_ptr_array_add(texts, g_strdup("localhost:65535"));
        if (option->flags & OPTION_CAN_BE_OFF)
            g_ptr_array_add(texts, g_strdup("off"));
        break;
    case OPTION_CHOICE:
        for (size_t i = 0; option->choice(i, &choice); i++)
            g_ptr_array_add(texts, g_strdup(choice.name));
        break;
    case OPTION_INT:
    case OPTION_DURATION:
    case OPTION_SIZE:
        *(int64_t *)option_value(option, scratch) = option->min;
        g_ptr_array_add(texts, option_format(option, scratch));
        *(int64_t *)option_value(option, scratch) = option->max;
        g_ptr_array_add(texts, option_format(option, scratch));
        break;
    }
    config_free(scratch);
    return texts;
}

START_TEST(values_survive_writing_and_reading)
{
    struct config *config = defaults();
    options_each (option) {
        g_autoptr(GPtrArray) texts = samples(option);
        for (guint i = 0; i < texts->len; i++) {
            g_autoptr(GError) error = NULL;
            bool ok = option_parse(option, texts->pdata[i], config, &error);
            ck_assert_msg(ok, "--%s %s: %s", option->name, (char *)texts->pdata[i],
                          error ? error->message : "");
            g_autofree char *text = option_format(option, config);
            ck_assert_str_eq(text, texts->pdata[i]);
        }
    }
    config_free(config);
}
END_TEST

static const struct {
    const char *option, *text, *item;
} bad_lists[] = {
    {"nvidia-config-replicas", "quarter=4;whole=1", "'quarter=4;whole=1'"},
    {"nvidia-config-replicas", "whole", "'whole'"},
    {"nvidia-config-replicas", "whole=x", "'whole=x'"},
    {"nvidia-config-replicas", "=2", "'=2'"},
    {"nvidia-config-replicas", "quarter=4,whole=0", "'whole=0'"},
    {"nvidia-config-replicas", "whole=65537", "'whole=65537'"},
    {"nvidia-config-replicas", "a b=2", "'a b=2'"},
    {"nvidia-config-replicas", "whole=1,", "''"},
    {"nvidia-config-replicas", ",whole=1", "''"},
    {"nvidia-config-replicas", "whole=1, whole = 2", "'whole = 2'"},
    {"nvidia-memory-label", "a label", "'a label'"},
    {"nvidia-memory-label", "gpu.memory=4", "'gpu.memory=4'"},
    {"quota-model-label", "a,b", "'a,b'"},
    {"quota-pool-label", "/b", "'/b'"},
    {"hami-mig-templates", "garbage", "'garbage'"},
    {"hami-mig-templates", "A100=7x1g.5gb:5120;garbage", "'garbage'"},
    {"hami-mig-templates", "A100=7x1g.5gb", "'A100=7x1g.5gb'"},
    {"hami-mig-templates", "A100=", "'A100='"},
    {"hami-mig-templates", "=7x1g.5gb:5120", "'=7x1g.5gb:5120'"},
    {"hami-mig-templates", "A100=x1g.5gb:5120", "'A100=x1g.5gb:5120'"},
    {"hami-mig-templates", "A100=7x1:5120", "'A100=7x1:5120'"},
    {"hami-mig-templates", "A30=-;A100=7x1g.5gb:5120,B=4x1g.6gb:6144", "'A100=7x1g.5gb:5120,B"},
    {"hami-mig-templates", "A30=-;A30=-", "'A30=-'"},
    {"tls-client-names", "a,,b", "''"},
    {"tls-client-names", "a,a", "'a'"},
    {"drain", "a,", "''"},
    {"hosts", "a,a", "'a'"},
};

/* Of what is passed over in silence nobody learns that it protects nothing. */
START_TEST(a_list_is_read_as_a_whole_or_refused)
{
    g_autofree char *flag = g_strdup_printf("--%s=%s", bad_lists[_i].option, bad_lists[_i].text);
    const char *const arguments[] = {flag, NULL};
    const struct option *option = find(bad_lists[_i].option);
    unsigned command = 1;
    g_autoptr(GError) error = NULL;

    while (!(option->commands & command))
        command <<= 1;
    const struct config_inputs inputs = {command, arguments, nothing};
    ck_assert_msg(!config_load(&inputs, &error), "%s", flag);
    ck_assert_msg(strstr(error->message, option->name) && strstr(error->message, bad_lists[_i].item),
                  "%s: %s", flag, error->message);
    ck_assert_msg(strstr(error->message, option->list->form) || strstr(error->message, "once"),
                  "%s: %s", flag, error->message);
}
END_TEST

/* A structure that the table says, a list reads. */
START_TEST(whatever_has_items_is_a_list)
{
    options_each (option) {
        if (option->kind == OPTION_LIST)
            ck_assert_msg(option->list && option->list->take, "--%s", option->name);
        if (option->kind == OPTION_TEXT && (option->commands & COMMAND_SERVE))
            ck_assert_msg(!strpbrk(option->metavar, ",;=") && !g_str_equal(option->metavar, "LABEL"),
                          "--%s %s is taken as it comes", option->name, option->metavar);
    }
}
END_TEST

START_TEST(what_is_out_of_bounds_is_refused)
{
    struct config *config = defaults();
    struct config *scratch = defaults();
    options_each (option) {
        if (option->kind != OPTION_INT && option->kind != OPTION_DURATION &&
            option->kind != OPTION_SIZE)
            continue;
        ck_assert_int_lt(option->min, option->max);
        int64_t *place = option_value(option, scratch);
        for (int above = 0; above < 2; above++) {
            if (!above && option->min == 0)
                continue;
            *place = above ? option->max + 1 : option->min - 1;
            g_autofree char *text = option_format(option, scratch);
            g_autoptr(GError) error = NULL;
            ck_assert_msg(!option_parse(option, text, config, &error), "--%s %s", option->name,
                          text);
            ck_assert_msg(strstr(error->message, text) != NULL, "%s", error->message);
        }
    }
    config_free(scratch);
    config_free(config);
}
END_TEST

START_TEST(the_default_policy_is_the_first)
{
    ck_assert_str_eq(find("policy")->fallback, policies[0].name);
}
END_TEST

/* --- values -------------------------------------------------------------------------------------
 */

static const struct {
    const char *option;
    const char *text;
    const char *canonical; /* NULL: refused */
} values[] = {
    {"bind-timeout", "25s", "25s"},
    {"bind-timeout", "1500ms", "1s500ms"},
    {"bind-timeout", "90s", "1m30s"},
    {"bind-timeout", "1m30s", "1m30s"},
    {"assign-patience", "0s", "0s"},
    {"assign-patience", "1h", "1h"},
    {"bind-timeout", "", NULL},
    {"bind-timeout", "25", NULL},
    {"bind-timeout", "s", NULL},
    {"bind-timeout", "25 s", NULL},
    {"bind-timeout", "-5s", NULL},
    {"bind-timeout", "+5s", NULL},
    {"bind-timeout", "2.5s", NULL},
    {"bind-timeout", "25sec", NULL},
    {"bind-timeout", "30s1m", NULL},
    {"bind-timeout", "5s5s", NULL},
    {"bind-timeout", "9223372036854775807h", NULL},
    {"bind-timeout", "99999999999999999999s", NULL},
    {"bind-timeout", "18446744073709551641s", NULL}, /* 25 and 2^64 */
    {"max-body", "64MiB", "64MiB"},
    {"max-body", "65536", "64KiB"},
    {"max-body", "1Gi", "1GiB"},
    {"max-body", "100kB", "100kB"},
    {"max-body", "1MB", "1MB"},
    {"max-body", "2048KiB", "2MiB"},
    {"max-body", "100001", "100001B"},
    {"max-body", "64mib", NULL},
    {"max-body", "64 MiB", NULL},
    {"max-body", "MiB", NULL},
    {"max-body", "9223372036854775807TiB", NULL},
    {"max-connections", "0256", "256"},
    {"max-connections", "18446744073709551872", NULL}, /* 256 and 2^64 */
    {"max-connections", "0x10", NULL},
    {"max-connections", " 5", NULL},
    {"max-connections", "5.0", NULL},
    {"max-connections", "", NULL},
    {"listen", "127.0.0.1:80", "127.0.0.1:80"},
    {"listen", "[::]:80", "[::]:80"},
    {"listen", "::1:80", NULL},
    {"listen", ":80", ":80"},
    {"listen", "[]:80", NULL},
    {"listen", "80", NULL},
    {"listen", "host:", NULL},
    {"listen", "host:65536", NULL},
    {"listen", "host:http", NULL},
    {"listen", "off", NULL},
    {"ops-listen", "off", "off"},
    {"gpushare-any-on-single-card", "yes", NULL},
    {"lease-namespace", "a-b-2", "a-b-2"},
    {"lease-namespace", "-a", NULL},
    {"lease-namespace", "a-", NULL},
    {"lease-namespace", "-", NULL},
    {"lease-namespace", "A", NULL},
    {"lease-namespace", "", NULL},
    {"policy", "Binpack", NULL},
    {"policy", "", NULL},
};

START_TEST(value)
{
    struct config *config = defaults();
    const struct option *option = find(values[_i].option);
    g_autofree char *before = option_format(option, config);
    g_autoptr(GError) error = NULL;
    bool ok = option_parse(option, values[_i].text, config, &error);
    g_autofree char *after = option_format(option, config);
    if (values[_i].canonical) {
        ck_assert_msg(ok, "%s", error ? error->message : "");
        ck_assert_str_eq(after, values[_i].canonical);
    } else {
        g_autofree char *accepts = option_accepts(option);
        g_autofree char *message =
            g_strdup_printf("'%s' is not valid, expected %s", values[_i].text, accepts);
        ck_assert_msg(!ok, "'%s' was read as '%s'", values[_i].text, after);
        ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
        ck_assert_str_eq(error->message, message);
        ck_assert_str_eq(after, before);
    }
    config_free(config);
}
END_TEST

START_TEST(a_host_that_is_too_long_is_refused)
{
    struct config *config = defaults();
    g_autofree char *host = g_strnfill(256, 'a');
    g_autofree char *text = g_strconcat(host, ":80", NULL);
    ck_assert(!option_parse(find("listen"), text, config, NULL));
    ck_assert(option_parse(find("listen"), text + 1, config, NULL));
    config_free(config);
}
END_TEST

START_TEST(bounds_are_in_what_is_accepted)
{
    g_autofree char *duration = option_accepts(find("bind-timeout"));
    g_autofree char *size = option_accepts(find("max-body"));
    g_autofree char *number = option_accepts(find("max-connections"));
    g_autofree char *choice = option_accepts(find("gpushare-memory-unit"));
    ck_assert_str_eq(duration, "a duration such as 500ms, 30s or 1m30s, from 1s to 10m");
    ck_assert_str_eq(size, "a size such as 512KiB or 64MiB, from 64KiB to 1GiB");
    ck_assert_str_eq(number, "a whole number from 1 to 65536");
    ck_assert_str_eq(choice, "auto, GiB or MiB");
}
END_TEST

/* --- nearest -------------------------------------------------------------------------------------
 */

static const struct {
    const char *word, *match;
} slips[] = {
    {"bind-timout", "bind-timeout"},
    {"bind-timeotu", "bind-timeout"},
    {"listn", "listen"},
    {"opslisten", "ops-listen"},
    {"max-conn", "max-connections"},
    {"snapshto", "snapshot"},
    {"xyzzy", NULL},
    {"", NULL},
    {"q", NULL},
};

START_TEST(slip)
{
    struct nearest nearest = {.word = slips[_i].word};
    options_each (option)
        nearest_offer(&nearest, option->name);
    if (slips[_i].match)
        ck_assert_str_eq(nearest.match, slips[_i].match);
    else
        ck_assert_msg(!nearest.match, "'%s' suggests '%s'", slips[_i].word, nearest.match);
}
END_TEST

START_TEST(a_very_long_word_is_no_slip)
{
    g_autofree char *word = g_strnfill(1 << 20, 'a');
    struct nearest nearest = {.word = word};
    nearest_offer(&nearest, "listen");
    ck_assert_ptr_null(nearest.match);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *table = tcase_create("table");
    tcase_add_test(table, every_option_is_explained);
    tcase_add_test(table, names_letters_and_places_are_unique);
    tcase_add_test(table, no_variable_is_one_that_kubelet_sets);
    tcase_add_test(table, defaults_are_written_as_they_are_read);
    tcase_add_test(table, values_survive_writing_and_reading);
    tcase_add_test(table, what_is_out_of_bounds_is_refused);
    tcase_add_loop_test(table, a_list_is_read_as_a_whole_or_refused, 0,
                        G_N_ELEMENTS(bad_lists));
    tcase_add_test(table, whatever_has_items_is_a_list);
    tcase_add_test(table, the_default_policy_is_the_first);
    suite_add_tcase(suite, table);
    TCase *value_case = tcase_create("values");
    tcase_add_loop_test(value_case, value, 0, G_N_ELEMENTS(values));
    tcase_add_test(value_case, a_host_that_is_too_long_is_refused);
    tcase_add_test(value_case, bounds_are_in_what_is_accepted);
    suite_add_tcase(suite, value_case);
    TCase *nearest_case = tcase_create("nearest");
    tcase_add_loop_test(nearest_case, slip, 0, G_N_ELEMENTS(slips));
    tcase_add_test(nearest_case, a_very_long_word_is_no_slip);
    suite_add_tcase(suite, nearest_case);

    return suite_run(suite);
}
