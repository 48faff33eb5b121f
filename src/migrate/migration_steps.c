/* SPDX-License-Identifier: Apache-2.0 */
#include "migrate/migration_steps.h"

#include <string.h>

static void step_free(gpointer data)
{
    struct migration_step *step = data;

    g_free(step->what);
    g_free(step->command);
    g_free(step);
}

static void add(GPtrArray *steps, const char *what, char *take_command)
{
    struct migration_step *step = g_new(struct migration_step, 1);

    *step = (struct migration_step){g_strdup(what), take_command};
    g_ptr_array_add(steps, step);
}

static void add_all(GPtrArray *steps, const struct peer_step *from)
{
    for (; from->what; from++)
        add(steps, from->what, g_strdup(from->command));
}

static void append_line(GString *text, const char *line)
{
    g_string_append_printf(text, "%s%s", text->len ? "\n" : "", line);
}

/* --- its scheduler ------------------------------------------------------------------------------ */

/* A Deployment's or StatefulSet's, in words of kubectl; NULL: it is made otherwise. */
static char *scale(const struct census_part *part, int replicas)
{
    g_auto(GStrv) words = g_strsplit_set(part->owner ? part->owner : "", " /", 3);

    if (g_strv_length(words) != 3 ||
        (!g_str_equal(words[0], "Deployment") && !g_str_equal(words[0], "StatefulSet")))
        return NULL;
    g_autofree char *kind = g_ascii_strdown(words[0], -1);
    return g_strdup_printf("kubectl -n %s scale %s/%s --replicas=%d", words[1], kind, words[2],
                           replicas);
}

static char *move_manifest(const struct census_part *part, bool away)
{
    const char *prefix = "static pod on ";
    const bool is_static = part->owner && g_str_has_prefix(part->owner, prefix);

    if (!is_static)
        return g_strdup_printf("# %s %s: as it was installed (%s)", away ? "end" : "start",
                               part->pod, part->owner ? part->owner : "nobody makes it again");
    return g_strdup_printf(away ? "# on %s: mv its manifest out of /etc/kubernetes/manifests (%s)"
                                : "# on %s: mv its manifest back to /etc/kubernetes/manifests (%s)",
                           part->owner + strlen(prefix), part->pod);
}

static char *switch_all(const struct census *census, bool off)
{
    GString *text = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < census->schedulers->len; i++) {
        const struct census_part *part = census->schedulers->pdata[i];
        char *line = scale(part, off ? 0 : 1);
        if (!line)
            line = move_manifest(part, off);
        if (!g_hash_table_contains(seen, line))
            append_line(text, line);
        g_hash_table_add(seen, line);
    }
    if (text->len == 0)
        append_line(text, off ? "# none of its pods was found: end it as it was installed"
                              : "# as it was installed");
    return g_string_free(text, FALSE);
}

/* --- kube-scheduler ----------------------------------------------------------------------------- */

/* As manifests/scheduler/kube-scheduler.yaml wants them. kube-scheduler checks what nodes report. */
static char *managed_resources(const struct peer *peer)
{
    GString *text = g_string_new("managedResources:");
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t i = 0; i < PEER_WORDS && peer->dialects[i]; i++) {
        const struct dialect *dialect = dialect_find(peer->dialects[i]);
        for (size_t j = 0; dialect && dialect->resources[j]; j++) {
            const char *resource = dialect->resources[j];
            if (!g_hash_table_add(seen, (gpointer)resource))
                continue;
            g_string_append_printf(text, "\n  - {name: %s, ignoredByScheduler: true}", resource);
        }
    }
    return g_string_free(text, FALSE);
}

static int compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

#define OWNERS_MAX 20

