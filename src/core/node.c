/* SPDX-License-Identifier: Apache-2.0 */
#include "core/node.h"

#include "core/allocation.h"
#include "core/card.h"
#include "core/ledger.h"
#include "core/ledger/node_sums.h"
#include "core/node_traits.h"

#include <gpuledger/links.h>
#include <gpuledger/mig.h>
#include <string.h>

/* --- cards and pools ------------------------------------------------------------------------ */

static void card_clear(struct card *card)
{
    g_free(card->uuid);
    g_free(card->model);
    g_free(card->mode);
    mig_profiles_unref(card->mig);
}

static void free_hardware(struct node *node)
{
    for (int32_t i = 0; i < node->n_cards; i++)
        card_clear(&node->cards[i]);
    for (int32_t i = 0; i < node->n_pools; i++) {
        g_free(node->pools[i].resource);
        g_free(node->pools[i].model);
    }
    g_clear_pointer(&node->cards, g_free);
    g_clear_pointer(&node->pools, g_free);
    g_clear_pointer(&node->links, links_unref);
    node->n_cards = node->n_pools = 0;
}

/* So that what filter asks of each node is on as few lines of the cache as it can be. For g_free. */
static void *aligned_block(size_t size)
{
    void *block;

    if (posix_memalign(&block, NODE_ALIGNMENT, size) != 0)
        g_error("no memory for a node");
    return memset(block, 0, size);
}

size_t node_block_size(const char *name)
{
    return sizeof(struct node_own) + strlen(name) + 1;
}

struct node *node_init(void *block, const char *name)
{
    struct node_own *own = block;
    struct node *node = &own->node;

    own->pulse = &own->alone;
    own->changes = NULL;
    node->name = memcpy(own + 1, name, strlen(name) + 1);
    node->memory_unit = 1;
    node->memory_free_max = -1;
    node->allocations = g_ptr_array_new();
    return node;
}

struct node *node_new(const char *name)
{
    return node_init(aligned_block(node_block_size(name)), name);
}

void node_clear(struct node *node)
{
    free_hardware(node);
    g_clear_pointer(&node->unhealthy, g_array_unref);
    g_clear_pointer(&node->departed, g_array_unref);
    g_clear_pointer(&node->promised, g_array_unref);
    node_traits_unref(node->traits);
    g_ptr_array_unref(node->allocations);
}

void node_free(struct node *node)
{
    node_clear(node);
    g_free(node_own(node));
}

void node_apply_health(struct node *node)
{
    for (int32_t i = 0; i < node->n_cards; i++)
        node->cards[i].healthy = !node->cards[i].broken && !node->paused;
    for (guint i = 0; node->unhealthy && i < node->unhealthy->len; i++) {
        struct card *card = card_find(node, g_array_index(node->unhealthy, int32_t, i));
        if (card)
            card->healthy = false;
    }
    node_summarize(node);
}

struct node_traits *node_set_facts(struct node *node, const struct node_facts *facts,
                                   struct node_traits *take_traits)
{
    struct node_traits *former = node->traits;

    node_own(node)->generation = facts->generation;
    node->cordoned = facts->cordoned;
    node->distrusted = facts->distrusted;
    node->limited = facts->limited;
    node->switches_ns = facts->switches_ns;
    node->slots_ahead = facts->slots_ahead;
    node->heartbeat = facts->heartbeat;
    if (facts->host)
        node->host = *facts->host;
    node->traits = take_traits;
    return former;
}

void node_copy_marks(struct node *copy, const struct node *from)
{
    const struct node_facts facts = {
        .generation = node_own(from)->generation,
        .cordoned = from->cordoned,
        .distrusted = from->distrusted,
        .limited = from->limited,
        .switches_ns = from->switches_ns,
        .slots_ahead = from->slots_ahead,
        .heartbeat = from->heartbeat,
        .host = &from->host,
    };

    node_traits_unref(node_set_facts(copy, &facts, node_traits_ref(from->traits)));
}

void node_set_health(struct node *node, struct card *card, bool healthy, enum closure closure)
{
    card->healthy = healthy;
    card->closure = closure;
    node_summarize(node);
}

void node_bound_slots(struct node *node, int32_t most)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        struct card *card = &node->cards[i];
        card->slots = card->slots == 0 ? most : MIN(card->slots, most);
    }
    node_summarize(node);
}

static void sum_hardware(struct node *node)
{
    uint64_t sum = 0;

    for (int32_t i = 0; i < node->n_cards; i++)
        sum = kind_join(sum, node->cards[i].kind);
    for (int32_t i = 0; i < node->n_pools; i++)
        sum = kind_join(sum, node->pools[i].kind) + (uint64_t)node->pools[i].capacity;
    node_own(node)->hardware = sum;
}

