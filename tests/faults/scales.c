/* SPDX-License-Identifier: Apache-2.0 */
#include "scales.h"

#include "../prop/chance.h"
#include "sim.h"

#include <string.h>

#define S INT64_C(1000000)
/* For so long at least a card that an edit names is kept, and for so long at most anything waits that
 * could have ended. */
#define EDIT_KEPT_US (20 * S)
#define WAIT_MAX_US (60 * S)
#define SLACK_US (5 * S)

static GString *collected;
static uint64_t n_checked;

void scales_collect(GString *found)
{
    collected = found;
}

uint64_t scales_n_checked(void)
{
    return n_checked;
}

#define FINDS(condition, ...)                                                                      \
    do {                                                                                           \
        if (condition)                                                                             \
            break;                                                                                 \
        if (collected) {                                                                           \
            g_string_append_printf(collected, __VA_ARGS__);                                        \
            g_string_append_c(collected, '\n');                                                    \
        } else {                                                                                   \
            HOLDS(condition, __VA_ARGS__);                                                         \
        }                                                                                          \
    } while (0)

/* --- what must be counted ------------------------------------------------------------------- */

struct load {
    struct amounts on[PLAYED_CARDS];
    int devices[POOLS];
    int slots[PLAYED_CARDS]; /* of the tongues that count them */
    GString *who;
    bool alone[PLAYED_CARDS],
        held[PLAYED_CARDS];               /* by others who want to be alone; by others at all */
    bool alone_in[POOLS], held_in[POOLS]; /* the same of devices */
};

static bool counts_slots(enum tongue tongue)
{
    return tongue == HAMI || tongue == PARADIGM || tongue == VVGPU;
}

static void load_card(struct load *load, int card, const struct amounts *amounts,
                      enum tongue tongue)
{
    load->on[card].mib += amounts->mib;
    load->on[card].core += amounts->core;
    if (counts_slots(tongue))
        load->slots[card] += amounts->slots;
}

static void load_add(struct load *load, const struct played_node *node,
                     const struct holding *holding, enum tongue tongue)
{
    for (int card = 0; card < node->n_cards; card++) {
        if (tongue != NVIDIA)
            load_card(load, card, &holding->on[card], tongue);
    }
    for (int i = 0; i < POOLS; i++)
        load->devices[i] += holding->devices[i];
}

static void describe(struct load *load, const struct played_node *node, const struct played_pod *pod,
                     enum tongue tongue, const struct holding *holding)
{
    static const char *const wheres[] = {"nothing", "on", "anywhere"};

    g_string_append_printf(load->who, "\n  %s/%s %s (%s%s%s%s): %s", pod->ns, pod->name,
                           holders_tongue(tongue), pod->ours ? "bound by us" : "bound by others",
                           pod->edited ? ", edited" : "", holding->unreadable ? ", unreadable" : "",
                           pod->started ? "" : ", not started", wheres[holding->where]);
    for (int card = 0; card < node->n_cards; card++) {
        if (holding->on[card].slots > 0)
            g_string_append_printf(load->who, " %d: %d MiB/%d", card, (int)holding->on[card].mib,
                                   holding->on[card].core);
    }
}

/* An edit before the containers were admitted: the node side may still do what it says. */
static void load_edit(struct load *load, const struct played_pod *other, enum tongue tongue,
                      const struct holding *bound, const struct played_pod *pod)
{
    const struct played_node *node = &played.nodes[other->node];
    struct holding named;

    if (!other->edited || other->started || other->edited_version > pod->known ||
        sim_now_us() > other->edited_us + EDIT_KEPT_US ||
        !holders_read(other, node, tongue, &other->annotations, &named) || named.where != PLACED)
        return;
    for (int card = 0; card < node->n_cards; card++) {
        struct amounts more = {
            MAX(named.on[card].mib - bound->on[card].mib, 0),
            MAX(named.on[card].core - bound->on[card].core, 0),
            MAX(named.on[card].slots - bound->on[card].slots, 0),
        };
        load_card(load, card, &more, tongue);
    }
}

