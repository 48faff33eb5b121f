/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A Service of the cluster from outside, with nothing but kubectl: 'kubectl port-forward' as a child, and
 * the token and CA of the Secret of the same name (as 'gpuledger certs' makes it). One thread.
 */
#include <glib.h>
#include <stdbool.h>

struct forward {
    char *url;   /* https:// if there is a CA */
    char *token; /* these two NULL if the Secret was not asked for, or has none */
    char *ca;    /* PEM */
    GPid kubectl;
    int out; /* what kubectl prints, which somebody has to read; and complains about */
    int complaints;
};

/* `service` is "NAMESPACE/NAME". Without `secret` nobody reads the Secret. What kubectl complains about
 * before it forwards goes to standard error; what it says of single connections later, to nobody. Errors are GPULEDGER_ERROR_INVALID and _UNAVAILABLE. */
bool forward_open(struct forward *forward, const char *service, bool secret, GError **error);
/* Before each call: kubectl prints a line for each connection, and would wait for somebody to read it. */
void forward_drain(struct forward *forward);
/* Ends kubectl, and wipes the token. */
void forward_close(struct forward *forward);
