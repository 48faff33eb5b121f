/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/books/passes.h"

#include <pthread.h>
#include <string.h>

struct pass {
    char *uid, *ns;
    int64_t until_ms;
    GList *link; /* in its namespace's queue */
    size_t n;    /* 0: any node */
    uint32_t marks[];
};

struct passes {
    pthread_mutex_t lock;
    GHashTable *pods;   /* the entry's uid -> struct pass * */
    GHashTable *queues; /* namespace -> GQueue of its passes, the oldest first; none is empty */
    size_t n_nodes;
};

static void queue_free(gpointer data)
{
    g_queue_free(data);
}

static void pass_free(gpointer data)
{
    struct pass *pass = data;
    g_free(pass->uid);
    g_free(pass->ns);
    g_free(pass);
}

struct passes *passes_new(void)
{
    struct passes *passes = g_new0(struct passes, 1);

    pthread_mutex_init(&passes->lock, NULL);
    passes->pods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, pass_free);
    passes->queues = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, queue_free);
    return passes;
}

void passes_free(struct passes *passes)
{
    if (!passes)
        return;
    g_hash_table_unref(passes->queues);
    g_hash_table_unref(passes->pods);
    pthread_mutex_destroy(&passes->lock);
    g_free(passes);
}

static void forget(struct passes *passes, struct pass *pass)
{
    GQueue *queue = g_hash_table_lookup(passes->queues, pass->ns);

    g_queue_delete_link(queue, pass->link);
    if (g_queue_is_empty(queue))
        g_hash_table_remove(passes->queues, pass->ns);
    passes->n_nodes -= pass->n;
    g_hash_table_remove(passes->pods, pass->uid);
}

/* What the oldest of a namespace has outlived goes, and counts for nobody's share. */
static guint live_length(struct passes *passes, GQueue *queue, int64_t now_ms)
{
    struct pass *oldest;

    while ((oldest = g_queue_peek_head(queue)) != NULL && oldest->until_ms <= now_ms) {
        if (g_queue_get_length(queue) == 1)
            return 0; /* the queue goes with its last: the caller's to do */
        forget(passes, oldest);
    }
    return g_queue_get_length(queue);
}

static void make_room(struct passes *passes, int64_t now_ms)
{
    GQueue *longest = NULL, *ended = NULL;
    guint most = 0;
    GHashTableIter iter;
    gpointer queue;

    g_hash_table_iter_init(&iter, passes->queues);
    while (g_hash_table_iter_next(&iter, NULL, &queue)) {
        const guint length = live_length(passes, queue, now_ms);
        if (length == 0)
            ended = queue;
        if (length > most) {
            longest = queue;
            most = length;
        }
    }
    forget(passes, g_queue_peek_head(ended ? ended : longest));
}

static GQueue *queue_of(struct passes *passes, const char *ns)
{
    GQueue *queue = g_hash_table_lookup(passes->queues, ns);

    if (!queue) {
        queue = g_queue_new();
        g_hash_table_insert(passes->queues, g_strdup(ns), queue);
    }
    return queue;
}

void passes_note(struct passes *passes, const char *uid, const char *ns, const uint32_t *marks,
                 size_t n, int64_t now_ms)
{
    struct pass *pass = g_malloc(sizeof *pass + n * sizeof pass->marks[0]);

    *pass = (struct pass){g_strdup(uid), g_strdup(ns), now_ms + PASSES_MS, NULL, n};
    if (n > 0)
        memcpy(pass->marks, marks, n * sizeof pass->marks[0]);

    pthread_mutex_lock(&passes->lock);
    struct pass *former = g_hash_table_lookup(passes->pods, uid);
    if (former)
        forget(passes, former);
    while (g_hash_table_size(passes->pods) > 0 &&
           (g_hash_table_size(passes->pods) >= PASSES_PODS_MAX ||
            passes->n_nodes + n > PASSES_NODES_MAX))
        make_room(passes, now_ms);
    GQueue *queue = queue_of(passes, ns);
    g_queue_push_tail(queue, pass);
    pass->link = g_queue_peek_tail_link(queue);
    passes->n_nodes += n;
    g_hash_table_insert(passes->pods, pass->uid, pass);
    pthread_mutex_unlock(&passes->lock);
}

void passes_forget(struct passes *passes, const char *uid)
{
    pthread_mutex_lock(&passes->lock);
    struct pass *pass = g_hash_table_lookup(passes->pods, uid);
    if (pass)
        forget(passes, pass);
    pthread_mutex_unlock(&passes->lock);
}

void passes_forget_all(struct passes *passes)
{
    pthread_mutex_lock(&passes->lock);
    g_hash_table_remove_all(passes->queues);
    g_hash_table_remove_all(passes->pods);
    passes->n_nodes = 0;
    pthread_mutex_unlock(&passes->lock);
}

GHashTable *passes_marks(struct passes *passes, const char *uid, int64_t now_ms)
{
    GHashTable *marks = NULL;

    pthread_mutex_lock(&passes->lock);
    const struct pass *pass = g_hash_table_lookup(passes->pods, uid);
    if (pass && now_ms < pass->until_ms && pass->n > 0) {
        marks = g_hash_table_new(NULL, NULL);
        for (size_t i = 0; i < pass->n; i++)
            g_hash_table_insert(marks, GUINT_TO_POINTER(pass->marks[i]), GSIZE_TO_POINTER(i + 1));
    }
    pthread_mutex_unlock(&passes->lock);
    return marks;
}

static bool names(const struct pass *pass, const struct node *node)
{
    const uint32_t mark = passes_mark(node);
    size_t i = 0;

    while (i < pass->n && pass->marks[i] != mark)
        i++;
    return pass->n == 0 || i < pass->n;
}

bool passes_has(struct passes *passes, const char *uid, const struct node *node, int64_t now_ms)
{
    pthread_mutex_lock(&passes->lock);
    const struct pass *pass = g_hash_table_lookup(passes->pods, uid);
    const bool has = pass && now_ms < pass->until_ms && (!node || names(pass, node));
    pthread_mutex_unlock(&passes->lock);
    return has;
}
