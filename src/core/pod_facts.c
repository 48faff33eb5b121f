/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/host.h>
#include <gpuledger/pod_facts.h>
#include <string.h>

/* What is being put together: borrowed strings. */
struct draft {
    bool particular;
    unsigned ties;
    uint32_t n_labels, n_amounts, n_containers;
    struct string_pair labels[POD_FACTS_LABELS_MAX];
    struct pod_facts_amount amounts[POD_FACTS_AMOUNTS_MAX];
    const char *containers[POD_FACTS_CONTAINERS_MAX];
};

static void draft_amount(struct draft *draft, const struct pod_view *pod, const char *resource)
{
    uint32_t at = 0;

    while (at < draft->n_amounts && strcmp(draft->amounts[at].resource, resource) < 0)
        at++;
    if (at < draft->n_amounts && strcmp(draft->amounts[at].resource, resource) == 0)
        return;
    if (draft->n_amounts == POD_FACTS_AMOUNTS_MAX) {
        draft->particular = true;
        return;
    }
    memmove(&draft->amounts[at + 1], &draft->amounts[at],
            (draft->n_amounts - at) * sizeof *draft->amounts);
    draft->amounts[at] =
        (struct pod_facts_amount){resource, pod_view_holds(pod, resource, &draft->particular)};
    draft->n_amounts++;
}

static void draft_keys(struct draft *draft, const struct pod_view *pod,
                       const struct string_pairs *amounts)
{
    for (size_t i = 0; i < amounts->n; i++) {
        const char *resource = amounts->items[i].key;
        if (!g_str_equal(resource, "cpu") && !g_str_equal(resource, "memory"))
            draft_amount(draft, pod, resource);
    }
}

static void draft_amounts(struct draft *draft, const struct pod_view *pod)
{
    for (size_t i = 0; i < pod->n_containers; i++) {
        draft_keys(draft, pod, &pod->containers[i].requests);
        draft_keys(draft, pod, &pod->containers[i].limits);
        draft_keys(draft, pod, &pod->containers[i].actual);
        draft_keys(draft, pod, &pod->containers[i].allocated);
    }
    draft_keys(draft, pod, &pod->level);
    draft_keys(draft, pod, &pod->overhead);
}

static void draft_labels(struct draft *draft, const struct pod_view *pod)
{
    for (size_t i = 0; i < pod->labels.n && i < POD_FACTS_LABELS_MAX; i++)
        draft->labels[draft->n_labels++] = pod->labels.items[i];
    draft->particular |= pod->labels.n > POD_FACTS_LABELS_MAX;
}

static void draft_containers(struct draft *draft, const struct pod_view *pod)
{
    for (size_t i = 0; i < pod->n_containers && i < POD_FACTS_CONTAINERS_MAX; i++) {
        const char *name = pod->containers[i].name;
        draft->containers[draft->n_containers++] = name ? name : "";
    }
}

/* --- facts ---------------------------------------------------------------------------------- */

static guint draft_hash(const struct draft *draft)
{
    guint hash = (guint)draft->particular + 2 * draft->ties;

    for (uint32_t i = 0; i < draft->n_labels; i++)
        hash = hash * 31 + g_str_hash(draft->labels[i].key) * 7 + g_str_hash(draft->labels[i].value);
    for (uint32_t i = 0; i < draft->n_amounts; i++)
        hash = hash * 31 + g_str_hash(draft->amounts[i].resource) +
               g_int64_hash(&draft->amounts[i].thousandths);
    for (uint32_t i = 0; i < draft->n_containers; i++)
        hash = hash * 31 + g_str_hash(draft->containers[i]);
    return hash;
}

static char *keep(char **at, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *kept = memcpy(*at, text, size);

    *at += size;
    return kept;
}

static struct pod_facts *facts_from(const struct draft *draft)
{
    const size_t labels_size = draft->n_labels * sizeof(struct string_pair);
    const size_t amounts_size = draft->n_amounts * sizeof(struct pod_facts_amount);
    const size_t names_size = draft->n_containers * sizeof(const char *);
    size_t texts_size = 0;

    for (uint32_t i = 0; i < draft->n_labels; i++)
        texts_size += strlen(draft->labels[i].key) + strlen(draft->labels[i].value) + 2;
    for (uint32_t i = 0; i < draft->n_amounts; i++)
        texts_size += strlen(draft->amounts[i].resource) + 1;
    for (uint32_t i = 0; i < draft->n_containers; i++)
        texts_size += strlen(draft->containers[i]) + 1;
    struct pod_facts *facts =
        g_malloc0(sizeof *facts + labels_size + amounts_size + names_size + texts_size);
    struct string_pair *labels = (struct string_pair *)(void *)(facts + 1);
    struct pod_facts_amount *amounts = (struct pod_facts_amount *)(void *)(labels + draft->n_labels);
    const char **names = (const char **)(void *)(amounts + draft->n_amounts);
    char *texts = (char *)(names + draft->n_containers);

