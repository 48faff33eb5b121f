/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot_file.h"

#include "core/fail.h"
#include "kube/feeds.h"
#include "kube/framer.h"
#include "kube/yaml_document.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP 65536
#define DEPTH_MAX 4 /* a List of Lists, as concatenated files give */

struct reading {
    snapshot_visit visit;
    void *data;
    struct json_arena *arena;
    GPtrArray *nameless; /* items that came before the list had said of what kind they are */
};

static const char *kind_of(const cJSON *object)
{
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "kind"));
    return kind ? kind : "";
}

/* --- trees ---------------------------------------------------------------------------------- */

/* "scheduling.k8s.io/" of "/apis/scheduling.k8s.io/v1beta1". */
static bool is_of_group(const char *api, const char *version)
{
    const char *group = api + strlen("/apis/");

    return version && g_str_has_prefix(api, "/apis/") &&
           strncmp(version, group, strcspn(group, "/") + 1) == 0;
}

/* PodGroups are of two kinds here, which their API groups tell apart; those of others (Volcano) of none. */
static bool is_of_feed(int feed, const cJSON *object, const char *kind)
{
    const char *api = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "apiVersion"));
    bool shared = false;

    if (!g_str_equal(kinds[feed]->kind, kind))
        return false;
    for (int other = 0; other < kinds_n; other++)
        shared |= other != feed && g_str_equal(kinds[other]->kind, kind);
    return !shared || is_of_group(kinds[feed]->api, api);
}

static bool visit_object(struct reading *reading, const cJSON *object, const char *kind,
                         GError **error)
{
    for (int feed = 0; feed < kinds_n; feed++) {
        if (is_of_feed(feed, object, kind))
            return reading->visit((enum feed)feed, object, reading->data, error);
    }
    return true;
}

/* `kind` is what the list around it says, for items that do not say it themselves. */
static bool visit_tree(struct reading *reading, const cJSON *tree, const char *kind, unsigned depth,
                       GError **error)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(tree, "items");
    const char *own = *kind_of(tree) ? kind_of(tree) : kind;
    const cJSON *item;

    if (!cJSON_IsObject(tree) || !*own)
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "field 'kind': missing; expected what \"kubectl get nodes,pods,configmaps -A "
            "-o json\" writes");
    if (!g_str_has_suffix(own, "List"))
        return visit_object(reading, tree, own, error);
    if (depth == DEPTH_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "lists nested too deeply");
    g_autofree char *item_kind = g_strndup(own, strlen(own) - strlen("List"));
    cJSON_ArrayForEach (item, items) {
        if (!visit_tree(reading, item, item_kind, depth + 1, error))
            return false;
    }
    return true;
}

static bool read_yaml(struct reading *reading, const GString *text, GError **error)
{
    cJSON *documents = yaml_load_all(text->str, text->len, error);
    const cJSON *document;
    bool ok = documents;
    bool empty = true;

    cJSON_ArrayForEach (document, documents) {
        /* "---" at the end begins a document without content. */
        if (!ok || cJSON_IsNull(document))
            continue;
        empty = false;
        ok = visit_tree(reading, document, "", 0, error);
    }
    cJSON_Delete(documents);
    if (ok && empty)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "the file is empty");
    return ok && !empty;
}

/* --- JSON, as it is read -------------------------------------------------------------------- */

static bool on_item(const char *text, size_t length, void *data, GError **error)
{
    struct reading *reading = data;

    json_arena_clear(reading->arena);
    const cJSON *object = json_parse(reading->arena, text, length, error);
    if (!object)
        return false;
    if (*kind_of(object))
        return visit_tree(reading, object, "", 1, error);
    g_ptr_array_add(reading->nameless, g_strndup(text, length));
    return true;
}

