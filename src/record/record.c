/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record.h"

#include "store/booking.h"
#include "record/learned.h"
#include "record/queue_state.h"
#include "wire/constraints.h"

#include <string.h>

const char *const record_kinds[RECORD_KIND_N] = {
    [RECORD_LIST_BEGIN] = "list-begin",
    [RECORD_LIST_END] = "list-end",
    [RECORD_NODE] = "node",
    [RECORD_NODE_GONE] = "node-gone",
    [RECORD_POD] = "pod",
    [RECORD_POD_GONE] = "pod-gone",
    [RECORD_POD_VANISHED] = "pod-vanished",
    [RECORD_RECONCILE] = "settle",
    [RECORD_CONFIGMAP] = "configmap",
    [RECORD_CONFIGMAP_GONE] = "configmap-gone",
    [RECORD_BUDGET] = "budget",
    [RECORD_BUDGET_GONE] = "budget-gone",
    [RECORD_RESOURCE_QUOTA] = "resourcequota",
    [RECORD_RESOURCE_QUOTA_GONE] = "resourcequota-gone",
    [RECORD_POLICY] = "policy",
    [RECORD_ARRIVALS] = "arrivals",
    [RECORD_LEARNED] = "learned",
    [RECORD_LEDGER] = "ledger",
    [RECORD_CALL] = "call",
    [RECORD_LOOK] = "look",
    [RECORD_CONCLUDE] = "conclude",
    [RECORD_WAITS] = "waits",
    [RECORD_REJECTED] = "rejected",
    [RECORD_REJECTS] = "rejects",
    [RECORD_RESUME] = "resume",
    [RECORD_TIME] = "time",
    [RECORD_REFUSED] = "refused",
    [RECORD_DROP] = "drop",
    [RECORD_INHERIT] = "inherit",
    [RECORD_BOOKING] = "booking",
    [RECORD_LOST] = "lost",
    [RECORD_HEADER] = "header",
    [RECORD_END] = "end",
};

const char *const record_steps[ATTEMPT_STEP_N] = {
    [ATTEMPT_SEND] = "send",
    [ATTEMPT_DONE] = "done",
    [ATTEMPT_FETCH] = "ask-for-pod",
    [ATTEMPT_WAIT_NODE] = "wait-for-node-side",
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
    g_free(record);
}

static struct record *begin(enum record_kind kind, uint64_t number, struct json_writer *writer)
{
    struct record *record = g_new0(struct record, 1);

    record->kind = kind;
    record->number = number;
    record->text = g_string_sized_new(256);
    json_writer_init(writer, record->text);
    json_begin_object(writer);
    json_key_int(writer, "n", (int64_t)number);
    json_key_string(writer, "kind", record_kinds[kind]);
    return record;
}

static void begin_object(struct record *record, struct json_writer *writer, const char *key)
{
    json_key(writer, key);
    record->object_at = record->text->len;
}

static void write_moment(struct json_writer *writer, const struct moment *moment)
{
    g_autofree char *at = g_strdup_printf("%" G_GINT64_FORMAT, moment->now_ns);

    json_key_string(writer, "at", at);
    json_key_int(writer, "ms", moment->now_ms);
}

struct record *record_list(enum record_kind kind, uint64_t number, enum feed feed)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(kind, number, &writer);
    record->feed = feed;
    json_key_string(&writer, "feed", feed_names[feed]);
    json_end_object(&writer);
    return record;
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

struct record *record_pod(uint64_t number, const struct pod_view *pod, enum trust trust)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_POD, number, &writer);
    record->key = g_strdup(pod->uid);
    record->pending = !pod_view_is_bound(pod);
    if (record->pending) {
        record->picky = !constraints_are_none(pod);
        record->scheduler = g_strdup(pod->scheduler_name);
        record_write_asking(&writer, record->picky, record->scheduler);
    }
    record->trust = trust;
    record_write_trust(&writer, trust);
    begin_object(record, &writer, "object");
    pod_view_encode(&writer, pod);
    json_end_object(&writer);
    return record;
}

struct record *record_unread_pod(uint64_t number, const struct pod_view *pod)
{
    struct record *record = record_pod(number, pod, TRUST_ANNOTATIONS);

    if (record)
        record->unread = true;
    return record;
}

struct record *record_reconcile(uint64_t number, const struct pod_view *pod, bool confirmed)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_RECONCILE, number, &writer);
    record->key = g_strdup(pod->uid);
    record->confirmed = confirmed;
    json_key_bool(&writer, "confirmed", confirmed);
    begin_object(record, &writer, "object");
    pod_view_encode(&writer, pod);
    json_end_object(&writer);
    return record;
}

struct record *record_node(uint64_t number, const struct node_view *node, bool paused)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_NODE, number, &writer);
    record->key = g_strdup(node->name);
    record->paused = paused;
    begin_object(record, &writer, "object");
    node_view_encode(&writer, node);
    json_end_object(&writer);
    return record;
}