static bool is_known(const struct played_pod *other, const struct played_pod *pod)
{
    return other == pod || other->ours || other->bound_version <= pod->known;
}

/* Of a pod that others bound, whose author has changed its record: what it holds by both. */
static void keep_common(const struct played_pod *other, enum tongue tongue, struct holding *holding)
{
    const struct played_node *node = &played.nodes[other->node];
    struct holding first;

    holders_read(other, node, tongue, &other->grant, &first);
    if (first.where == NOWHERE) {
        *holding = first;
        memset(holding->on, 0, sizeof holding->on);
        return;
    }
    for (int card = 0; card < node->n_cards; card++) {
        const struct amounts *now = &holding->on[card], *then = &first.on[card];
        holding->on[card] = (struct amounts){
            MIN(now->mib, then->mib), MIN(now->core, then->core), MIN(now->slots, then->slots)};
    }
    holding->where = PLACED;
}

/* Whole cards gpu-manager chooses itself and writes down; a tenant's word in between cannot be told from
 * its own until it writes again. */
static bool node_side_chooses(const struct played_pod *other, enum tongue tongue)
{
    struct holding grant;

    return tongue == TENCENT && other->ours &&
           holders_read(other, &played.nodes[other->node], tongue, &other->grant, &grant) &&
           grant.sum.core >= 100;
}

static bool uses_card(const struct holding *holding, int card)
{
    return holding->where == PLACED && holding->on[card].slots > 0;
}

/* Of a class whose pods share no card, by its spec, or by the word of who may say so. */
static bool is_alone(const struct played_pod *pod)
{
    const char *word = words_get(&pod->annotations, "gpuledger.io/class"); /* "lab" edits nothing */

    return played.classed && (g_strcmp0(pod->priority_class, "batch") == 0 ||
                              (!pod->priority_class && g_str_equal(pod->ns, "lab") &&
                               g_strcmp0(word, "training") == 0));
}

static void load_company(struct load *load, const struct played_pod *other,
                         const struct holding *holding, enum tongue tongue)
{
    const bool alone = is_alone(other);

    for (int card = 0; card < PLAYED_CARDS && tongue != NVIDIA; card++) {
        load->held[card] |= uses_card(holding, card);
        load->alone[card] |= alone && uses_card(holding, card);
    }
    for (int pool = 0; pool < POOLS; pool++) {
        load->held_in[pool] |= holding->devices[pool] > 0;
        load->alone_in[pool] |= alone && holding->devices[pool] > 0;
    }
}

static void load_pod(struct load *load, const struct played_pod *other, const struct played_pod *pod)
{
    const struct played_node *node = &played.nodes[pod->node];
    bool foreign_json = !other->ours && words_get(&other->annotations,
                                                  "scheduler.framework.gpushare.allocation");

    if (!played_lives(other) || other->node != pod->node || !is_known(other, pod))
        return;
    for (int i = 0; i < TONGUES; i++) {
        enum tongue tongue = (enum tongue)i;
        struct holding holding;
        const struct words *record = other->ours && !node_side_chooses(other, tongue)
                                         ? &other->grant
                                         : &other->annotations;
        if (!holders_read(other, node, tongue, record, &holding) || holding.where == NOWHERE)
            continue;
        /* Its word or gpu-manager's: which card it is, the pod alone says (docs/security.md, "Open"). */
        if (tongue == TENCENT && other->edited && (!other->ours || node_side_chooses(other, tongue)))
            continue;
        if (foreign_json && tongue == GPUSHARE) /* of several cards, for a node side of its own */
            continue;
        if ((!other->ours || node_side_chooses(other, tongue)) && other->edited && tongue != NVIDIA)
            keep_common(other, tongue, &holding);
        load_add(load, node, &holding, tongue);
        if (other != pod)
            load_company(load, other, &holding, tongue);
        if (other->ours)
            load_edit(load, other, tongue, &holding, pod);
        describe(load, node, other, tongue, &holding);
    }
}