static bool end_json(struct reading *reading, const struct framer *framer, GError **error)
{
    size_t length;
    const char *text = framer_envelope(framer, &length);

    if (!framer_is_complete(framer))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "the JSON ends in the middle");
    json_arena_clear(reading->arena);
    const cJSON *envelope = json_parse(reading->arena, text, length, error);
    /* A single object, or a list whose items are in `nameless` or have been visited. */
    if (!envelope || !visit_tree(reading, envelope, "", 0, error))
        return false;

    const char *kind = kind_of(envelope);
    g_autofree char *item_kind = g_str_has_suffix(kind, "List")
                                     ? g_strndup(kind, strlen(kind) - strlen("List"))
                                     : g_strdup("");
    for (guint i = 0; i < reading->nameless->len; i++) {
        const char *item = reading->nameless->pdata[i];

        json_arena_clear(reading->arena);
        const cJSON *object = json_parse(reading->arena, item, strlen(item), error);
        if (!object || !visit_tree(reading, object, item_kind, 1, error))
            return false;
    }
    return true;
}

/* --- files ---------------------------------------------------------------------------------- */

/* The next bytes of the file; 0 at its end, negative on failure. */
static ssize_t read_step(int fd, char *bytes)
{
    ssize_t n;

    do
        n = read(fd, bytes, READ_STEP);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool looks_like_json(const GString *text)
{
    return text->str[strspn(text->str, " \t\r\n")] == '{';
}

static bool read_all(struct reading *reading, int fd, GError **error)
{
    g_autoptr(framer) framer = framer_new(FRAMER_LIST, 0, on_item, reading);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *bytes = g_malloc(READ_STEP);
    bool json = false;
    ssize_t n;

    while ((n = read_step(fd, bytes)) > 0) {
        if (!json) {
            g_string_append_len(text, bytes, n);
            if (text->len > YAML_SIZE_MAX)
                return fail_with(error, GPULEDGER_ERROR_LIMIT,
                                 "more than %zu bytes of YAML; save as JSON", YAML_SIZE_MAX);
            json = text->len == (size_t)n && looks_like_json(text);
        }
        if (json && !framer_feed(framer, bytes, (size_t)n, error))
            return false;
    }
    if (n < 0)
        return fail_with(error, GPULEDGER_ERROR_IO, "%s", g_strerror(errno));
    return json ? end_json(reading, framer, error) : read_yaml(reading, text, error);
}

bool snapshot_file_read(const char *file, snapshot_visit visit, void *data, GError **error)
{
    struct reading reading = {.visit = visit, .data = data};

    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_with(error, GPULEDGER_ERROR_IO, "cannot read \"%s\": %s", file,
                         g_strerror(errno));
    reading.arena = json_arena_new();
    reading.nameless = g_ptr_array_new_with_free_func(g_free);
    const bool ok = read_all(&reading, fd, error);
    if (!ok)
        g_prefix_error(error, "\"%s\": ", file);
    g_ptr_array_unref(reading.nameless);
    json_arena_free(reading.arena);
    close(fd);
    return ok;
}

static bool write_in_place(const char *file, const GString *text, GError **error)
{
    const int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : 0;

    for (size_t done = 0; n >= 0 && done < text->len; done += (size_t)n) {
        do
            n = write(fd, text->str + done, text->len - done);
        while (n < 0 && errno == EINTR);
    }
    const int number = n < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return n >= 0 || fail_with(error, GPULEDGER_ERROR_IO, "cannot write \"%s\": %s", file,
                               g_strerror(number));
}

/* A file is replaced by a whole one. What is none, as /dev/stdout and devices, stays what it is. */
static bool write_text(const char *file, const GString *text, GError **error)
{
    g_autoptr(GError) failure = NULL;
    struct stat status;

    if (lstat(file, &status) == 0 && !S_ISREG(status.st_mode))
        return write_in_place(file, text, error);
    return g_file_set_contents(file, text->str, (gssize)text->len, &failure) ||
           fail_with(error, GPULEDGER_ERROR_IO, "cannot write \"%s\": %s", file, failure->message);
}

bool snapshot_file_write(const char *file, const GPtrArray *objects, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "apiVersion", "v1");
    json_key_string(&writer, "kind", "List");
    json_key_array(&writer, "items");
    for (guint i = 0; i < objects->len; i++) {
        const char *object = objects->pdata[i];

        json_raw(&writer, object, strlen(object));
        g_string_append_c(text, '\n');
    }
    json_end_array(&writer);
    json_end_object(&writer);
    g_string_append_c(text, '\n');
    return write_text(file, text, error);
}
