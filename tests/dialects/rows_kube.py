# SPDX-License-Identifier: Apache-2.0
"""Kubernetes and its API server: what they do, and the case of another suite that holds the program to it.
sched is pkg/scheduler; as, cg and am are apiserver, client-go and apimachinery."""

from stage import TESTS, need, row

K = "kubernetes/kubernetes@v1.37.2"


def held_by(name, source, given, real, ours, *cases):
    """`cases`: "FILE:CASE" below tests; the case is there, and is run."""

    def play(_):
        for each in cases:
            file, case = each.split(":")
            text = (TESTS / file).read_text()
            need(text.count(case) >= 2, f"{file} has no case {case!r}, or does not run it")

    row(source, given, real, ours, name=name)(play)


held_by("kubernetes annotations that are too many", f"{K}:pkg/registry/core/pod/storage/storage.go:253, pkg/apis/core/validation/"
        "validation.go:6167-6169", "a pod whose annotations with ours exceed 256 KiB", "the Binding is accepted, every later "
        "update refused", "filter and bind refuse the pod",
        "unit/test_annotation_bytes.c:filter_refuses_it_on_every_node", "unit/test_annotation_bytes.c:bind_looks_again")
held_by("kubernetes order of victims", f"{K}:sched/extender.go:181, sched/framework/preemption/preemption.go:325, 351-356",
        "an answer of preempt with added victims", "the first of a node passes for its most important one",
        "victims stand by descending priority, older ones first",
        "unit/test_victim_order.c:the_most_important_is_the_first", "unit/test_victim_order.c:of_equals_the_older_is_the_first",
        "unit/test_victim_order.c:so_it_is_in_an_answer_that_is_repeated")
held_by("kubernetes pods with volumes between filter and bind", f"{K}:sched/schedule_one.go:412-466", "a pod with claims of volumes "
        "or devices", "it counts on its node for up to bindTimeoutSeconds before bind is called", "its room is kept, for pods of "
        "any priority", "unit/test_late_binds.c:its_room_is_kept_from_pods_of_any_priority", "unit/test_late_binds.c:it_ends",
        "unit/test_late_binds.c:where_nobody_has_to_end_it_is_on_its_way")
held_by("kubernetes mirrors end nothing", f"{K}:pkg/kubelet/kubelet.go:3552-3583", "a static pod's mirror with a GPU",
        "kubelet writes another one when it is deleted", "it is never a victim",
        "unit/test_victim_order.c:no_mirror_ends", "unit/test_victim_order.c:where_only_a_mirror_would_end_the_node_is_left_out")
held_by("kubernetes nominations of other schedulers", f"{K}:sched/eventhandlers.go:464", "a nominated pod of a scheduler that asks "
        "others", "kube-scheduler keeps room for pods of its own profiles", "nothing is kept for it",
        "unit/test_late_binds.c:nominations_of_other_schedulers_do_not_count")
held_by("kubernetes nominations end", f"{K}:sched/backend/queue/scheduling_queue.go:885-889", "a gated pod's nomination",
        "1.37 counts it when the pod is added, 1.36 once it is active", "room is kept for a bounded time",
        "unit/test_nominations.c:a_nomination_ends", "unit/test_nominations.c:room_is_kept_for_a_bounded_time")
held_by("kubernetes evictions under several budgets", f"{K}:pkg/registry/core/pod/storage/eviction.go:224", "a pod that several "
        "budgets select", "a Status of code 500, and nothing is evicted", "a refusal, not an unknown outcome",
        "unit/test_eviction.c:each_answer_has_its_outcome")
held_by("kubernetes groups that end as a whole", f"{K}:sched/framework/plugins/defaultpreemption/default_preemption.go, "
        "SelectVictimsOnNode", "GenericWorkload: kube-scheduler names all pods of a group", "part of a group is of no use",
        "none of them is added or spared", "unit/test_preempt_victims.c:a_pod_group_ends_as_kube_scheduler_names_it")
held_by("kubernetes resize of a bound pod", f"{K}:sched/eventhandlers.go:137", "a deferred resize asks for preemption on the "
        "pod's own node", "an empty answer would veto it", "who is named goes",
        "unit/test_victim_order.c:of_a_bound_pod_all_that_are_named_go")

