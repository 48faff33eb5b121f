/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who truly holds what: the amounts from a pod's spec, the cards from what somebody wrote who may
 * (the Binding that the API server accepted; for pods bound by others, their record). Written from
 * what the other projects promise, not from the program, with which it shares no reader, no table
 * and no helper.
 */
#include "played.h"

/* Who asks how; a node serves some of them. */
enum tongue {
    GPUSHARE, TENCENT, HAMI, PARADIGM, VVGPU, VOLCANO, ELASTIC, ELASTIC_COM, NANO_IO, NANO,
    NVIDIA, /* pools of devices, whose cards kubelet picks */
    QGPU, KOORDINATOR, /* placed by their own schedulers */
    TONGUES
};

enum where {
    NOWHERE,   /* it holds nothing */
    PLACED,    /* on the cards that the record names */
    ANYWHERE,  /* a container is on cards that nobody has named: it may be each of them */
};

struct amounts {
    int64_t mib;
    int core; /* hundredths of a card */
    int slots;
};

#define POOLS 4

struct holding {
    enum where where;
    bool unreadable; /* what can be read of it is here; its node side makes of the rest what it will */
    struct amounts on[PLAYED_CARDS]; /* what it has there, or may have */
    struct amounts sum;              /* on one card, were all of it there */
    int cards;                       /* whole ones or shares, at most at once */
    int devices[POOLS];              /* NVIDIA */
};

/* False: no container of the pod names a resource of this tongue that the node reports. */
bool holders_read(const struct played_pod *pod, const struct played_node *node, enum tongue tongue,
                  const struct words *record, struct holding *ret);

/* The tongues of all resources that any of its containers names, as bits. */
unsigned holders_named(const struct played_pod *pod);

const char *holders_tongue(enum tongue tongue);
const char *holders_pool(int pool); /* the resource */
/* Nothing but count: who gets a device is kubelet's choice, or another scheduler's. */
bool holders_exclusive(enum tongue tongue);
char *holders_uuid(const struct played_node *node, int card);