void scales_note_bind(struct played_pod *pod)
{
    if (pod->known < 0)
        pod->known = server.known[POD];
}

static void check_spec(const struct played_pod *pod, const struct played_node *node,
                       enum tongue tongue, const struct holding *holding)
{
    FINDS(!holding->unreadable, "%s/%s, which cannot be read by %s, is bound to %s", pod->ns,
          pod->name, holders_tongue(tongue), node->name);
    FINDS(tongue == NVIDIA || holding->where == PLACED || holding->where == NOWHERE,
          "%s/%s is bound to %s without a card of %s", pod->ns, pod->name, node->name,
          holders_tongue(tongue));
}

static void check_cards(const struct load *load, const struct played_pod *pod,
                        const struct holding *own, enum tongue tongue)
{
    const struct played_node *node = &played.nodes[pod->node];

    for (int card = 0; card < node->n_cards; card++) {
        if (!uses_card(own, card))
            continue;
        FINDS(load->on[card].mib <= node->card_mib && load->on[card].core <= 100 &&
                  (!counts_slots(tongue) || load->slots[card] <= node->split),
              "card %d of %s holds %d of %d MiB, %d of 100 compute, %d slots since %s/%s (%s) was "
              "bound:%s", card, node->name, (int)load->on[card].mib, (int)node->card_mib,
              load->on[card].core, load->slots[card], pod->ns, pod->name, pod->uid, load->who->str);
    }
}

/* Whether another device of the one may be a part of the card of which a device of the other is one. */
static bool share_cards(const struct played_node *node, int pool, int other)
{
    const char *replicas = words_get(&node->labels, "nvidia.com/gpu.replicas");

    if (pool < 2)
        return pool == other && (pool == 1 || (replicas && !g_str_equal(replicas, "1")));
    return other >= 2;
}

static void check_company(const struct load *load, const struct played_pod *pod,
                          const struct holding *own, enum tongue tongue)
{
    const struct played_node *node = &played.nodes[pod->node];
    const bool alone = is_alone(pod);

    for (int card = 0; card < node->n_cards && tongue != NVIDIA; card++)
        FINDS(
            !uses_card(own, card) || !(alone ? load->held : load->alone)[card],
            "card %d of %s has a pod that shares none, and another, since %s/%s (%s) was bound:%s",
            card, node->name, pod->ns, pod->name, pod->uid, load->who->str);
    for (int i = 0; i < POOLS * POOLS && tongue == NVIDIA; i++)
        FINDS(own->devices[i / POOLS] == 0 || !share_cards(node, i / POOLS, i % POOLS) ||
                  !(alone ? load->held_in : load->alone_in)[i % POOLS],
              "%s of %s has a pod that shares no card, and another, since %s/%s (%s) was bound:%s",
              holders_pool(i / POOLS), node->name, pod->ns, pod->name, pod->uid, load->who->str);
}

/* One of the models between commas. */
static bool is_wished(const char *product, const char *wish)
{
    g_auto(GStrv) models = g_strsplit(wish, ",", -1);

    for (char **model = models; *model; model++) {
        if (strcasestr(product, g_strstrip(*model)))
            return true;
    }
    return false;
}

static void check_wish(const struct played_pod *pod)
{
    /* Its newest word, if that is older than the program's newest. */
    const char *wish = words_get(&pod->annotations, "gpuledger.io/gpu-models");
    const char *product = words_get(&played.nodes[pod->node].labels, "nvidia.com/gpu.product");

    if (!wish || !product || pod->edited || pod->wished_version > pod->known)
        return;
    FINDS(is_wished(product, wish), "%s/%s wants %s and is on %s, a %s", pod->ns, pod->name, wish,
          played.nodes[pod->node].name, product);
}

