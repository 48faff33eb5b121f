/* SPDX-License-Identifier: Apache-2.0 */
#include "options/client_section.h"

#include "core/section/rows.h"

#define SETTINGS struct client_settings

static bool choices_output(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"table", "columns for people", OUTPUT_TABLE},
        {"wide", "more columns", OUTPUT_WIDE},
        {"json", "all of it, for scripts; docs/api.md has what they may rely on", OUTPUT_JSON},
        {"yaml", "the same as YAML", OUTPUT_YAML},
        {"jsonpath=",
         "what a template takes out of the JSON, as for kubectl: "
         "{range .nodes[*]}{.name}{'\\n'}{end}",
         OUTPUT_JSONPATH, .open = true},
        {"name", "of nodes and pods: node/NAME or pod/NAMESPACE/NAME, a line each", OUTPUT_NAME},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

static bool choices_color(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"auto", "on a terminal, unless NO_COLOR is set or TERM is dumb", COLOR_AUTO},
        {"always", "also into files and pipes", COLOR_ALWAYS},
        {"never", "nowhere", COLOR_NEVER},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

/* clang-format off */
static const struct option rows[] = {
    {"server", TEXT(server, "URL", "http://127.0.0.1:39998"), FOR(COMMANDS_OF_CLIENTS), .letter = 's',
     .help = "The --ops-listen address of a running extender."},
    {"token-file", PATH(token_file, "FILE", ""), FOR(COMMANDS_OF_CLIENTS),
     .help = "The token that the extender asks for, if it was started with --ops-token-file."},
    {"ca-file", PATH(ca_file, "FILE", ""), FOR(COMMANDS_OF_CLIENTS),
     .help = "The CAs that may have signed the extender's certificate, in PEM form, if --server is "
             "an https:// address; without it, those of the system."},
    {"service", TEXT(service, "NAMESPACE/NAME", ""), FOR(COMMANDS_OF_CLIENTS),
     .help = "Reach the extender through this Service of the current context, by 'kubectl "
             "port-forward', with the token and the CA of the Secret of the same name unless "
             "--token-file and --ca-file name others. kubectl gpuledger does so by itself, with "
             "kube-system/gpuledger-ops."},
    {"namespace", NAMESPACE(pods_namespace, ""),
     FOR(COMMAND_PODS), .letter = 'n', .flags = OPTION_FLAG_ONLY,
     .help = "Only pods of this namespace; without it, those of all."},
    {"namespace", NAMESPACE(pod_namespace, ""),
     FOR(COMMAND_EXPLAIN | COMMAND_PLAN), .letter = 'n', .flags = OPTION_FLAG_ONLY,
     .help = "The namespace of the pod that is named, if its name is given without."},
    {"all-namespaces", BOOL(all_namespaces, "false"),
     FOR(COMMAND_PODS), .letter = 'A', .flags = OPTION_FLAG_ONLY,
     .help = "The pods of all namespaces, as without --namespace."},
    {"filename", PATH(filename, "FILE", ""),
     FOR(COMMANDS_ASKING | COMMAND_PLAN), .flags = OPTION_FLAG_ONLY | OPTION_INPUT, .letter = 'f',
     .help = "A pod that is not in the cluster, as JSON or YAML, or what makes pods from a "
             "template: a Deployment, a StatefulSet, a Job; '-' is standard input."},
    {"replicas", INT(replicas, "N", "0", 0, 1000000),
     FOR(COMMAND_FIT), .flags = OPTION_FLAG_ONLY,
     .help = "How many pods are to fit; 0: as many as the file says, else as many as there is room "
             "for, of which 10000 are tried at most."},
    {"drain", LIST(drain, "NODE[/CARD]", "", item_list_names),
     FOR(COMMAND_FIT), .flags = OPTION_FLAG_ONLY | OPTION_MANY,
     .help = "As if this node or card were taken out of service, and its pods had to go elsewhere. May "
             "be given several times."},
    {"template", PATH(template, "FILE", ""), FOR(COMMAND_FIT), .flags = OPTION_FLAG_ONLY,
     .help = "A Node, as JSON or YAML, of which there may be as many more as are needed, 1000 at "
             "most."},
    {"output", CHOICE(output, "FORMAT", "table", choices_output),
     FOR(COMMANDS_OF_CLIENTS | COMMAND_SIMULATE | COMMAND_REPLAY | COMMAND_MIGRATE | COMMANDS_MOVING | COMMANDS_CORDONING | COMMAND_SWITCH), .flags = OPTION_FLAG_ONLY, .letter = 'o',
     .rest = offsetof(SETTINGS, output_template),
     .help = "How to print the answer."},
    {"sort-by", TEXT(sort_by, "COLUMN", ""), FOR(COMMANDS_LISTING), .flags = OPTION_FLAG_ONLY,
     .help = "Sort the rows by the column with this heading, numbers by their size; with a minus "
             "before it, the largest first."},
    {"watch", BOOL(watch, "false"), FOR(COMMANDS_LISTING), .flags = OPTION_FLAG_ONLY, .letter = 'w',
     .help = "Go on asking, every two seconds, and print the rows that have changed; top draws its "
             "table anew."},
    {"color", CHOICE(color, "WHEN", "auto", choices_color), FOR(COMMANDS_LISTING | COMMANDS_ASKING | COMMAND_INSPECT | COMMAND_AUDIT | COMMAND_MIGRATE | COMMANDS_MOVING | COMMANDS_CORDONING | COMMAND_SIMULATE | COMMAND_SWITCH),
     .help = "Whether tables have colours."},
};
/* clang-format on */

const struct section section_client = {
    .name = "client",
    .title = "Asking a running extender",
    ROWS(rows),
};
