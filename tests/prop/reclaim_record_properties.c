/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is decided while namespaces take back what they have lent is decided the same by whoever plays the
 * record, from any file of it on: while claims stand, come, go, lapse and cannot be read, beside pods that
 * kube-scheduler has nominated, and after lines were lost.
 *
 * The oracle is the record: what the store that lives has answered.
 */
#include "chance.h"
#include "../unit/objects.h"
#include "lending_cluster.h"
#include "../unit/literals.h"

#include "base/log.h"
#include "record/record_state.h"
#include "record/replay.h"
#include "store/images/ledger_reader.h"
#include "store/images/queue_image.h"
#include "verbs/extender.h"
#include "wire/claim_sheet.h"

#include <stdio.h>
#include <string.h>

#define STRANGERS 6 /* pods besides the cluster's own */

static struct tape {
    struct observer observer;
    uint64_t number, written, lost;
    uint64_t ends_after; /* the last number of the file; 0: it goes on */
    bool loses;
    bool waits;        /* nothing is written while the end of the file is told */
    GHashTable *early; /* number -> struct record *, until those before it are told */
    struct record_state *state;
    struct replay *replay; /* of the file that is being written */
} tape;
static struct extender extender;
static struct cluster cluster; /* that takes Bindings */
static struct {
    uint64_t compared, unchecked, files, losses, filters, kept, binds, victims;
} counts;
static unsigned n_strangers; /* that there have ever been */

/* --- the record -------------------------------------------------------------------------------- */

static void play(const char *text, size_t length)
{
    const struct replay_summary *summary = replay_summary(tape.replay);
    g_autoptr(GError) error = NULL;

    HOLDS(replay_line(tape.replay, text, length, &error), "%.*s: %s", (int)length, text,
          error ? error->message : "");
    HOLDS(summary->different == 0, "record %" G_GUINT64_FORMAT ", %s:\n%s\nbecomes\n%s\n%s",
          summary->difference.number, summary->difference.what, summary->difference.recorded,
          summary->difference.replayed, summary->difference.ledger);
}

static void end_file(void)
{
    const struct replay_summary *summary = replay_summary(tape.replay);

    counts.compared += summary->compared;
    counts.unchecked += summary->unchecked;
    replay_free(g_steal_pointer(&tape.replay));
}

static bool configure(void *data, const cJSON *recorded, struct store_options *ret_options,
                      struct extender *ret_extender, GError **error)
{
    *ret_options = *store_options(data);
    return true;
}

static void begin_file(struct store *store)
{
    g_autoptr(GString) text = g_string_new(NULL);

    tape.replay = replay_new(&(struct replay_options){.configure = configure, .data = store});
    g_string_printf(text,
                    "{\"kind\":\"header\",\"format\":5,\"before\":%" G_GUINT64_FORMAT
                    ",\"options\":{}}\n",
                    tape.written);
    if (tape.written > 0)
        record_state_write(tape.state, text);
    for (const char *at = text->str, *end; (end = strchr(at, '\n')); at = end + 1)
        play(at, (size_t)(end - at));
    counts.files++;
}

/* As the recorder ends the line of a call. */
static void end_call(struct record *record)
{
    struct json_writer writer = {record->text, true};

    json_key(&writer, "body");
    HOLDS(record_body_encode(&writer, record->verb, record->body), "%s", record->body->str);
    writer.comma = true;
    json_key(&writer, "reply");
    HOLDS(record_reply_encode(&writer, record->verb, record->reply), "%s", record->reply->str);
    json_end_object(&writer);
}

static void write_record(struct record *record)
{
    if (tape.lost > 0) {
        g_autofree char *line = g_strdup_printf(
            "{\"n\":%" G_GUINT64_FORMAT ",\"kind\":\"lost\",\"count\":%" G_GUINT64_FORMAT "}",
            record->number, tape.lost);
        tape.lost = 0;
        play(line, strlen(line));
        record_state_lose(tape.state);
    }
    if (record->body)
        end_call(record);
    record_state_note(tape.state, record);
    play(record->text->str, record->text->len);
    tape.written = record->number;
}

static uint64_t give_number(struct observer *observer)
{
    tape.lost += tape.loses;
    return tape.loses ? 0 : ++tape.number;
}

