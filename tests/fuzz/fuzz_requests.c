/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as a client may make them, one after the other against a small cluster: each is
 * answered, and what is answered is JSON where it says so; filter, prioritize and preempt change nothing;
 * bind never gives a card more than it has; the ledger adds up.
 *
 * The input is requests with a line "%" between them. The first line is METHOD PATH, then come
 * lines "Name: value" (headers, with "?" in front of the name parts of the query), an empty line,
 * and the body. A path that begins with "//" is asked of the operations listener.
 */
#include "memory_file.h"
#include "views_check.h"

#include "http/bearer.h"
#include "http/routes.h"
#include "snapshot/snapshot.h"

#include <microhttpd.h>

#define PAIRS_MAX 16
#define REQUESTS_MAX 8
#define TOKEN "secret"

static const char saved_cluster[] =
    "{\"kind\":\"List\",\"items\":["
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"n1\"},\"status\":{\"allocatable\":"
    "{\"aliyun.com/gpu-mem\":\"16\",\"aliyun.com/gpu-count\":\"2\"},\"capacity\":"
    "{\"aliyun.com/gpu-mem\":\"16\",\"aliyun.com/gpu-count\":\"2\"}}},"
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"d\",\"name\":\"a\",\"uid\":\"a\"},\"spec\":"
    "{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"6\"}}}]},"
    "\"status\":{\"phase\":\"Pending\"}}]}";

/* --- the library's part -------------------------------------------------------------------- */

struct pairs {
    size_t n;
    struct {
        const char *name, *value;
        bool query;
    } items[PAIRS_MAX];
};

static const struct pairs *current; /* of the request that is being handled */

static const char *find(const char *name, bool query)
{
    for (size_t i = 0; i < current->n; i++) {
        if (current->items[i].query == query &&
            (query ? strcmp(current->items[i].name, name)
                   : g_ascii_strcasecmp(current->items[i].name, name)) == 0)
            return current->items[i].value;
    }
    return NULL;
}

/* What is sent is JSON unless the input says otherwise. */
const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                        const char *key)
{
    const char *value = find(key, false);

    return value || g_ascii_strcasecmp(key, MHD_HTTP_HEADER_CONTENT_TYPE) != 0 ? value
                                                                               : "application/json";
}

enum MHD_Result MHD_lookup_connection_value_n(struct MHD_Connection *connection,
                                              enum MHD_ValueKind kind, const char *key,
                                              size_t key_size, const char **value_ptr,
                                              size_t *value_size_ptr)
{
    *value_ptr = find(key, true);
    return *value_ptr ? MHD_YES : MHD_NO;
}

/* --- the world ------------------------------------------------------------------------------ */

struct world {
    struct store *store;
    struct extender extender;
    struct snapshot_hooks hooks;
    struct auditor *auditor;
    struct bearer *bearer;
    struct routes scheduler, operations;
    struct operations context;
};

static bool add_pod(void *data, const char *body, size_t length, GString *reply, GError **error)
{
    return snapshot_add_pod(data, body, length, reply, error);
}

static bool delete_pod(void *data, const char *ns, const char *name, GError **error)
{
    return snapshot_delete_pod(data, ns, name, error);
}

/* One for all inputs: it has a thread, which waits for ever. */
static struct auditor *idle_auditor(void)
{
    static struct extender extender;
    static struct auditor *auditor;

    if (!auditor) {
        extender.store = store_new(&(struct store_options){.policy = policies, .silent = true});
        auditor = auditor_start(&extender, &(struct auditor_options){0}, NULL);
        FUZZ_CHECK(auditor);
    }
    return auditor;
}

static struct bearer *token_bearer(void)
{
    struct memory_file file = memory_file_new(TOKEN, strlen(TOKEN));
    struct bearer *bearer = bearer_new(file.path, NULL);

    FUZZ_CHECK(bearer);
    memory_file_close(&file);
    return bearer;
}

