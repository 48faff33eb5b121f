/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which card of a node would a pod get? Reads both as the API server has them, puts the pod on the
 * node, and says what is left:
 *
 *   cc place.c -o place $(pkg-config --cflags --libs gpuledger libcjson)
 *   ./place node.json pod.json
 */
#include <cjson/cJSON.h>
#include <gpuledger/dialect.h>
#include <stdio.h>

static cJSON *read_object(const char *path)
{
    g_autofree char *text = NULL;
    cJSON *object = g_file_get_contents(path, &text, NULL, NULL) ? cJSON_Parse(text) : NULL;
    if (!object)
        g_error("cannot read an object from '%s'", path);
    return object;
}

/* The pairs are views: their texts are the object's. */
static struct string_pairs read_pairs(const cJSON *parent, const char *key)
{
    const cJSON *map = cJSON_GetObjectItem(parent, key), *item;
    struct string_pair *pairs = g_new0(struct string_pair, (size_t)cJSON_GetArraySize(map) + 1);
    size_t n = 0;
    cJSON_ArrayForEach(item, map)
        pairs[n++] = (struct string_pair){item->string, cJSON_GetStringValue(item)};
    return (struct string_pairs){pairs, n};
}

static const char *read_name(const cJSON *object)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItem(cJSON_GetObjectItem(object, "metadata"), "name"));
}

static struct node_view read_node(const cJSON *object)
{
    const cJSON *meta = cJSON_GetObjectItem(object, "metadata");
    const cJSON *status = cJSON_GetObjectItem(object, "status");
    return (struct node_view){.name = read_name(object),
                              .labels = read_pairs(meta, "labels"),
                              .annotations = read_pairs(meta, "annotations"),
                              .capacity = read_pairs(status, "capacity"),
                              .allocatable = read_pairs(status, "allocatable")};
}

static struct pod_view read_pod(const cJSON *object)
{
    const cJSON *meta = cJSON_GetObjectItem(object, "metadata"), *item;
    const cJSON *list = cJSON_GetObjectItem(cJSON_GetObjectItem(object, "spec"), "containers");
    struct container_view *containers =
        g_new0(struct container_view, (size_t)cJSON_GetArraySize(list) + 1);
    struct pod_view pod = {.name = read_name(object),
                           .annotations = read_pairs(meta, "annotations"),
                           .containers = containers};
    cJSON_ArrayForEach(item, list) {
        const cJSON *resources = cJSON_GetObjectItem(item, "resources");
        containers[pod.n_containers++] = (struct container_view){
            .name = cJSON_GetStringValue(cJSON_GetObjectItem(item, "name")),
            .limits = read_pairs(resources, "limits"),
            .requests = read_pairs(resources, "requests")};
    }
    return pod;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        g_error("usage: place NODE.json POD.json");
    const struct node_view node_view = read_node(read_object(argv[1]));
    const struct pod_view pod = read_pod(read_object(argv[2]));
    const struct dialect_options options = {0}; /* zero is each dialect's default */
    g_autoptr(GError) error = NULL;

    g_autoptr(topology) topology = topology_new();
    g_autoptr(request) request = dialect_read_request(&pod, &options, &error);
    if (!request || !dialect_read_topology(&node_view, &options, topology, NULL, &error))
        g_error("%s", error ? error->message : "the pod asks for no GPU, or the node shares none");

    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = ledger_set_topology(ledger, node_view.name, topology);
    const struct admission_query query = {
        .request = request, .policy = policy_find("binpack"), .options = &options};
    struct placement placement;
    enum reason reason;
    if (dialect_admit(node, &query, &placement, &reason) != ADMISSION_YES) {
        printf("%s: %s\n", pod.name, reason_info(reason)->text);
        return 1;
    }

    struct allocation *allocation = allocation_new(pod.name, "default", pod.name, placement.n_shares);
    allocation->dialect = placement.request->dialect;
    for (uint32_t i = 0; i < placement.n_shares; i++) {
        allocation->shares[i] = placement.shares[i];
        printf("%s: card %d\n", pod.name, placement.shares[i].card);
    }
    /* The ledger takes the allocation, and checks it once more. */
    if (!ledger_reserve(ledger, node_view.name, allocation, &reason))
        g_error("%s", reason_info(reason)->text);

    node = ledger_node(ledger, node_view.name);
    for (int32_t i = 0; i < node->n_cards; i++)
        printf("card %d: %" G_GINT64_FORMAT " MiB of %" G_GINT64_FORMAT " left\n",
               node->cards[i].index, card_memory_free(node, &node->cards[i]) >> 20,
               node->cards[i].memory >> 20);
    return 0;
}