static void write_told(void)
{
    uint64_t next = tape.written + 1;
    struct record *record;

    while (!tape.waits && (record = g_hash_table_lookup(tape.early, &next))) {
        write_record(record);
        g_hash_table_remove(tape.early, &next);
        if (next++ != tape.ends_after)
            continue;
        end_file();
        begin_file(lending.store);
    }
}

static void take(struct observer *observer, const struct observation *what)
{
    struct record *record = record_new(what);

    if (!record)
        return;
    g_hash_table_insert(tape.early, g_memdup2(&record->number, sizeof record->number), record);
    write_told();
}

static void tell_ledger(void)
{
    g_autoptr(ledger_reader) reader = ledger_reader_new(lending.store, true);

    while (store_tell_ledger(lending.store, reader))
        continue;
}

static void tell_known(void)
{
    tell_ledger();
    HOLDS(store_tell_known(lending.store) > 0, "nothing is told");
}

static void free_record(gpointer record)
{
    record_free(record);
}

static void begin_tape(struct store *store)
{
    tape = (struct tape){
        .observer = {give_number, take},
        .early = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_record),
        .state = record_state_new(),
    };
    store_set_observer(store, &tape.observer);
    /* The cluster's time may be later than this machine's clock. */
    extender = (struct extender){.store = store, .cluster = &cluster, .bind_timeout_ms = INT32_MAX};
    begin_file(store);
}

static void end_tape(void)
{
    HOLDS(g_hash_table_size(tape.early) == 0, "some were not told");
    store_set_observer(lending.store, NULL);
    end_file();
    record_state_free(tape.state);
    g_hash_table_unref(tape.early);
}

/* --- questions --------------------------------------------------------------------------------------- */

struct asking {
    char *ns, *name, *uid;
    int units, priority;
    int64_t created_s;
};

static void asking_clear(struct asking *asking)
{
    g_free(asking->ns);
    g_free(asking->name);
    g_free(asking->uid);
}
typedef struct asking asking; /* for g_auto */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(asking, asking_clear)

static char *body_of(const struct asking *pod, const char *rest)
{
    return g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\""
        "},\"spec\":{\"priority\":%d,\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"%d\"}}}]}},%s}",
        pod->name, pod->ns, pod->uid, pod->priority, pod->units, rest);
}

static char *all_nodes(void)
{
    GString *text = g_string_new("\"NodeNames\":[");

    for (int i = 0; i < lending.n_nodes; i++)
        g_string_append_printf(text, "%s\"n%d\"", i ? "," : "", i);
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

/* kube-scheduler has found these whose end would do. */
static char *all_victims(int priority)
{
    GString *text = g_string_new("\"NodeNameToMetaVictims\":{");

    for (int node = 0; node < lending.n_nodes; node++) {
        const char *comma = "";
        g_string_append_printf(text, "%s\"n%d\":{\"Pods\":[", node ? "," : "", node);
        for (int i = 0; i < LENDING_PODS; i++) {
            const struct lending_pod *pod = &lending.pods[i];
            if (pod->stage != STAGE_HELD || pod->node != node || pod->priority >= priority)
                continue;
            g_string_append_printf(text, "%s{\"UID\":\"p%d-%u\"}", comma, i, pod->born);
            comma = ",";
        }
        g_string_append(text, "],\"NumPDBViolations\":0}");
    }
    g_string_append_c(text, '}');
    return g_string_free(text, FALSE);
}

/* The node that filter and prioritize would have; -1: none. */
static int ask(const struct asking *pod)
{
    g_autofree char *nodes = all_nodes(), *body = body_of(pod, nodes);
    g_autoptr(GString) reply = g_string_new(NULL), scores = g_string_new(NULL);
    int node = -1;

    extender_filter(&extender, body, strlen(body), reply);
    const char *passing = strstr(reply->str, "\"NodeNames\":[\"n");
    counts.filters++;
    if (passing)
        node = atoi(passing + strlen("\"NodeNames\":[\"n"));
    HOLDS(extender_prioritize(&extender, PRIORITIZE_ALL, body, strlen(body), scores, NULL), "%s",
          body);
    return node;
}

static void ask_whom_to_end(const struct asking *pod)
{
    g_autofree char *victims = all_victims(pod->priority), *body = body_of(pod, victims);
    g_autoptr(GString) reply = g_string_new(NULL);

    HOLDS(extender_preempt(&extender, body, strlen(body), reply, NULL), "%s", body);
    counts.victims += strstr(reply->str, "\"UID\"") != NULL;
}

static void ask_of(int number)
{
    const struct lending_pod *pod = &lending.pods[number];
    g_auto(asking)
        asking = {g_strdup_printf("s%d", pod->space), g_strdup_printf("p%d", number),
                  g_strdup_printf("p%d-%u", number, pod->born), pod->units, pod->priority};

    const int node = ask(&asking);
    if (node < 0) {
        ask_whom_to_end(&asking);
        return;
    }
    g_autofree char *body =
        g_strdup_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"%s\",\"Node\":"
                        "\"n%d\"}",
                        asking.name, asking.ns, asking.uid, node);
    g_autoptr(GString) reply = g_string_new(NULL);
    extender_bind(&extender, body, strlen(body), reply);
    counts.binds += lending.pods[number].stage == STAGE_HELD;
}

