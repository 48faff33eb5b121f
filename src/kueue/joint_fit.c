/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/joint_fit.h"

static const char *const no_nodes[] = {NULL}; /* are drained */

struct joint_fit {
    struct store *copy;
    unsigned number;  /* of sets that were placed */
    int64_t promised; /* pods that have places because they were promised */
    int64_t tried;
};

struct joint_fit *joint_fit_new(struct store *store)
{
    struct joint_fit *joint = g_new0(struct joint_fit, 1);

    joint->copy = store_copy(store);
    return joint;
}

void joint_fit_free(struct joint_fit *joint)
{
    if (!joint)
        return;
    store_free(joint->copy);
    g_free(joint);
}

struct store *joint_fit_copy(const struct joint_fit *joint)
{
    return joint->copy;
}

bool joint_fit_is_spent(const struct joint_fit *joint)
{
    return joint->tried >= JOINT_FIT_PODS_MAX;
}

/* One pod set on the copy, and what it takes to take it off again. */
struct placed {
    struct fit *fit; /* NULL: it could not be read */
    char *uid;
};

static void clear_placed(gpointer data)
{
    struct placed *placed = data;

    fit_free(placed->fit);
    g_free(placed->uid);
}

static struct placed place(struct joint_fit *joint, const struct pod_set *set, int64_t count,
                           GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct placed placed = {.uid = g_strdup_printf("kueue-%u", joint->number++)};
    struct pod_view pod;

    if (!pod_set_read(set, arena, &pod, error))
        return placed;
    const struct fit_query query = {
        .pod = &pod, .replicas = count, .drain = no_nodes, .uid = placed.uid};
    placed.fit = fit_on(&query, joint->copy, error);
    joint->tried += count;
    return placed;
}

static void take_back(struct joint_fit *joint, const GArray *all)
{
    for (guint i = 0; i < all->len; i++) {
        const struct placed *placed = &g_array_index(all, struct placed, i);
        const struct fit_query query = {.uid = placed->uid};
        if (placed->fit)
            fit_take_back(placed->fit, &query, joint->copy);
    }
}

void joint_fit_owe(struct joint_fit *joint, const struct owed *owed)
{
    for (guint i = 0; i < owed->pods->sets->len; i++) {
        if (owed->left[i] == 0)
            continue;
        struct placed placed =
            place(joint, &g_array_index(owed->pods->sets, struct pod_set, i), owed->left[i], NULL);
        joint->promised += placed.fit ? placed.fit->fitting : 0;
        clear_placed(&placed);
    }
}

static char *told_fit(const struct pod_sets *pods, unsigned overlooked)
{
    g_autofree char *fields = overlooked_tell(overlooked);
    const bool notes = fields || pods->topology;

    return g_strdup_printf("all %" G_GINT64_FORMAT " pods with a GPU fit%s%s%s%s", pods->n_pods,
                           notes ? "; not looked at: " : "", fields ? fields : "",
                           fields && pods->topology ? ", " : "",
                           pods->topology ? "topologyAssignment" : "");
}

/* One set after the other, until one does not fit. */
static struct answer ask_all(struct joint_fit *joint, const struct pod_sets *pods, GArray *all)
{
    unsigned overlooked = 0;

    for (guint i = 0; i < pods->sets->len; i++) {
        const struct pod_set *set = &g_array_index(pods->sets, struct pod_set, i);
        g_autoptr(GError) failure = NULL;
        const struct placed placed = place(joint, set, set->count, &failure);
        g_array_append_val(all, placed);
        if (!placed.fit)
            return answer_of(KUEUE_RESULT_UNREADABLE,
                             g_strdup_printf("pod set '%s': %s", set->name, failure->message));
        if (!fit_is_whole(placed.fit))
            return answer_of(KUEUE_RESULT_RETRY,
                             answer_refusal(set->name, placed.fit, joint->promised));
        overlooked |= placed.fit->overlooked;
    }
    return answer_of(KUEUE_RESULT_READY, told_fit(pods, overlooked));
}

struct answer joint_fit_ask(struct joint_fit *joint, const struct pod_sets *pods)
{
    g_autoptr(GArray) all = g_array_new(FALSE, TRUE, sizeof(struct placed));

    if (pods->sets->len == 0)
        return answer_of(KUEUE_RESULT_NO_GPU, g_strdup("none of its pods asks for a GPU"));
    g_array_set_clear_func(all, clear_placed);
    const struct answer answer = ask_all(joint, pods, all);
    if (answer_lets_in(&answer))
        joint->promised += pods->n_pods; /* whoever is asked next is asked beside these, too */
    else
        take_back(joint, all);
    return answer;
}
