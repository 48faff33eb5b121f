/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/class_told.h"

#include "base/printable.h"
#include "dialect/classes/classes.h"

static const char *word_of(const struct pod_view *pod)
{
    const char *annotation = string_pairs_get(&pod->annotations, CLASS_KEY);

    return annotation ? annotation : string_pairs_get(&pod->labels, CLASS_KEY);
}

static char *tell_source(enum class_source source, const struct pod_view *pod)
{
    if (source == CLASS_OF_PRIORITY)
        return g_strdup_printf("its PriorityClass '%s'", pod->priority_class);
    if (source != CLASS_OF_ANNOTATION)
        return NULL;
    return g_strdup_printf("its %s " CLASS_KEY,
                           string_pairs_get(&pod->annotations, CLASS_KEY) ? "annotation" : "label");
}

struct class_told *class_told_find(const struct dialect_options *options,
                                   const struct pod_view *pod, const struct allocation *held)
{
    g_autoptr(GError) failure = NULL;
    enum class_source source;
    const struct work_class *said = classes_choose(options->classes, pod, &source, &failure);
    const struct work_class *counts = held ? held->work_class : said;
    const char *word = word_of(pod);
    struct class_told told = {.name = counts ? g_strdup(counts->name) : NULL};

    if (counts && counts == said)
        told.from = tell_source(source, pod);
    else if (counts)
        told.from = g_strdup("what it was bound with");
    if (!options->classes && word)
        told.note = g_strdup("it names a class, and there are none here: see --classes");
    else if (failure)
        told.note = g_strdup(failure->message);
    else if (held && counts != said)
        told.note = g_strdup_printf("what it says now came after it was bound, and does not count: "
                                    "it would be of %s",
                                    said ? said->name : "no class");
    return told.name || told.note ? g_memdup2(&told, sizeof told) : NULL;
}

void class_told_free(struct class_told *told)
{
    if (!told)
        return;
    g_free(told->name);
    g_free(told->from);
    g_free(told->note);
    g_free(told);
}

void class_told_encode(struct json_writer *writer, const struct class_told *told)
{
    json_key(writer, "class");
    if (!told) {
        json_null(writer);
        return;
    }
    json_begin_object(writer);
    json_key_string(writer, "name", told->name);
    json_key_string(writer, "from", told->from);
    json_key_string(writer, "note", told->note);
    json_key_known_int(writer, "idleSeconds", told->idle_s > 0, told->idle_s);
    json_end_object(writer);
}

void class_told_write(GString *text, const struct class_told *told)
{
    if (!told)
        return;
    printable_append(text, "\nCLASS       %s", told->name ? told->name : "none");
    if (told->from)
        printable_append(text, ", by %s", told->from);
    if (told->idle_s > 0)
        printable_append(text, "; idle for %" G_GINT64_FORMAT " min by usage source",
                         told->idle_s / 60);
    if (told->note)
        printable_append(text, "\n            %s", told->note);
    g_string_append_c(text, '\n');
}
