/* SPDX-License-Identifier: Apache-2.0 */
/* What has come of waiting at one moment, for who goes on from it elsewhere. */
#include "queue/arrivals/arrival.h"

#include "core/ledger.h"
#include "json/json.h"
#include "json/source.h"

#include <string.h>

#define TAKEN_AT_ONCE 32 /* pods */

/* A pod, in the image's arena: what a hold of the lock takes grows with nothing else. */
struct row {
    struct queue_entry entry;
    const char *created;
    uint64_t number;
    struct row *before;
};

struct arrivals_image {
    struct arrivals *arrivals;
    struct json_arena *arena;
    struct row *last;
    struct arrival_stamp all;    /* of all nodes, at that moment */
    const struct ledger *ledger; /* these two while it begins */
    const struct nominations *nominations;
    GArray *entries; /* in order; NULL: not asked for yet */
    GArray *schedulers;
};

struct arrivals_image *arrivals_image_new(void)
{
    struct arrivals_image *image = g_new0(struct arrivals_image, 1);

    image->arena = json_arena_new();
    return image;
}

void arrivals_image_free(struct arrivals_image *image)
{
    if (!image)
        return;
    for (struct row *row = image->last; row; row = row->before)
        reservation_unref((struct reservation *)row->entry.place);
    if (image->entries)
        g_array_unref(image->entries);
    if (image->schedulers)
        g_array_unref(image->schedulers);
    json_arena_free(image->arena);
    g_free(image);
}

static const char *keep(struct arrivals_image *image, const char *text)
{
    return text ? json_arena_dup(image->arena, text, strlen(text) + 1) : NULL;
}

/* Under the lock: whether it had been looked at since anything last changed that it depends on. Who has a
 * place is saved while the image begins. */
static bool was_settled(const struct arrivals_image *image, const struct arrival *arrival)
{
    struct arrival_stamp then = image->all;

    g_assert(!arrival->place || image->ledger);
    if (arrival->place)
        then = arrival_stamp_of(image->arrivals, image->ledger, image->nominations, arrival->place);
    return arrival_stamps_agree(&arrival->seen, &then);
}

/* Under the lock. */
static void save(const struct roll_entry *entry, void *data)
{
    struct arrivals_image *image = data;
    const struct arrival *arrival = (const struct arrival *)entry;
    const bool settled = was_settled(image, arrival);

    if (arrival->until_ms == 0 && arrival->hopeless_ms == 0 && !arrival->place && !settled &&
        !arrival->asked && arrival->asking_ms == 0 && arrival->looked_ms == 0)
        return; /* it has just come */
    struct row *row = json_arena_alloc(image->arena, sizeof *row);
    *row = (struct row){
        .entry =
            {
                .uid = keep(image, arrival->uid),
                .asked = arrival->asked,
                .asking_ms = arrival->asking_ms,
                .looked_ms = arrival->looked_ms,
                .until_ms = arrival->until_ms,
                .hopeless_ms = arrival->hopeless_ms,
                .place = arrival->place ? reservation_ref(arrival->place) : NULL,
                .settled = settled,
            },
        .created = keep(image, arrival->created),
        .number = arrival->number,
        .before = image->last,
    };
    image->last = row;
}

void arrivals_image_begin(struct arrivals_image *image, struct arrivals *arrivals,
                          const struct ledger *ledger, const struct nominations *nominations)
{
    image->arrivals = arrivals;
    image->all = arrival_stamp_of(arrivals, ledger, nominations, NULL);
    image->schedulers = arrivals_list_schedulers(arrivals);
    for (guint i = 0; i < image->schedulers->len; i++) {
        struct arrivals_scheduler *one =
            &g_array_index(image->schedulers, struct arrivals_scheduler, i);
        *one = (struct arrivals_scheduler){keep(image, one->name), keep(image, one->ns)};
    }
    image->ledger = ledger;
    image->nominations = nominations;
    roll_begin_image(&arrivals->roll, save, image);
    for (guint i = 0; i < arrivals->placed->len; i++)
        arrival_change(arrivals->placed->pdata[i]);
    image->ledger = NULL;
    image->nominations = NULL;
}

bool arrivals_image_take(struct arrivals_image *image)
{
    return roll_take(&image->arrivals->roll, TAKEN_AT_ONCE);
}

static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const struct row *left = *(struct row *const *)a, *right = *(struct row *const *)b;

    return arrival_compare_age(left->created, left->number, right->created, right->number);
}

const GArray *arrivals_image_entries(struct arrivals_image *image)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new();

    if (image->entries)
        return image->entries;
    for (struct row *row = image->last; row; row = row->before)
        g_ptr_array_add(rows, row);
    g_ptr_array_sort(rows, compare_rows);
    image->entries = g_array_sized_new(FALSE, FALSE, sizeof(struct queue_entry), rows->len);
    for (guint i = 0; i < rows->len; i++)
        g_array_append_val(image->entries, ((struct row *)rows->pdata[i])->entry);
    return image->entries;
}

const GArray *arrivals_image_schedulers(const struct arrivals_image *image)
{
    return image->schedulers;
}

/* --- schedulers ------------------------------------------------------------------------------- */

static gint compare_names(gconstpointer a, gconstpointer b)
{
    const struct arrivals_scheduler *left = a, *right = b;

    return strcmp(left->name, right->name);
}

GArray *arrivals_list_schedulers(const struct arrivals *arrivals)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(struct arrivals_scheduler));
    GHashTableIter iter;
    gpointer name, ns;

    g_hash_table_iter_init(&iter, arrivals->schedulers);
    while (g_hash_table_iter_next(&iter, &name, &ns)) {
        const struct arrivals_scheduler one = {name, ns};
        g_array_append_val(list, one);
    }
    g_array_sort(list, compare_names);
    return list;
}

void arrivals_encode_schedulers(struct json_writer *writer, const GArray *schedulers)
{
    bool brought = false;

    json_key_array(writer, "schedulers");
    for (guint i = 0; i < schedulers->len; i++) {
        const struct arrivals_scheduler *one =
            &g_array_index(schedulers, struct arrivals_scheduler, i);
        json_string(writer, one->name);
        brought |= one->ns != NULL;
    }
    json_end_array(writer);
    if (!brought)
        return;
    json_key_array(writer, "broughtBy");
    for (guint i = 0; i < schedulers->len; i++) {
        const char *ns = g_array_index(schedulers, struct arrivals_scheduler, i).ns;
        json_string(writer, ns ? ns : "");
    }
    json_end_array(writer);
}

static const char *text_of(const cJSON *item)
{
    return cJSON_IsString(item) && *item->valuestring ? item->valuestring : NULL;
}

void arrivals_learn_schedulers(struct arrivals *arrivals, const cJSON *names,
                               const cJSON *brought_by)
{
    const cJSON *name, *ns = brought_by ? brought_by->child : NULL;

    cJSON_ArrayForEach (name, names) {
        if (cJSON_IsString(name))
            arrivals_note_scheduler(arrivals, name->valuestring, text_of(ns));
        ns = ns ? ns->next : NULL;
    }
}
