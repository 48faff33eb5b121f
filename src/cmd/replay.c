/* SPDX-License-Identifier: Apache-2.0 */
/* The command "replay": a record, decided once more. */
#include "core/fail.h"
#include "base/printable.h"
#include "base/log.h"
#include "record/record.h"
#include "record/replay.h"
#include "base/version.h"
#include "inspect/views.h"
#include "cmd/backend.h"
#include "options/command.h"
#include "options/print.h"
#include "verbs/placing_section.h"
#include "options/general_section.h"
#include "options/client_section.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_MAX (2 * RECORD_LINE_MAX) /* nothing that was recorded is as long */
#define PIECE ((size_t)1 << 16)
#define PROGRESS_EVERY_US (G_USEC_PER_SEC / 5)

/* A file read line by line. */
struct lines {
    FILE *file;
    GString *text;
    size_t at; /* where the next line begins in the text */
    uint64_t n;
    bool cut;  /* the last line has no end, and is not given */
};

/* False: there is no other line, or, with an error, it cannot be read. */
static bool next_line(struct lines *lines, const char **ret_text, size_t *ret_length,
                      GError **error)
{
    size_t searched = lines->at;
    for (;;) {
        const char *rest = lines->text->str + searched;
        const char *end = memchr(rest, '\n', lines->text->len - searched);
        if (end) {
            *ret_text = lines->text->str + lines->at;
            *ret_length = (size_t)(end - *ret_text);
            lines->at = (size_t)(end + 1 - lines->text->str);
            lines->n++;
            return true;
        }
        g_string_erase(lines->text, 0, (gssize)lines->at);
        lines->at = 0;
        searched = lines->text->len;
        if (searched > READ_MAX)
            return fail_with(error, GPULEDGER_ERROR_LIMIT,
                             "line %" G_GUINT64_FORMAT " is longer than %zu MiB: this is no record",
                             lines->n + 1, READ_MAX >> 20);
        g_string_set_size(lines->text, searched + PIECE);
        const size_t n = fread(lines->text->str + searched, 1, PIECE, lines->file);
        g_string_truncate(lines->text, searched + n);
        if (n > 0)
            continue;
        if (ferror(lines->file))
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "it cannot be read: %s",
                        g_strerror(errno));
        lines->cut = searched > 0;
        return false;
    }
}

/* --- the header's options ---------------------------------------------------------------------- */

struct recorded {
    struct config *config; /* NULL before the header */
};

/* Older versions had a policy "auto", which began as oc. Which policy it went over to, and where, the
 * record says in lines of the kind "policy". */
static const char *value_of(const cJSON *item)
{
    return g_str_equal(item->string, "policy") && g_str_equal(item->valuestring, "auto")
               ? "oc"
               : item->valuestring;
}

static bool configure(void *data, const cJSON *object, struct store_options *ret_options,
                      struct extender *ret_extender, GError **error)
{
    struct recorded *recorded = data;
    g_autoptr(GPtrArray) arguments = g_ptr_array_new_with_free_func(g_free);
    const char *const environment[] = {NULL};
    const cJSON *item;
    cJSON_ArrayForEach (item, object) {
        const struct option *option = option_find(item->string, COMMAND_SERVE);
        if (!cJSON_IsString(item) || !option || !option_section(option)->recorded)
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "option '--%s' of the record is not known to this version",
                             item->string);
        /* A path that was not given is empty, and so it is again. */
        if (option->kind != OPTION_PATH || *item->valuestring)
            g_ptr_array_add(arguments, g_strdup_printf("--%s=%s", item->string, value_of(item)));
    }
    if (!cJSON_HasObjectItem(object, "lend-unreclaimable")) /* older versions lent to any pod */
        g_ptr_array_add(arguments, g_strdup("--lend-unreclaimable=true"));
    g_ptr_array_add(arguments, NULL);
    const struct config_inputs inputs = {
        .command = COMMAND_SERVE,
        .arguments = (const char *const *)arguments->pdata,
        .environment = environment,
    };
    recorded->config = config_load(&inputs, error);
    if (!recorded->config)
        return false;
    *ret_options = backend_store_options(recorded->config);
    ret_extender->shape = (enum prioritize_shape)config_section(recorded->config, placing)->shape;
    return true;
}

/* --- playing ------------------------------------------------------------------------------------ */

