/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "guard": a ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1, Kubernetes 1.30
 * and later) that lets only schedulers and node sides write what a pod was given, from the dialects'
 * table. manifests/overlays/guard/policy.yaml is what it prints.
 *
 * Who may write is in the ConfigMap that the policy takes as its parameter: `accounts` and `groups`, a
 * name a line. The API server hands a Binding's annotations on to the pod, so that Bindings are
 * judged like pods; and a pod that anybody binds is where spec.nodeName would have it, without a card, so that
 * only `schedulers` may besides. Whom the API server says to have ended holds nothing, while his containers run
 * for as long as his grace period is: only `enders` may say so besides. What was lent to a pod is taken back, so that
 * only `opters` may opt one out of evictions besides that has a node. Without those three keys, as ConfigMaps of before
 * had none, anybody may. Requests that leave all of that alone pass before anything is looked at:
 * kubelet's and the controllers' updates of a pod's status cost nothing, however much its author has written
 * there.
 */
#include "cmd/guard/policy.h"
#include "options/command.h"

#include <stdio.h>

/* Who may do one thing, and nothing else that is judged. */
#define ALSO(name, list)                                                                           \
    "    - name: " name "\n"                                                                       \
    "      expression: >-\n"                                                                       \
    "        variables.trusted || !has(params.data) || !('" list "' in params.data) ||\n"          \
    "        request.userInfo.username in params.data['" list "'].split('\\n')\n"

#define HEADER                                                                                     \
    "# Printed by `" PROGRAM " guard` from the program's table of dialects.\n"                     \
    "apiVersion: admissionregistration.k8s.io/v1\n"                                                \
    "kind: ValidatingAdmissionPolicy\n"                                                            \
    "metadata:\n"                                                                                  \
    "  name: gpuledger-guard\n"                                                                    \
    "  labels:\n"                                                                                  \
    "    app.kubernetes.io/name: gpuledger\n"                                                      \
    "spec:\n"                                                                                      \
    "  failurePolicy: Fail\n"                                                                      \
    "  paramKind:\n"                                                                               \
    "    apiVersion: v1\n"                                                                         \
    "    kind: ConfigMap\n"                                                                        \
    "  matchConstraints:\n"                                                                        \
    "    resourceRules:\n"                                                                         \
    "      - apiGroups: [\"\"]\n"                                                                  \
    "        apiVersions: [v1]\n"                                                                  \
    "        operations: [CREATE, UPDATE]\n"                                                       \
    "        resources: [pods, pods/status, pods/binding, pods/ephemeralcontainers, pods/resize, " \
    "bindings]\n"                                                                                  \
    "  matchConditions:\n"                                                                         \
    "    - name: comes-or-changes-its-words\n"                                                     \
    "      expression: >-\n"                                                                       \
    "        oldObject == null ||\n"                                                               \
    "        has(object.metadata.annotations) != has(oldObject.metadata.annotations) ||\n"         \
    "        has(object.metadata.labels) != has(oldObject.metadata.labels) ||\n"                   \
    "        (has(object.metadata.annotations) &&\n"                                               \
    "        object.metadata.annotations != oldObject.metadata.annotations) ||\n"                  \
    "        (has(object.metadata.labels) && object.metadata.labels != "                           \
    "oldObject.metadata.labels) ||\n"                                                              \
    "        (has(request.subResource) && request.subResource == 'status' &&\n"                    \
    "        object.status.phase != oldObject.status.phase)\n"                                     \
    "  variables:\n"                                                                               \
    "    - name: accounts\n"                                                                       \
    "      expression: >-\n"                                                                       \
    "        has(params.data) && 'accounts' in params.data ? "                                     \
    "params.data['accounts'].split('\\n') : []\n"                                                  \
    "    - name: groups\n"                                                                         \
    "      expression: >-\n"                                                                       \
    "        has(params.data) && 'groups' in params.data ? params.data['groups'].split('\\n') : "  \
    "[]\n"                                                                                         \
    "    - name: trusted\n"                                                                        \
    "      expression: >-\n"                                                                       \
    "        request.userInfo.username in variables.accounts ||\n"                                 \
    "        (has(request.userInfo.groups) &&\n"                                                   \
    "        request.userInfo.groups.exists(group, group in variables.groups))\n" ALSO(            \
        "binds", "schedulers") ALSO("ends", "enders") ALSO("optsOut", "opters")

/* What is there now and was not, or otherwise; and what was there and is no more. Nobody goes through more than 1,000,
 * which takes the API server half a minute for tens of thousands; nor may gpuledger's account (own_writes.c). */
#define CHANGED(name, is, was)                                                                     \
    "    - name: " name "\n"                                                                       \
    "      expression: >-\n"                                                                       \
    "        variables." is " == variables." was " ? [] :\n"                                       \
    "        size(variables." is ") > 1000 ? ['one of more than 1000'] :\n"                        \
    "        variables.keys.filter(key, (key in variables." is ") != (key in variables." was       \
    ") ||\n"                                                                                       \
    "        (key in variables." is " && variables." is "[key] != variables." was "[key])) +\n"    \
    "        variables." is                                                                        \
    ".filter(key, variables.prefixes.exists(prefix, key.startsWith(prefix)) "                      \
    "&&\n"                                                                                         \
    "        !(key in variables." was " && variables." was "[key] == variables." is "[key])) +\n"  \
    "        variables." was ".filter(key, variables.prefixes.exists(prefix, "                     \
    "key.startsWith(prefix)) &&\n"                                                                 \
    "        !(key in variables." is "))\n"

