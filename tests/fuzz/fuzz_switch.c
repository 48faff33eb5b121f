/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a Node says of a switch, and a file of windows: it is read or refused with a message, what is
 * read is written as it was, and the next step is one that may be taken.
 *
 * Lines that begin with 'n' are annotations of the Node, with 'b' its labels, with 'c' what kubelet
 * reports, each "key=value"; the others are the file, of windows or of mig-manager.
 */
#include "target.h"

#include "kube/yaml_document.h"
#include "switch/machine.h"
#include "dialect/nvidia/nvidia_layouts.h"

#include <string.h>

#define LINES_MAX 64
#define NOON 1795608000

struct input {
    struct string_pair annotations[LINES_MAX], labels[LINES_MAX], amounts[LINES_MAX];
    struct node_view node;
    GString *file;
};

static void add(struct string_pairs *pairs, struct string_pair *items, char *line)
{
    char *sign = strchr(line, '=');

    if (!sign || pairs->n == LINES_MAX)
        return;
    *sign = '\0';
    items[pairs->n++] = (struct string_pair){line, sign + 1};
    pairs->items = items;
}

static void split(struct input *input, char **lines)
{
    for (char **line = lines; *line; line++) {
        if (**line == 'n')
            add(&input->node.annotations, input->annotations, *line + 1);
        else if (**line == 'b')
            add(&input->node.labels, input->labels, *line + 1);
        else if (**line == 'c')
            add(&input->node.capacity, input->amounts, *line + 1);
        else
            g_string_append_printf(input->file, "%s\n", *line);
    }
    input->node.allocatable = input->node.capacity;
}

static struct calendar *read_calendar(const GString *file)
{
    g_autoptr(GError) error = NULL;
    cJSON *tree = yaml_load(file->str, file->len, &error);
    struct calendar *calendar = tree ? calendar_new(tree, "day=4,night=1", &error) : NULL;

    cJSON_Delete(tree);
    FUZZ_CHECK(calendar || (error && *error->message));
    return calendar;
}

/* The same file as one of mig-manager's. */
static void check_layouts(const GString *file)
{
    static const struct mig_card cards[] = {{40, false}, {24, true}};
    cJSON *tree = yaml_load(file->str, file->len, NULL);

    for (size_t i = 0; tree && i < G_N_ELEMENTS(cards); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) layouts = mig_layouts_read(tree, &cards[i], &error);
        FUZZ_CHECK(layouts ? layouts->len > 0 : error && *error->message);
        for (guint j = 0; layouts && j < layouts->len; j++) {
            const struct mig_layout *layout = &g_array_index(layouts, struct mig_layout, j);
            FUZZ_CHECK(layout->name && layout->value.n_profiles > 0);
        }
    }
    cJSON_Delete(tree);
}

static void check_words(const struct switch_step *step)
{
    struct switch_mark mark;
    struct switch_state state;

    FUZZ_CHECK(!step->mark.text || switch_mark_parse(step->mark.text, &mark));
    FUZZ_CHECK(!step->done.text || switch_mark_parse(step->done.text, &mark));
    FUZZ_CHECK(!step->state.text || switch_state_parse(step->state.text, &state));
    FUZZ_CHECK(!step->writes || step->event != SWITCH_EVENT_NONE || step->taint);
    FUZZ_CHECK(!(step->writes && step->drains) || step->taint);
}

static void check_mark(const char *text)
{
    struct switch_mark mark, again;

    if (!text || !switch_mark_parse(text, &mark))
        return;
    g_autofree char *written = switch_mark_format(&mark);
    FUZZ_CHECK(switch_mark_parse(written, &again));
    FUZZ_CHECK(strcmp(mark.label, again.label) == 0 && strcmp(mark.value, again.value) == 0 &&
               mark.at_s == again.at_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    struct input input = {.file = g_string_new(NULL)};

    input.node.name = "n";
    split(&input, lines);
    struct calendar *calendar = read_calendar(input.file);
    for (int holders = 0; holders < 2; holders++) {
        for (int64_t now_s = NOON; now_s <= NOON + 100000; now_s += 50000) {
            struct switch_step step;
            switch_step_find(&(struct switch_sight){.now_s = now_s,
                                                    .node = &input.node,
                                                    .calendar = calendar,
                                                    .replicas = "day=4,night=1",
                                                    .limits = switch_limits_default,
                                                    .n_holders = (guint)holders},
                             &step);
            check_words(&step);
            switch_step_clear(&step);
        }
    }
    check_layouts(input.file);
    check_mark(string_pairs_get(&input.node.annotations, SWITCH_KEY));
    g_autofree char *warning = NULL;
    FUZZ_CHECK(switch_mark_ahead(&input.node, &warning).at_ns >= 0);
    calendar_free(calendar);
    g_string_free(input.file, TRUE);
    return 0;
}
