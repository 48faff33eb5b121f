/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record.h"

#include "store/booking.h"
#include "store/images/ledger_reader.h"
#include "store/kinds/kind.h"
#include "wire/constraints.h"
#include "wire/rejection.h"
#include "gate/part.h"

#include <string.h>

const struct record_row record_rows[RECORD_KIND_N] = {
    [OBSERVED_LIST_BEGIN] = {"list-begin", .is_event = true},
    [OBSERVED_LIST_END] = {"list-end", .is_event = true},
    [OBSERVED_NODE] = {"node", .is_event = true, .has_object = true},
    [OBSERVED_NODE_GONE] = {"node-gone", .is_event = true},
    [OBSERVED_POD] = {"pod", .is_event = true, .has_object = true},
    [OBSERVED_POD_ENDED] = {"pod-gone", .is_event = true},
    [OBSERVED_POD_VANISHED] = {"pod-vanished", .is_event = true},
    [OBSERVED_ASKED_POD] = {"settle", .is_event = true, .has_object = true},
    [OBSERVED_POLICY] = {"policy", .is_event = true},
    [OBSERVED_LEDGER] = {"ledger", .is_event = true, .has_object = true},
    [OBSERVED_CALL] = {"call"},
    [OBSERVED_LOOK] = {"look"},
    [OBSERVED_CONCLUSION] = {"conclude", .is_event = true},
    [OBSERVED_POD_REJECTED] = {"rejected", .is_event = true},
    [OBSERVED_PART] = {.is_event = true, .has_object = true},
    [OBSERVED_RESUME] = {"resume", .is_event = true},
    [OBSERVED_TIME] = {"time", .is_event = true},
    [OBSERVED_REFUSED] = {"refused", .is_event = true},
    [OBSERVED_DROPPED] = {"drop", .is_event = true},
    [OBSERVED_INHERITED] = {"inherit", .is_event = true, .has_booking = true},
    [OBSERVED_PROMISE] = {"promise", .is_event = true, .has_object = true},
    [OBSERVED_PROMISE_GONE] = {"promise-gone", .is_event = true},
    [OBSERVED_OUTLOOK_BEGUN] = {"outlook-begun", .is_event = true},
    [OBSERVED_OUTLOOK] = {"outlook", .is_event = true},
    [OBSERVED_MOVE] = {"move", .is_event = true},
    [OBSERVED_EVICTION] = {"eviction", .is_event = true},
    [RECORD_BOOKING] = {"booking", .is_event = true, .has_booking = true},
    [RECORD_LOST] = {"lost"},
    [RECORD_HEADER] = {"header"},
    [RECORD_END] = {"end"},
    [OBSERVED_OBJECT] = {.is_event = true, .has_object = true},
    [OBSERVED_OBJECT_GONE] = {.is_event = true, .has_object = true},
};

const char *record_kind_name(int kind, enum feed feed)
{
    return kind == OBSERVED_OBJECT        ? kinds[feed]->name
           : kind == OBSERVED_OBJECT_GONE ? kinds[feed]->gone
           : kind == OBSERVED_PART        ? parts_table[feed]->image->kind
                                          : record_rows[kind].name;
}

bool record_kind_find(const char *name, int *ret_kind, enum feed *ret_feed)
{
    for (int kind = 0; kind < RECORD_KIND_N; kind++) {
        if (g_strcmp0(name, record_rows[kind].name) == 0) {
            *ret_kind = kind;
            return true;
        }
    }
    for (int place = 0; parts_table[place]; place++) {
        const struct part_image *image = parts_table[place]->image;
        if (image && g_str_equal(name, image->kind)) {
            *ret_kind = OBSERVED_PART;
            *ret_feed = (enum feed)place;
            return true;
        }
    }
    for (int feed = 0; feed < kinds_n; feed++) {
        const bool gone = g_str_equal(name, kinds[feed]->gone);
        if (!gone && !g_str_equal(name, kinds[feed]->name))
            continue;
        *ret_kind = gone ? OBSERVED_OBJECT_GONE : OBSERVED_OBJECT;
        *ret_feed = (enum feed)feed;
        return true;
    }
    return false;
}