static void show_progress(const struct lines *lines, const struct replay *replay, int64_t size)
{
    const struct replay_summary *summary = replay_summary(replay);
    const off_t at = ftello(lines->file);
    fprintf(stderr, "\r%3d %%  %" G_GUINT64_FORMAT " records, %" G_GUINT64_FORMAT " differ ",
            size > 0 ? (int)(100 * (int64_t)at / size) : 100, summary->last, summary->different);
}

static int64_t size_of(FILE *file)
{
    fseeko(file, 0, SEEK_END);
    const off_t size = ftello(file);
    rewind(file);
    return size;
}

/* The error names the line. */
static bool play(struct lines *lines, struct replay *replay, GError **error)
{
    const bool shows = isatty(STDERR_FILENO);
    const int64_t size = size_of(lines->file);
    int64_t shown_us = 0;
    const char *text;
    size_t length;
    bool usable = true;
    g_autoptr(GError) failure = NULL;
    while (usable && !replay_is_done(replay) && next_line(lines, &text, &length, &failure)) {
        usable = replay_line(replay, text, length, &failure);
        if (failure)
            g_prefix_error(&failure, "line %" G_GUINT64_FORMAT ": ", lines->n);
        if (!shows || g_get_monotonic_time() - shown_us < PROGRESS_EVERY_US)
            continue;
        shown_us = g_get_monotonic_time();
        show_progress(lines, replay, size);
    }
    if (shows)
        fputs("\r\033[K", stderr);
    if (!failure && !replay_store(replay))
        g_set_error(&failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "there is no header: this is no record");
    if (failure)
        g_propagate_error(error, g_steal_pointer(&failure));
    return !*error;
}

/* --- what came of it ---------------------------------------------------------------------------- */

struct result {
    const struct replay_summary *summary;
    const struct config *config;
    bool cut;
    const char *policy; /* NULL: the recorded one */
};

/* Of the decisions. */
static uint64_t count_equal(const struct replay_summary *summary)
{
    return summary->compared - (summary->different - summary->ledgers_different);
}

static void write_json(const struct result *result, GString *text)
{
    const struct replay_summary *summary = result->summary;
    const struct replay_difference *difference = &summary->difference;
    struct json_writer writer;
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "recordedBy", summary->version);
    json_key_string(&writer, "recordedByCommit", summary->commit);
    json_key_string(&writer, "policy", result->policy);
    json_key_int(&writer, "first", (int64_t)summary->first);
    json_key_int(&writer, "last", (int64_t)summary->last);
    json_key_int(&writer, "events", (int64_t)summary->events);
    json_key_int(&writer, "calls", (int64_t)summary->calls);
    json_key_int(&writer, "bindLooks", (int64_t)summary->looks);
    json_key_int(&writer, "compared", (int64_t)summary->compared);
    json_key_int(&writer, "equal", (int64_t)count_equal(summary));
    json_key_int(&writer, "different", (int64_t)summary->different);
    json_key_int(&writer, "unchecked", (int64_t)(summary->unchecked + summary->orphans));
    json_key_int(&writer, "ledgers", (int64_t)summary->ledgers);
    json_key_int(&writer, "lost", (int64_t)summary->lost);
    json_key_bool(&writer, "ended", summary->ended);
    json_key_bool(&writer, "cut", result->cut);
    if (difference->what) {
        json_key_object(&writer, "firstDifference");
        json_key_int(&writer, "number", (int64_t)difference->number);
        json_key_int(&writer, "line", (int64_t)difference->line);
        json_key_string(&writer, "what", difference->what);
        json_key_string(&writer, "recorded", difference->recorded);
        json_key_string(&writer, "replayed", difference->replayed);
        json_key_string(&writer, "ledger", difference->ledger);
        json_end_object(&writer);
    }
    json_end_object(&writer);
    g_string_append_c(text, '\n');
}

static void write_difference(const struct replay_difference *difference, bool supposed,
                             GString *text)
{
    printable_append(text, "record %" G_GUINT64_FORMAT " (line %" G_GUINT64_FORMAT "), %s: %s\n",
                     difference->number, difference->line, difference->what,
                     supposed ? "would differ" : "differs");
    printable_append(text, "  recorded  %s\n", difference->recorded);
    printable_append(text, "  replayed  %s\n", difference->replayed);
    if (*difference->ledger)
        g_string_append_c(text, '\n');
    g_string_append(text, difference->ledger); /* lines */
    g_string_append_c(text, '\n');
}

