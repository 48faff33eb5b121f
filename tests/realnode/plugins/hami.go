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

// Project-HAMi/HAMi@v2.10.0 (pkg/util/util.go, nvinternal/plugin/server.go) and
// Project-HAMi/volcano-vgpu-device-plugin@v1.12.0 (pkg/util/util.go, pkg/plugin/server.go), which have an
// ancestor in common: what each container is to get stands in an annotation of the pod, and is erased
// container by container. HAMi's serves the pod that the lock on the Node names, whatever it is, and else
// the first pending one of its node. Volcano's looks at the pods of the whole cluster in every phase,
// bound or not, and takes the one of the lowest time of those that were promised as many devices on this
// node. Cards are in MiB.
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
	var memory int64
	for _, size := range h.cards {
		memory += size
	}
	return []resource{v, &counted{"volcano.sh/vgpu-memory", memory}, &counted{"volcano.sh/vgpu-cores", int64(100 * len(h.cards))}}
}

// Volcano's plugin registers memory and compute, too, and hands out nothing for them.
type counted struct {
	resource string
	count    int64
}

func (c *counted) name() string { return c.resource }

func (c *counted) devices() []*pluginapi.Device { return numbered(c.resource, c.count) }

func (c *counted) allocate([]string) (*pluginapi.ContainerAllocateResponse, error) {
	return &pluginapi.ContainerAllocateResponse{}, nil
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

func (v *vgpu) candidate(count int) (*pod, error) {
	if v.lock == "" {
		return v.oldest(count)
	}
	node, err := v.api.getNode(v.node)
	if err != nil {
		return nil, err
	}
	if lock := strings.Split(node.Metadata.Annotations[v.lock], ","); len(lock) == 3 {
		return v.api.pod(lock[1], lock[2])
	} else if len(lock) != 1 {
		return nil, errors.New("malformed lock annotation")
	}
	pods, err := v.api.pods("spec.nodeName=" + v.node)
	if err != nil {
		return nil, err
	}
	for index := range pods {
		p := &pods[index]
		said := p.Metadata.Annotations
		phase := said[v.prefix+"bind-phase"]
		open := phase == "allocating" || phase == "success"
		if p.Status.Phase == "Pending" && said[v.prefix+"vgpu-node"] == v.node && said[v.prefix+"bind-time"] != "" && open {
			return p, nil
		}
	}
	return nil, errors.New("no binding pod found on node " + v.node)
}

// Among equal times the last of the list, if it is one of them, else the first.
func (v *vgpu) oldest(count int) (*pod, error) {
	pods, err := v.api.pods("")
	if err != nil {
		return nil, err
	}
	moment := func(p *pod) uint64 {
		value, err := strconv.ParseUint(p.Metadata.Annotations[v.prefix+"vgpu-time"], 10, 64)
		if err != nil {
			return ^uint64(0)
		}
		return value
	}
	var found []*pod
	for index := range pods {
		p := &pods[index]
		if p.Metadata.Annotations[v.prefix+"vgpu-node"] == v.node && v.promised(p) == count {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("cannot get valid pod")
	}
	oldest := found[len(found)-1]
	for _, p := range found {
		if moment(oldest) > moment(p) {
			oldest = p
		}
	}
	return oldest, nil
}

// How many devices the whole pod is still to get.
func (v *vgpu) promised(p *pod) int {
	count := 0
	for _, piece := range strings.FieldsFunc(p.Metadata.Annotations[v.promise], func(c rune) bool { return c == ';' || c == ':' }) {
		if strings.Contains(piece, ",") {
			count++
		}
	}
	return count
}

func (v *vgpu) allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	p, err := v.candidate(len(ids))
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
