/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The ConfigMap of claims (src/wire/claim_sheet.h), with versions and conflicts, in memory. */
#include "reclaim/claim_config_map.h"
#include "wire/claim_sheet.h"

static struct fake_claims {
    char *text, *sum; /* NULL: there is no ConfigMap */
    unsigned version, n_reads, n_writes;
    bool unreadable;         /* reads have no answer */
    bool lost;               /* the next write is made, and has no answer */
    void (*before)(void);    /* happens before each write; NULL: nothing */
    void (*written)(void);   /* after each */
    bool (*conflicts)(void); /* whether a write meets somebody else's; NULL: none does */
} fake_claims;

static void fake_claims_fail(GError **error, const char *why)
{
    g_set_error_literal(error, g_quark_from_static_string("test"), 0, why);
}

static enum outcome fake_claims_read(void *data, struct claim_file *ret_file, GError **error)
{
    fake_claims.n_reads++;
    if (fake_claims.unreadable) {
        fake_claims_fail(error, "no answer");
        return OUTCOME_UNKNOWN;
    }
    *ret_file = (struct claim_file){
        .version = fake_claims.text ? g_strdup_printf("%u", fake_claims.version) : NULL,
        .text = g_strdup(fake_claims.text),
        .sum = g_strdup(fake_claims.sum),
    };
    return OUTCOME_OK;
}

/* Somebody writes it; NULL deletes it. */
static void fake_claims_set(const char *text, const char *sum)
{
    g_autofree char *copy = g_strdup(text);

    g_free(fake_claims.text);
    g_free(fake_claims.sum);
    fake_claims.text = g_steal_pointer(&copy);
    fake_claims.sum = g_strdup(sum);
    fake_claims.version++;
    if (fake_claims.written)
        fake_claims.written();
}

static enum outcome fake_claims_write(void *data, const struct claim_file *file, char **ret_version,
                                      GError **error)
{
    g_autofree char *version = fake_claims.text ? g_strdup_printf("%u", fake_claims.version) : NULL;

    if (fake_claims.before)
        fake_claims.before();
    if (g_strcmp0(file->version, version) != 0 ||
        (fake_claims.conflicts && fake_claims.conflicts())) {
        fake_claims_fail(error, "it has changed");
        return OUTCOME_CONFLICT;
    }
    fake_claims.n_writes++;
    fake_claims_set(file->text, file->sum);
    if (fake_claims.lost) {
        fake_claims.lost = false;
        fake_claims_fail(error, "no answer");
        return OUTCOME_UNKNOWN;
    }
    *ret_version = g_strdup_printf("%u", fake_claims.version);
    return OUTCOME_OK;
}

static const struct claim_files fake_claims_files = {fake_claims_read, fake_claims_write};

/* What it says; NULL: nothing, or nothing that can be believed. */
G_GNUC_UNUSED static struct claim_sheet *fake_claims_sheet(void)
{
    return fake_claims.text ? claim_sheet_read(fake_claims.text, fake_claims.sum, NULL) : NULL;
}

/* Of the node, as its annotation has them; NULL: none. Free with g_free. */
G_GNUC_UNUSED static char *fake_claims_on(const char *node)
{
    g_autoptr(claim_sheet) sheet = fake_claims_sheet();
    const GPtrArray *claims = sheet ? claim_sheet_on(sheet, node) : NULL;

    return claims ? claims_encode(claims) : NULL;
}

/* Whatever else there is: one claim on the node. */
G_GNUC_UNUSED static void fake_claims_put(const char *node, struct room_claim *take_claim)
{
    g_autoptr(claim_sheet) sheet = fake_claims_sheet();

    if (!sheet)
        sheet = claim_sheet_new();
    claim_sheet_add(sheet, node, take_claim);
    g_autofree char *text = claim_sheet_encode(sheet), *sum = claim_sheet_sum(text);
    fake_claims_set(text, sum);
}

G_GNUC_UNUSED static void fake_claims_reset(void)
{
    g_free(fake_claims.text);
    g_free(fake_claims.sum);
    fake_claims = (struct fake_claims){0};
}
