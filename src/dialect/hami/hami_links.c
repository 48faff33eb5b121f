/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well the cards of a node are connected, as HAMi's plugin measures it (ENABLE_TOPOLOGY_SCORE):
 * [{"uuid":"GPU-a","score":{"GPU-b":100}}], 10 to 60 for PCIe and 100 for each NVLink.
 *
 * Source: Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/calculate_score.go, links.go
 */
#include "dialect/hami/hami.h"
#include "dialect/warning.h"
#include "json/json.h"

#include <gpuledger/links.h>
#include <string.h>

struct entry {
    const char *uuid;
    struct string_pairs scores;
};

static const struct json_field entry_fields[] = {
    JSON_FIELD_STRING(struct entry, uuid, "uuid", JSON_REQUIRED),
    JSON_FIELD_PAIRS(struct entry, scores, "score", JSON_NUMBERS),
    JSON_FIELD_END,
};

static int32_t find_card(const struct topology *topology, const char *uuid)
{
    for (int32_t i = 0; i < topology->n_cards; i++) {
        if (g_strcmp0(topology->cards[i].uuid, uuid) == 0)
            return i;
    }
    return CARD_UNKNOWN;
}

/* What one card says of the others: one more than the score, so that 0 is nothing. Cards that the
 * node does not have are left out. */
static void note_entry(const struct topology *topology, const struct entry *entry, int32_t *said)
{
    const int32_t from = find_card(topology, entry->uuid);
    gint64 score;

    for (size_t i = 0; from != CARD_UNKNOWN && i < entry->scores.n; i++) {
        const int32_t to = find_card(topology, entry->scores.items[i].key);
        if (to != CARD_UNKNOWN && to != from &&
            g_ascii_string_to_signed(entry->scores.items[i].value, 10, 0, UINT16_MAX, &score,
                                     NULL))
            said[from * topology->n_cards + to] = (int32_t)score + 1;
    }
}

/* Where both ends speak, and differ, the lower word counts. */
static struct links *links_of(const int32_t *said, int32_t n)
{
    struct links *links = links_new(n);

    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = i + 1; j < n; j++) {
            const int32_t there = said[i * n + j], back = said[j * n + i];
            const int32_t word = there == 0 || back == 0 ? MAX(there, back) : MIN(there, back);
            links_set(links, i, j, (uint16_t)MAX(word - 1, 0));
        }
    }
    return links;
}

struct links *vgpu_read_links(const struct vgpu *vgpu, const struct node_view *view,
                              const struct topology *topology, char **ret_warning)
{
    const char *text = vgpu->links ? string_pairs_get(&view->annotations, vgpu->links) : NULL;
    const int32_t n = topology->n_cards;

    if (!text || n < 2 || n > LINKS_CARDS_MAX)
        return NULL;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    const cJSON *item, *list = json_parse(arena, text, strlen(text), &error);
    g_autofree int32_t *said = g_new0(int32_t, (gsize)n * (gsize)n);
    cJSON_ArrayForEach (item, list) {
        struct entry entry = {0};
        if (error || !json_decode(arena, item, entry_fields, &entry, &error))
            break;
        note_entry(topology, &entry, said);
    }
    if (!error)
        return links_of(said, n);
    warn(ret_warning,
         g_strdup_printf("annotation '%s' cannot be read: %s", vgpu->links, error->message));
    return NULL;
}
