/* SPDX-License-Identifier: Apache-2.0 */
/* What was booked, and what the ledger held in the end, against what it is here. */
#include "store/booking.h"
#include "record/replay_state.h"

#include <string.h>

/* Whether all that the record says is so; an older one does not know some fields. */
static bool covers(const cJSON *recorded, const cJSON *here)
{
    const cJSON *item;

    if (!cJSON_IsObject(recorded) && !cJSON_IsArray(recorded))
        return cJSON_Compare(recorded, here, true);
    if ((cJSON_IsObject(recorded) && !cJSON_IsObject(here)) ||
        (cJSON_IsArray(recorded) &&
         (!cJSON_IsArray(here) || cJSON_GetArraySize(recorded) != cJSON_GetArraySize(here))))
        return false;
    const cJSON *next = here->child;
    cJSON_ArrayForEach (item, recorded) {
        const cJSON *other =
            item->string ? cJSON_GetObjectItemCaseSensitive(here, item->string) : next;
        if (!other || !covers(item, other))
            return false;
        next = next ? next->next : NULL;
    }
    return true;
}

bool replay_is_booked(struct replay *replay, const struct record_line *line,
                      const struct allocation *booked, char **ret_recorded, char **ret_here)
{
    g_autoptr(GString) here = g_string_new(NULL);
    struct json_writer writer;

    if (!line->booking)
        return true;
    json_writer_init(&writer, here);
    if (booked)
        booking_encode(&writer, booked);
    g_autofree char *recorded = replay_text_of(line->booking);
    if (g_str_equal(recorded, here->str))
        return true;
    const cJSON *tree = json_parse(replay->arena, here->str, here->len, NULL);
    if (tree && covers(line->booking, tree))
        return true;
    *ret_recorded = g_steal_pointer(&recorded);
    *ret_here = g_string_free(g_steal_pointer(&here), FALSE);
    return false;
}

/* --- the whole ledger ----------------------------------------------------------------------- */

/* By UID, the text of each pod. */
static GHashTable *list_pods(const cJSON *object)
{
    const cJSON *pods = cJSON_GetObjectItemCaseSensitive(object, "pods"), *pod;
    GHashTable *list = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);

    cJSON_ArrayForEach (pod, pods) {
        const cJSON *uid = cJSON_GetObjectItemCaseSensitive(pod, "uid");
        if (cJSON_IsString(uid))
            g_hash_table_insert(list, uid->valuestring, replay_text_of(pod));
    }
    return list;
}

/* The first, by UID, of which the lists say something else; NULL: none. */
static const char *find_different(GHashTable *recorded, GHashTable *here)
{
    GHashTable *const lists[] = {recorded, here};
    const char *first = NULL;
    gpointer uid, text;

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        GHashTableIter iter;
        g_hash_table_iter_init(&iter, lists[i]);
        while (g_hash_table_iter_next(&iter, &uid, &text)) {
            if (g_strcmp0(text, g_hash_table_lookup(lists[1 - i], uid)) != 0 &&
                (!first || strcmp(uid, first) < 0))
                first = uid;
        }
    }
    return first;
}

static const char *text_of(GHashTable *list, const char *uid)
{
    const char *text = g_hash_table_lookup(list, uid);
    return text ? text : "none";
}

/* Which quota each pod has asked for, if the record says so; an older one does not. */
static const struct elastic_quotas *told_quotas(const struct store *store, const cJSON *recorded)
{
    const cJSON *pods = cJSON_GetObjectItemCaseSensitive(recorded, "pods");
    const cJSON *first = cJSON_IsArray(pods) ? pods->child : NULL;

    return cJSON_HasObjectItem(first, "quota") ? store_elastic_quotas(store) : NULL;
}

/* What the record tells of the ledger: of one node, or, at the end and in older files, of all. */
static void write_here(struct store *store, const cJSON *recorded, struct json_writer *writer)
{
    const char *node = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(recorded, "node"));
    const struct ledger *ledger = store_lock(store);

    record_ledger_encode(writer, ledger, node, told_quotas(store, recorded));
    store_unlock(store);
}

bool replay_ledger(struct replay *replay, const struct record_line *line, GError **error)
{
    struct store *store = replay->extender.store;
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    if (!replay_is_complete(replay, VERB_BIND))
        return true;
    json_writer_init(&writer, text);
    write_here(store, line->object, &writer);
    const cJSON *tree = json_parse(replay->arena, text->str, text->len, error);
    if (!tree)
        return false;
    g_autoptr(GHashTable) recorded = list_pods(line->object);
    g_autoptr(GHashTable) here = list_pods(tree);
    const char *uid = find_different(recorded, here);
    replay->summary.ledgers++;
    replay->summary.ledgers_different += uid != NULL;
    if (uid)
        replay_differ(replay, line, g_strdup_printf("what the pod '%s' holds", uid),
                      text_of(recorded, uid), text_of(here, uid), NULL);
    return true;
}