/* One Binding after the other, which the watch then shows. */
static enum outcome take_binding(struct cluster *cluster, const struct binding *binding,
                                 int64_t deadline_ms, GError **error)
{
    const char *card = NULL;
    int number = 0;

    for (size_t i = 0; i < binding->annotations->n; i++) {
        if (g_str_equal(binding->annotations->items[i].key, "ALIYUN_COM_GPU_MEM_IDX"))
            card = binding->annotations->items[i].value;
    }
    HOLDS(sscanf(binding->name, "p%d", &number) == 1 && card, "%s", binding->name);
    HOLDS(sscanf(binding->node, "n%d", &lending.pods[number].node) == 1, "%s", binding->node);
    lending.pods[number].card = atoi(card);
    lending.pods[number].stage = STAGE_HELD;
    lending_tell(number);
    return OUTCOME_OK;
}

static const struct cluster_ops ops = {.name = "table", .bind = take_binding};
static struct cluster cluster = {&ops};

static void ask_some(void *data)
{
    const uint32_t from = chance_below(LENDING_PODS);
    int n = 0;

    for (uint32_t i = 0; i < LENDING_PODS && n < 3; i++) {
        const int number = (int)((from + i) % LENDING_PODS);
        if (lending.pods[number].stage != STAGE_WAITS)
            continue;
        ask_of(number);
        n++;
    }
}

/* Who asks while the end of the file is told is in the next one. */
static void rotate(void *data)
{
    tell_ledger();
    tape.waits = true;
    struct queue_image *image = queue_image_begin(lending.store);
    do
        ask_some(NULL);
    while (queue_image_take(image));
    ask_some(NULL);
    tape.ends_after = queue_image_tell(image);
    tape.waits = false;
    write_told();
}

/* --- quotas -------------------------------------------------------------------------------------- */

static int64_t mins[LENDING_SPACES]; /* units */

static void tell_quota(int space)
{
    g_autofree char *ns = g_strdup_printf("s%d", space);
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT "00m", mins[space]);

    store_put_quota(lending.store, &(struct resource_quota_view){
                                       .ns = ns,
                                       .name = "q",
                                       .elastic = true,
                                       .min = PAIRS({"gpuledger.io/gpus", text}),
                                   });
}

/* --- strangers --------------------------------------------------------------------------------------- */

static void tell_stranger(const struct asking *pod, int nominated)
{
    g_autofree char *units = g_strdup_printf("%d", pod->units);
    g_autofree char *node = g_strdup_printf("n%d", nominated);
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(pod->created_s);
    g_autofree char *created = g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ");

    store_apply_pod(lending.store,
                    &(struct pod_view){
                        .ns = pod->ns,
                        .name = pod->name,
                        .uid = pod->uid,
                        .phase = "Pending",
                        .priority = pod->priority,
                        .created = created,
                        .nominated_node = nominated < 0 ? NULL : node,
                        CONTAINERS({.name = "c", .limits = PAIRS({"aliyun.com/gpu-mem", units})}),
                    });
}