struct record *record_configmap(uint64_t number, const struct configmap_view *configmap, bool gone)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record =
        begin(gone ? RECORD_CONFIGMAP_GONE : RECORD_CONFIGMAP, number, &writer);
    record->key = g_strdup_printf("%s/%s", configmap->ns, configmap->name);
    begin_object(record, &writer, "object");
    configmap_view_encode(&writer, configmap);
    json_end_object(&writer);
    return record;
}

struct record *record_budget(uint64_t number, const struct budget_view *budget, bool gone)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(gone ? RECORD_BUDGET_GONE : RECORD_BUDGET, number, &writer);
    record->key = g_strdup_printf("%s/%s", budget->ns, budget->name);
    begin_object(record, &writer, "object");
    budget_view_encode(&writer, budget);
    json_end_object(&writer);
    return record;
}

struct record *record_resource_quota(uint64_t number, const struct resource_quota_view *quota,
                                     bool gone)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record =
        begin(gone ? RECORD_RESOURCE_QUOTA_GONE : RECORD_RESOURCE_QUOTA, number, &writer);
    record->key = g_strdup_printf("%s/%s", quota->ns, quota->name);
    begin_object(record, &writer, "object");
    resource_quota_view_encode(&writer, quota);
    json_end_object(&writer);
    return record;
}

struct record *record_waits(uint64_t number, const struct waits *waits,
                            const struct ledger *ledger)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_WAITS, number, &writer);
    begin_object(record, &writer, "object");
    waits_encode(&writer, waits, ledger);
    json_end_object(&writer);
    return record;
}

struct record *record_time(uint64_t number, const struct moment *moment)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_TIME, number, &writer);
    write_moment(&writer, moment);
    json_end_object(&writer);
    return record;
}

struct record *record_rejected(uint64_t number, const char *uid, const struct rejection *rejection)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_REJECTED, number, &writer);
    record->key = g_strdup(uid);
    json_key_string(&writer, "key", uid);
    json_key_string(&writer, "result", rejection_names[rejection->kind]);
    json_key_bool(&writer, "confirmed", rejection->refused);
    json_end_object(&writer);
    return record;
}

struct record *record_rejects(uint64_t number, const struct rejects *rejects)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_REJECTS, number, &writer);
    begin_object(record, &writer, "object");
    rejects_encode(&writer, rejects);
    json_end_object(&writer);
    return record;
}

struct record *record_gone(enum record_kind kind, uint64_t number, const char *key)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(kind, number, &writer);
    record->key = g_strdup(key);
    json_key_string(&writer, "key", key);
    json_end_object(&writer);
    return record;
}

struct record *record_policy(uint64_t number, const char *policy, int64_t patience_ms)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_POLICY, number, &writer);
    json_key_string(&writer, "policy", policy);
    json_key_int(&writer, "patience", patience_ms);
    json_end_object(&writer);
    return record;
}

struct record *record_arrivals(uint64_t number, const GArray *entries, const GList *schedulers)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_ARRIVALS, number, &writer);
    begin_object(record, &writer, "object");
    queue_state_encode(&writer, entries, schedulers);
    json_end_object(&writer);
    return record;
}

struct record *record_learned(uint64_t number, const struct demand *demand)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_LEARNED, number, &writer);
    begin_object(record, &writer, "object");
    learned_encode(&writer, demand);
    json_end_object(&writer);
    return record;
}

struct record *record_ledger(uint64_t number, const struct node *node)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_LEDGER, number, &writer);
    begin_object(record, &writer, "object");
    record_node_encode(&writer, node);
    json_end_object(&writer);
    return record;
}

struct record *record_call(const struct call *call, const GString *reply)
{
    struct json_writer writer;

    if (call->moment.number == 0)
        return NULL;
    struct record *record = begin(RECORD_CALL, call->moment.number, &writer);
    json_key_string(&writer, "verb", metrics_verb(call->verb));
    json_key_int(&writer, "entry", call->entry);
    write_moment(&writer, &call->moment);
    record->verb = call->verb;
    record->body = g_string_new_len(call->body, (gssize)call->length);
    record->reply = g_string_new_len(reply->str, (gssize)reply->len);
    return record;
}

/* --- binds ---------------------------------------------------------------------------------- */

void record_answer_encode(struct json_writer *writer, const struct attempt *attempt,
                          enum attempt_step step, const GError *failure)
{
    json_begin_object(writer);
    json_key_string(writer, "step", record_steps[step]);
    if (failure)
        json_key_string(writer, "error", failure->message);
    if (step == ATTEMPT_SEND || step == ATTEMPT_DONE)
        json_key_int(writer, "card", attempt->card);
    if (step == ATTEMPT_SEND) {
        json_key_string(writer, "dialect", attempt->dialect->name);
        json_key(writer, "annotations");
        json_begin_object(writer);
        for (size_t i = 0; i < attempt->annotations.n; i++)
            json_key_string(writer, attempt->annotations.items[i].key,
                            attempt->annotations.items[i].value);
        json_end_object(writer);
    }
    json_end_object(writer);
}

