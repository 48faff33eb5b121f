/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/classes/class_rows.h"

#include "core/fail.h"
#include "dialect/conditions.h"
#include "dialect/warning.h"

#include <gpuledger/ledger.h>
#include <gpuledger/terms.h>
#include <string.h>

static bool has(char *const *texts, const char *text)
{
    return text && g_strv_contains((const char *const *)texts, text);
}

static const struct class_row *find_row(const struct classes *classes, const char *name)
{
    for (uint32_t i = 0; classes && i < classes->n; i++) {
        if (g_str_equal(classes->rows[i].work_class->name, name))
            return &classes->rows[i];
    }
    return NULL;
}

struct work_class *classes_find(const struct classes *classes, const char *name)
{
    const struct class_row *row = find_row(classes, name);

    return row ? row->work_class : NULL;
}

bool classes_want_groups(const struct classes *classes)
{
    for (uint32_t i = 0; classes && i < classes->n; i++) {
        if (classes->rows[i].work_class->group)
            return true;
    }
    return false;
}

bool classes_have_first(const struct classes *classes)
{
    for (uint32_t i = 0; classes && i < classes->n; i++) {
        if (classes->rows[i].work_class->victims == VICTIMS_FIRST)
            return true;
    }
    return false;
}

/* --- which class -------------------------------------------------------------------------------- */

static const struct class_row *find_by_priority(const struct classes *classes,
                                                const struct pod_view *view)
{
    for (uint32_t i = 0; i < classes->n; i++) {
        if (has(classes->rows[i].priority_classes, view->priority_class))
            return &classes->rows[i];
    }
    return NULL;
}

/* What the pod itself says, and with what; NULL without an error: nothing. */
static const char *read_word(const struct pod_view *view, const char **ret_with, GError **error)
{
    const char *annotation = string_pairs_get(&view->annotations, CLASS_KEY);
    const char *label = string_pairs_get(&view->labels, CLASS_KEY);

    *ret_with = annotation ? "annotation" : "label";
    if (annotation && label && !g_str_equal(annotation, label)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "annotation '" CLASS_KEY "' is '%.64s', and the label is '%.64s': keep one",
                    annotation, label);
        return NULL;
    }
    return annotation ? annotation : label;
}

static bool refuse_unknown(const struct classes *classes, const char *with, const char *word,
                           GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (uint32_t i = 0; i < classes->n; i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", classes->rows[i].work_class->name);
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "%s '" CLASS_KEY "' is '%.64s', which is no class here: write one of %s", with,
                     word, known->str);
}

static bool refuse_choice(const struct pod_view *view, const struct class_row *row,
                          const char *with, GError **error)
{
    const char *name = row->work_class->name;
    const char *priority = row->priority_classes[0];

    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "%s '" CLASS_KEY "' is '%s', which namespace '%.64s' may not choose: %s%s%s"
                     "let the administrator list it in classes.%s.namespaces",
                     with, name, view->ns ? view->ns : "",
                     priority ? "use the PriorityClass '" : "", priority ? priority : "",
                     priority ? "', or " : "", name);
}

static bool may_choose(const struct class_row *row, const struct pod_view *view)
{
    return has(row->namespaces, CLASS_EVERY) || has(row->namespaces, view->ns);
}

struct work_class *classes_choose(const struct classes *classes, const struct pod_view *view,
                                  enum class_source *ret_source, GError **error)
{
    const char *with;

    *ret_source = CLASS_OF_NOTHING;
    if (!classes)
        return NULL;
    const struct class_row *given = find_by_priority(classes, view);
    GError *failure = NULL;
    const char *word = read_word(view, &with, &failure);
    const struct class_row *said = word ? find_row(classes, word) : NULL;
    if (word && !said)
        refuse_unknown(classes, with, word, &failure);
    else if (said && given && said != given)
        g_set_error(&failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "%s '" CLASS_KEY "' is '%.64s', but the PriorityClass '%.64s' makes it '%s': "
                    "leave one of them out",
                    with, word, view->priority_class, given->work_class->name);
    else if (said && !given && !may_choose(said, view))
        refuse_choice(view, said, with, &failure);
    if (failure) {
        g_propagate_error(error, failure);
        return NULL;
    }
    *ret_source = given ? CLASS_OF_PRIORITY : said ? CLASS_OF_ANNOTATION : CLASS_OF_NOTHING;
    return given ? given->work_class : said ? said->work_class : NULL;
}

struct work_class *classes_of_bound(const struct classes *classes, const struct pod_view *view,
                                    char **ret_warning)
{
    g_autoptr(GError) failure = NULL;
    enum class_source source;
    struct work_class *chosen = classes_choose(classes, view, &source, &failure);

    if (!failure)
        return work_class_ref(chosen);
    const struct class_row *given = find_by_priority(classes, view);
    warn(ret_warning, g_strdup_printf("%s; it counts as of %s", failure->message,
                                      given ? given->work_class->name : "no class"));
    return given ? work_class_ref(given->work_class) : NULL;
}

/* --- what follows ------------------------------------------------------------------------------- */

uint64_t classes_replica_of(const struct work_class *work_class, const struct pod_view *view)
{
    /* Deployments, StatefulSets and Jobs; the last is of older Jobs. */
    static const char *const keys[] = {"pod-template-hash", "controller-revision-hash",
                                       "batch.kubernetes.io/job-name", "job-name"};

    for (size_t i = 0; work_class && work_class->spread && i < G_N_ELEMENTS(keys); i++) {
        const char *value = string_pairs_get(&view->labels, keys[i]);
        if (!value)
            continue;
        g_autofree char *all =
            g_strconcat(view->ns ? view->ns : "", "/", keys[i], "/", value, NULL);
        return card_key(all);
    }
    return 0;
}

bool classes_oversubscribe(const struct work_class *work_class, const struct pod_view *view)
{
    return conditions_oversubscribe(view) ||
           (work_class && work_class->oversubscribes && !conditions_say_oversubscribe(view));
}

bool classes_apply(const struct classes *classes, const struct pod_view *view,
                   struct request *request, GError **error)
{
    GError *failure = NULL;
    enum class_source source;
    struct work_class *chosen = classes_choose(classes, view, &source, &failure);

    if (failure) {
        g_propagate_error(error, failure);
        return false;
    }
    if (!chosen)
        return true;
    if (!request->terms)
        request->terms = terms_new();
    struct terms *terms = request->terms;
    terms->work_class = work_class_ref(chosen);
    terms->groupless = chosen->group && !pod_view_group(view);
    terms->replica_of = classes_replica_of(chosen, view);
    terms->oversubscribes = classes_oversubscribe(chosen, view);
    terms->isolation_min = MAX(terms->isolation_min, (enum isolation)chosen->isolation);
    if (!terms->policy)
        terms->policy = chosen->policy;
    return true;
}
