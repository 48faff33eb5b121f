/* SPDX-License-Identifier: Apache-2.0 */
#include "truth.h"

#include "sim.h"

#include "../prop/chance.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define NO_CARD (-1)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

static bool is_alive(const struct pod *pod)
{
    return pod->exists && pod->phase != SUCCEEDED && pod->phase != FAILED;
}

bool truth_holds(const struct pod *pod)
{
    return is_alive(pod) && pod->node >= 0 && pod->units > 0;
}

static int card_of(const struct pod *pod)
{
    const char *text = pod->annotations[IDX];

    if (!text || !*text || strlen(text) > 2 || strspn(text, "0123456789") != strlen(text))
        return NO_CARD;
    return atoi(text);
}

#define WAITED_FOR_US INT64_C(60000000) /* nobody waits for another for longer */

static bool is_waiting(const struct pod *pod)
{
    bool marked =
        pod->annotations[ASSUME_TIME] && g_strcmp0(pod->annotations[ASSIGNED], "false") == 0;
    return pod->phase == PENDING && (marked || !pod->started);
}

/* --- grants --------------------------------------------------------------------------------- */

void truth_note_bind(struct pod *pod)
{
    for (int i = 0; i < RESOURCES; i++) {
        if (pod->known[i] < 0)
            pod->known[i] = server.known[i];
    }
}

/* No card of these worlds has 1000 GiB, or fewer MiB. */
static gint64 unit_of(int card_units)
{
    return card_units >= 1000 ? MIB : GIB;
}

static gint64 card_bytes(const struct shape *shape)
{
    return shape->units * unit_of(shape->units);
}

/* By what its Binding states of the card. */
static gint64 granted_bytes(const struct pod *pod)
{
    return pod->units * unit_of(atoi(pod->annotations[DEV]));
}

/* Of the card, as the node may have looked to whoever chose it. */
static gint64 bytes_of(const struct pod *pod, int card)
{
    const GArray *shapes = server.shapes[pod->node];
    gint64 bytes = 0;

    for (guint i = shapes->len; i-- > 0;) {
        const struct shape *shape = &g_array_index(shapes, struct shape, i);
        if (card < shape->cards)
            bytes = MAX(bytes, card_bytes(shape));
        if (shape->version <= pod->known[NODE])
            break;
    }
    return bytes;
}

static bool may_look_healthy(const struct pod *pod, int card)
{
    const GArray *health = server.health[pod->node];

    for (guint i = health->len; i-- > 0;) {
        const struct health *state = &g_array_index(health, struct health, i);
        if (!(state->sick >> card & 1))
            return true;
        if (state->version <= pod->known[CONFIGMAP])
            break;
    }
    return false;
}

void truth_check_grant(const struct pod *pod)
{
    int card = card_of(pod);
    gint64 held = 0;

    HOLDS(pod->known[NODE] >= 0, "%s was bound without being asked for", pod->uid);
    HOLDS(card != NO_CARD && pod->annotations[DEV] && pod->annotations[ASSUME_TIME] &&
              g_strcmp0(pod->annotations[ASSIGNED], "false") == 0 && pod->annotations[TOTAL] &&
              atoi(pod->annotations[TOTAL]) == pod->units,
          "%s is not marked as it should be", pod->uid);
    HOLDS(pod->n_containers == 1, "%s cannot be served", pod->uid);

    if (!is_alive(pod)) /* it is bound, and holds nothing */
        return;
    const gint64 bytes = bytes_of(pod, card);
    HOLDS(bytes > 0, "%s is on card %d of n%d, which there is not", pod->uid, card, pod->node);
    HOLDS(may_look_healthy(pod, card), "%s is on card %d of n%d, which is unhealthy", pod->uid, card,
          pod->node);
    for (int i = 0; i < PODS; i++) {
        const struct pod *other = &server.pods[i];
        if (!truth_holds(other) || other->node != pod->node || !other->granted)
            continue;
        if (card_of(other) == card)
            held += granted_bytes(other);
        HOLDS(other == pod || other->units != pod->units || !is_waiting(other) ||
                  sim_now_us() - other->moved_us >= WAITED_FOR_US,
              "%s and %s of n%d wait, and ask for the same", pod->uid, other->uid, pod->node);
    }
    HOLDS(held <= bytes,
          "card %d of n%d holds %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " since %s was bound",
          card, pod->node, held, bytes, pod->uid);
}

/* --- what must be --------------------------------------------------------------------------- */

/* A node's cards as pods hold them, in bytes. */
struct usage {
    gint64 used[CARDS_MAX], unplaced;
    int holders[CARDS_MAX];
};

/* What the Binding was told in; 0: it does not say. */
static gint64 stated_unit(const struct pod *pod, const struct shape *shape)
{
    const char *units = pod->annotations[DEV];

    return !units ? 0 : unit_of(atoi(units) == shape->units ? shape->units : atoi(units));
}

static bool has_pods_in_gib(int node)
{
    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &server.pods[i];
        if (truth_holds(pod) && pod->node == node && stated_unit(pod, server_shape(node)) == GIB)
            return true;
    }
    return false;
}

/* The device plugin may have counted in another unit when it was bound: what was granted stays. What may
 * have been either is the larger, if a card has so much. */
static gint64 held_bytes(const struct pod *pod)
{
    const struct shape *shape = server_shape(pod->node);
    const gint64 now = unit_of(shape->units), stated = stated_unit(pod, shape);
    const gint64 in_gib = pod->units * GIB, card = card_bytes(shape);

    if (now == MIB && (stated == GIB || (!stated && in_gib <= card && has_pods_in_gib(pod->node))))
        return MIN(in_gib, card);
    return now == GIB && stated == MIB && in_gib > card ? pod->units * MIB : pod->units * now;
}

