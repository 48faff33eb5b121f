// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// NVIDIA/k8s-device-plugin@v0.20.0: internal/rm, internal/lm, api/config/v1. It knows of no scheduler:
// kubelet picks the devices, after asking which it would prefer. Options: replicas=N (time-slicing),
// strategy=mps, strict=yes (failRequestsGreaterThanOne, which holds for MPS, too, only if it is said),
// mig=PROFILE:COUNT+PROFILE:COUNT for the last card (mixed strategy).
type nvidia struct {
	*host
	resource string
	physical []string // ids of cards or MIG instances
	replicas int
}

func newNvidia(h *host) []resource {
	replicas, _ := strconv.Atoi(h.options["replicas"])
	whole := len(h.cards)
	var found []resource
	labels := map[string]any{}
	if mig := h.options["mig"]; mig != "" {
		whole--
		for _, part := range strings.Split(mig, "+") {
			profile, count, _ := strings.Cut(part, ":")
			number, _ := strconv.Atoi(count)
			r := &nvidia{host: h, resource: "nvidia.com/mig-" + profile, replicas: 1}
			for instance := 0; instance < number; instance++ {
				r.physical = append(r.physical, fmt.Sprintf("MIG-%s-%s-%d", h.node, profile, instance))
			}
			found = append(found, r)
			labels["nvidia.com/mig-"+profile+".count"] = count
			labels["nvidia.com/mig-"+profile+".product"] = "NVIDIA-A100-SXM4-40GB-MIG-" + profile
		}
		labels["nvidia.com/mig.strategy"] = "mixed"
	}
	gpu := &nvidia{host: h, resource: "nvidia.com/gpu", replicas: max(replicas, 1)}
	for card := 0; card < whole; card++ {
		gpu.physical = append(gpu.physical, h.uuid(card))
	}
	labels["nvidia.com/gpu.count"] = strconv.Itoa(len(h.cards)) // cards in MIG mode are in it
	labels["nvidia.com/gpu.replicas"] = strconv.Itoa(gpu.replicas)
	labels["nvidia.com/gpu.memory"] = strconv.FormatInt(h.cards[0], 10)
	labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB"
	labels["nvidia.com/gpu.sharing-strategy"] = "none"
	if gpu.replicas > 1 {
		labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB-SHARED"
		labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing"
		if h.options["strategy"] == "mps" {
			labels["nvidia.com/gpu.sharing-strategy"] = "mps"
		}
	}
	// What GPU Feature Discovery does beside the plugin.
	body := map[string]any{"metadata": map[string]any{"labels": labels}}
	h.insist(func() error { return h.api.do("PATCH", "/api/v1/nodes/"+h.node, mergePatch, body, nil) })
	return append(found, gpu)
}

func (n *nvidia) name() string { return n.resource }

func (n *nvidia) devices() []*pluginapi.Device {
	var found []*pluginapi.Device
	for index, id := range n.physical {
		health := pluginapi.Healthy
		if strings.HasPrefix(id, "GPU-") && !n.healthy(index) {
			health = pluginapi.Unhealthy
		}
		for replica := 0; replica < n.replicas; replica++ {
			name := id
			if n.replicas > 1 {
				name = fmt.Sprintf("%s::%d", id, replica)
			}
			found = append(found, &pluginapi.Device{ID: name, Health: health})
		}
	}
	return found
}

func physicalOf(id string) string {
	card, _, _ := strings.Cut(id, "::")
	return card
}

// "distributed": a replica of the device of which the fewest are taken.
func (n *nvidia) prefer(available, must []string, size int) []string {
	chosen := append([]string(nil), must...)
	free := map[string]bool{}
	for _, id := range available {
		free[id] = true
	}
	for _, id := range must {
		delete(free, id)
	}
	for len(chosen) < size && len(free) > 0 {
		left := map[string]int{}
		var ids []string
		for id := range free {
			left[physicalOf(id)]++
			ids = append(ids, id)
		}
		sort.Slice(ids, func(a, b int) bool {
			x, y := left[physicalOf(ids[a])], left[physicalOf(ids[b])]
			return x > y || (x == y && ids[a] < ids[b])
		})
		chosen = append(chosen, ids[0])
		delete(free, ids[0])
	}
	return chosen
}

func (n *nvidia) allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	if n.options["strict"] == "yes" && n.replicas > 1 && len(ids) > 1 {
		return nil, fmt.Errorf("maximum request size for shared resources is 1; found %d", len(ids))
	}
	seen := map[string]bool{}
	var visible []string
	for _, id := range ids {
		if card := physicalOf(id); !seen[card] {
			seen[card] = true
			visible = append(visible, card)
		}
	}
	sort.Strings(visible)
	return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{
		"NVIDIA_VISIBLE_DEVICES": strings.Join(visible, ","),
	}}, nil
}
