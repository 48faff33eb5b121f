/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which MIG profiles the containers of one pod get that ask for memory: they run on one node, so they
 * are chosen together, against what some node has. The smallest that are enough of which the node has
 * instances free; else the smallest of which it has instances at all, which are waited for.
 *
 * A profile is as large as its name says, 10gb being 10Gi: people write what they read.
 */
#include <gpuledger/ledger.h>

struct instance_wish {
    int64_t memory, slices; /* at least; memory 0: what follows is asked for by name */
    const char *resource;   /* the answer, of the ledger; or what is asked for by name */
    int64_t count;          /* of it; 1 for who asks for memory */
    bool init;              /* beside none but the sidecars, and gone before the others start */
};

/* Under the store's lock. False: no node has so many at once; `ret_largest`, if one wish is too large by
 * itself for any, is the largest there is ("none …" if none is), and `ret_which` that wish; else NULL. */
bool instances_choose(struct ledger *ledger, struct instance_wish *wishes, size_t n,
                      const char **ret_largest, size_t *ret_which);