static struct usage usage_of(int node)
{
    const struct shape *shape = server_shape(node);
    struct usage usage = {0};

    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &server.pods[i];
        if (!truth_holds(pod) || pod->node != node)
            continue;
        int card = shape->cards == 1 ? 0 : card_of(pod);
        if (!pod->annotations[IDX] && card == NO_CARD) /* the plugin gives it none of several */
            continue;
        if (card != NO_CARD && card < shape->cards) {
            usage.used[card] += held_bytes(pod);
            usage.holders[card]++;
        } else {
            usage.unplaced += held_bytes(pod);
        }
    }
    return usage;
}

enum verdict truth_verdict(const struct pod *pod, int node)
{
    const struct shape *shape = server_shape(node);
    struct usage usage = usage_of(node);

    if (pod->units > 0 && pod->n_containers > 1)
        return VERDICT_NO;
    for (int i = 0; i < PODS; i++) {
        const struct pod *other = &server.pods[i];
        if (truth_holds(other) && other->node == node && is_waiting(other) &&
            other->units == pod->units)
            return VERDICT_OPEN;
    }
    for (int card = 0; card < shape->cards; card++) {
        if (!(server_sick(node) >> card & 1) &&
            pod->units * unit_of(shape->units) <=
                card_bytes(shape) - usage.used[card] - usage.unplaced)
            return VERDICT_YES;
    }
    return VERDICT_NO;
}

static void describe_pods(GString *text, int node)
{
    for (int i = 0; i < PODS; i++) {
        /* by name, as texts are ordered: p0 p1 p10 … */
        static const int order[PODS] = {0,  1,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                                        2,  20, 21, 22, 23, 3,  4,  5,  6,  7,  8,  9};
        const struct pod *pod = &server.pods[order[i]];
        if (truth_holds(pod) && pod->node == node)
            g_string_append_printf(text, "  %s %s card %d\n", pod->name, pod->uid, card_of(pod));
    }
}

static char *describe_truth(void)
{
    GString *text = g_string_new(NULL);

    for (int node = 0; node < NODES; node++) {
        const struct shape *shape = server_shape(node);
        struct usage usage = usage_of(node);
        gsize before = text->len;

        g_string_append_printf(text, "n%d%s\n", node, shape->exists ? "" : " gone");
        gsize name = text->len;
        for (int card = 0; card < shape->cards; card++)
            g_string_append_printf(text, " %d: %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT " by %d%s\n",
                                   card, usage.used[card], card_bytes(shape), usage.holders[card],
                                   server_sick(node) >> card & 1 ? " sick" : "");
        if (shape->cards > 0)
            g_string_append_printf(text, " anywhere: %" G_GINT64_FORMAT "\n", usage.unplaced);
        describe_pods(text, node);
        if (text->len == name)
            g_string_truncate(text, before);
    }
    return g_string_free(text, FALSE);
}

static gint64 number(const cJSON *object, const char *key)
{
    return (gint64)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const char *string(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "?";
}

static bool is_true(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void describe_pod(GString *text, const cJSON *pod)
{
    const cJSON *shares = cJSON_GetObjectItemCaseSensitive(pod, "shares");
    const cJSON *share = cJSON_GetArrayItem(shares, 0);
    const cJSON *card = cJSON_GetObjectItemCaseSensitive(share, "card");
    const char *state = string(pod, "state");

    HOLDS(cJSON_GetArraySize(shares) <= 1, "%s", string(pod, "uid"));
    g_string_append_printf(text, "  %s %s card %d%s%s\n", string(pod, "name"), string(pod, "uid"),
                           cJSON_IsNumber(card) ? (int)cJSON_GetNumberValue(card) : NO_CARD,
                           strcmp(state, "confirmed") && strcmp(state, "assigned") ? " " : "",
                           strcmp(state, "confirmed") && strcmp(state, "assigned") ? state : "");
}

static char *describe_ledger(const char *json)
{
    GString *text = g_string_new(NULL);
    cJSON *tree = cJSON_Parse(json);
    const cJSON *node, *card, *pod;

    HOLDS(tree, "%s", json);
    cJSON_ArrayForEach (node, cJSON_GetObjectItemCaseSensitive(tree, "nodes")) {
        const cJSON *cards = cJSON_GetObjectItemCaseSensitive(node, "cards");
        g_string_append_printf(text, "%s%s\n", string(node, "name"),
                               is_true(node, "present") ? "" : " gone");
        cJSON_ArrayForEach (card, cards)
            g_string_append_printf(
                text, " %d: %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT " by %d%s\n",
                (int)number(card, "index"), number(card, "memoryUsedBytes"),
                number(card, "memoryBytes"), (int)number(card, "holders"),
                is_true(card, "healthy") ? "" : " sick");
        if (cJSON_GetArraySize(cards) > 0)
            g_string_append_printf(text, " anywhere: %" G_GINT64_FORMAT "\n",
                                   number(node, "unplacedMemoryBytes"));
        cJSON_ArrayForEach (pod, cJSON_GetObjectItemCaseSensitive(node, "pods"))
            describe_pod(text, pod);
    }
    cJSON_Delete(tree);
    return g_string_free(text, FALSE);
}

void truth_check_nodes(const char *json)
{
    g_autofree char *truth = describe_truth();
    g_autofree char *ledger = describe_ledger(json);

    HOLDS(g_str_equal(truth, ledger), "the ledger has\n%sbut it is\n%s", ledger, truth);
}
