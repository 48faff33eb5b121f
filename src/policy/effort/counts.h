/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What counts alone tell of a request for several shares: about as many steps as the node has cards and the
 * request shares, however they are made. Pure; for placement.c alone.
 */
#include "policy/obstacles.h"

/* There are fewer places than the request has shares of some size: no search would find a placement. */
bool counts_refuse(const struct situation *at);

/* Puts the shares side by side, card after card. False: that does not work, though another way might. */
bool counts_place(const struct situation *at, struct placement *placement);
