/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kueue's objects as a test writes them: JSON in single quotes. Fields and their places are those of
 * kueue.x-k8s.io/v1beta2, written down here apart from the program's own reader.
 */
#include "kueue/pod_sets.h"

#include <check.h>
#include <string.h>

/* As JSON has it; free with g_free. */
static inline char *quoted(const char *text)
{
    return g_strdelimit(g_strdup(text), "'", '"');
}

static inline const cJSON *parsed(struct json_arena *arena, const char *text)
{
    g_autofree char *json = quoted(text);
    g_autoptr(GError) error = NULL;
    const cJSON *object = json_parse(arena, json, strlen(json), &error);

    ck_assert_msg(object, "%s: %s", error ? error->message : "", json);
    return object;
}

#define TIME "2026-11-25T10:00:00Z"
#define TIME_S INT64_C(1795600800)
#define META(name)                                                                                 \
    "'metadata':{'namespace':'ml','name':'" name "','uid':'uid-" name "','resourceVersion':'7'}"
#define GPUSHARE(units)                                                                            \
    "'containers':[{'name':'c','image':'x','env':[{'name':'A','value':'B'}],"                      \
    "'resources':{'limits':{'aliyun.com/gpu-mem':'" units "'}}}]"
#define POD_SET_OF(name, count, spec)                                                              \
    "{'name':'" name "','count':" count ",'template':{'metadata':{'labels':{'app':'" name          \
    "'}},'spec':{" spec "}}}"
#define RESERVED                                                                                   \
    "'conditions':[{'type':'QuotaReserved','status':'True','lastTransitionTime':'" TIME "'}]"
#define CHECK_OF(name, state)                                                                      \
    "{'name':'" name "','state':'" state "','message':'','lastTransitionTime':'" TIME "'}"
#define WORKLOAD_OF(name, pod_sets, status)                                                        \
    "{" META(name) ",'spec':{'podSets':[" pod_sets "]},'status':{" status "}}"
#define PENDING_WORKLOAD(name, pod_sets)                                                           \
    WORKLOAD_OF(name, pod_sets, RESERVED ",'admissionChecks':[" CHECK_OF("cards", "Pending") "]")
