/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What GPU Feature Discovery says of a node in its labels, for dialects whose node side says none of
 * it. Source:
 * NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md
 */
#include <gpuledger/ledger.h>
#include <gpuledger/object.h>

#define DISCOVERY_PRODUCT "nvidia.com/gpu.product"
#define DISCOVERY_COMPUTE "nvidia.com/gpu.compute.major"
#define DISCOVERY_DRIVER "nvidia.com/cuda.driver-version.major"

/* Fills in compute capability, driver and the cards' models where the topology has none. Pure. */
void discovery_apply(const struct node_view *view, struct topology *topology);
