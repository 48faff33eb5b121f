/* SPDX-License-Identifier: Apache-2.0 */
/* Source of the syntax: RFC 6750, section 2.1. */
#include "http/bearer.h"

#include "base/log.h"
#include "kube/secret.h"
#include "base/small_file.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define TOKEN_MAX ((size_t)8 << 10) /* bytes; a JSON Web Token has 1 or 2 KiB */
#define FRESH_US 1000000
#define DIGEST_SIZE 32

struct bearer {
    char *path;
    pthread_mutex_t lock;

    /* Under the lock: */
    int64_t read_us; /* when the file was last looked at */
    bool stale;
    bool failing;
    guint8 digest[DIGEST_SIZE];
};

static void digest_make(const char *text, size_t length, guint8 *ret_digest)
{
    g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA256);
    gsize size = DIGEST_SIZE;

    g_checksum_update(digest, (const guchar *)text, (gssize)length);
    g_checksum_get_digest(digest, ret_digest, &size);
}

/* Takes the same time wherever the first difference is. */
static bool digest_equal(const guint8 *left, const guint8 *right)
{
    volatile guint8 difference = 0;

    for (size_t i = 0; i < DIGEST_SIZE; i++)
        difference |= left[i] ^ right[i];
    return difference == 0;
}

static bool is_token(const char *text)
{
    for (; *text; text++) {
        if (!g_ascii_isgraph(*text))
            return false;
    }
    return true;
}

static bool read_token(const struct bearer *bearer, guint8 *ret_digest, GError **error)
{
    char *text = small_file_read(bearer->path, TOKEN_MAX, NULL, error);
    bool ok = false;

    if (text) {
        g_strstrip(text);
        ok = *text && is_token(text);
        if (ok)
            digest_make(text, strlen(text), ret_digest);
        else
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "\"%s\" holds no token; expected one line of printable characters without "
                        "spaces",
                        bearer->path);
    }
    secret_free(text);
    return ok;
}

struct bearer *bearer_new(const char *path, GError **error)
{
    struct bearer *bearer = g_new0(struct bearer, 1);

    bearer->path = g_strdup(path);
    pthread_mutex_init(&bearer->lock, NULL);
    bearer->read_us = g_get_monotonic_time();
    if (read_token(bearer, bearer->digest, error))
        return bearer;
    bearer_free(bearer);
    return NULL;
}

void bearer_free(struct bearer *bearer)
{
    if (!bearer)
        return;
    pthread_mutex_destroy(&bearer->lock);
    g_free(bearer->path);
    g_free(bearer);
}

void bearer_refresh(struct bearer *bearer)
{
    pthread_mutex_lock(&bearer->lock);
    bearer->stale = true;
    pthread_mutex_unlock(&bearer->lock);
}

/* Whether it is the caller who looks at the file now. */
static bool is_due(struct bearer *bearer)
{
    int64_t now_us = g_get_monotonic_time();

    pthread_mutex_lock(&bearer->lock);
    const bool due = bearer->stale || now_us - bearer->read_us >= FRESH_US;
    bearer->stale = false;
    if (due)
        bearer->read_us = now_us;
    pthread_mutex_unlock(&bearer->lock);
    return due;
}

static void refresh(struct bearer *bearer)
{
    g_autoptr(GError) failure = NULL;
    guint8 digest[DIGEST_SIZE];

    if (!is_due(bearer))
        return;
    const bool ok = read_token(bearer, digest, &failure);
    pthread_mutex_lock(&bearer->lock);
    const bool news = !ok && !bearer->failing;
    bearer->failing = !ok;
    if (ok)
        memcpy(bearer->digest, digest, sizeof digest);
    pthread_mutex_unlock(&bearer->lock);
    if (news)
        log_event(LOG_LEVEL_ERROR, "token not reloaded; nobody may look until it is",
                  LOG_TEXT("why", failure->message));
}

bool bearer_accepts(struct bearer *bearer, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    guint8 digest[DIGEST_SIZE];

    refresh(bearer);
    if (!authorization || g_ascii_strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return false;
    authorization += strlen(scheme);
    authorization += strspn(authorization, " ");
    digest_make(authorization, strcspn(authorization, " "), digest);
    pthread_mutex_lock(&bearer->lock);
    const bool accepted = !bearer->failing && digest_equal(digest, bearer->digest);
    pthread_mutex_unlock(&bearer->lock);
    return accepted;
}