/* Those that there are, and on one node some for strangers. */
static void tell_claims(int node, const struct asking *strangers)
{
    g_autoptr(claim_sheet) sheet = claim_sheet_new();
    g_autofree char *name = g_strdup_printf("n%d", node);

    for (int i = 0; i < lending.n_nodes; i++) {
        g_autoptr(GPtrArray) claims = claims_decode(lending.notes[i].text, NULL);
        g_autofree char *other = g_strdup_printf("n%d", i);
        for (guint j = 0; j < claims->len; j++)
            claim_sheet_add(sheet, other, claim_dup(claims->pdata[j]));
    }
    for (int i = 0; i < STRANGERS; i++) {
        const int at = (int)chance_below(LENDING_PODS);
        g_autofree char *uid = g_strdup_printf("p%d-%u", at, lending.pods[at].born);
        const char *const ends[] = {uid, NULL};
        const int64_t age_s = chance_percent(10) ? CLAIM_MS / 1000 - 1 : chance_between(0, 3);
        if (chance_percent(50))
            continue;
        struct room_claim *claim =
            claim_new(strangers[i].uid, lending.moment.now_ns / 1000000000 - age_s,
                      (int32_t)chance_between(-1, lending.n_cards - 1), ends);
        claim->ns = g_strdup("stranger");
        claim_sheet_add(sheet, name, claim);
    }
    store_apply_claims(lending.store, sheet);
}

/* What decides nothing: claims that a Node shows, or what is none. */
static const char *any_view(void)
{
    static const char *const views[] = {NULL, "x", "[{\"for\":\"a\"}]",
                                        "[{\"for\":\"a\",\"since\":1764100000,\"ends\":[]}]"};

    return views[chance_below(G_N_ELEMENTS(views))];
}

/* A room that a plan keeps for a stranger; NULL: none. */
static char *any_mark(const struct asking *strangers)
{
    const struct asking *pod = &strangers[chance_below(STRANGERS)];
    g_autoptr(GDateTime) time =
        g_date_time_new_from_unix_utc(lending.moment.now_ns / 1000000000 + 60);
    g_autofree char *until = g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ");

    return chance_percent(50)
               ? NULL
               : g_strdup_printf(
                     "{\"doing\":\"room\",\"by\":\"test\",\"until\":\"%s\",\"rooms\":[{\"id\":"
                     "\"room\",\"pod\":\"%s\",\"priority\":%d,\"dialect\":\"gpushare\",\"shares\":"
                     "[{\"memory\":%d,\"units\":true,\"card\":%u}]}]}",
                     until, pod->uid, pod->priority, pod->units,
                     chance_below((uint32_t)lending.n_cards));
}

static void tell_node(int node, const char *claims, const char *mark)
{
    g_autofree char *name = g_strdup_printf("n%d", node);
    g_autofree char *units = g_strdup_printf("%d", LENDING_CARD * lending.n_cards);
    g_autofree char *count = g_strdup_printf("%d", lending.n_cards);
    const struct string_pair said[] = {{claims ? CLAIM_KEY : "a", claims ? claims : ""},
                                       {mark ? PLAN_MARK : "b", mark ? mark : ""}};

    store_apply_node(lending.store, &(struct node_view){
                                        .name = name,
                                        .capacity = PAIRS({"aliyun.com/gpu-mem", units},
                                                          {"aliyun.com/gpu-count", count}),
                                        .annotations = {said, G_N_ELEMENTS(said)},
                                    });
}

static void tell_any(const struct asking *strangers)
{
    const int one = (int)chance_below(STRANGERS);

    if (chance_percent(50)) {
        tell_stranger(&strangers[one], (int)chance_between(-1, lending.n_nodes - 1));
        return;
    }
    const int node = (int)chance_below((uint32_t)lending.n_nodes);
    g_autofree char *mark = any_mark(strangers);
    tell_node(node, any_view(), mark);
    tell_claims(node, strangers);
}

/* All is listed anew. */
static void list_all(const struct asking *strangers)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(lending.store, (enum feed)feed);
        for (int i = 0; feed == FEED_NODES && i < lending.n_nodes; i++) {
            g_autofree char *mark = any_mark(strangers);
            tell_node(i, any_view(), mark);
        }
        for (int i = 0; feed == FEED_ELASTIC_QUOTAS && i < lending.n_spaces; i++)
            tell_quota(i);
        for (int i = 0; feed == FEED_PODS && i < LENDING_PODS; i++) {
            if (lending.pods[i].stage != STAGE_GONE)
                lending_tell(i);
        }
        for (int i = 0; feed == FEED_PODS && i < STRANGERS; i++)
            tell_stranger(&strangers[i], (int)chance_between(-1, lending.n_nodes - 1));
        store_list_end(lending.store, (enum feed)feed);
    }
}