void scales_check_grant(struct played_pod *pod)
{
    const struct played_node *node = &played.nodes[pod->node];
    g_autoptr(GString) who = g_string_new(NULL);
    struct load load = {.who = who};
    unsigned named = holders_named(pod);

    n_checked++;
    HOLDS(pod->known >= 0, "%s was bound without being asked for", pod->uid);
    if (named == 0)
        return;
    for (unsigned i = 0; i < played_n(); i++)
        load_pod(&load, played_at(i), pod);
    unsigned served = 0;
    for (int i = 0; i < TONGUES; i++) {
        enum tongue tongue = (enum tongue)i;
        struct holding own;
        if (!holders_read(pod, node, tongue, &pod->grant, &own))
            continue;
        served |= 1U << tongue;
        check_spec(pod, node, tongue, &own);
        check_company(&load, pod, &own, tongue);
        if (tongue != NVIDIA)
            check_cards(&load, pod, &own, tongue);
        for (int pool = 0; pool < POOLS && tongue == NVIDIA; pool++) {
            const char *has = words_get(&node->capacity, holders_pool(pool));
            int there = has ? (int)g_ascii_strtoll(has, NULL, 10) : 0;
            FINDS(own.devices[pool] == 0 || load.devices[pool] <= there,
                  "%s of %s: %d of %d are held since %s/%s was bound:%s", holders_pool(pool),
                  node->name, load.devices[pool], there, pod->ns, pod->name, who->str);
        }
    }
    FINDS(served != 0, "%s/%s names nothing that %s has: %.1500s", pod->ns, pod->name, node->name,
          played_json(pod));
    check_wish(pod);
}

char *scales_describe(struct played_pod *pod, int node)
{
    struct load load = {.who = g_string_new(NULL)};
    struct played_pod there = *pod;

    there.node = node;
    there.known = G_MAXINT64;
    for (unsigned i = 0; i < played_n(); i++) {
        if (played_at(i) != pod)
            load_pod(&load, played_at(i), &there);
    }
    return g_string_free(load.who, FALSE);
}

/* --- what may be counted -------------------------------------------------------------------- */

/* The node side has had its time, whatever the words say. */
static bool may_wait(const struct played_pod *pod)
{
    return !pod->started || sim_now_us() < pod->started_us + WAIT_MAX_US + SLACK_US;
}

static void spread(struct holding *holding)
{
    holding->where = ANYWHERE;
    for (int card = 0; card < PLAYED_CARDS; card++)
        holding->on[card] = holding->sum;
}

/* It names what the node does not report. kubelet gives it nothing, but a plugin may be away for a
 * while: it may be counted. */
static bool names_strange(const struct played_pod *other, const struct played_node *node)
{
    const unsigned same = 1U << HAMI | 1U << PARADIGM | 1U << NVIDIA;
    unsigned strange = holders_named(other) & ~node->serves;

    if (node->serves & same)
        strange &= ~same;
    for (unsigned i = 0; i < other->boxes->len && !(node->serves & same); i++) {
        const struct words *limits = &g_array_index(other->boxes, struct box, i).limits;
        if (words_get(limits, "nvidia.com/gpumem") || words_get(limits, "nvidia.com/gpucores"))
            return true;
    }
    return strange != 0;
}

/* False: the node is closed to a pod of that tongue by the other one. */
static bool hold_at_most(struct load *load, const struct played_pod *other, enum tongue asks,
                         const struct played_node *node, bool apart, bool *blocked)
{
    if (names_strange(other, node))
        return false;
    for (int i = 0; i < TONGUES; i++) {
        enum tongue tongue = (enum tongue)i;
        struct holding holding;
        const struct words *record = other->ours ? &other->grant : &other->annotations;
        if (!holders_read(other, node, tongue, record, &holding))
            continue;
        if (holding.unreadable || may_wait(other))
            return false;
        /* It may have kept a card that it once named. With seals it counts as it was first seen, or, if
         * nobody has seen it, with what it asks for. */
        bool may_hold = !other->ours && other->edited && holding.cards > 0;
        may_hold |= played.sealed && (other->edited || !other->ours);
        if (holding.where == NOWHERE && !may_hold)
            continue;
        if (tongue != asks && (holders_exclusive(tongue) || holders_exclusive(asks)))
            return false;
        if (!other->ours ||
            (other->edited && (played.sealed || other->edited_run != played.run)) ||
            (played.sealed && node_side_chooses(other, tongue) && other->run != played.run))
            spread(&holding); /* it is not known again where it was bound to */
        load_add(load, node, &holding, tongue);
        /* Which card it would be gpu-manager says, and kubelet: another one does not help. */
        if (apart && (tongue == NVIDIA || asks == TENCENT))
            return false;
        for (int card = 0; card < node->n_cards && (apart || tongue != asks); card++)
            blocked[card] |= holding.where == ANYWHERE || uses_card(&holding, card);
    }
    return true;
}

