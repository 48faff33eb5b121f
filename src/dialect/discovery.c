/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/discovery.h"

#define MAJOR_MAX 9999
#define MINOR_MAX 99

/* -1: there is no such label, or it is no number. */
static int32_t read_number(const struct node_view *view, const char *label, guint64 max)
{
    const char *text = string_pairs_get(&view->labels, label);
    guint64 value;

    return text && g_ascii_string_to_unsigned(text, 10, 0, max, &value, NULL) ? (int32_t)value : -1;
}

/* The newer names first (NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md). */
static const char *const driver_labels[][3] = {
    {DISCOVERY_DRIVER, "nvidia.com/cuda.driver-version.minor",
     "nvidia.com/cuda.driver-version.revision"},
    {"nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"},
};

/* What is not told counts as the oldest there is. */
static int32_t read_driver(const struct node_view *view, const char *const labels[3])
{
    const int32_t major = read_number(view, labels[0], DRIVER_MAJOR_MAX);
    const int32_t minor = read_number(view, labels[1], DRIVER_MINOR_MAX);
    const int32_t revision = read_number(view, labels[2], DRIVER_REVISION_MAX);

    return major < 0 ? 0 : DRIVER_VERSION(major, MAX(minor, 0), minor < 0 ? 0 : MAX(revision, 0));
}

void discovery_apply(const struct node_view *view, struct topology *topology)
{
    const char *product = string_pairs_get(&view->labels, DISCOVERY_PRODUCT);
    const int32_t major = read_number(view, DISCOVERY_COMPUTE, MAJOR_MAX);
    const int32_t minor = read_number(view, "nvidia.com/gpu.compute.minor", MINOR_MAX);

    for (size_t i = 0; topology->driver == 0 && i < G_N_ELEMENTS(driver_labels); i++)
        topology->driver = read_driver(view, driver_labels[i]);
    if (topology->compute == 0 && major >= 0)
        topology->compute = 100 * major + MAX(minor, 0);
    for (int32_t i = 0; product && i < topology->n_cards; i++) {
        if (!topology->cards[i].model)
            topology->cards[i].model = topology_keep(topology, product);
    }
}
