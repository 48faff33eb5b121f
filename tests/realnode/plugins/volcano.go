// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// volcano-sh/devices@95b591b6, pkg/plugin/nvidia: memory (share) unless the option strategy=number. Of
// the pending pods of this node it takes the one of the oldest predicate time that has a container of
// that size, and marks the whole pod; if there is none, Allocate fails.
type volcano struct {
	*host
	mutex sync.Mutex
}

const (
	volcanoMemory   = "volcano.sh/gpu-memory"
	volcanoNumber   = "volcano.sh/gpu-number"
	volcanoIndex    = "volcano.sh/gpu-index"
	volcanoTime     = "volcano.sh/predicate-time"
	volcanoAssigned = "volcano.sh/gpu-assigned"
	admissionError  = "UnexpectedAdmissionError"
)

func newVolcano(h *host) []resource { return []resource{&volcano{host: h}} }

func (v *volcano) byNumber() bool { return v.options["strategy"] == "number" }

func (v *volcano) name() string {
	if v.byNumber() {
		return volcanoNumber
	}
	return volcanoMemory
}

func (v *volcano) devices() []*pluginapi.Device {
	var found []*pluginapi.Device
	for card := range v.cards {
		size := v.cards[0] // every card counts as large as the first
		if v.byNumber() {
			size = 1
		}
		for unit := int64(0); unit < size; unit++ {
			id := fmt.Sprintf("%s-_-%d", v.uuid(card), unit)
			health := pluginapi.Healthy
			if !v.healthy(card) {
				health = pluginapi.Unhealthy
			}
			found = append(found, &pluginapi.Device{ID: id, Health: health})
		}
	}
	return found
}

// Node status has the number of cards, which the scheduler divides by.
func (v *volcano) registered() {
	if v.byNumber() {
		return
	}
	count := map[string]string{volcanoNumber: strconv.Itoa(len(v.cards))}
	status := map[string]any{"status": map[string]any{"capacity": count, "allocatable": count}}
	v.insist(func() error {
		return v.api.do("PATCH", "/api/v1/nodes/"+v.node+"/status", strategicPatch, status, nil)
	})
}

// By number, comma-separated.
func (v *volcano) report() {
	var ill []string
	for card := range v.cards {
		if !v.healthy(card) {
			ill = append(ill, strconv.Itoa(card))
		}
	}
	body := annotations(map[string]any{"volcano.sh/gpu-unhealthy-ids": strings.Join(ill, ",")})
	v.insist(func() error { return v.api.do("PATCH", "/api/v1/nodes/"+v.node, mergePatch, body, nil) })
}

func (v *volcano) allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	pods, err := v.pending()
	if err != nil {
		return nil, err
	}
	amount := int64(len(ids))
	moment := func(p *pod) uint64 {
		value, err := strconv.ParseUint(p.Metadata.Annotations[volcanoTime], 10, 64)
		if err != nil {
			return ^uint64(0)
		}
		return value
	}
	sort.Slice(pods, func(a, b int) bool { return moment(&pods[a]) < moment(&pods[b]) })
	for index := range pods {
		p := &pods[index]
		mark, marked := p.Metadata.Annotations[volcanoAssigned]
		if (marked && mark != "false") || p.Metadata.Deleted != nil || p.Status.Reason == admissionError {
			continue
		}
		for each := range p.Spec.Containers {
			if p.Spec.Containers[each].limit(v.name()) == amount {
				return v.serve(p, amount)
			}
		}
	}
	return nil, errors.New("no pod on this node asks for so much")
}

// It goes on asking for 10 s.
func (v *volcano) pending() ([]pod, error) {
	var pods []pod
	var err error
	for try := 0; try < 10; try++ {
		if pods, err = v.api.pods("spec.nodeName=" + v.node + ",status.phase=Pending"); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	return pods, err
}

// Reads the pod again and writes it back as a whole; a conflict is an error like others.
func (v *volcano) mark(p *pod) error {
	fresh, err := v.api.pod(p.Metadata.Namespace, p.Metadata.Name)
	if err != nil {
		return err
	}
	return v.api.replace(fresh, map[string]any{volcanoAssigned: "true"})
}

func (v *volcano) serve(p *pod, amount int64) (*pluginapi.ContainerAllocateResponse, error) {
	text := p.Metadata.Annotations[volcanoIndex]
	var visible []string
	for _, field := range strings.Split(text, ",") {
		card, err := strconv.Atoi(field)
		if err != nil || card < 0 || card >= len(v.cards) {
			return nil, fmt.Errorf("no card %q", text)
		}
		visible = append(visible, strconv.Itoa(card))
	}
	if err := v.mark(p); err != nil {
		return nil, err
	}
	return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{
		"NVIDIA_VISIBLE_DEVICES":   strings.Join(visible, ","),
		"VOLCANO_GPU_ALLOCATED":    strconv.FormatInt(amount, 10),
		"VOLCANO_GPU_MEMORY_TOTAL": strconv.FormatInt(v.cards[0], 10),
	}}, nil
}