static void world_init(struct world *world)
{
    struct memory_file file = memory_file_new(saved_cluster, strlen(saved_cluster));

    world->store = store_new(&(struct store_options){.policy = policies, .silent = true});
    world->extender = (struct extender){
        .store = world->store,
        .cluster = snapshot_cluster_new(file.path, world->store, NULL),
        .bind_timeout_ms = 1,
    };
    FUZZ_CHECK(world->extender.cluster);
    world->hooks = (struct snapshot_hooks){world->extender.cluster, add_pod, delete_pod};
    world->bearer = token_bearer();
    world->context = (struct operations){
        .extender = &world->extender, .snapshot = &world->hooks, .auditor = idle_auditor()};
    world->scheduler = (struct routes){scheduler_routes, &world->extender, NULL};
    world->operations = (struct routes){operations_routes, &world->context, world->bearer};
    memory_file_close(&file);
}

static void world_clear(struct world *world)
{
    bearer_free(world->bearer);
    snapshot_cluster_free(world->extender.cluster);
    store_free(world->store);
}

/* --- one request ---------------------------------------------------------------------------- */

static void check_cards(struct world *world)
{
    const struct node *node = ledger_node(store_lock(world->store), "n1");

    for (int32_t i = 0; node && i < node->n_cards; i++)
        FUZZ_CHECK(node->cards[i].memory_used <= node->cards[i].memory);
    store_unlock(world->store);
}

static char *ledger_text(struct world *world)
{
    GString *text = g_string_new(NULL);

    view_nodes(world->store, NULL, text);
    return g_string_free(text, FALSE);
}

static void check_answer(const struct http_response *response, bool operations)
{
    const char *authorization = find("Authorization", false);

    FUZZ_CHECK(response->status >= 200 && response->status < 600);
    FUZZ_CHECK(!response->error || response->status >= 400);
    FUZZ_CHECK(response->status != 401 ||
               (operations && g_strcmp0(authorization, "Bearer " TOKEN) != 0));
    if (g_strcmp0(response->content_type, "application/json") == 0 && response->body->len > 0)
        check_json(response->body);
}

static void handle(struct world *world, const struct pairs *pairs, struct http_request *request)
{
    struct http_response response = {.status = 200, .body = g_string_new(NULL)};
    const bool operations = g_str_has_prefix(request->path, "//");
    g_autofree char *before = ledger_text(world);

    current = pairs;
    routes_handle(operations ? &world->operations : &world->scheduler, request, &response);
    check_answer(&response, operations);
    g_autofree char *after = ledger_text(world);
    const bool reads = (strcmp(request->method, "POST") != 0 &&
                        strcmp(request->method, "DELETE") != 0) ||
                       (!operations && (g_str_has_suffix(request->path, "/filter") ||
                                        strstr(request->path, "/prioriti") ||
                                        g_str_has_suffix(request->path, "/preempt")));
    FUZZ_CHECK(!reads || strcmp(before, after) == 0);

    g_string_free(response.body, TRUE);
    g_free(response.error);
    for (size_t i = 0; i < response.n_headers; i++)
        g_free(response.headers[i].value);
}

/* The line at *cursor, which then is at the next one. */
static char *take_line(char **cursor)
{
    char *line = *cursor;

    *cursor += strcspn(line, "\n");
    if (**cursor)
        *(*cursor)++ = '\0';
    return line;
}

static void run(struct world *world, char *text)
{
    struct pairs pairs = {0};
    struct http_request request = {.method = take_line(&text)};
    char *path = strchr(request.method, ' ');

    if (!path)
        return;
    *path++ = '\0';
    request.path = path;
    for (char *line = take_line(&text); *line; line = take_line(&text)) {
        char *value = strstr(line, ": ");

        if (!value || pairs.n == PAIRS_MAX)
            continue;
        *value = '\0';
        pairs.items[pairs.n].query = *line == '?';
        pairs.items[pairs.n].name = line + (*line == '?');
        pairs.items[pairs.n++].value = value + 2;
    }
    /* Not terminated, so that a sanitizer sees what is read past its end. */
    g_autofree char *body = g_memdup2(text, strlen(text));
    request.length = strlen(text);
    request.body = body ? body : "";
    handle(world, &pairs, &request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) requests = g_strsplit(text, "\n%\n", REQUESTS_MAX);
    struct world world;
    bool only_binds = true;

    world_init(&world);
    for (char **request = requests; *request; request++) {
        /* What people add may be bound already, and to a card that is full. */
        only_binds = only_binds && !strstr(*request, "snapshot");
        run(&world, *request);
    }
    if (only_binds)
        check_cards(&world);
    check_views(world.store);
    world_clear(&world);
    return 0;
}