static void write_text(const struct result *result, GString *text)
{
    const struct replay_summary *summary = result->summary;
    const struct replay_difference *difference = &summary->difference;
    const char *version = version_text, *commit = version_commit;
    const uint64_t unchecked = summary->unchecked + summary->orphans;
    if (difference->what)
        write_difference(difference, result->policy != NULL, text);
    printable_append(text,
                     "records %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                     " events, %" G_GUINT64_FORMAT " calls, %" G_GUINT64_FORMAT " looks of binds\n",
                     summary->first, summary->last, summary->events, summary->calls,
                     summary->looks);
    printable_append(text,
                     "%" G_GUINT64_FORMAT " decisions compared: %" G_GUINT64_FORMAT
                     " equal, %" G_GUINT64_FORMAT " %s\n",
                     summary->compared, count_equal(summary),
                     summary->compared - count_equal(summary),
                     result->policy ? "would differ" : "different");
    if (summary->ledgers > 0)
        printable_append(
            text, "the ledger compared %" G_GUINT64_FORMAT " times: %" G_GUINT64_FORMAT " %s\n",
            summary->ledgers, summary->ledgers_different,
            result->policy ? "would differ" : "different");
    if (result->policy)
        printable_append(text, "under policy %s\n", result->policy);
    if (unchecked > 0)
        printable_append(text,
                         "%" G_GUINT64_FORMAT " more could not be compared: the record does "
                         "not hold all that they saw\n",
                         unchecked);
    if (summary->lost > 0)
        printable_append(text, "%" G_GUINT64_FORMAT " records were lost\n", summary->lost);
    if (result->cut)
        g_string_append(text, "the file ends in the middle of a line\n");
    else if (!summary->ended && config_section(result->config, general)->until == 0)
        g_string_append(text, "the file has no last line: it was recorded by a process that goes "
                              "on, was killed, or went on in another file\n");
    if (strcmp(summary->version, version) != 0 || strcmp(summary->commit, commit) != 0)
        printable_append(text, "recorded by %s (%s), replayed by %s (%s)\n", summary->version,
                         summary->commit, version, commit);
}

/* The ledger where --until stopped. */
static bool write_ledger(const struct config *config, struct store *store, GString *text,
                         GError **error)
{
    g_autoptr(GString) body = g_string_new(NULL);
    view_nodes(store, NULL, body);
    if (print_is_document(config)) {
        g_string_append(text, body->str);
        return true;
    }
    return nodes_write(body, config_section(config, client)->output == OUTPUT_WIDE, text, error);
}

static const struct policy *policy_asked_for(const struct config *config)
{
    return config_on_command_line(config, "policy")
               ? &policies[config_section(config, placing)->policy]
               : NULL;
}

static enum exit_code finish(const struct config *config, struct lines *lines,
                             struct replay *replay, GError **error)
{
    const struct general_settings *general = config_section(config, general);
    const struct policy *policy = policy_asked_for(config);
    const struct result result = {replay_summary(replay), config, lines->cut,
                                  policy ? policy->name : NULL};
    g_autoptr(GString) text = g_string_new(NULL);
    if (general->until != 0 && !write_ledger(config, replay_store(replay), text, error))
        return EXIT_FAILED;
    if (general->until == 0 && print_is_document(config))
        write_json(&result, text);
    else if (general->until == 0)
        write_text(&result, text);
    if (print_answer(config, text, NULL) != EXIT_OK)
        return EXIT_FAILED;
    return result.summary->different > 0 ? EXIT_DIFFERENT : EXIT_OK;
}

enum exit_code replay_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GError) failure = NULL;
    enum exit_code code = EXIT_FAILED;
    if (config->words->len != 1) {
        complain("replay: the name of a file that 'serve --record' has written is missing");
        return EXIT_USAGE;
    }
    const char *name = config->words->pdata[0];
    struct lines lines = {.file = fopen(name, "re")};
    if (!lines.file) {
        complain("'%s' cannot be opened: %s", name, g_strerror(errno));
        return EXIT_USAGE;
    }
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    lines.text = g_string_new(NULL);
    struct recorded recorded = {0};
    struct replay *replay = replay_new(&(struct replay_options){
        .configure = configure,
        .data = &recorded,
        .policy = policy_asked_for(config),
        .until = (uint64_t)config_section(config, general)->until,
    });
    if (play(&lines, replay, &failure))
        code = finish(config, &lines, replay, &failure);
    if (failure) {
        code = lines.n <= 1 ? EXIT_USAGE
                            : EXIT_FAILED; /* it is no record; or a part of it is damaged */
        complain("'%s': %s", name, failure->message);
    }
    replay_free(replay);
    config_free(recorded.config);
    g_string_free(lines.text, TRUE);
    fclose(lines.file);
    return code;
}
