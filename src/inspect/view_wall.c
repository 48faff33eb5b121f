/* SPDX-License-Identifier: Apache-2.0 */
/* All cards of the cluster as the page draws them: much less of each than view_nodes has. */
#include "core/bytes.h"
#include "inspect/views.h"
#include "policy/room.h"
#include "store/node_copy.h"

#include <gpuledger/mig.h>
#include <string.h>

static int64_t thousandths(int64_t part, int64_t whole)
{
    return whole > 0 ? CLAMP(part * 1000 / whole, 0, 1000) : 0;
}

/* How much of a card is handed out: of memory or compute, whichever is more; all, if its holder
 * tolerates no other. */
static int64_t given(const struct node_copy *node, const struct card *card)
{
    if (card->exclusive > 0)
        return 1000;
    return MAX(thousandths(card->memory - card_copy_free(node, card), card->memory),
               thousandths(card->core_used, card->core));
}

/* Of a card that is cut into MIG instances, how many places its layout has. */
static int32_t count_slices(const struct node_copy *node, const struct card *card)
{
    int32_t layout = -1, slices = 0;

    for (uint32_t i = 0; i < node->n_pods; i++) {
        const struct pod_copy *pod = &node->pods[i];
        for (uint32_t j = 0; j < pod->n_shares; j++) {
            if (pod->shares[j].place.size > 0 && share_copy_is_on(node, &pod->shares[j], card))
                layout = pod->shares[j].place.layout;
        }
    }
    for (int32_t i = 0; i < card->mig->n; i++) {
        const struct mig_profile *profile = &card->mig->items[i];
        for (int32_t j = 0; j < profile->n_places; j++) {
            if (layout < 0 || profile->places[j].layout == layout)
                slices = MAX(slices, profile->places[j].start + profile->places[j].size);
        }
    }
    return slices;
}

static void write_card(struct json_writer *writer, const struct node_copy *node,
                       const struct card *card)
{
    json_begin_object(writer);
    json_key_int(writer, "index", card->index);
    json_key_string(writer, "model", card->model);
    json_key_string(writer, "state",
                    !card->healthy                    ? "unhealthy"
                    : card->closure != CLOSURE_NONE ? "closed"
                                                      : "open");
    json_key_int(writer, "mib", card->memory / MIB);
    json_key_int(writer, "usedMib", card->memory_used / MIB);
    json_key_int(writer, "core", card_core_told(card, card->core));
    json_key_int(writer, "usedCore", card_core_told(card, card->core_used));
    json_key_int(writer, "given", given(node, card));
    json_key_int(writer, "slices", card->mig ? count_slices(node, card) : 0);
    json_end_object(writer);
}

static void write_pool(struct json_writer *writer, const struct pool *pool)
{
    json_begin_object(writer);
    json_key_string(writer, "resource", pool->resource);
    json_key_string(writer, "model", pool->model);
    json_key_bool(writer, "shared", pool->shared);
    json_key_int(writer, "devices", pool->capacity);
    json_key_int(writer, "used", pool->used);
    json_key_int(writer, "size", (int64_t)(pool_device_size(pool) * 1000 + 0.5));
    json_end_object(writer);
}

/* The card that a share is on by its index in JSON, null for none that is known. */
static void write_share_card(struct json_writer *writer, const struct node_copy *node,
                             const struct share_copy *share)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (share_copy_is_on(node, share, &node->cards[i])) {
            json_int(writer, node->cards[i].index);
            return;
        }
    }
    json_null(writer);
}

