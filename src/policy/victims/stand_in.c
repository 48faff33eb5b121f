/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/victims/stand_in.h"

#include "core/ledger.h"
#include "core/node.h"

/* Strings of a card, and what the allocator adds. */
#define CARD_EXTRA_BYTES 128
#define UID_BYTES 37 /* the usual one */

struct stand_ins {
    GPtrArray *by_place; /* struct stand_in *, or NULL */
    size_t bytes;
    guint hand; /* the next place that loses what it has */
};

static size_t count_bytes(const struct stand_in *stand_in)
{
    const struct what_if *what_if = stand_in->what_if;
    const struct node *node = what_if->node;

    return sizeof *stand_in + sizeof *what_if + sizeof(struct node_own) + what_if->block_size +
           node->allocations->len *
               (2 * sizeof(gpointer) + sizeof(struct seat) + sizeof(struct seat_kind) + UID_BYTES) +
           (size_t)node->n_cards * (sizeof(struct card) + CARD_EXTRA_BYTES) +
           (size_t)node->n_pools * (sizeof(struct pool) + CARD_EXTRA_BYTES);
}

struct stand_in *stand_in_new(const struct node *node)
{
    struct stand_in *stand_in = g_new(struct stand_in, 1);

    *stand_in = (struct stand_in){
        .what_if = what_if_new(node),
        .place = node_own(node)->place,
        .version = node_own(node)->pulse->version,
        .told = node_own(node)->told,
    };
    stand_in->bytes = count_bytes(stand_in);
    return stand_in;
}

void stand_in_free(struct stand_in *stand_in)
{
    if (!stand_in)
        return;
    roster_free(stand_in->roster);
    what_if_free(stand_in->what_if);
    g_free(stand_in);
}

void stand_in_prepare(struct stand_in *stand_in)
{
    if (!stand_in->roster)
        stand_in->roster = roster_new(stand_in->what_if);
}

/* --- those that are kept -------------------------------------------------------------------- */

struct stand_ins *stand_ins_new(void)
{
    struct stand_ins *stand_ins = g_new0(struct stand_ins, 1);

    stand_ins->by_place = g_ptr_array_new();
    return stand_ins;
}

void stand_ins_free(struct stand_ins *stand_ins)
{
    for (guint i = 0; i < stand_ins->by_place->len; i++)
        stand_in_free(stand_ins->by_place->pdata[i]);
    g_ptr_array_unref(stand_ins->by_place);
    g_free(stand_ins);
}

size_t stand_ins_bytes(const struct stand_ins *stand_ins)
{
    return stand_ins->bytes;
}

static struct stand_in *take_from(struct stand_ins *stand_ins, guint place)
{
    struct stand_in *stand_in =
        place < stand_ins->by_place->len ? stand_ins->by_place->pdata[place] : NULL;

    if (!stand_in)
        return NULL;
    stand_ins->by_place->pdata[place] = NULL;
    stand_ins->bytes -= stand_in->bytes;
    return stand_in;
}

struct stand_in *stand_ins_take(struct stand_ins *stand_ins, const struct node *node,
                                GPtrArray *ret_left_over)
{
    const struct node_own *own = node_own(node);
    struct stand_in *stand_in = take_from(stand_ins, own->place);

    if (!stand_in)
        return NULL;
    if (stand_in->version != own->pulse->version || stand_in->told != own->told) {
        g_ptr_array_add(ret_left_over, stand_in);
        return NULL;
    }
    node_copy_marks(stand_in->what_if->node, node);
    return stand_in;
}

static bool is_older(const struct stand_in *one, const struct stand_in *other)
{
    return one->version != other->version ? one->version < other->version : one->told < other->told;
}

/* Whoever comes to the place last would be the next to go only after all others. */
static void make_room(struct stand_ins *stand_ins, guint place, GPtrArray *left_over)
{
    const guint n = stand_ins->by_place->len;

    for (guint i = 0; i < n && stand_ins->bytes > STAND_INS_BYTES_MAX; i++) {
        stand_ins->hand = stand_ins->hand + 1 < n ? stand_ins->hand + 1 : 0;
        struct stand_in *goes =
            stand_ins->hand != place ? take_from(stand_ins, stand_ins->hand) : NULL;
        if (goes)
            g_ptr_array_add(left_over, goes);
    }
    if (stand_ins->bytes > STAND_INS_BYTES_MAX)
        g_ptr_array_add(left_over, take_from(stand_ins, place));
}

void stand_ins_give(struct stand_ins *stand_ins, struct stand_in *take_stand_in,
                    GPtrArray *ret_left_over)
{
    const guint place = take_stand_in->place;
    struct stand_in *there = take_from(stand_ins, place);

    if (there && is_older(take_stand_in, there)) {
        struct stand_in *older = take_stand_in;
        take_stand_in = there;
        there = older;
    }
    if (there)
        g_ptr_array_add(ret_left_over, there);
    if (place >= stand_ins->by_place->len)
        g_ptr_array_set_size(stand_ins->by_place, (gint)place + 1);
    stand_ins->by_place->pdata[place] = take_stand_in;
    stand_ins->bytes += take_stand_in->bytes;
    make_room(stand_ins, place, ret_left_over);
}
