/* SPDX-License-Identifier: Apache-2.0 */
/* The command "dialects": the table of dialects as a document. docs/dialects.md is what it prints. */
#include "options/command.h"

#include <gpuledger/dialect.h>
#include <stdio.h>

static void write_overview(GString *text)
{
    g_string_append(text, "| dialect | resources | isolation | who chooses the card | beside others "
                          "on a node |\n|---|---|---|---|---|\n");
    for (size_t i = 0; dialects[i]; i++) {
        const struct dialect *dialect = dialects[i];
        g_autofree char *resources = g_strjoinv("`, `", (char **)dialect->resources);
        g_string_append_printf(text, "| [%s](#%s) | `%s` | %s | %s | %s |\n", dialect->name,
                               dialect->name, resources, isolation_name(dialect->isolation),
                               dialect->names_cards ? "gpuledger" : "the node",
                               dialect->names_cards ? "on other cards" : "one at a time");
    }
}

/* Whom each dialect's own scheduler sees, if it places pods on the same nodes. */
static void write_schedulers(GString *text)
{
    g_string_append(
        text,
        "\n## Two schedulers on one node\n\n"
        "gpuledger counts pods that others have bound, as each dialect below says. What others see "
        "of "
        "pods that gpuledger has bound is up to them. Neither sees what the other is about to "
        "bind, so both may give the same room away at one moment; give each node to one of the two "
        "where that matters.\n\n"
        "| scheduler | dialect | sees of gpuledger's pods |\n|---|---|---|\n");
    for (size_t i = 0; dialects[i]; i++) {
        const struct dialect_notes *notes = &dialects[i]->notes;
        if (notes->own_scheduler)
            g_string_append_printf(text, "| %s | %s | %s |\n", notes->own_scheduler,
                                   dialects[i]->name, notes->sees);
    }
}

static void write_note(GString *text, const char *heading, const char *note)
{
    if (note)
        g_string_append_printf(text, "- **%s** %s\n", heading, note);
}

static void write_dialect(GString *text, const struct dialect *dialect)
{
    const struct dialect_notes *notes = &dialect->notes;

    g_string_append_printf(text, "\n## %s\n\n%s\n\n", dialect->name, dialect->title);
    write_note(text, "Pods ask:", notes->asks);
    write_note(text, "Nodes say:", notes->nodes);
    write_note(text, "A bind writes:", notes->writes);
    if (dialect->scheduler)
        g_string_append_printf(text,
                               "- **Its own scheduler:** `%s`. Pods that name it are not bound, "
                               "unless `--scheduler-names` has it.\n",
                               dialect->scheduler);
    write_note(text, "Played in the tests:", notes->played);
    write_note(text, "Limits:", notes->limits);
}

enum exit_code dialects_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GString) text = g_string_new(
        "# Dialects\n\n"
        "Printed by `gpuledger dialects` from the program's own table.\n\n"
        "Isolation is how well a node side keeps the holders of one card apart: none, hook (the "
        "CUDA library is intercepted), kernel, hardware; a pod may demand it with the annotation "
        "`gpuledger.io/isolation`. A node may run the node sides of several dialects. Where both "
        "obey the card that gpuledger chose, their pods use different cards of the node; else the "
        "node serves one dialect at a time: the first pod decides, and the last one's end frees "
        "it. gpushare, volcano and the vGPU plugins call cards by NVML's index or UUID, elastic, "
        "nano and "
        "Koordinator by their minor numbers, which may differ: on a node with several cards pods "
        "of "
        "one kind are refused beside those of the other, unless the Node's annotation "
        "`gpuledger.io/card-order` says how they map (`1,0`: the minor numbers in NVML's order). "
        "Pods of a dialect whose plugin has gone hold their cards as before, as long as the "
        "Node's capacity names its resources, if only with 0.\n\n"
        "Annotations of a node that hold for every dialect, by card index or `*`: "
        "`gpuledger.io/cordoned-cards` (`1,3=GPU-5f6d`: no new pods), "
        "`gpuledger.io/exclusive-cards` "
        "(`0`: "
        "one "
        "holder at a time, as in compute mode EXCLUSIVE_PROCESS), `gpuledger.io/physical-memory` "
        "(`*=16Gi`: what a card really has, if its node side offers more), "
        "`gpuledger.io/memory-in-use` (`0=97`: percent of that, as somebody has measured; from 95 "
        "on an oversubscribed card takes no new pods), `gpuledger.io/share-class` "
        "(`0=fixed:4,1=equal:4,2=best-effort:4`: at most so many holders; of N shares "
        "each is promised an N-th of the compute at most, and a best-effort card promises none, so "
        "pods that ask for more stay away; a card whose class cannot be read, or is said twice, "
        "takes "
        "no new pods; an index goes before `*`), `gpuledger.io/slots` (`4`, of all cards: at most "
        "so many holders, as long as no other word or the node side itself says fewer; `any`: as "
        "if it were not there), `gpuledger.io/former-uuids` "
        "(`0=GPU-5f6d`: pods that name this UUID hold the card; for a machine that has moved to "
        "other "
        "hardware while they ran).\n\n");

    write_overview(text);
    write_schedulers(text);
    for (size_t i = 0; dialects[i]; i++)
        write_dialect(text, dialects[i]);
    fputs(text->str, stdout);
    return EXIT_OK;
}
