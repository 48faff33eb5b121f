/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cluster saved in a file: what `kubectl get nodes,pods,configmaps -A -o json` (or -o yaml)
 * writes, a plain NodeList or PodList, a single object, or any number of YAML documents of these.
 * JSON is read object by object, YAML as a whole. Objects of other kinds are passed over.
 */
#include "store/store.h"
#include "json/json.h"

/* Called with each Node, Pod and ConfigMap, borrowed for the call. */
typedef bool (*snapshot_visit)(enum feed feed, const cJSON *object, void *data, GError **error);

/* The error names the file. */
bool snapshot_file_read(const char *file, snapshot_visit visit, void *data, GError **error);

/* Writes a List of these JSON texts (char *), one on a line; the file is replaced as a whole or
 * not at all. */
bool snapshot_file_write(const char *file, const GPtrArray *objects, GError **error);
