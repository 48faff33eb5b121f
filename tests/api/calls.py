# SPDX-License-Identifier: Apache-2.0
"""Bodies, good and bad, for what takes one. Those that are text are sent as they are.

A row is a body, whether the document takes it (None: it is no JSON), and what it is answered with.
"""

from program import pod

# The status of POST /api/v1/snapshot/pods, one call after the other.
NEW_PODS = [
    (pod("new", 1), True, 201),
    (pod("new", 1), True, 409),
    (pod("other", 1, metadata={"uid": "uid-new"}), True, 409),
    ({"metadata": {"name": "bare"}}, True, 201),
    ({"metadata": {"generateName": "made-"}, "spec": {}, "extra": [1]}, True, 201),
    # Those that the views have to say something else about.
    (pod("lost", 2, spec={"nodeName": "gpu-t4-0"}, status={"phase": "Running"}), True, 201),
    (pod("orphan", 2, spec={"nodeName": "gone"}, status={"phase": "Running"}), True, 201),
    ({"metadata": {}}, True, 400),
    ({"metadata": {"name": "UPPER"}}, True, 400),
    ({"metadata": {"name": "a/b"}}, True, 400),
    ({}, False, 400),
    ({"kind": "Node", "metadata": {"name": "a"}}, True, 400),
    ({"metadata": {"name": 5}}, False, 400),
    ({"metadata": []}, False, 400),
    ([], False, 400),
    ("null", False, 400),
    ("", None, 400),
    ("{", None, 400),
    ('{"metadata":{"name":"a"}} ,', None, 400),
    ("\xff", None, 400),
]


# Pods of the sample, and why they are where they are.
EXPLAINED = [
    ("ml/classifier", "fits"),
    ("ml/foundation-model", "refused"),  # 40 MiB where these are counted, but it selects GiB
    ("ml/trainer-0", "placed"),
    ("kube-system/coredns-76f75df574-7bq2x", "no_gpu"),
]


