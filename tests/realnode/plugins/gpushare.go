// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// AliyunContainerService/gpushare-device-plugin@45fb8b8, the last commit, unless --release is aff8a23 or
// 2656995: pkg/gpu/nvidia/allocate.go, podmanager.go, podutils.go, nvidia.go, server.go.
// The units of all cards are devices of one resource, and Allocate serves the pending pod of this
// node that was assumed first among those whose total is as many units.
type gpushare struct {
	*host
	mutex sync.Mutex
}

const (
	gpuMemory  = "aliyun.com/gpu-mem"
	gpuCount   = "aliyun.com/gpu-count"
	gpuIndex   = "ALIYUN_COM_GPU_MEM_IDX"
	assigned   = "ALIYUN_COM_GPU_MEM_ASSIGNED"
	assumeTime = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
	// What the real one looks for in an error's text.
	conflictText = "the object has been modified; please apply your changes to the latest version and try again"
)

func newGpushare(h *host) []resource { return []resource{&gpushare{host: h}} }

func (g *gpushare) name() string { return gpuMemory }

// Only the last release gives the index, and the only card of a node to whom it cannot tell.
func (g *gpushare) old() bool { return g.release == "aff8a23" || g.release == "2656995" }

// Every card counts as large as the first.
func (g *gpushare) devices() []*pluginapi.Device {
	var found []*pluginapi.Device
	for card := range g.cards {
		health := pluginapi.Healthy
		if !g.healthy(card) {
			health = pluginapi.Unhealthy
		}
		for unit := int64(0); unit < g.cards[0]; unit++ {
			id := fmt.Sprintf("%s-_-%d", g.uuid(card), unit)
			found = append(found, &pluginapi.Device{ID: id, Health: health})
		}
	}
	return found
}

// Before it registers: after a change a node has the new count with the old memory for a moment. Node
// status loses the count when the Node is created anew.
func (g *gpushare) prepare() {
	count := map[string]string{gpuCount: strconv.Itoa(len(g.cards))}
	status := map[string]any{"status": map[string]any{"capacity": count, "allocatable": count}}
	g.insist(func() error {
		return g.api.do("PATCH", "/api/v1/nodes/"+g.node+"/status", strategicPatch, status, nil)
	})
}

func podTotal(p *pod, resource string) int64 {
	var total int64
	for index := range p.Spec.Containers {
		total += p.Spec.Containers[index].limit(resource)
	}
	return total
}

func (g *gpushare) candidates() ([]pod, error) {
	var pods []pod
	var err error
	for try := 0; try < 3; try++ {
		pods, err = g.api.pods("spec.nodeName=" + g.node + ",status.phase=Pending")
		if err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	var found []pod
	for _, p := range pods {
		_, assumed := p.Metadata.Annotations[assumeTime]
		if assumed && p.Metadata.Annotations[assigned] == "false" && podTotal(&p, gpuMemory) > 0 {
			found = append(found, p)
		}
	}
	moment := func(p *pod) uint64 {
		value, _ := strconv.ParseUint(p.Metadata.Annotations[assumeTime], 10, 64)
		return value
	}
	sort.Slice(found, func(a, b int) bool { return moment(&found[a]) <= moment(&found[b]) })
	return found, err
}

func (g *gpushare) allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	amount := int64(len(ids))
	found, err := g.candidates()
	for index := range found {
		p := &found[index]
		if podTotal(p, gpuMemory) != amount {
			continue
		}
		card, bad := strconv.Atoi(p.Metadata.Annotations[gpuIndex])
		if bad != nil || card < 0 || card >= len(g.cards) {
			return g.refuse(amount, "index "+p.Metadata.Annotations[gpuIndex]), nil
		}
		if err := g.mark(p); err != nil {
			return g.refuse(amount, "mark: "+err.Error()), nil
		}
		return g.answer(card, amount, strconv.Itoa(card), p.Metadata.Name), nil
	}
	if err == nil && len(g.cards) == 1 && !g.old() {
		return g.answer(0, amount, g.uuid(0), ""), nil
	}
	return g.refuse(amount, fmt.Sprintf("no match among %d candidates, %v", len(found), err)), nil
}

// The call succeeds, and the container is what fails.
func (g *gpushare) refuse(amount int64, why string) *pluginapi.ContainerAllocateResponse {
	log.Printf("no card for %d units: %s", amount, why)
	answer := g.answer(-1, amount, fmt.Sprintf("no-gpu-has-%dGiB-to-run", amount), "")
	return answer
}

func (g *gpushare) answer(card int, amount int64, visible, matched string) *pluginapi.ContainerAllocateResponse {
	if card >= 0 && g.old() {
		visible = g.uuid(card)
	}
	units := strconv.FormatInt(amount, 10)
	g.record(map[string]any{"call": "match", "pod": matched, "card": card, "amount": amount})
	return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{
		"NVIDIA_VISIBLE_DEVICES":       visible,
		gpuIndex:                       strconv.Itoa(card),
		"ALIYUN_COM_GPU_MEM_POD":       units,
		"ALIYUN_COM_GPU_MEM_CONTAINER": units,
		"ALIYUN_COM_GPU_MEM_DEV":       strconv.FormatInt(g.cards[0], 10),
	}}
}

func (g *gpushare) mark(p *pod) error {
	err := g.write(p)
	if err != nil && strings.Contains(err.Error(), conflictText) {
		fresh, failed := g.api.pod(p.Metadata.Namespace, p.Metadata.Name)
		if failed != nil {
			return failed
		}
		err = g.write(fresh)
	}
	return err
}

// Old releases write the whole pod back.
func (g *gpushare) write(p *pod) error {
	marks := map[string]any{assigned: "true", assumeTime: strconv.FormatInt(time.Now().UnixNano(), 10)}
	if !g.old() {
		return g.api.annotate(p, marks)
	}
	return g.api.replace(p, marks)
}
