/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The steps that a plan has taken so far, with what came of each: what the command prints, and what a plan that
 * a ConfigMap orders goes on from (maintain/plan_state.h). One thread.
 */
#include "maintain/executor.h"

#define STEP_LOG_MAX 128 /* the oldest go first: so many fit an annotation */
#define STEP_WHY_MAX 300 /* bytes */

struct logged_step {
    enum executor_event event; /* EXECUTOR_STEP: it has begun, and that is all that is known */
    char *ns, *name, *uid;
    char *from, *to; /* `to` NULL: it just ends; such ones cannot be decoded */
    char *owner;     /* UID; NULL: nobody makes a successor */
    guint n_ready;
    int64_t at_s; /* Unix time at which it began */
    char *why;    /* it has failed */
    bool other;   /* of a plan before this one */
};

struct step_log;

struct step_log *step_log_new(void);
void step_log_free(struct step_log *log); /* NULL is ignored */
typedef struct step_log step_log;         /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(step_log, step_log_free)

/* A step begins, or the last one has ended. */
void step_log_note(struct step_log *log, const struct executor_news *news, int64_t now_s);
/* The last one has ended, which was not seen. */
void step_log_end(struct step_log *log, enum executor_event event, const char *why);
/* Another plan begins: those that have been are not its own. */
void step_log_disown(struct step_log *log);
/* The last one never began after all, or its pod had gone by itself. */
void step_log_withdraw(struct step_log *log);

guint step_log_n(const struct step_log *log);
const struct logged_step *step_log_get(const struct step_log *log, guint i);
/* The last one, if nobody has seen its end; or NULL. */
const struct logged_step *step_log_open(const struct step_log *log);

/* Array of struct executor_past, which borrows from the log: of its own plan's pods that have moved since that
 * Unix time. */
GArray *step_log_past(const struct step_log *log, int64_t since_s);

/* An array of JSON. */
void step_log_encode(struct json_writer *writer, const struct step_log *log);
/* From such an array; NULL is an empty one. False, with an error: it cannot be understood. */
bool step_log_decode(struct step_log *log, struct json_arena *arena, const cJSON *array,
                     GError **error);
