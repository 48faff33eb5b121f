/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The variable of a container's environment by which these plugins start it without the library that holds it to
 * its part of a card: Project-HAMi/HAMi@v2.10.0:pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go
 * 866-883 if its value is true, 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/device-plugin/nvidiadevice/nvinternal/
 * plugin/server.go:381 and Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/plugin/server.go:473-485
 * whatever its value. They see the pod's spec, so neither ConfigMaps nor Secrets that the environment is from.
 */
#include <gpuledger/object.h>

#define HOOK_VARIABLE "CUDA_DISABLE_CONTROL"

/* What one variable says; NULL: it has no value of its own. */
enum hook_word hook_word_of(const char *name, const char *value);