const char *const record_steps[ATTEMPT_STEP_N] = {
    [ATTEMPT_SEND] = "send",
    [ATTEMPT_DONE] = "done",
    [ATTEMPT_FETCH] = "ask-for-pod",
    [ATTEMPT_WAIT_NODE] = "wait-for-node-side",
    [ATTEMPT_WAIT_GROUP] = "wait-for-group",
    [ATTEMPT_WAIT_BIND] = "wait-for-bind",
    [ATTEMPT_FAILED] = "refuse",
};

/* --- lines ---------------------------------------------------------------------------------- */

void record_free(struct record *record)
{
    if (!record)
        return;
    if (record->text)
        g_string_free(record->text, TRUE);
    if (record->body)
        g_string_free(record->body, TRUE);
    if (record->reply)
        g_string_free(record->reply, TRUE);
    g_free(record->key);
    g_free(record->scheduler);
    g_free(record->quota);
    g_free(record);
}

static struct record *begin(int kind, enum feed feed, uint64_t number, struct json_writer *writer)
{
    struct record *record = g_new0(struct record, 1);

    record->kind = kind;
    record->feed = feed;
    record->number = number;
    record->text = g_string_sized_new(256);
    json_writer_init(writer, record->text);
    json_begin_object(writer);
    json_key_int(writer, "n", (int64_t)number);
    json_key_string(writer, "kind", record_kind_name(kind, feed));
    return record;
}

/* The line's last key, whose text a later file may begin with. */
static struct json_writer *begin_object(struct record *record, struct json_writer *writer,
                                        const char *key)
{
    json_key(writer, key);
    record->object_at = record->text->len;
    return writer;
}

static void write_moment(struct json_writer *writer, const struct moment *moment)
{
    g_autofree char *at = g_strdup_printf("%" G_GINT64_FORMAT, moment->now_ns);

    json_key_string(writer, "at", at);
    json_key_int(writer, "ms", moment->now_ms);
    if (moment->counting)
        json_key_bool(writer, "counting", true);
}

static const char *const record_trusts[] = {
    [TRUST_ANNOTATIONS] = NULL, [TRUST_SEAL] = "valid", [TRUST_NOTHING] = "missing"};

void record_write_trust(struct json_writer *writer, enum trust trust)
{
    if (record_trusts[trust])
        json_key_string(writer, "seal", record_trusts[trust]);
}

enum trust record_trust(const char *name)
{
    for (int trust = TRUST_ANNOTATIONS; name && trust <= TRUST_NOTHING; trust++) {
        if (g_strcmp0(name, record_trusts[trust]) == 0)
            return (enum trust)trust;
    }
    return TRUST_ANNOTATIONS;
}

void record_write_asking(struct json_writer *writer, bool picky, const char *scheduler)
{
    if (picky)
        json_key_bool(writer, "picky", true);
    if (scheduler)
        json_key_string(writer, "scheduler", scheduler);
}

void record_write_quota(struct json_writer *writer, const char *quota)
{
    if (quota)
        json_key_string(writer, "quota", quota);
}

static void write_pod(struct record *record, struct json_writer *writer,
                      const struct observation *what, enum trust trust)
{
    const struct pod_view *pod = what->pod;

    record->key = g_strdup(pod->uid);
    record->pending = !pod_view_is_bound(pod);
    if (record->pending) {
        record->picky = !constraints_are_none(pod);
        record->scheduler = g_strdup(pod->scheduler_name);
        record_write_asking(writer, record->picky, record->scheduler);
    }
    record->trust = trust;
    record_write_trust(writer, trust);
    record->quota = g_strdup(what->quota);
    record_write_quota(writer, what->quota);
    pod_view_encode(begin_object(record, writer, "object"), pod);
}

/* --- binds ---------------------------------------------------------------------------------- */