static void lose_some(const struct asking *strangers)
{
    tape.loses = true;
    for (int i = 0; i < 4; i++)
        tell_any(strangers);
    tape.loses = false;
    counts.losses++;
    list_all(strangers);
    tell_known();
}

/* Pods of another namespace come, and Nodes say of claims what they like, until all is as it was. */
static void meddle(void *data)
{
    struct asking strangers[STRANGERS];

    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] =
            (struct asking){.ns = g_strdup("x"),
                            .name = g_strdup_printf("x%d", i),
                            .uid = g_strdup_printf("x%u-%u", chance_below(100), ++n_strangers),
                            .units = (int)chance_between(1, LENDING_CARD),
                            .priority = (int)chance_below(3),
                            .created_s = lending.moment.now_ns / 1000000000 - chance_between(0, 3)};
        tell_stranger(&strangers[i], (int)chance_between(-1, lending.n_nodes - 1));
    }
    for (int i = 0; i < 20; i++) {
        tell_any(strangers);
        if (chance_percent(20))
            rotate(NULL);
        if (chance_percent(5))
            lose_some(strangers);
        for (int j = 0; j < STRANGERS; j++)
            ask(&strangers[j]);
        ask_whom_to_end(&strangers[chance_below(STRANGERS)]);
    }
    for (int i = 0; i < STRANGERS; i++) {
        store_delete_pod(lending.store, strangers[i].uid);
        asking_clear(&strangers[i]);
    }
    for (int i = 0; i < lending.n_nodes; i++)
        tell_node(i, lending.notes[i].text, NULL);
}

/* --- rounds ---------------------------------------------------------------------------------------- */

static void pass_over(const struct lending_pod *pod)
{
}

static void count_claim(const struct lending_pod *claimant)
{
    counts.kept++;
}

static void note_taking(const struct lending_pod *pod, const struct lending_pod *claimant)
{
}

static void rest(void)
{
}

static const struct lending_judge judge = {pass_over, note_taking, count_claim, rest};

static const struct chance_action actions[] = {
    {"submit", 6, lending_submit},
    {"crowd", 6, lending_crowd},
    {"finish", 12, lending_finish},
    {"leave", 8, lending_leave},
    {"step", 30, lending_pass_time},
    {"takeover", 1, lending_change_replica},
    {"chaos", 1, lending_stir},
    {"ask", 30, ask_some},
    {"rotate", 10, rotate},
    {"meddle", 3, meddle},
    {0},
};

static void run_world(void)
{
    const int spaces = (int)chance_between(2, 4), nodes = (int)chance_between(1, 3);
    const int cards = (int)chance_between(1, 3);
    int64_t left = nodes * cards * LENDING_CARD;

    lending.judge = &judge;
    lending.hold_ms = chance_percent(50) ? chance_between(1000, 60000) : 0;
    lending.observe = begin_tape;
    lending.schedule = ask_of;
    lending_begin(spaces, nodes, cards);
    for (int i = 0; i < spaces; i++) {
        mins[i] = i == spaces - 1 ? left : chance_between(0, left / 2);
        left -= mins[i];
        tell_quota(i);
    }
    for (int i = 0; i < 100 && chance_next_event(); i++)
        chance_act(actions, NULL);
    end_tape();
}

int main(void)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    chance_init("reclaim-record", 2500);
    while (chance_next_event())
        run_world();
    printf("# %" G_GUINT64_FORMAT " decisions made again, %" G_GUINT64_FORMAT
           " not, of %" G_GUINT64_FORMAT " files; %" G_GUINT64_FORMAT
           " times lines were lost\n# %" G_GUINT64_FORMAT " filters, %" G_GUINT64_FORMAT
           " binds, %" G_GUINT64_FORMAT " with victims, %" G_GUINT64_FORMAT
           " claims, %u evictions\n",
           counts.compared, counts.unchecked, counts.files, counts.losses, counts.filters,
           counts.binds, counts.victims, counts.kept, lending.n_evicted);
    HOLDS(counts.unchecked * 10 < counts.compared, "too few are compared");
    HOLDS(counts.binds > 50 && counts.victims > 0 && counts.kept > 5 && counts.losses > 0 &&
              lending.n_evicted > 5,
          "too little has happened");
    return 0;
}