#define VALIDATIONS                                                                                \
    POLICY_MAP("annotations", "object", "annotations")                                             \
    POLICY_MAP("oldAnnotations", "oldObject", "annotations")                                       \
    POLICY_MAP("labels", "object", "labels")                                                       \
    POLICY_MAP("oldLabels", "oldObject", "labels")                                                 \
    CHANGED("changedAnnotations", "annotations", "oldAnnotations")                                 \
    CHANGED("changedLabels", "labels", "oldLabels")                                                \
    "  validations:\n"                                                                             \
    "    - expression: >-\n"                                                                       \
    "        variables.trusted || size(variables.changedAnnotations) + "                           \
    "size(variables.changedLabels) == 0\n"                                                         \
    "      messageExpression: >-\n"                                                                \
    "        'only schedulers and node sides, which the ConfigMap gpuledger-guard names, may "     \
    "set, ' +\n"                                                                                   \
    "        'change or remove ' + (variables.changedAnnotations + "                               \
    "variables.changedLabels).join(', ')\n"                                                        \
    "      reason: Forbidden\n"                                                                    \
    "    - expression: >-\n"                                                                       \
    "        variables.trusted || request.operation != 'CREATE' || request.kind.kind != 'Pod' "    \
    "||\n"                                                                                         \
    "        !has(object.spec.nodeName) || object.spec.nodeName == ''\n"                           \
    "      message: only those whom the ConfigMap gpuledger-guard names may create a pod with "    \
    "spec.nodeName\n"                                                                              \
    "      reason: Forbidden\n"                                                                    \
    "    - expression: >-\n"                                                                       \
    "        variables.binds || request.operation != 'CREATE' || request.kind.kind != 'Binding'\n" \
    "      message: only those whom the ConfigMap gpuledger-guard names may bind a pod\n"          \
    "      reason: Forbidden\n"                                                                    \
    "    - expression: >-\n"                                                                       \
    "        variables.ends || !has(request.subResource) || request.subResource != 'status' ||\n"  \
    "        (object.status.phase in ['Succeeded', 'Failed']) ==\n"                                \
    "        (oldObject.status.phase in ['Succeeded', 'Failed'])\n"                                \
    "      message: only those whom the ConfigMap gpuledger-guard names may say that a pod has "   \
    "ended\n"                                                                                      \
    "      reason: Forbidden\n"                                                                    \
    "    - expression: >-\n"                                                                       \
    "        variables.optsOut || request.operation != 'UPDATE' || request.kind.kind != 'Pod' "    \
    "||\n"                                                                                         \
    "        !has(oldObject.spec.nodeName) || oldObject.spec.nodeName == '' ||\n"                  \
    "        variables.optOuts.all(key, !(key in variables.annotations) ||\n"                      \
    "        (key in variables.oldAnnotations && variables.annotations[key] == "                   \
    "variables.oldAnnotations[key]))\n"                                                            \
    "      message: only those whom the ConfigMap gpuledger-guard names may opt a pod that has a " \
    "node out of evictions\n"                                                                      \
    "      reason: Forbidden\n"

#define BINDING                                                                                    \
    "---\n"                                                                                        \
    "apiVersion: admissionregistration.k8s.io/v1\n"                                                \
    "kind: ValidatingAdmissionPolicyBinding\n"                                                     \
    "metadata:\n"                                                                                  \
    "  name: gpuledger-guard\n"                                                                    \
    "  labels:\n"                                                                                  \
    "    app.kubernetes.io/name: gpuledger\n"                                                      \
    "spec:\n"                                                                                      \
    "  policyName: gpuledger-guard\n"                                                              \
    "  validationActions: [Deny]\n"                                                                \
    "  paramRef:\n"                                                                                \
    "    name: gpuledger-guard\n"                                                                  \
    "    namespace: kube-system\n"                                                                 \
    "    parameterNotFoundAction: Deny\n"

static void print_guard(GString *text)
{
    g_autoptr(GPtrArray) keys = policy_pod_keys(), opt_outs = policy_opt_outs();

    g_string_append(text, HEADER);
    policy_write_list(text, "keys", keys, POLICY_KEYS);
    policy_write_list(text, "prefixes", keys, POLICY_PREFIXES);
    policy_write_list(text, "optOuts", opt_outs, POLICY_KEYS);
    g_string_append(text, VALIDATIONS BINDING);
}

const char *const guard_policies[] = {"own-writes", NULL};

enum exit_code guard_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (config->words->len > 0)
        own_writes_print(text);
    else
        print_guard(text);
    fputs(text->str, stdout);
    return EXIT_OK;
}