def deployment(amount):
    made = pod("made", amount)
    return {"kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 3, "template": {"spec": made["spec"]}}}


# What explain is sent: the status, and the verdict if that is 200.
WORKLOADS = [
    (pod("new", 1), True, 200, "fits"),
    (pod("huge", 999999), True, 200, "refused"),
    (pod("odd", "1.5"), True, 200, "invalid"),
    (pod("picky", 1, spec={"nodeSelector": {"disk": "ssd"}, "volumes": [{"nfs": {}}]}), True, 200,
     "refused"),
    (pod("vague", 1, spec={"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}), True, 200,
     "refused"),
    (pod("important", 15, spec={
        "priority": 1000, "nodeSelector": {"kubernetes.io/hostname": "gpu-t4-0"}}), True, 200, "refused"),
    (pod("elsewhere", 1, spec={"nodeName": "nope"}), True, 200, "refused"),
    (pod("mistaken", 1, spec={"tolerations": [{"operator": "Maybe"}]}), True, 200, "invalid"),
    (deployment(1), True, 200, "fits"),
    ("--- {kind: Pod, metadata: {name: a}, spec: {containers: []}}", None, 200, "no_gpu"),
    ({"metadata": {"name": "bare"}, "spec": {"containers": []}}, True, 200, "no_gpu"),
    ({"kind": "Service", "metadata": {"name": "s"}}, True, 400, None),
    ({"kind": "List", "items": [pod("a", 1), pod("b", 1)]}, True, 400, None),
    ({"kind": "Pod", "metadata": []}, True, 400, None),
    ({}, True, 400, None),
    ([], False, 400, None),
    ("", None, 400, None),
    ("{", None, 400, None),
    ("a: [", None, 400, None),
]


TEMPLATE = {"kind": "Node", "metadata": {"name": "like"}, "status": {
    "capacity": {"aliyun.com/gpu-mem": "100", "aliyun.com/gpu-count": "1"}}}

# What fit is sent: the status, and how many fit if that is 200.
FIT_CALLS = [
    ({"pod": pod("a", 15)}, True, 200, None),
    ({"pod": pod("a", 90), "replicas": 2, "template": TEMPLATE}, True, 200, 2),
    ({"pod": deployment(1)}, True, 200, 3),
    (deployment(1), True, 200, 3),
    ({"pod": deployment(1), "replicas": 4}, True, 200, 4),
    ({"pod": pod("a", 999999), "replicas": 1}, True, 200, 0),
    ({"drain": ["gpu-t4-0"]}, True, 200, 0),
    ({"pod": pod("a", 1), "replicas": 1, "drain": ["gpu-t4-0", "gpu-t4-0"]}, True, 200, 1),
    ({"pod": {"metadata": {"name": "bare"}, "spec": {"containers": []}}}, True, 200, 0),
    ({"pod": pod("a", "1.5")}, True, 400, None),
    ({"drain": ["nope"]}, True, 404, None),
    ({"drain": [""]}, False, 400, None),
    ({"drain": [1]}, False, 400, None),
    ({"drain": "a"}, False, 400, None),
    ({"replicas": -1, "drain": ["gpu-t4-0"]}, False, 400, None),
    ({"replicas": 1.5, "drain": ["gpu-t4-0"]}, False, 400, None),
    ({"pod": pod("a", 1), "template": {"metadata": {}}}, True, 400, None),
    ({"pod": []}, False, 400, None),
    ({}, True, 400, None),
    ([], False, 400, None),
    ("", None, 400, None),
    ("{", None, 400, None),
]


def named(**extra):
    return {"Pod": pod("asked", 1), "NodeNames": ["gpu-t4-0", "cpu-0", "nope"], **extra}


def without(key):
    asked = pod("asked", 1)
    del asked["metadata"][key]
    return asked


NODES = {"metadata": {}, "items": [{"metadata": {"name": "gpu-v100-0"}, "spec": {"x": 1}},
                                   {"metadata": {"name": "nope"}}]}

# How the answer's Error begins.
FILTER_CALLS = [
    (named(), True, ""),
    (named(Nodes=None), True, ""),
    (named(Pod=pod("huge", 9999)), True, ""),
    (named(Pod={"metadata": {"name": "a", "namespace": "b", "uid": "c"}}), True, ""),
    (named(NodeNames=[]), True, ""),
    (named(NodeNames=None, Nodes=NODES), True, ""),
    ({"Pod": pod("asked", 1), "Nodes": {}}, True, ""),
    (named(Other={"ignored": [1]}), True, ""),
    ({"pod": pod("asked", 1), "NODENAMES": ["gpu-t4-0"]}, False, ""),  # keys in any case
    (named(Nodes=NODES), True, "expected one of 'NodeNames' and 'Nodes', got both"),
    ({"Pod": pod("asked", 1)}, True, "expected one of 'NodeNames' and 'Nodes', got neither"),
    ({"NodeNames": []}, False, "field 'Pod': missing"),
    (named(Pod=[]), False, "field 'Pod': expected an object"),
    (named(Pod={}), False, "field 'Pod': field 'metadata.name': missing"),
    (named(Pod=without("name")), False, "field 'Pod': field 'metadata.name': missing"),
    (named(Pod=without("namespace")), False, "field 'Pod': field 'metadata.namespace': missing"),
    (named(Pod=without("uid")), False, "field 'Pod.metadata.uid' is missing"),
    (named(NodeNames=[1]), False, "field 'NodeNames': item 0: expected the name of a node"),
    (named(NodeNames="gpu-t4-0"), False, "field 'NodeNames': expected"),
    (named(NodeNames=["n"] * 50001), False, "field 'NodeNames': 50001 nodes, at most 50000 "),
    ({"Pod": pod("a", 1), "Nodes": {"items": [{}]}}, False, "field 'Nodes.items': item 0: "),
    ({"Pod": pod("a", 1), "Nodes": {"items": {}}}, False, "field 'Nodes.items': expected an array"),
    ([], False, "expected a JSON object"),
    ("null", False, "expected a JSON object"),
    ("", None, "invalid JSON: the text is empty"),
    ("{", None, "invalid JSON at byte "),
    ("\xff\xfe", None, "invalid JSON"),
]

# The same bodies, and the status.
PRIORITIZE_CALLS = [
    (body, valid, 200 if not error else 413 if "at most" in error else 400)
    for body, valid, error in FILTER_CALLS
]


def preemption(**extra):
    return {"Pod": pod("asked", 1), "NodeNameToVictims": None,
            "NodeNameToMetaVictims": {"gpu-t4-0": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0},
                                      "cpu-0": {"Pods": []}}, **extra}


WHOLE = {"gpu-t4-0": {"Pods": [{"metadata": {"uid": "u"}}, None], "NumPDBViolations": 1}, "n": None}

# As above.
PREEMPT_CALLS = [
    (preemption(), True, 200),
    (preemption(Other=1), True, 200),
    (preemption(NodeNameToMetaVictims=None), True, 200),
    (preemption(NodeNameToMetaVictims=None, NodeNameToVictims=WHOLE), True, 200),
    (preemption(NodeNameToVictims=WHOLE), True, 400),
    ({"Pod": pod("asked", 1)}, True, 200),
    ({"NodeNameToVictims": {}}, False, 400),
    (preemption(Pod=without("uid")), False, 400),
    (preemption(NodeNameToMetaVictims=[]), False, 400),
    (preemption(NodeNameToMetaVictims={"n": 5}), False, 400),
    (preemption(NodeNameToMetaVictims={"n": {"Pods": [{}]}}), False, 400),
    (preemption(NodeNameToMetaVictims={"n": {"NumPDBViolations": "1"}}), False, 400),
    ([], False, 400),
    ("", None, 400),
    ("{", None, 400),
]


def binding(**extra):
    return {"PodName": "classifier", "PodNamespace": "ml", "PodUID": "other", "Node": "gpu-t4-0",
            **extra}


BIND_CALLS = [
    (binding(), True, "the pod of that name has another UID"),
    (binding(PodName="nope"), True, 'pods "nope" not found'),
    (binding(Other=1), True, "the pod of that name has another UID"),
    (binding(Node=""), False, "field 'Node': must not be empty"),
    (binding(Node=None), False, "field 'Node': missing"),
    (binding(Node=5), False, "field 'Node': expected a string"),
    (binding(PodUID=""), False, "field 'PodUID': must not be empty"),
    ({}, False, "field 'PodName': missing"),
    ([], False, "expected a JSON object"),
    ("", None, "invalid JSON: the text is empty"),
    ("{", None, "invalid JSON at byte "),
]