static bool fits(const struct load *load, const struct played_node *node,
                 const struct holding *wanted, enum tongue tongue, const bool *blocked)
{
    int places = 0;

    if (tongue == NVIDIA) {
        for (int pool = 0; pool < POOLS; pool++) {
            const char *has = words_get(&node->capacity, holders_pool(pool));
            int there = has ? (int)g_ascii_strtoll(has, NULL, 10) : 0;
            if (wanted->devices[pool] > 0 && load->devices[pool] + wanted->devices[pool] > there)
                return false;
        }
        return true;
    }
    for (int card = 0; card < node->n_cards; card++)
        places += !blocked[card] && load->on[card].mib + wanted->sum.mib <= node->card_mib &&
                  load->on[card].core + MAX(wanted->sum.core, 1) <= 100 &&
                  load->slots[card] + wanted->sum.slots <= node->split;
    return places >= wanted->cards;
}

/* What the node's plugin does not register, or a share on a node of devices. */
static bool is_served(const struct played_pod *pod, const struct played_node *node,
                      enum tongue tongue)
{
    bool shares = words_get(&node->capacity, "volcano.sh/gpu-memory") != NULL;

    for (unsigned i = 0; i < pod->boxes->len; i++) {
        const struct words *limits = &g_array_index(pod->boxes, struct box, i).limits;
        if (tongue == NVIDIA && words_get(limits, "nvidia.com/gpumem"))
            return false;
        if (tongue == VOLCANO && (words_get(limits, "volcano.sh/gpu-memory") != NULL) != shares)
            return false;
    }
    return true;
}

bool scales_open(const struct played_pod *pod, int at)
{
    const struct played_node *node = &played.nodes[at];
    static const struct words nothing;
    struct load load = {0};
    bool blocked[PLAYED_CARDS] = {false};
    struct holding wanted;
    enum tongue asks = 0;
    const char *wish = words_get(&pod->annotations, "gpuledger.io/gpu-models");
    const char *product = words_get(&node->labels, "nvidia.com/gpu.product");

    while (!holders_read(pod, node, asks, &nothing, &wanted)) {
        if (++asks == TONGUES)
            return false;
    }
    /* A word of a class that its namespace may not choose makes it a pod that nobody places. */
    if (played.classed && words_get(&pod->annotations, "gpuledger.io/class") &&
        !g_str_equal(pod->ns, "lab"))
        return false;
    if (wanted.where == NOWHERE || wanted.unreadable || asks == QGPU || asks == KOORDINATOR)
        return false;
    if (!is_served(pod, node, asks))
        return false;
    /* Of MIG instances another label says the model, which the nodes played here do not have. */
    if (wish && (!product || !strstr(product, wish) || (asks == NVIDIA && wanted.devices[0] == 0)))
        return false;
    for (unsigned i = 0; i < played_n(); i++) {
        const struct played_pod *other = played_at(i);
        if (!played_lives(other) || other->node != at || other == pod)
            continue;
        if (!hold_at_most(&load, other, asks, node, is_alone(pod) || is_alone(other), blocked))
            return false;
    }
    return fits(&load, node, &wanted, asks, blocked);
}