held_by("api server conflicts that are no answer", "kubernetes/kubernetes@v1.37.2:pkg/registry/core/pod/storage/storage.go:292",
        "409 to a Binding", "every raw error of etcd becomes one, and the write may come yet",
        "only known causes are a no; else the booking stays", "unit/test_api_cluster.c:a_conflict_is_a_no_only_for_known_causes",
        "unit/test_bind_outcomes.c:what_is_not_known_stays_booked")
held_by("api server certificates that are renewed", "kubernetes/apiserver@v0.37.1:pkg/authentication/request/x509/x509.go:194; "
        "kubernetes/client-go@v0.37.1:transport/cert_rotation.go:37, 93", "a client certificate is written anew",
        "a connection keeps the certificate that it began with", "after a 401 connections are made anew",
        "unit/test_credentials.c:reads_certificates_again",
        "unit/test_credentials.c:a_certificate_that_is_rejected_gets_a_connection_of_its_own")
held_by("api server errors of a watch at one version", "kubernetes/client-go@v0.37.1:tools/cache/reflector.go:647-668",
        "a watch ends with ERROR twice at one version", "etcd gives the same error each time at that event",
        "all is listed anew; a feed without a living watch is not ready",
        "unit/test_reflector_watch.c:two_errors_at_one_version_lead_to_a_list", "unit/test_reflector_watch.c:says_that_no_watch_lives")
held_by("api server one identity for two", "kubernetes/client-go@v0.37.1:tools/leaderelection/leaderelection.go",
        "two replicas with one --lease-identity", "each takes the other's Lease for its own", "no two have one identity",
        "unit/test_lease.c:no_two_have_one_identity")
held_by("api server events of a namespace that goes away", "kubernetes/apiserver@v0.37.1:pkg/admission/plugin/namespace/lifecycle/"
        "admission.go:182", "an Event in a terminating namespace", "403, with a cause of its own", "that Event alone is dropped",
        "unit/test_events.c:a_namespace_that_goes_away_silences_no_other")
held_by("api server connections that are dead", "kubernetes/apimachinery@v0.37.1:pkg/util/net/http.go:146-170",
        "a peer that is gone without a word", "client-go notices after 45 s", "noticed after 45 s",
        "unit/test_api_client.c:a_peer_that_is_gone_is_noticed_after_45_s")
held_by("api server behind a proxy", "kubernetes/client-go@v0.37.1:rest/config.go", "tls-server-name and a proxy",
        "the proxy is chosen by the real host", "likewise", "unit/test_api_client.c:the_real_host_decides_about_a_proxy")
held_by("api server answers that are a proxy's", "kubernetes/apimachinery@v0.37.1:pkg/apis/meta/v1/types.go, Status", "404 without "
        "a Status", "a proxy has 404s of its own", "it is no answer: what is booked stays",
        "unit/test_api_client.c:says_how_a_binding_ended")
held_by("api server objects that cannot be read", "kubernetes/apimachinery@v0.37.1:pkg/apis/meta/v1/types.go", "a list names a pod "
        "that cannot be read", "the pod runs all the same", "it counts as it was known, else on every card",
        "unit/test_api_cluster.c:what_cannot_be_read_counts_as_it_was_known",
        "unit/test_api_cluster.c:what_was_never_known_counts_on_every_card",
        "unit/test_api_cluster.c:an_unreadable_pod_is_on_its_node_all_the_same")


@row("kubernetes/kubernetes@v1.37.2:pkg/apis/core/validation/validation.go:4664-4665",
     "a bound pod with a terminationGracePeriodSeconds of 2^53", "an int64 without an upper bound", "it counts",
     name="api server grace periods without bound")
def grace_without_bound(stage):
    stage.node("n", {"aliyun.com/gpu-mem": 16, "aliyun.com/gpu-count": 1})
    stage.running("a", {"aliyun.com/gpu-mem": 12}, {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "12",
                                                    "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"})
    stage.change("a", lambda pod: pod["spec"].update(terminationGracePeriodSeconds=2**53))
    stage.start()
    stage.refused("b", {"aliyun.com/gpu-mem": 8}, "Insufficient GPU")
