/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gpuledger guard own-writes`: a ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1, Kubernetes 1.30
 * and later) that holds the program's own account to what it writes. RBAC grants `patch` on whole pods and
 * Nodes; this leaves of it the keys of the tables that the program writes by. manifests/overlays/own-writes is
 * what it prints.
 *
 * Whatever is not named here has to stay as it was, fields of later versions of Kubernetes included. What other
 * admission plugins add to such a write is judged with it: the topology labels that the plugin PodTopologyLabels
 * gives a Binding pass (kubernetes/kubernetes@v1.36.0: plugin/pkg/admission/podtopologylabels).
 */
#include "cmd/guard/policy.h"
#include "kube/holder_label.h"
#include "options/command.h"
#include "switch/machine.h"

#define HEADER                                                                                     \
    "# Printed by `" PROGRAM " guard own-writes` from the program's tables.\n"                     \
    "apiVersion: admissionregistration.k8s.io/v1\n"                                                \
    "kind: ValidatingAdmissionPolicy\n"                                                            \
    "metadata:\n"                                                                                  \
    "  name: gpuledger-own-writes\n"                                                               \
    "  labels:\n"                                                                                  \
    "    app.kubernetes.io/name: gpuledger\n"                                                      \
    "spec:\n"                                                                                      \
    "  failurePolicy: Fail\n"                                                                      \
    "  matchConstraints:\n"                                                                        \
    "    resourceRules:\n"                                                                         \
    "      - apiGroups: [\"\"]\n"                                                                  \
    "        apiVersions: [v1]\n"                                                                  \
    "        operations: [UPDATE]\n"                                                               \
    "        resources: [pods, nodes]\n"                                                           \
    "      - apiGroups: [\"\"]\n"                                                                  \
    "        apiVersions: [v1]\n"                                                                  \
    "        operations: [CREATE]\n"                                                               \
    "        resources: [pods/binding]\n"                                                          \
    "  matchConditions:\n"                                                                         \
    "    - name: is-gpuledger\n"                                                                   \
    "      expression: >-\n"                                                                       \
    "        request.userInfo.username == 'system:serviceaccount:kube-system:gpuledger'\n"         \
    "  variables:\n"                                                                               \
    "    - name: kind\n"                                                                           \
    "      expression: request.kind.kind\n"

/* Which keys of a map are there now and were not, have another value, or are gone. */
#define DIFFERENCE(is, was)                                                                        \
    "        variables." is ".filter(key, !(key in variables." was ") ||\n"                        \
    "        variables." was "[key] != variables." is "[key]) +\n"                                 \
    "        variables." was ".filter(key, !(key in variables." is "))\n"

/* Going through tens of thousands of keys takes the API server half a minute, and a pod's author may write as
 * many. So nothing may be changed where there were more than 1,000 annotations before; the policy of `guard` keeps
 * authors from writing as many. The program itself never adds as many. */
#define CHANGED                                                                                    \
    "    - name: changedAnnotations\n"                                                             \
    "      expression: >-\n"                                                                       \
    "        variables.annotations == variables.oldAnnotations ? [] :\n"                           \
    "        size(variables.oldAnnotations) > 1000 ? ['one of more than 1000 annotations'] :\n"    \
    "        size(variables.annotations) > size(variables.oldAnnotations) + 1000 ?\n"              \
    "        ['more than 1000 annotations'] :\n" DIFFERENCE(                                       \
        "annotations",                                                                             \
        "oldAnnotations") "    - name: changedLabels\n"                                            \
                          "      expression: >-\n"                                                 \
                          "        variables.labels == variables.oldLabels ? [] :\n" DIFFERENCE(   \
                              "labels", "oldLabels")

/* Of no type, so that its keys can be gone through. */
#define PART(name, object, field)                                                                  \
    "    - name: " name "\n"                                                                       \
    "      expression: >-\n"                                                                       \
    "        " object " != null && has(dyn(" object ")." field ") ? dyn(" object ")." field        \
    " : {}\n"

#define TAINTS(name, spec)                                                                         \
    "    - name: " name "\n"                                                                       \
    "      expression: >-\n"                                                                       \
    "        has(variables." spec ".taints) ? variables." spec ".taints : []\n"

/* That two maps are the same but for the keys of a list. */
#define SAME(is, was, but)                                                                         \
    "        (variables." is ".all(key, key in " but " ||\n"                                       \
    "        (key in variables." was " && variables." was "[key] == variables." is "[key])) &&\n"  \
    "        variables." was ".all(key, key in " but " || key in variables." is "))\n"

#define VALIDATIONS                                                                                                                                                                               \
    POLICY_MAP("annotations", "object", "annotations")                                                                                                                                            \
    POLICY_MAP("oldAnnotations", "oldObject", "annotations")                                                                                                                                      \
    POLICY_MAP("labels", "object", "labels")                                                                                                                                                      \
    POLICY_MAP("oldLabels", "oldObject", "labels")                                                                                                                                                \
    CHANGED                                                                                                                                                                                       \
    PART("metadata", "object", "metadata")                                                                                                                                                        \
    PART("oldMetadata", "oldObject", "metadata")                                                                                                                                                  \
    PART("spec", "object", "spec")                                                                                                                                                                \
    PART("oldSpec", "oldObject", "spec")                                                                                                                                                          \
    TAINTS("taints", "spec")                                                                                                                                                                      \
    TAINTS("oldTaints", "oldSpec")                                                                                                                                                                \
    "    - name: ownPod\n"                                                                                                                                                                        \
    "      expression: >-\n"                                                                                                                                                                      \
    "        variables.kind == 'Pod' && has(dyn(object).spec.serviceAccountName) &&\n"                                                                                                            \
    "        'system:serviceaccount:' + object.metadata.namespace + ':' +\n"                                                                                                                      \
    "        dyn(object).spec.serviceAccountName == request.userInfo.username\n"                                                                                                                  \
    "    - name: otherAnnotations\n"                                                                                                                                                              \
    "      expression: >-\n"                                                                                                                                                                      \
    "        variables.changedAnnotations.filter(key, variables.kind == 'Node' ? !(key in "                                                                                                       \
    "variables.nodeKeys) :\n"                                                                                                                                                                     \
    "        !(key in variables.keys) && !variables.prefixes.exists(prefix, "                                                                                                                     \
    "key.startsWith(prefix)))\n"                                                                                                                                                                  \
    "    - name: otherLabels\n"                                                                                                                                                                   \
    "      expression: >-\n"                                                                                                                                                                      \
    "        variables.changedLabels.filter(key, variables.kind == 'Node' ? !(key in "                                                                                                            \
    "variables.nodeLabels) :\n"                                                                                                                                                                   \
    "        variables.kind == 'Binding' ?\n"                                                                                                                                                     \
    "        !(key in variables.keys) && !key.startsWith('topology.kubernetes.io/') && "                                                                                                          \
    "!key.startsWith('topology.k8s.io/') "                                                                                                                                                        \
    ":\n"                                                                                                                                                                                         \
    "        !(variables.ownPod && key == '" HOLDER_LABEL "'))\n"                                                                                                                                 \
    "  validations:\n"                                                                                                                                                                            \
    "    - expression: >-\n"                                                                                                                                                                      \
    "        size(variables.otherAnnotations) + size(variables.otherLabels) == 0\n"                                                                                                               \
    "      messageExpression: >-\n"                                                                                                                                                               \
    "        'gpuledger may not set, change or remove ' +\n"                                                                                                                                      \
    "        (variables.otherAnnotations + variables.otherLabels).join(', ')\n"                                                                                                                   \
    "      reason: Forbidden\n"                                                                                                                                                                   \
    "    - expression: >-\n"                                                                                                                                                                      \
    "        variables.kind == 'Binding' ||\n" SAME(                                                                                                                                              \
        "metadata", "oldMetadata",                                                                                                                                                                \
        "['annotations', 'labels', 'generation', 'managedFields', 'resourceVersion']") "      "                                                                                                   \
                                                                                       "message: "                                                                                                \
                                                                                       "of "                                                                                                      \
                                                                                       "metadata "                                                                                                \
                                                                                       "gpuledger"                                                                                                \
                                                                                       " may "                                                                                                    \
                                                                                       "change "                                                                                                  \
                                                                                       "annotatio"                                                                                                \
                                                                                       "ns and "                                                                                                  \
                                                                                       "labels "                                                                                                  \
                                                                                       "only\n"                                                                                                   \
                                                                                       "      "                                                                                                   \
                                                                                       "reason: "                                                                                                 \
                                                                                       "Forbidden"                                                                                                \
                                                                                       "\n"                                                                                                       \
                                                                                       "    - "                                                                                                   \
                                                                                       "expressio"                                                                                                \
                                                                                       "n: >-\n"                                                                                                  \
                                                                                       "        "                                                                                                 \
                                                                                       "variables"                                                                                                \
                                                                                       ".kind == "                                                                                                \
                                                                                       "'Binding'"                                                                                                \
                                                                                       " ||"                                                                                                      \
                                                                                       "\n" SAME(                                                                                                 \
                                                                                           "spec",                                                                                                \
                                                                                           "oldSp"                                                                                                \
                                                                                           "ec",                                                                                                  \
                                                                                           "(vari"                                                                                                \
                                                                                           "ables"                                                                                                \
                                                                                           ".kind"                                                                                                \
                                                                                           " == "                                                                                                 \
                                                                                           "'Node"                                                                                                \
                                                                                           "' ? "                                                                                                 \
                                                                                           "['"                                                                                                   \
                                                                                           "taint"                                                                                                \
                                                                                           "s', "                                                                                                 \
                                                                                           "'unsc"                                                                                                \
                                                                                           "hedul"                                                                                                \
                                                                                           "able'"                                                                                                \
                                                                                           "] : "                                                                                                 \
                                                                                           "[])") "      message: of a spec gpuledger may change a Node's unschedulable and its own taint only\n" \
                                                                                                  "      reason: Forbidden\n"                                                                     \
                                                                                                  "    - expression: >-\n"                                                                        \
                                                                                                  "        variables.taints.filter(taint, taint.key != '" SWITCH_TAINT                            \
                                                                                                  "') ==\n"                                                                                       \
                                                                                                  "        variables.oldTaints.filter(taint, taint.key != '" SWITCH_TAINT                         \
                                                                                                  "') &&\n"                                                                                       \
                                                                                                  "        variables.taints.all(taint, taint.key != '" SWITCH_TAINT                               \
                                                                                                  "' || taint.effect == 'NoSchedule')\n"                                                          \
                                                                                                  "      message: of taints gpuledger may set and remove " SWITCH_TAINT                           \
                                                                                                  " with the effect NoSchedule only\n"                                                            \
                                                                                                  "      reason: Forbidden\n"

#define BINDING                                                                                    \
    "---\n"                                                                                        \
    "apiVersion: admissionregistration.k8s.io/v1\n"                                                \
    "kind: ValidatingAdmissionPolicyBinding\n"                                                     \
    "metadata:\n"                                                                                  \
    "  name: gpuledger-own-writes\n"                                                               \
    "  labels:\n"                                                                                  \
    "    app.kubernetes.io/name: gpuledger\n"                                                      \
    "spec:\n"                                                                                      \
    "  policyName: gpuledger-own-writes\n"                                                         \
    "  validationActions: [Deny]\n"

void own_writes_print(GString *text)
{
    g_autoptr(GPtrArray) keys = policy_pod_keys(), node_keys = policy_node_keys(),
                         node_labels = policy_node_labels();

    g_string_append(text, HEADER);
    policy_write_list(text, "keys", keys, POLICY_KEYS);
    policy_write_list(text, "prefixes", keys, POLICY_PREFIXES);
    policy_write_list(text, "nodeKeys", node_keys, POLICY_KEYS);
    policy_write_list(text, "nodeLabels", node_labels, POLICY_KEYS);
    g_string_append(text, VALIDATIONS BINDING);
}