static void write_shares(struct json_writer *writer, const struct node_copy *node,
                         const struct pod_copy *pod)
{
    json_begin_array(writer);
    for (uint32_t i = 0; i < pod->n_shares; i++) {
        const struct share_copy *share = &pod->shares[i];
        json_begin_object(writer);
        if (share->device) {
            json_key_string(writer, "resource", share->device);
            json_key_int(writer, "devices", share->devices);
        } else {
            json_key(writer, "card");
            write_share_card(writer, node, share);
            json_key_int(writer, "mib", share->memory / MIB);
            json_key_int(writer, "core", share->core);
        }
        if (share->place.size > 0) {
            json_key_int(writer, "start", share->place.start);
            json_key_int(writer, "slices", share->place.size);
        }
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void write_pod(struct json_writer *writer, const struct node_copy *node,
                      const struct pod_copy *pod)
{
    json_begin_object(writer);
    json_key_string(writer, "namespace", pod->ns);
    json_key_string(writer, "name", pod->name);
    json_key_string(writer, "state", pod->assigned ? "assigned" : view_states[pod->state]);
    json_key_bool(writer, "waiting", pod->waiting);
    json_key_int(writer, "since", pod->since_ns / 1000000000);
    json_key_int(writer, "gpuMillionths", pod->gpus);
    json_key(writer, "shares");
    write_shares(writer, node, pod);
    json_end_object(writer);
}

/* What is known of nodes beside the ledger. */
struct marks {
    GHashTable *left_out; /* a set of names */
    GHashTable *plans;    /* name -> text */
};

static void write_node(struct json_writer *writer, const struct node_copy *node,
                       const struct marks *marks)
{
    json_begin_object(writer);
    json_key_string(writer, "name", node->name);
    json_key_array(writer, "dialects");
    for (int32_t i = 0; i < node->n_dialects; i++)
        json_string(writer, node->dialects[i]->name);
    json_end_array(writer);
    json_key_bool(writer, "present", node->present);
    json_key_bool(writer, "cordoned", node->cordoned);
    json_key_bool(writer, "paused", node->paused);
    json_key_bool(writer, "leftOut", g_hash_table_contains(marks->left_out, node->name));
    json_key_string(writer, "plan", g_hash_table_lookup(marks->plans, node->name));
    json_key_int(writer, "fragmented", node->fragmented);
    json_key_array(writer, "cards");
    for (int32_t i = 0; i < node->n_cards; i++)
        write_card(writer, node, &node->cards[i]);
    json_end_array(writer);
    json_key_array(writer, "pools");
    for (int32_t i = 0; i < node->n_pools; i++)
        write_pool(writer, &node->pools[i]);
    json_end_array(writer);
    json_key_array(writer, "pods");
    for (uint32_t i = 0; i < node->n_pods; i++)
        write_pod(writer, node, &node->pods[i]);
    json_end_array(writer);
    json_end_object(writer);
}

static void add_plan(const char *node, const struct plan_mark *mark, bool lives, void *data)
{
    if (lives)
        g_hash_table_insert(data, g_strdup(node), g_strdup(mark->doing));
}

void view_wall(struct store *store, const char *after, GString *reply)
{
    g_autoptr(GHashTable) left_out = view_left_out(store);
    g_autoptr(GHashTable) plans = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const struct marks marks = {left_out, plans};
    g_autoptr(node_reader) reader = node_reader_new(store, NULL, true);
    g_autofree char *last = NULL;
    const GArray *nodes;
    struct json_writer writer;
    guint n = 0;

    store_lock(store);
    store_marks_each(store, add_plan, plans);
    store_unlock(store);
    node_reader_begin_after(reader, after);

    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    json_key_array(&writer, "nodes");
    while (n < VIEW_WALL_NODES && (nodes = node_reader_next(reader))) {
        for (guint i = 0; i < nodes->len && n < VIEW_WALL_NODES; i++, n++) {
            const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
            write_node(&writer, node, &marks);
            g_free(last);
            last = g_strdup(node->name);
        }
    }
    json_end_array(&writer);
    json_key_string(&writer, "next", n == VIEW_WALL_NODES ? last : NULL);
    json_key_bool(&writer, "demandKnown", node_reader_foresees(reader));
    json_end_object(&writer);
}