struct record *record_look(const struct moment *moment, const struct attempt *attempt,
                           enum attempt_step step, const struct ledger *ledger,
                           const GError *failure)
{
    const struct bind_args *args = attempt->args;
    struct json_writer writer;

    if (moment->number == 0)
        return NULL;
    struct record *record = begin(RECORD_LOOK, moment->number, &writer);
    record->key = g_strdup(args->pod_uid);
    record->result = step == ATTEMPT_SEND ? BIND_RESULT_BOUND : BIND_RESULT_REFUSED;
    json_key_int(&writer, "call", (int64_t)attempt->call);
    write_moment(&writer, moment);
    json_key_int(&writer, "until", attempt->send_until_ms);
    json_key_string(&writer, "namespace", args->pod_namespace);
    json_key_string(&writer, "name", args->pod_name);
    json_key_string(&writer, "uid", args->pod_uid);
    json_key_string(&writer, "node", args->node);
    if (attempt->asks) {
        json_key(&writer, "asks");
        json_raw(&writer, attempt->asks->str, attempt->asks->len);
    }
    json_key(&writer, "answer");
    record_answer_encode(&writer, attempt, step, failure);
    if (step == ATTEMPT_SEND) {
        begin_object(record, &writer, "booking");
        booking_encode(&writer, ledger_get(ledger, args->pod_uid));
    }
    json_end_object(&writer);
    return record;
}

struct record *record_conclude(const struct moment *moment, const char *uid,
                               enum bind_result result)
{
    struct json_writer writer;

    if (moment->number == 0)
        return NULL;
    struct record *record = begin(RECORD_CONCLUDE, moment->number, &writer);
    record->key = g_strdup(uid);
    record->result = result;
    write_moment(&writer, moment);
    json_key_string(&writer, "key", uid);
    json_key_string(&writer, "result", bind_result_names[result]);
    json_end_object(&writer);
    return record;
}

struct record *record_inherit(uint64_t number, const char *uid, const char *booking)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_INHERIT, number, &writer);
    record->key = g_strdup(uid);
    begin_object(record, &writer, "booking");
    json_raw(&writer, booking, strlen(booking));
    json_end_object(&writer);
    return record;
}

/* --- observations --------------------------------------------------------------------------- */

struct record *record_new(const struct observation *what)
{
    const uint64_t number = what->number;

    switch (what->what) {
    case OBSERVED_LIST_BEGIN:
        return record_list(RECORD_LIST_BEGIN, number, what->feed);
    case OBSERVED_LIST_END:
        return record_list(RECORD_LIST_END, number, what->feed);
    case OBSERVED_NODE:
        return record_node(number, what->node, what->paused);
    case OBSERVED_NODE_GONE:
        return record_gone(RECORD_NODE_GONE, number, what->key);
    case OBSERVED_POD:
        return record_pod(number, what->pod, what->trust);
    case OBSERVED_UNREAD_POD:
        return record_unread_pod(number, what->pod);
    case OBSERVED_ASKED_POD:
        return record_reconcile(number, what->pod, what->confirmed);
    case OBSERVED_POD_ENDED:
        return record_gone(RECORD_POD_GONE, number, what->key);
    case OBSERVED_POD_VANISHED:
        return record_gone(RECORD_POD_VANISHED, number, what->key);
    case OBSERVED_POD_REJECTED:
        return record_rejected(number, what->key, what->rejection);
    case OBSERVED_CONFIGMAP:
    case OBSERVED_CONFIGMAP_GONE:
        return record_configmap(number, what->configmap, what->what == OBSERVED_CONFIGMAP_GONE);
    case OBSERVED_BUDGET:
    case OBSERVED_BUDGET_GONE:
        return record_budget(number, what->budget, what->what == OBSERVED_BUDGET_GONE);
    case OBSERVED_RESOURCE_QUOTA:
    case OBSERVED_RESOURCE_QUOTA_GONE:
        return record_resource_quota(number, what->resource_quota,
                                     what->what == OBSERVED_RESOURCE_QUOTA_GONE);
    case OBSERVED_POLICY:
        return record_policy(number, what->key, what->patience_ms);
    case OBSERVED_RESUME:
        return record_gone(RECORD_RESUME, number, what->key);
    case OBSERVED_TIME:
        return record_time(number, what->moment);
    case OBSERVED_REFUSED:
        return record_gone(RECORD_REFUSED, number, what->key);
    case OBSERVED_DROPPED:
        return record_gone(RECORD_DROP, number, what->key);
    case OBSERVED_INHERITED:
        return record_inherit(number, what->key, what->booking);
    case OBSERVED_CALL:
        return record_call(what->call, what->reply);
    case OBSERVED_LOOK:
        return record_look(what->moment, what->attempt, what->step, what->ledger, what->failure);
    case OBSERVED_CONCLUSION:
        return record_conclude(what->moment, what->key, what->result);
    case OBSERVED_ARRIVALS:
        return record_arrivals(number, what->entries, what->schedulers);
    case OBSERVED_WAITS:
        return record_waits(number, what->waits, what->ledger);
    case OBSERVED_REJECTS:
        return record_rejects(number, what->rejects);
    case OBSERVED_LEDGER:
        return record_ledger(number, what->held);
    case OBSERVED_LEARNED:
        return record_learned(number, what->demand);
    }
    return NULL;
}
