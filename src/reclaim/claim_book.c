/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/claim_book.h"

#include "base/log.h"
#include "base/metrics.h"
#include "core/fail.h"

#define TRIES_MAX 5

struct claim_book {
    struct store *store;
    const struct claim_files *files;
    void *data;
    char *version;
    struct claim_sheet *sheet;
    bool believed; /* the sheet is what the ConfigMap says, as far as is known */
};

struct claim_book *claim_book_new(struct store *store, const struct claim_files *files, void *data)
{
    struct claim_book *book = g_new0(struct claim_book, 1);

    *book = (struct claim_book){store, files, data, NULL, claim_sheet_new(), false};
    return book;
}

void claim_book_free(struct claim_book *book)
{
    g_free(book->version);
    claim_sheet_free(book->sheet);
    g_free(book);
}

const struct claim_sheet *claim_book_sheet(const struct claim_book *book)
{
    return book->sheet;
}

static void adopt(struct claim_book *book, struct claim_sheet *take_sheet, char *take_version)
{
    claim_sheet_free(book->sheet);
    book->sheet = take_sheet;
    g_free(book->version);
    book->version = take_version;
    book->believed = true;
    store_apply_claims(book->store, book->sheet);
}

/* --- reading -------------------------------------------------------------------------------------- */

static void close_book(struct claim_book *book, const char *why)
{
    book->believed = false;
    metrics_count(COUNTER_RECLAIM_LOOKS, RECLAIM_LOOK_CLOSED);
    store_set_claims_trouble(book->store, why);
    log_event_limited(LOG_LEVEL_ERROR, "claims on lent quota cannot be read; nobody ends for any",
                      LOG_TEXT("configmap", CLAIM_SHEET_NAME), LOG_TEXT("why", why));
}

/* Without an answer room is kept as before; what the answer says is not believed, and keeps none. */
static bool read_sheet(struct claim_book *book, GError **error)
{
    g_auto(claim_file) file = {0};

    if (book->files->read(book->data, &file, error) != OUTCOME_OK)
        return false;
    if (!file.version && book->version)
        log_event(LOG_LEVEL_WARN, "claims on lent quota are gone: their ConfigMap was deleted",
                  LOG_TEXT("configmap", CLAIM_SHEET_NAME));
    struct claim_sheet *sheet =
        file.version ? claim_sheet_read(file.text, file.sum, error) : claim_sheet_new();
    if (sheet) {
        adopt(book, sheet, g_steal_pointer(&file.version));
        return true;
    }
    adopt(book, claim_sheet_new(), NULL);
    return fail_within(error, "delete it, and all claims and pauses are forgotten: ");
}

bool claim_book_read(struct claim_book *book)
{
    g_autoptr(GError) failure = NULL;

    if (read_sheet(book, &failure)) {
        metrics_count(COUNTER_RECLAIM_LOOKS, RECLAIM_LOOK_READ);
        store_set_claims_trouble(book->store, NULL);
        return true;
    }
    close_book(book, failure->message);
    return false;
}

bool claim_book_names(struct claim_book *book, const char *node, const char *uid,
                      const char *ending)
{
    const GPtrArray *claims = claim_book_read(book) ? claim_sheet_on(book->sheet, node) : NULL;

    for (guint i = 0; claims && i < claims->len; i++) {
        const struct room_claim *claim = claims->pdata[i];
        if (g_str_equal(claim->uid, uid))
            return claim_names(claim, ending);
    }
    return false;
}

/* --- writing -------------------------------------------------------------------------------------- */

static enum outcome try_change(struct claim_book *book,
                               void (*change)(struct claim_sheet *sheet, void *data), void *data,
                               GError **error)
{
    g_autoptr(claim_sheet) sheet = NULL;

    if (!book->believed && !claim_book_read(book)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "the claims cannot be read");
        return OUTCOME_REFUSED;
    }
    sheet = claim_sheet_dup(book->sheet);
    change(sheet, data);
    char *text = claim_sheet_encode(sheet);
    g_auto(claim_file) file = {g_strdup(book->version), text, claim_sheet_sum(text)};
    g_autofree char *before = claim_sheet_encode(book->sheet), *version = NULL;
    if (g_str_equal(before, text))
        return OUTCOME_OK;
    if (!claim_sheet_fits(sheet, text, error))
        return OUTCOME_REFUSED;
    const enum outcome outcome = book->files->write(book->data, &file, &version, error);
    book->believed = outcome == OUTCOME_OK;
    if (book->believed)
        adopt(book, g_steal_pointer(&sheet), g_steal_pointer(&version));
    return outcome;
}

bool claim_book_change(struct claim_book *book,
                       void (*change)(struct claim_sheet *sheet, void *data), void *data,
                       GError **error)
{
    enum outcome outcome = OUTCOME_CONFLICT;

    for (int i = 0; i < TRIES_MAX && (outcome == OUTCOME_CONFLICT || outcome == OUTCOME_NOT_FOUND);
         i++) {
        g_clear_error(error);
        outcome = try_change(book, change, data, error);
    }
    return outcome == OUTCOME_OK;
}