void record_answer_encode(struct json_writer *writer, const struct attempt *attempt,
                          enum attempt_step step, const GError *failure)
{
    json_begin_object(writer);
    json_key_string(writer, "step", record_steps[step]);
    if (failure)
        json_key_string(writer, "error", failure->message);
    if (attempt->journal_full)
        json_key_bool(writer, "journal-full", true);
    if (step == ATTEMPT_SEND || step == ATTEMPT_DONE)
        json_key_int(writer, "card", attempt->card);
    if (step == ATTEMPT_SEND) {
        json_key_string(writer, "dialect", attempt->dialect->name);
        json_key_object(writer, "annotations");
        for (size_t i = 0; i < attempt->annotations.n; i++)
            json_key_string(writer, attempt->annotations.items[i].key,
                            attempt->annotations.items[i].value);
        json_end_object(writer);
    }
    json_end_object(writer);
}

static void write_look(struct record *record, struct json_writer *writer,
                       const struct observation *what)
{
    const struct attempt *attempt = what->attempt;
    const struct bind_args *args = attempt->args;
    const enum attempt_step step = (enum attempt_step)what->step;

    record->key = g_strdup(args->pod_uid);
    record->result = step == ATTEMPT_SEND ? BIND_RESULT_BOUND : BIND_RESULT_REFUSED;
    json_key_int(writer, "call", (int64_t)attempt->call);
    write_moment(writer, what->moment);
    json_key_int(writer, "until", attempt->send_until_ms);
    json_key_string(writer, "namespace", args->pod_namespace);
    json_key_string(writer, "name", args->pod_name);
    json_key_string(writer, "uid", args->pod_uid);
    json_key_string(writer, "node", args->node);
    if (attempt->asks) {
        json_key(writer, "asks");
        json_raw(writer, attempt->asks->str, attempt->asks->len);
    }
    json_key(writer, "answer");
    record_answer_encode(writer, attempt, step, what->failure);
    if (step == ATTEMPT_SEND)
        booking_encode(begin_object(record, writer, "booking"),
                       ledger_get(what->ledger, args->pod_uid));
}

static void write_move(struct record *record, struct json_writer *writer,
                       const struct observed_move *move)
{
    record->key = g_strdup(move->uid);
    json_key_string(writer, "key", move->uid);
    json_key_string(writer, "result", move->outcome);
    json_key_string(writer, "plan", move->plan);
    json_key_string(writer, "namespace", move->ns);
    json_key_string(writer, "name", move->name);
    json_key_string(writer, "node", move->from);
    json_key_string(writer, "to", move->to);
    if (move->why)
        json_key_string(writer, "why", move->why);
}

static void write_eviction(struct record *record, struct json_writer *writer,
                           const struct observed_eviction *eviction)
{
    record->key = g_strdup(eviction->uid);
    json_key_string(writer, "key", eviction->uid);
    json_key_string(writer, "result", eviction->outcome);
    json_key_string(writer, "capability", eviction->capability);
    json_key_string(writer, "for", eviction->whom);
    json_key_string(writer, "namespace", eviction->ns);
    json_key_string(writer, "name", eviction->name);
    json_key_string(writer, "node", eviction->node);
}

static void write_held(struct json_writer *writer, const struct held_node *node)
{
    g_autoptr(record_pods) pods = record_pods_new();

    for (guint i = 0; i < node->pods->len; i++)
        record_pods_add(pods, node->name, &g_array_index(node->pods, struct held_pod, i));
    record_pods_encode(writer, pods, node->name);
}

/* --- observations --------------------------------------------------------------------------- */

static uint64_t number_of(const struct observation *what)
{
    if (what->what == OBSERVED_CALL)
        return what->call->moment.number;
    if (what->what == OBSERVED_LOOK || what->what == OBSERVED_CONCLUSION)
        return what->moment->number;
    return what->number;
}

static char *object_key(const struct object_name *name)
{
    return g_strdup_printf("%s/%s", name->ns, name->name);
}

