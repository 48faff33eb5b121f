// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// HAMi's plugin (v2.10) and Volcano's for vGPU (volcano-vgpu-device-plugin 0bd97d0), which have an
// ancestor in common: what each container is to get stands in an annotation of the pod, and is blanked
// container by container. HAMi's serves the pod that the lock on the Node names, Volcano's the one of
// the lowest time. Cards are in MiB.
type vgpu struct {
	*host
	mutex sync.Mutex

	prefix   string // of the pod's keys
	resource string
	promise  string
	lock     string // key on the Node; "" if it is not read
	words    string // by which it sees that something is left
	key      string // on the Node, for its cards
	text     func() string
}

const forever = "18446744073709551615"

// Into how many devices each card is cut.
const splits = 10

func newHami(h *host) []resource {
	v := &vgpu{host: h, prefix: "hami.io/", resource: "nvidia.com/gpu", promise: "hami.io/vgpu-devices-to-allocate",
		lock: "hami.io/mutex.lock", words: "NVIDIA"}
	v.key, v.text = "hami.io/node-nvidia-register", v.json
	return []resource{v}
}

func newVolcanoVgpu(h *host) []resource {
	v := &vgpu{host: h, prefix: "volcano.sh/", resource: "volcano.sh/vgpu-number",
		promise: "volcano.sh/devices-to-allocate", words: "GPU"}
	v.key, v.text = "volcano.sh/node-vgpu-register", v.fields
	return []resource{v}
}

// What is not true is left out.
func (v *vgpu) json() string {
	var cards []map[string]any
	for card, memory := range v.cards {
		entry := map[string]any{"id": v.uuid(card), "index": card, "count": splits, "devmem": memory,
			"devcore": 100, "type": "NVIDIA-Tesla T4", "mode": "hami-core"}
		if v.healthy(card) {
			entry["health"] = true
		}
		cards = append(cards, entry)
	}
	text, _ := json.Marshal(cards)
	return string(text)
}

func (v *vgpu) fields() string {
	text := ""
	for card, memory := range v.cards {
		text += fmt.Sprintf("%s,%d,%d,NVIDIA-Tesla T4,%t,hami-core:", v.uuid(card), splits, memory, v.healthy(card))
	}
	return text
}

// Cards are made known by an annotation, anew when their health has changed.
func (v *vgpu) registered() { v.report() }

func (v *vgpu) report() {
	body := annotations(map[string]any{v.key: v.text()})
	v.insist(func() error { return v.api.do("PATCH", "/api/v1/nodes/"+v.node, mergePatch, body, nil) })
}

func (v *vgpu) name() string { return v.resource }

func (v *vgpu) devices() []*pluginapi.Device {
	var found []*pluginapi.Device
	for card := range v.cards {
		health := pluginapi.Healthy
		if !v.healthy(card) {
			health = pluginapi.Unhealthy
		}
		for split := 0; split < splits; split++ {
			id := fmt.Sprintf("%s-%d", v.uuid(card), split)
			found = append(found, &pluginapi.Device{ID: id, Health: health})
		}
	}
	return found
}

func (v *vgpu) candidate() (*pod, error) {
	if v.lock != "" {
		node, err := v.api.getNode(v.node)
		if err != nil {
			return nil, err
		}
		if lock := strings.Split(node.Metadata.Annotations[v.lock], ","); len(lock) == 3 {
			return v.api.pod(lock[1], lock[2])
		}
	}
	pods, err := v.api.pods("spec.nodeName=" + v.node)
	if err != nil {
		return nil, err
	}
	var found *pod
	var best uint64
	for index := range pods {
		p := &pods[index]
		said := p.Metadata.Annotations
		phase := said[v.prefix+"bind-phase"]
		open := phase == "allocating" || (phase == "success" && v.lock != "")
		if p.Status.Phase != "Pending" || said[v.prefix+"vgpu-node"] != v.node || said[v.prefix+"bind-time"] == "" || !open {
			continue
		}
		moment, err := strconv.ParseUint(said[v.prefix+"vgpu-time"], 10, 64)
		if err != nil {
			moment = ^uint64(0)
		}
		if found == nil || (v.lock == "" && moment < best) {
			found, best = p, moment
		}
	}
	if found == nil {
		return nil, errors.New("no binding pod found on node " + v.node)
	}
	return found, nil
}

func (v *vgpu) allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	p, err := v.candidate()
	if err != nil {
		return nil, err
	}
	answer, left, err := v.serve(p, len(ids))
	if err == nil {
		err = v.api.annotate(p, map[string]any{v.promise: left})
	}
	if err != nil {
		v.conclude(p, "failed")
		return nil, err
	}
	if !strings.Contains(left, v.words) {
		v.conclude(p, "success")
	}
	return answer, nil
}

// The next container's devices, and the promise without them.
func (v *vgpu) serve(p *pod, count int) (*pluginapi.ContainerAllocateResponse, string, error) {
	segments := strings.Split(p.Metadata.Annotations[v.promise], ";")
	for position, segment := range segments {
		var uuids []string
		environment := map[string]string{}
		for _, piece := range strings.Split(segment, ":") {
			fields := strings.Split(piece, ",")
			if len(fields) < 2 {
				continue
			}
			if len(fields) < 4 {
				return nil, "", errors.New("pod annotation format error")
			}
			environment[fmt.Sprintf("CUDA_DEVICE_MEMORY_LIMIT_%d", len(uuids))] = fields[2] + "m"
			environment["CUDA_DEVICE_SM_LIMIT"] = fields[3]
			uuids = append(uuids, fields[0])
		}
		if len(uuids) == 0 {
			continue
		}
		if len(uuids) != count {
			return nil, "", errors.New("device number not matched")
		}
		environment["NVIDIA_VISIBLE_DEVICES"] = strings.Join(uuids, ",")
		segments[position] = ""
		return &pluginapi.ContainerAllocateResponse{Envs: environment}, strings.Join(segments, ";"), nil
	}
	return nil, "", errors.New("device request not found")
}

func (v *vgpu) conclude(p *pod, phase string) {
	marks := map[string]any{v.prefix + "bind-phase": phase}
	if v.lock == "" {
		marks[v.prefix+"vgpu-time"] = forever
	}
	v.api.annotate(p, marks)
	for try := 0; v.lock != "" && try < 5; try++ {
		node, err := v.api.getNode(v.node)
		suffix := "," + p.Metadata.Namespace + "," + p.Metadata.Name
		if err != nil || !strings.HasSuffix(node.Metadata.Annotations[v.lock], suffix) {
			return
		}
		body := map[string]any{"metadata": map[string]any{
			"annotations":     map[string]any{v.lock: nil},
			"resourceVersion": node.Metadata.ResourceVersion,
		}}
		err = v.api.do(http.MethodPatch, "/api/v1/nodes/"+v.node, mergePatch, body, nil)
		if !isConflict(err) {
			return
		}
	}
}