static char *list_owners(const struct census *census)
{
    g_autoptr(GPtrArray) owners = g_ptr_array_new();
    GHashTableIter iter;
    gpointer owner, n;

    g_hash_table_iter_init(&iter, census->owners);
    while (g_hash_table_iter_next(&iter, &owner, &n))
        g_ptr_array_add(owners, owner);
    g_ptr_array_sort(owners, compare_texts);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < MIN(owners->len, OWNERS_MAX); i++) {
        g_autofree char *line = g_strdup_printf(
            "# %s: %u pods", (char *)owners->pdata[i],
            GPOINTER_TO_UINT(g_hash_table_lookup(census->owners, owners->pdata[i])));
        append_line(text, line);
    }
    if (owners->len > OWNERS_MAX)
        g_string_append_printf(text, "\n# and %u more", owners->len - OWNERS_MAX);
    return g_string_free(text, FALSE);
}

static void add_renaming(GPtrArray *steps, const struct census *census)
{
    if (census->named_placed + census->named_waiting == 0)
        return;
    g_autofree char *what = g_strdup_printf(
        "%u pods name the scheduler %s. Take schedulerName out of the templates that make them, or "
        "run "
        "a kube-scheduler of that name that asks gpuledger: manifests/second-scheduler, with "
        "schedulerName: %s in its profile. %s",
        census->named_placed + census->named_waiting, census->peer->scheduler_name,
        census->peer->scheduler_name,
        census->peer->stays ? "Those that are to stay with it keep the name."
                            : "Those that run keep their cards either way.");
    add(steps, what, list_owners(census));
}

/* --- all of it ---------------------------------------------------------------------------------- */

GPtrArray *migration_steps(const struct census *census)
{
    const struct peer *peer = census->peer;
    GPtrArray *steps = g_ptr_array_new_with_free_func(step_free);

    add(steps,
        "Install gpuledger beside it. It counts all pods at once, and nobody asks it yet; pods "
        "that "
        "run are not touched. With seals it adopts them as their annotations say now.",
        g_strdup_printf("gpuledger certs | kubectl apply --server-side -f -\n"
                        "kubectl apply -k %s\n"
                        "kubectl -n kube-system rollout status deployment/gpuledger",
                        peer->overlay));
    add(steps, "See that it reads the same cards and pods: this finds nothing.",
        g_strdup("kubectl gpuledger audit\nkubectl gpuledger nodes"));
    add_all(steps, peer->first);
    if (!peer->stays)
        add(steps,
            "End its scheduler. From here until kube-scheduler asks gpuledger, no new pod gets a "
            "GPU; "
            "pods wait, and none is lost. Its node side stays.",
            switch_all(census, true));
    add(steps, "Wait until the node side has taken whoever is under way: this prints nothing.",
        g_strdup("kubectl gpuledger pods | grep -w waiting"));
    add(steps,
        "Put gpuledger's two entries of manifests/scheduler/kube-scheduler.yaml into "
        "kube-scheduler's "
        "configuration in place of its entry, with these in the first one's managedResources. Only "
        "one "
        "extender may bind. Where nodes report a resource, ignoredByScheduler: false has "
        "kube-scheduler check its sums, too.",
        managed_resources(peer));
    add_all(steps, peer->configure);
    add_renaming(steps, census);
    add(steps, "See that new pods get cards, and that nothing is wrong.",
        g_strdup("kubectl gpuledger top\nkubectl gpuledger audit"));
    return steps;
}

GPtrArray *migration_back(const struct census *census)
{
    GPtrArray *steps = g_ptr_array_new_with_free_func(step_free);

    add(steps,
        "Put kube-scheduler's configuration back as it was, and schedulerName into templates that "
        "had "
        "it. Keep the old files until you no longer want to go back.",
        NULL);
    add(steps, "End gpuledger, and wait until it has gone.",
        g_strdup(
            "kubectl -n kube-system scale deployment/gpuledger --replicas=0\n"
            "kubectl -n kube-system wait --for=delete pod -l app.kubernetes.io/name=gpuledger"));
    add_all(steps, census->peer->back);
    if (!census->peer->stays)
        add(steps, "Start its scheduler again.", switch_all(census, false));
    return steps;
}