/* All that the line says beside its number and kind. */
static void write_fields(struct record *record, struct json_writer *writer,
                         const struct observation *what)
{
    switch (what->what) {
    case OBSERVED_LIST_BEGIN:
    case OBSERVED_LIST_END:
        json_key_string(writer, "feed", kinds[what->feed]->feed);
        if (what->spared)
            json_key_bool(writer, "spared", true);
        break;
    case OBSERVED_NODE:
        record->key = g_strdup(what->node->name);
        record->paused = what->paused;
        record->change_ms = what->change_ms;
        if (what->change_ms)
            json_key_int(writer, "changing", what->change_ms);
        node_view_encode(begin_object(record, writer, "object"), what->node);
        break;
    case OBSERVED_POD:
        record->unread = what->unread;
        write_pod(record, writer, what, (enum trust)what->trust);
        break;
    case OBSERVED_ASKED_POD:
        record->key = g_strdup(what->pod->uid);
        record->confirmed = what->confirmed;
        record->quota = g_strdup(what->quota);
        json_key_bool(writer, "confirmed", what->confirmed);
        record_write_quota(writer, what->quota);
        pod_view_encode(begin_object(record, writer, "object"), what->pod);
        break;
    case OBSERVED_OBJECT:
    case OBSERVED_OBJECT_GONE:
        record->key = object_key(what->view);
        kinds[what->feed]->encode(begin_object(record, writer, "object"), what->view);
        break;
    case OBSERVED_NODE_GONE:
    case OBSERVED_POD_ENDED:
    case OBSERVED_POD_VANISHED:
    case OBSERVED_RESUME:
    case OBSERVED_REFUSED:
    case OBSERVED_DROPPED:
        record->key = g_strdup(what->key);
        json_key_string(writer, "key", what->key);
        break;
    case OBSERVED_POD_REJECTED:
        record->key = g_strdup(what->key);
        json_key_string(writer, "key", what->key);
        json_key_string(writer, "result", rejection_names[what->rejection->kind]);
        json_key_bool(writer, "confirmed", what->rejection->refused);
        break;
    case OBSERVED_POLICY:
        json_key_string(writer, "policy", what->key);
        json_key_int(writer, "patience", what->patience_ms);
        break;
    case OBSERVED_OUTLOOK_BEGUN:
    case OBSERVED_OUTLOOK:
        break;
    case OBSERVED_TIME:
        write_moment(writer, what->moment);
        break;
    case OBSERVED_INHERITED:
        record->key = g_strdup(what->key);
        json_raw(begin_object(record, writer, "booking"), what->booking, strlen(what->booking));
        break;
    case OBSERVED_CALL: /* whose end is written with its body and reply */
        json_key_string(writer, "verb", metrics_verb(what->call->verb));
        json_key_int(writer, "entry", what->call->entry);
        write_moment(writer, &what->call->moment);
        if (what->call->recalled) {
            json_key(writer, "recalled");
            json_raw(writer, what->call->recalled->str, what->call->recalled->len);
        }
        record->verb = what->call->verb;
        record->body = g_string_new_len(what->call->body, (gssize)what->call->length);
        record->reply = g_string_new_len(what->reply->str, (gssize)what->reply->len);
        return;
    case OBSERVED_LOOK:
        write_look(record, writer, what);
        break;
    case OBSERVED_CONCLUSION:
        record->key = g_strdup(what->key);
        record->result = what->result;
        write_moment(writer, what->moment);
        json_key_string(writer, "key", what->key);
        json_key_string(writer, "result", bind_result_names[what->result]);
        break;
    case OBSERVED_MOVE:
        write_move(record, writer, what->move);
        break;
    case OBSERVED_EVICTION:
        write_eviction(record, writer, what->eviction);
        break;
    case OBSERVED_PROMISE:
        record->key = g_strdup(what->stray->uid);
        record->dialect = what->stray->dialect;
        stray_encode(begin_object(record, writer, "object"), what->stray);
        break;
    case OBSERVED_PROMISE_GONE:
        record->key = g_strdup(what->stray->uid);
        record->dialect = what->stray->dialect;
        json_key_string(writer, "key", what->stray->uid);
        json_key_string(writer, "result", what->stray->dialect->name);
        break;
    case OBSERVED_PART:
        what->part->image->encode(begin_object(record, writer, "object"), what->image);
        break;
    case OBSERVED_LEDGER:
        write_held(begin_object(record, writer, "object"), what->held);
        break;
    case OBSERVED_N:
        break;
    }
    json_end_object(writer);
}

struct record *record_new(const struct observation *what)
{
    const uint64_t number = number_of(what);
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin((int)what->what, what->feed, number, &writer);
    write_fields(record, &writer, what);
    return record;
}
