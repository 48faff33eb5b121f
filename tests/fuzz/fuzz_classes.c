/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever stands in the section of classes: it is refused with a message, or it is written as what is read
 * again as the same, no class that keeps others off may be chosen by everybody, and every pod is of a class
 * that is there, or of none with or without a reason.
 *
 * Lines that begin with 'p' are pods: "PRIORITYCLASS NAMESPACE CLASS"; the others are the section, in YAML.
 */
#include "target.h"

#include "dialect/classes/classes.h"
#include "kube/yaml_document.h"

#include <gpuledger/work_class.h>
#include <string.h>

#define PODS_MAX 16

struct input {
    char **pods[PODS_MAX];
    size_t n_pods;
    GString *section;
};

static void split(struct input *input, char **lines)
{
    for (char **line = lines; *line; line++) {
        if (**line == 'p' && (*line)[1] == ' ' && input->n_pods < PODS_MAX)
            input->pods[input->n_pods++] = g_strsplit(*line + 2, " ", 3);
        else
            g_string_append_printf(input->section, "%s\n", *line);
    }
}

static struct classes *read_text(const char *text, size_t length, bool *ret_good)
{
    g_autoptr(GError) error = NULL;
    cJSON *tree = yaml_load(text, length, &error);
    struct classes *classes = tree ? classes_read(tree, &error) : NULL;

    FUZZ_CHECK(!classes || !error);
    FUZZ_CHECK(!error || *error->message);
    *ret_good = tree && !error;
    cJSON_Delete(tree);
    return classes;
}

static void check_again(const struct classes *classes)
{
    g_autofree char *text = classes_format(classes);
    bool good;
    struct classes *again = read_text(text, strlen(text), &good);

    FUZZ_CHECK(good && again);
    g_autofree char *same = classes_format(again);
    FUZZ_CHECK(g_str_equal(text, same));
    FUZZ_CHECK(classes_want_groups(classes) == classes_want_groups(again));
    FUZZ_CHECK(classes_have_first(classes) == classes_have_first(again));
    classes_free(again);
}

static const char *word(char **words, size_t at)
{
    return g_strv_length(words) > at && *words[at] ? words[at] : NULL;
}

static void check_pod(const struct classes *classes, char **words)
{
    const struct string_pair said = {CLASS_KEY, word(words, 2)};
    const struct pod_view pod = {.ns = word(words, 1),
                                 .name = "p",
                                 .uid = "u",
                                 .priority_class = word(words, 0),
                                 .annotations = {&said, said.value != NULL}};
    g_autoptr(GError) error = NULL;
    enum class_source source;
    g_autofree char *warning = NULL;

    const struct work_class *chosen = classes_choose(classes, &pod, &source, &error);
    FUZZ_CHECK(!chosen || (!error && classes_find(classes, chosen->name) == chosen));
    FUZZ_CHECK(!error || *error->message);
    FUZZ_CHECK(!chosen == (source == CLASS_OF_NOTHING) || error);
    FUZZ_CHECK(source != CLASS_OF_ANNOTATION || !chosen ||
               (said.value && g_str_equal(said.value, chosen->name)));
    struct work_class *bound = classes_of_bound(classes, &pod, &warning);
    FUZZ_CHECK(error || bound == chosen);
    FUZZ_CHECK(!error || warning);
    work_class_unref(bound);
}

/* A namespace that no input names chooses only what gives nothing over others. */
static void check_strangers(const struct classes *classes)
{
    static const char *const names[] = {"interactive", "inference", "training", "a", "b"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const struct work_class *row = classes_find(classes, names[i]);
        const struct string_pair said = {CLASS_KEY, names[i]};
        const struct pod_view pod = {
            .ns = "A stranger", .name = "p", .uid = "u", .annotations = {&said, 1}};
        g_autoptr(GError) error = NULL;
        enum class_source source;
        const struct work_class *chosen = classes_choose(classes, &pod, &source, &error);
        FUZZ_CHECK(!chosen || (row && row->victims != VICTIMS_LAST && !work_class_is_choosy(row)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GString) section = g_string_new(NULL);
    struct input input = {.section = section};
    bool good;

    split(&input, lines);
    struct classes *classes = read_text(section->str, section->len, &good);
    if (classes) {
        check_again(classes);
        check_strangers(classes);
    }
    for (size_t i = 0; i < input.n_pods; i++) {
        check_pod(classes, input.pods[i]);
        g_strfreev(input.pods[i]);
    }
    classes_free(classes);
    return 0;
}