static struct card make_card(const struct topology *topology, int32_t index)
{
    const struct topology_card *said = &topology->cards[index];
    struct card card = {
        .index = index,
        .slots = said->slots,
        .numa = said->numa,
        .rank = said->rank,
        .broken = said->unhealthy,
        .multiprocessors = said->multiprocessors,
        .parts = said->parts,
        .closure = said->closure,
        .best_effort = said->best_effort,
        .capped = said->capped,
        .memory = said->memory,
        .physical = said->physical < said->memory && !said->mig ? said->physical : 0,
        .pressed = said->pressed,
        .mig = mig_profiles_ref(said->mig),
        .key = said->uuid ? card_key(said->uuid) : 0,
        .former_key = said->former_key,
        .minor = topology->numbered ? said->minor : index,
        .uuid = g_strdup(said->uuid),
        .model = g_strdup(said->model),
        .mode = g_strdup(said->mode),
    };

    card.core = card_core_size(&card, said->core ? said->core : CORE_WHOLE);
    return card;
}

static struct pool make_pool(const struct pool *said)
{
    struct pool pool = *said;

    pool.resource = g_strdup(said->resource);
    pool.model = g_strdup(said->model);
    pool.kind = pool_kind(&pool);
    return pool;
}

static void charge_anew(struct node *node, struct host cpu_pods)
{
    for (guint i = 0; i < node->allocations->len; i++)
        allocation_choose(node->allocations->pdata[i], node);
    node_charge_all(node, cpu_pods);
}

void node_set_topology(struct node *node, const struct topology *topology)
{
    free_hardware(node);
    node->paused = topology->sketch.dialect != NULL;
    node->sketch = topology->sketch;
    node->absent = topology->absent;
    node->dialect = topology->dialect;
    node->n_dialects = topology->n_dialects;
    memcpy(node->dialects, topology->dialects, sizeof node->dialects);
    node->n_away = topology->n_away;
    node->replaced = topology->replaced;
    memcpy(node->away, topology->away, sizeof node->away);
    if (topology->dialect && topology->n_dialects == 0)
        node->dialects[node->n_dialects++] = topology->dialect;
    node->memory_unit = topology->memory_unit;
    node->compute = topology->compute;
    node->numbered = topology->numbered;
    node->driver = topology->driver;
    node->isolation = topology->isolation;
    node->policy = topology->policy;
    node->host = topology->host;
    node->links = links_ref(topology->links);
    node->n_cards = topology->n_cards;
    node->cards = g_new0(struct card, (gsize)node->n_cards);
    for (int32_t i = 0; i < node->n_cards; i++)
        node->cards[i] = make_card(topology, i);
    for (int32_t i = 0; i < node->n_cards; i++)
        node->cards[i].kind = card_kind(node, &node->cards[i]);
    node->n_pools = topology->n_pools;
    node->pools = g_new0(struct pool, (gsize)node->n_pools);
    for (int32_t i = 0; i < node->n_pools; i++)
        node->pools[i] = make_pool(&topology->pools[i]);
    sum_hardware(node);
    node_apply_health(node);
    charge_anew(node, node_cpu_pods(node));
}

void node_end_change(struct node *node)
{
    for (int32_t i = 0; i < node->n_pools; i++) {
        struct pool *pool = &node->pools[i];
        if (pool->withheld == WITHHELD_CHANGE) {
            pool->capacity = pool->later;
            pool->withheld = pool->later_withheld;
        }
    }
    sum_hardware(node);
    node_summarize(node);
}

void node_set_unit(struct node *node, int64_t memory_unit)
{
    node->memory_unit = memory_unit;
    charge_anew(node, node_cpu_pods(node));
}

/* All but its name and its allocations. */
static void become(struct node *node, const struct node *from)
{
    struct node copy = *from;

    free_hardware(node);
    g_clear_pointer(&node->unhealthy, g_array_unref);
    g_clear_pointer(&node->departed, g_array_unref);
    g_clear_pointer(&node->promised, g_array_unref);
    node_traits_unref(node->traits);
    copy.traits = node_traits_ref(from->traits);
    copy.name = node->name;
    copy.allocations = node->allocations;
    copy.n_cpu_pods = node->n_cpu_pods;
    copy.links = links_ref(from->links);
    copy.unhealthy = from->unhealthy ? g_array_copy(from->unhealthy) : NULL;
    copy.departed = from->departed ? g_array_copy(from->departed) : NULL;
    copy.promised = from->promised ? g_array_copy(from->promised) : NULL;
    copy.cards = g_memdup2(from->cards, sizeof *from->cards * (gsize)from->n_cards);
    copy.pools = g_memdup2(from->pools, sizeof *from->pools * (gsize)from->n_pools);
    for (int32_t i = 0; i < copy.n_cards; i++) {
        copy.cards[i].uuid = g_strdup(from->cards[i].uuid);
        copy.cards[i].model = g_strdup(from->cards[i].model);
        copy.cards[i].mode = g_strdup(from->cards[i].mode);
        mig_profiles_ref(copy.cards[i].mig);
    }
    for (int32_t i = 0; i < copy.n_pools; i++) {
        copy.pools[i].resource = g_strdup(from->pools[i].resource);
        copy.pools[i].model = g_strdup(from->pools[i].model);
    }
    *node = copy;
    node_own(node)->generation = node_own(from)->generation;
    node_own(node)->hardware = node_own(from)->hardware;
    node_own(node)->freed_at = node_own(from)->freed_at;
    node_own(node)->granted_otherwise = node_own(from)->granted_otherwise;
    node_note_change(node);
}

