/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What kubelet and the device plugins of each tongue do with a pod that is bound: they admit it, hand
 * out what its record says, and mark it. Each only as its project promises.
 */
#include "holders.h"

/* Admits the pod: its start time is set, the plugin takes it up and writes its mark. */
void kubelets_admit(struct played_pod *pod);
/* Whichever pod comes next: admitted, or running. False: there is none. */
bool kubelets_act(void);
