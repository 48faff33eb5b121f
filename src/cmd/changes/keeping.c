/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changes/keeping.h"

#include "core/fail.h"
#include "json/json.h"
#include "kube/clock.h"
#include "options/command.h"
#include "store/store.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALL_MS 10000
#define BY_SIGNAL 128 /* as shells tell it */

struct keeping {
    const struct config *config;
    struct api_client *client;
    GMutex lock;     /* of what follows, also while it is written */
    GArray *places;  /* struct card_place */
    GPtrArray *told; /* char *: nodes with an annotation */
    pthread_t watcher;
};

static char *word_of(const struct card_place *place)
{
    return place->card == CARD_UNKNOWN ? g_strdup(place->node)
                                       : g_strdup_printf("%s/%d", place->node, place->card);
}

/* `ret_ours`: something was written, so that it is not somebody else's cordon. */
static bool write_place(struct keeping *keeping, const struct card_place *place, bool open,
                        bool *ret_ours, GError **error)
{
    g_autofree char *word = word_of(place);
    const char *const words[] = {word, NULL};
    g_autoptr(GPtrArray) changes =
        places_set(keeping->config, &(struct places_order){keeping->client, words, open}, error);

    *ret_ours = changes && changes->len > 0;
    if (*ret_ours)
        fprintf(stderr, open ? "%s is open again\n" : "%s takes no other pods meanwhile\n", word);
    return changes;
}

static void clear_place(void *place)
{
    card_place_clear(place);
}

static bool has(const GArray *places, const struct card_place *place)
{
    for (guint i = 0; i < places->len; i++) {
        const struct card_place *one = &g_array_index(places, struct card_place, i);
        if (one->card == place->card && g_str_equal(one->node, place->node))
            return true;
    }
    return false;
}

/* Under the lock. Those that are not among `wanted`; NULL: all. */
static bool open_places(struct keeping *keeping, const GArray *wanted, GError **error)
{
    bool ours;

    for (guint i = keeping->places->len; i-- > 0;) {
        const struct card_place *place = &g_array_index(keeping->places, struct card_place, i);
        if (wanted && has(wanted, place))
            continue;
        if (!write_place(keeping, place, true, &ours, error))
            return false;
        g_array_remove_index(keeping->places, i);
    }
    return true;
}

/* Sets the annotations of a Node, or takes them away: NULL. */
static bool annotate(const struct keeping *keeping, const char *node, const char *text,
                     const char *uid, GError **error)
{
    g_autofree char *escaped = transport_escape(node, "node", error);
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) reply = g_string_new(NULL);
    struct json_writer writer;

    if (!escaped)
        return false;
    g_autofree char *path = g_strconcat("/api/v1/nodes/", escaped, NULL);
    json_writer_init(&writer, body);
    json_begin_object(&writer);
    json_key_object(&writer, "metadata");
    json_key_object(&writer, "annotations");
    json_key_string(&writer, STORE_PLAN, text);
    json_key_string(&writer, STORE_KEPT, uid);
    json_end_object(&writer);
    json_end_object(&writer);
    json_end_object(&writer);
    const struct api_call call = {
        .method = "PATCH", .path = path, .body = body, .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome = api_client_call(keeping->client, &call, reply, error);
    return outcome == OUTCOME_OK || fail_within(error, "node %s: ", node);
}

/* Under the lock. */
static void fall_silent(struct keeping *keeping)
{
    for (guint i = 0; i < keeping->told->len; i++) {
        g_autoptr(GError) failure = NULL;
        if (!annotate(keeping, keeping->told->pdata[i], NULL, NULL, &failure))
            complain("its annotation " STORE_PLAN " stays: %s", failure->message);
    }
    g_ptr_array_set_size(keeping->told, 0);
}

static void open_or_complain(struct keeping *keeping)
{
    g_autoptr(GError) failure = NULL;

    const bool open = open_places(keeping, NULL, &failure);
    fall_silent(keeping);
    if (open)
        return;
    for (guint i = 0; i < keeping->places->len; i++) {
        g_autofree char *word = word_of(&g_array_index(keeping->places, struct card_place, i));
        complain("%s is still cordoned (%s); open it with '" PROGRAM " uncordon %s'", word,
                 failure->message, word);
    }
}

static void end_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
}

static void *watch_signals(void *data)
{
    struct keeping *keeping = data;
    sigset_t set;
    int number = 0;

    end_signals(&set);
    sigwait(&set, &number);
    g_mutex_lock(&keeping->lock); /* for good: nothing else is written */
    open_or_complain(keeping);
    _exit(BY_SIGNAL + number);
}

struct keeping *keeping_new(const struct config *config, struct api_client *client)
{
    struct keeping *keeping = g_new0(struct keeping, 1);
    sigset_t set;

    keeping->config = config;
    keeping->client = client;
    keeping->places = g_array_new(FALSE, FALSE, sizeof(struct card_place));
    g_array_set_clear_func(keeping->places, clear_place);
    keeping->told = g_ptr_array_new_with_free_func(g_free);
    g_mutex_init(&keeping->lock);
    end_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&keeping->watcher, NULL, watch_signals, keeping) != 0)
        g_error("no thread for signals");
    return keeping;
}

void keeping_free(struct keeping *keeping)
{
    g_mutex_lock(&keeping->lock);
    open_or_complain(keeping);
    g_mutex_unlock(&keeping->lock);
    pthread_cancel(keeping->watcher);
    pthread_join(keeping->watcher, NULL);
    g_mutex_clear(&keeping->lock);
    g_array_unref(keeping->places);
    g_ptr_array_unref(keeping->told);
    g_free(keeping);
}

bool keeping_set(struct keeping *keeping, const GArray *places, GError **error)
{
    bool ok, ours;

    g_mutex_lock(&keeping->lock);
    ok = open_places(keeping, places, error);
    for (guint i = 0; ok && i < places->len; i++) {
        const struct card_place *place = &g_array_index(places, struct card_place, i);
        if (has(keeping->places, place))
            continue;
        const struct card_place copy = {g_strdup(place->node), place->card};
        g_array_append_val(keeping->places,
                           copy); /* also if it is not known whether it was written */
        ok = write_place(keeping, place, false, &ours, error);
        if (ok && !ours)
            g_array_set_size(keeping->places, keeping->places->len - 1);
    }
    g_mutex_unlock(&keeping->lock);
    return ok;
}

static bool is_told(const struct keeping *keeping, const char *node)
{
    return g_ptr_array_find_with_equal_func(keeping->told, node, g_str_equal, NULL);
}

bool keeping_tell(struct keeping *keeping, const char *text, const char *uid, GError **error)
{
    bool ok = true;

    g_mutex_lock(&keeping->lock);
    for (guint i = 0; i < keeping->places->len; i++) {
        const char *node = g_array_index(keeping->places, struct card_place, i).node;
        if (!is_told(keeping, node))
            g_ptr_array_add(keeping->told, g_strdup(node));
    }
    for (guint i = 0; ok && i < keeping->told->len; i++)
        ok = annotate(keeping, keeping->told->pdata[i], text, uid, error);
    g_mutex_unlock(&keeping->lock);
    return ok;
}

const GArray *keeping_places(const struct keeping *keeping)
{
    return keeping->places;
}