void node_copy_all(struct node *node, const struct node *from)
{
    const uint32_t n_cpu_pods = from->n_cpu_pods;

    become(node, from);
    node->n_cpu_pods = n_cpu_pods;
}

void node_copy_hardware(struct node *node, const struct node *from)
{
    const struct host cpu_pods = node_cpu_pods(node);

    become(node, from);
    charge_anew(node, cpu_pods);
}

/* --- verification --------------------------------------------------------------------------- */

/* Of what a sum is, how it is kept, and what it adds up to. */
struct kept_sum {
    const char *what;
    int64_t kept, found;
};

static bool sums_hold(const struct node *node, const struct kept_sum *sums, size_t n,
                      GError **error)
{
    for (size_t i = 0; i < n; i++) {
        if (sums[i].kept == sums[i].found)
            continue;
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "node '%s': %s is kept as %" G_GINT64_FORMAT
                    " but adds up to %" G_GINT64_FORMAT,
                    node->name, sums[i].what, sums[i].kept, sums[i].found);
        return false;
    }
    return true;
}

static bool node_sums_hold(const struct node *node, const struct node *fresh, GError **error)
{
    const struct kept_sum sums[] = {
        {"the largest free amount", node->memory_free_max, fresh->memory_free_max},
        {"unplaced memory", node->unplaced_memory, fresh->unplaced_memory},
        {"unplaced core", node->unplaced_core, fresh->unplaced_core},
        {"unplaced holders", node->unplaced_holders, fresh->unplaced_holders},
        {"exclusive unplaced holders", node->unplaced_exclusive, fresh->unplaced_exclusive},
        {"waiting pods", node->n_waiting, fresh->n_waiting},
        {"unsealed pods", node->n_unsealed, fresh->n_unsealed},
        {"pods of choosy classes", node->n_choosy, fresh->n_choosy},
        {"pods of dialects that are away", node->n_strangers, fresh->n_strangers},
        {"CPU", node->host_used.cpu, fresh->host_used.cpu},
        {"the node's memory", node->host_used.memory, fresh->host_used.memory},
        {"the number of pods", node->host_used.pods, fresh->host_used.pods},
    };

    return sums_hold(node, sums, G_N_ELEMENTS(sums), error);
}

static bool card_sums_hold(const struct node *node, const struct card *kept,
                           const struct card *found, GError **error)
{
    const struct kept_sum sums[] = {
        {"a card's memory", kept->memory_used, found->memory_used},
        {"a card's promised memory", kept->memory_promised, found->memory_promised},
        {"a card's core", kept->core_used, found->core_used},
        {"a card's holders", kept->holders, found->holders},
        {"a card's exclusive holders", kept->exclusive, found->exclusive},
    };

    return sums_hold(node, sums, G_N_ELEMENTS(sums), error);
}

bool node_verify(const struct node *node, struct host cpu_pods, GError **error)
{
    struct node_own own = {.node = *node}; /* of what is charged to it, the version changes too */
    struct node *fresh = &own.node;
    own.pulse = &own.alone;
    g_autofree struct card *cards =
        g_memdup2(node->cards, sizeof *cards * (gsize)node->n_cards);
    g_autofree struct pool *pools =
        g_memdup2(node->pools, sizeof *pools * (gsize)node->n_pools);
    fresh->cards = cards;
    fresh->pools = pools;
    node_charge_all(fresh, cpu_pods);

    bool ok = node_sums_hold(node, fresh, error);
    for (int32_t i = 0; ok && i < node->n_cards; i++)
        ok = card_sums_hold(node, &node->cards[i], &cards[i], error);
    for (int32_t i = 0; ok && i < node->n_pools; i++)
        ok = sums_hold(node,
                       &(struct kept_sum){"a pool's devices", node->pools[i].used, pools[i].used},
                       1, error);
    return ok;
}
