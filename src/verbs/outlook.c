/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/outlook.h"

#include "base/worker.h"

#define PAUSE_MS 200  /* at least, between two models */
#define REST_FACTOR 9 /* times what a model took */

struct outlook {
    struct store *store;
    struct worker worker;
};

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static void *refresh(void *data)
{
    struct outlook *outlook = data;
    int64_t took_ms = 0;

    while (worker_rest(&outlook->worker, MAX(PAUSE_MS, REST_FACTOR * took_ms))) {
        const int64_t began_ms = now_ms();
        if (store_is_synced(outlook->store))
            store_refresh_outlook(outlook->store);
        took_ms = now_ms() - began_ms;
    }
    return NULL;
}

struct outlook *outlook_start(struct store *store, GError **error)
{
    struct outlook *outlook = g_new0(struct outlook, 1);

    outlook->store = store;
    worker_init(&outlook->worker);
    if (!worker_start(&outlook->worker, refresh, outlook, error))
        g_clear_pointer(&outlook, outlook_free);
    return outlook;
}

void outlook_free(struct outlook *outlook)
{
    if (!outlook)
        return;
    worker_stop(&outlook->worker);
    worker_release(&outlook->worker);
    g_free(outlook);
}