    for (uint32_t i = 0; i < draft->n_labels; i++) {
        labels[i].key = keep(&texts, draft->labels[i].key);
        labels[i].value = keep(&texts, draft->labels[i].value);
    }
    for (uint32_t i = 0; i < draft->n_amounts; i++)
        amounts[i] = (struct pod_facts_amount){keep(&texts, draft->amounts[i].resource),
                                           draft->amounts[i].thousandths};
    for (uint32_t i = 0; i < draft->n_containers; i++)
        names[i] = keep(&texts, draft->containers[i]);
    *facts = (struct pod_facts){
        .n_references = 1,
        .hash = draft_hash(draft),
        .particular = draft->particular,
        .ties = draft->ties,
        .n_labels = draft->n_labels,
        .n_amounts = draft->n_amounts,
        .n_containers = draft->n_containers,
        .labels = labels,
        .amounts = amounts,
        .containers = names,
    };
    return facts;
}

struct pod_facts *pod_facts_new(const struct pod_view *pod)
{
    struct draft draft;

    draft.particular = pod->particular;
    draft.ties = pod_view_ties(pod);
    draft.n_labels = draft.n_amounts = draft.n_containers = 0;
    draft_labels(&draft, pod);
    draft_amounts(&draft, pod);
    draft_containers(&draft, pod);
    return facts_from(&draft);
}

struct pod_facts *pod_facts_ref(struct pod_facts *facts)
{
    if (facts)
        g_atomic_int_inc(&facts->n_references);
    return facts;
}

void pod_facts_unref(struct pod_facts *facts)
{
    if (facts && g_atomic_int_dec_and_test(&facts->n_references))
        g_free(facts);
}

const char *pod_facts_label(const struct pod_facts *facts, const char *key)
{
    const struct string_pairs labels = {facts ? facts->labels : NULL, facts ? facts->n_labels : 0};

    return string_pairs_get(&labels, key);
}

int64_t pod_facts_amount(const struct pod_facts *facts, const char *resource)
{
    for (uint32_t i = 0; facts && i < facts->n_amounts; i++) {
        if (g_str_equal(facts->amounts[i].resource, resource))
            return facts->amounts[i].thousandths;
    }
    return 0;
}

const char *pod_facts_container(const struct pod_facts *facts, int32_t container)
{
    return facts && container >= 0 && (uint32_t)container < facts->n_containers
               ? facts->containers[container]
               : NULL;
}

/* --- one of each ---------------------------------------------------------------------------- */

#define SWEEP_MIN 64

struct pod_facts_pool {
    GHashTable *all; /* struct pod_facts *, a set; one reference of each is the pool's */
    guint sweep_at;  /* size at which those without another reference go */
};

static guint facts_hash(gconstpointer data)
{
    const struct pod_facts *facts = data;
    return facts->hash;
}

static gboolean facts_equal(gconstpointer a, gconstpointer b)
{
    const struct pod_facts *left = a, *right = b;

    if (left->hash != right->hash || left->particular != right->particular ||
        left->ties != right->ties || left->n_labels != right->n_labels ||
        left->n_amounts != right->n_amounts || left->n_containers != right->n_containers)
        return FALSE;
    for (uint32_t i = 0; i < left->n_labels; i++) {
        if (!g_str_equal(left->labels[i].key, right->labels[i].key) ||
            !g_str_equal(left->labels[i].value, right->labels[i].value))
            return FALSE;
    }
    for (uint32_t i = 0; i < left->n_amounts; i++) {
        if (!g_str_equal(left->amounts[i].resource, right->amounts[i].resource) ||
            left->amounts[i].thousandths != right->amounts[i].thousandths)
            return FALSE;
    }
    for (uint32_t i = 0; i < left->n_containers; i++) {
        if (!g_str_equal(left->containers[i], right->containers[i]))
            return FALSE;
    }
    return TRUE;
}

static void facts_release(gpointer data)
{
    pod_facts_unref(data);
}

struct pod_facts_pool *pod_facts_pool_new(void)
{
    struct pod_facts_pool *pool = g_new0(struct pod_facts_pool, 1);

    pool->all = g_hash_table_new_full(facts_hash, facts_equal, facts_release, NULL);
    pool->sweep_at = SWEEP_MIN;
    return pool;
}

void pod_facts_pool_free(struct pod_facts_pool *pool)
{
    g_hash_table_unref(pool->all);
    g_free(pool);
}

static gboolean is_unused(gpointer key, gpointer value, gpointer data)
{
    struct pod_facts *facts = key;
    return g_atomic_int_get(&facts->n_references) == 1;
}

struct pod_facts *pod_facts_pool_get(struct pod_facts_pool *pool, const struct pod_view *pod)
{
    g_autoptr(pod_facts) fresh = pod_facts_new(pod);
    struct pod_facts *known = g_hash_table_lookup(pool->all, fresh);

    if (known)
        return pod_facts_ref(known);
    if (g_hash_table_size(pool->all) >= pool->sweep_at) {
        g_hash_table_foreach_remove(pool->all, is_unused, NULL);
        pool->sweep_at = MAX(SWEEP_MIN, 2 * g_hash_table_size(pool->all));
    }
    g_hash_table_add(pool->all, pod_facts_ref(fresh));
    return g_steal_pointer(&fresh);
}

guint pod_facts_pool_size(const struct pod_facts_pool *pool)
{
    return g_hash_table_size(pool->all);
}
