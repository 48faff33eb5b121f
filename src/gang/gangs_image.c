/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of groups at one moment, and how a record has it. */
#include "gang/gangs_state.h"

#include <string.h>

#define TAKEN_AT_ONCE 32 /* groups and pods */

const char *const gang_stage_names[GANG_STAGES] = {
    [KNOWN] = "known",   [HELD] = "held",   [ARRIVED] = "arrived", [DUE] = "due",
    [BOOKED] = "booked", [BOUND] = "bound", [PLAIN] = "plain",
};

struct member_image {
    struct gang_member member; /* with a uid of its own */
    void *place;               /* NULL: it has none */
};

struct group_image {
    struct gang gang; /* with names and room of its own, and without members */
    struct member_image *members;
    guint n;
};

struct rest_image {
    char *ns;
    int64_t until_ms;
};

struct gangs_image {
    struct gangs *gangs;
    struct gang_places places;
    uint32_t generation;
    GSList *groups;    /* struct group_image * */
    GSList *rests;     /* struct rest_image * */
    GHashTable *rooms; /* as gangs.rests */
    guint n;           /* groups and pods so far */
};

/* --- taking ------------------------------------------------------------------------------------- */

struct gangs_image *gangs_image_new(const struct gang_places *places)
{
    struct gangs_image *image = g_new0(struct gangs_image, 1);

    image->places = *places;
    image->rooms = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return image;
}

static void free_rest(gpointer data)
{
    g_free(((struct rest_image *)data)->ns);
    g_free(data);
}

static void free_group(const struct gangs_image *image, struct group_image *group)
{
    for (guint i = 0; i < group->n; i++) {
        g_free(group->members[i].member.uid);
        if (group->members[i].place)
            image->places.free(group->members[i].place);
    }
    g_free(group->gang.key);
    g_free(group->gang.ns);
    g_free(group->gang.name);
    gang_room_unref(group->gang.room);
    g_free(group->members);
    g_free(group);
}

void gangs_image_free(struct gangs_image *image)
{
    if (!image)
        return;
    for (GSList *item = image->groups; item; item = item->next)
        free_group(image, item->data);
    g_slist_free(image->groups);
    g_slist_free_full(image->rests, free_rest);
    g_hash_table_unref(image->rooms);
    g_free(image);
}

static void save_group(const struct roll_entry *entry, void *data)
{
    struct gangs_image *image = data;
    const struct gang *gang = (const struct gang *)entry;

    image->n += 1 + gang->members->len;
    if (gang->members->len == 0)
        return;
    struct group_image *group = g_new0(struct group_image, 1);
    group->gang = *gang;
    group->gang.key = g_strdup(gang->key);
    group->gang.ns = g_strdup(gang->ns);
    group->gang.name = g_strdup(gang->name);
    group->gang.room = gang->room ? gang_room_ref(gang->room) : NULL;
    group->n = gang->members->len;
    group->members = g_new0(struct member_image, group->n);
    for (guint i = 0; i < group->n; i++) {
        const struct gang_member *member = gang->members->pdata[i];
        group->members[i].member = *member;
        group->members[i].member.uid = g_strdup(member->uid);
        if (member->stage >= HELD && member->stage <= DUE)
            group->members[i].place = image->places.keep(image->places.data, member->uid);
    }
    image->groups = g_slist_prepend(image->groups, group);
}

static void save_tenant(const struct roll_entry *entry, void *data)
{
    struct gangs_image *image = data;
    const struct gang_tenant *tenant = (const struct gang_tenant *)entry;
    const struct rest_image rest = {g_strdup(tenant->ns), tenant->rested_ms};

    image->rests = g_slist_prepend(image->rests, g_memdup2(&rest, sizeof rest));
}

void gangs_image_begin(struct gangs_image *image, struct gangs *gangs, uint32_t generation)
{
    GHashTableIter iter;
    gpointer key, until_ms;

    image->gangs = gangs;
    image->generation = generation;
    gangs->round++;
    roll_begin_image(&gangs->roll, save_group, image);
    roll_begin_image(&gangs->tenant_roll, save_tenant, image);
    g_hash_table_iter_init(&iter, gangs->rests); /* few: they end */
    while (g_hash_table_iter_next(&iter, &key, &until_ms))
        g_hash_table_insert(image->rooms, g_strdup(key), g_memdup2(until_ms, sizeof(int64_t)));
}

