/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one error domain. A "no" of the domain (a pod that does not fit) is not an error but a
 * reason (reason.h); a GError means that something outside did not keep its contract: malformed
 * bytes, a refused call, a limit. Messages name the subject in quotes and are complete sentences
 * without a full stop, so that callers may prefix them (g_prefix_error).
 */
#include <gpuledger/names.h>
#include <glib.h>

#pragma GCC visibility push(default)

#define GPULEDGER_ERROR (gpuledger_error_quark())

enum gpuledger_error {
    GPULEDGER_ERROR_INVALID,     /* malformed: JSON, quantity, annotation, option */
    GPULEDGER_ERROR_RANGE,       /* well-formed, but outside what can be represented or is sane */
    GPULEDGER_ERROR_LIMIT,       /* larger than a declared maximum */
    GPULEDGER_ERROR_NOT_FOUND,   /* the object does not exist */
    GPULEDGER_ERROR_CONFLICT,    /* the object is in another state than assumed */
    GPULEDGER_ERROR_DENIED,      /* permissions; a credential command that fails */
    GPULEDGER_ERROR_UNAVAILABLE, /* not now; nothing was changed; trying again may work */
    GPULEDGER_ERROR_UNKNOWN, /* the outcome is not known: a change may or may not have happened */
    GPULEDGER_ERROR_IO,      /* local files, sockets */
    GPULEDGER_ERROR_CREDENTIALS, /* there are none, or the API server does not accept them */
};

GQuark gpuledger_error_quark(void);

#pragma GCC visibility pop