bool gangs_image_take(struct gangs_image *image)
{
    const guint until = image->n + TAKEN_AT_ONCE;

    while (roll_take(&image->gangs->roll, 1)) {
        if (image->n >= until)
            return true;
    }
    return roll_take(&image->gangs->tenant_roll, TAKEN_AT_ONCE);
}

/* --- writing ------------------------------------------------------------------------------------ */

static gint compare_rests(gconstpointer a, gconstpointer b)
{
    return strcmp(((const struct rest_image *)a)->ns, ((const struct rest_image *)b)->ns);
}

static void write_rests(struct json_writer *writer, struct gangs_image *image)
{
    image->rests = g_slist_sort(image->rests, compare_rests);
    json_key_array(writer, "rests");
    for (const GSList *item = image->rests; item; item = item->next) {
        const struct rest_image *rest = item->data;
        json_begin_object(writer);
        json_key_string(writer, "namespace", rest->ns);
        json_key_int(writer, "until", rest->until_ms);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void write_member(struct json_writer *writer, const struct gangs_image *image,
                         const struct member_image *one)
{
    const struct gang_member *member = &one->member;

    json_begin_object(writer);
    json_key_string(writer, "uid", member->uid);
    json_key_string(writer, "stage", gang_stage_names[member->stage]);
    json_key_bool(writer, "listed", member->generation == image->generation);
    json_key_int(writer, "unseen", member->unseen_ms);
    json_key_int(writer, "says", member->says);
    json_key_int(writer, "saysTimeout", member->says_timeout_ms);
    json_key_int(writer, "cameWith", member->came_with);
    if (one->place) {
        json_key(writer, "place");
        image->places.write(writer, one->place);
    }
    json_end_object(writer);
}

static void write_group(struct json_writer *writer, const struct gangs_image *image,
                        const struct group_image *group)
{
    const struct gang *gang = &group->gang;

    json_begin_object(writer);
    json_key_string(writer, "namespace", gang->ns);
    json_key_string(writer, "name", gang->name);
    json_key_bool(writer, "native", gang->native);
    json_key_string(writer, "pool", gang->pool ? gang->pool : "");
    json_key_int(writer, "min", gang->min);
    json_key_int(writer, "lastMin", gang->last_min);
    json_key_int(writer, "saysLeast", gang->says_least);
    json_key_int(writer, "timeout", gang->timeout_ms);
    json_key_int(writer, "asked", gang->asked_ms);
    json_key_bool(writer, "tried", gang->tried_ms >= 0);
    json_key_int(writer, "triedAt", MAX(gang->tried_ms, 0));
    json_key_int(writer, "deadline", gang->deadline_ms);
    json_key_int(writer, "backoff", gang->backoff_ms);
    json_key_int(writer, "again", gang->again_ms);
    json_key_int(writer, "fit", gang->fit);
    json_key_bool(writer, "whole", gang->whole);
    json_key_bool(writer, "recalled", gang->recalled);
    json_key_int(writer, "heldSince", gang->held_ms);
    json_key_int(writer, "cameAt", gang->came_ms);
    json_key_bool(writer, "waiting", gang->waiting);
    json_key_int(writer, "turn", gang->turn_ms);
    gang_encode_room(writer, gang);
    json_key_array(writer, "members");
    for (guint i = 0; i < group->n; i++)
        write_member(writer, image, &group->members[i]);
    json_end_array(writer);
    json_end_object(writer);
}

static gint compare_groups(gconstpointer a, gconstpointer b)
{
    const struct gang *left = &((const struct group_image *)a)->gang;
    const struct gang *right = &((const struct group_image *)b)->gang;
    const int order = strcmp(left->ns, right->ns);

    return order ? order : strcmp(left->key, right->key);
}

void gangs_encode(struct json_writer *writer, struct gangs_image *image)
{
    image->groups = g_slist_sort(image->groups, compare_groups);
    json_begin_object(writer);
    json_key_array(writer, "groups");
    for (const GSList *item = image->groups; item; item = item->next)
        write_group(writer, image, item->data);
    json_end_array(writer);
    write_rests(writer, image);
    gangs_encode_room_rests(writer, image->rooms);
    json_end_object(writer);
}
