// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// tkestack/gpu-manager@8cd842e, pkg/services/allocator/nvidia/allocator.go: it picks the card by an order
// of its own and then compares it with the pod's annotation. Cards are in blocks of 256 MiB. Whom an Allocate was for it guesses; before the
// container starts it learns that from kubelet's checkpoint, and fails the pod if the guess was wrong.
type gpuManager struct {
	*host
	mutex sync.Mutex
	free  []share
	held  map[string]map[int]holding // by the pod's uid and the container's index
	// Of which one container was served and another was not. It comes first, also when it has ended.
	unfinished *pod
}

type share struct{ core, blocks int64 }

type holding struct {
	core, blocks int64
	cards        []int
}

const (
	vcudaCore     = "tencent.com/vcuda-core"
	vcudaMemory   = "tencent.com/vcuda-memory"
	predicateTime = "tencent.com/predicate-time"
	predicateIdx  = "tencent.com/predicate-gpu-idx-"
	gpuAssigned   = "tencent.com/gpu-assigned"
	preStartError = "PreStartContainerCheckErr"
)

func newGpuManager(h *host) []resource {
	m := &gpuManager{host: h, held: map[string]map[int]holding{}}
	for _, blocks := range h.cards {
		m.free = append(m.free, share{100, blocks})
	}
	m.restore()
	return []resource{m, &vcudaBlocks{h}}
}

// Its memory resource hands out nothing.
type vcudaBlocks struct{ *host }

func (b *vcudaBlocks) name() string { return vcudaMemory }

func (b *vcudaBlocks) devices() []*pluginapi.Device {
	var total int64
	for _, blocks := range b.cards {
		total += blocks
	}
	return numbered(vcudaMemory+"-268435456", total)
}

func (b *vcudaBlocks) allocate([]string) (*pluginapi.ContainerAllocateResponse, error) {
	return &pluginapi.ContainerAllocateResponse{}, nil
}

func numbered(prefix string, count int64) []*pluginapi.Device {
	var found []*pluginapi.Device
	for n := int64(0); n < count; n++ {
		id := fmt.Sprintf("%s-%d", prefix, n)
		found = append(found, &pluginapi.Device{ID: id, Health: pluginapi.Healthy})
	}
	return found
}

func (m *gpuManager) name() string { return vcudaCore }

func (m *gpuManager) devices() []*pluginapi.Device {
	return numbered(vcudaCore, int64(100*len(m.cards)))
}

func amountsOf(c *container) (int64, int64) { return c.limit(vcudaCore), c.limit(vcudaMemory) }

func needsCard(core, blocks int64) bool { return core > 0 && (core >= 100 || blocks > 0) }

// What it holds survives its restart in a file.

func (m *gpuManager) file() string { return kubeletDir + "../gpu-manager.checkpoint" }

func (m *gpuManager) save() {
	plain := map[string]map[int][]int64{}
	for uid, containers := range m.held {
		plain[uid] = map[int][]int64{}
		for index, h := range containers {
			row := []int64{h.core, h.blocks}
			for _, card := range h.cards {
				row = append(row, int64(card))
			}
			plain[uid][index] = row
		}
	}
	text, _ := json.Marshal(plain)
	os.WriteFile(m.file(), text, 0o600)
}

func (m *gpuManager) restore() {
	text, err := os.ReadFile(m.file())
	if err != nil {
		return
	}
	var plain map[string]map[int][]int64
	json.Unmarshal(text, &plain)
	for uid, containers := range plain {
		for index, row := range containers {
			h := holding{core: row[0], blocks: row[1]}
			for _, card := range row[2:] {
				h.cards = append(h.cards, int(card))
			}
			m.take(uid, index, h)
		}
	}
}

func (m *gpuManager) take(uid string, index int, h holding) {
	for _, card := range h.cards {
		if h.core >= 100 {
			m.free[card] = share{}
		} else {
			m.free[card].core -= h.core
			m.free[card].blocks -= h.blocks
		}
	}
	if m.held[uid] == nil {
		m.held[uid] = map[int]holding{}
	}
	m.held[uid][index] = h
}

func (m *gpuManager) release(uid string) {
	for _, h := range m.held[uid] {
		for _, card := range h.cards {
			if h.core >= 100 {
				m.free[card] = share{100, m.cards[card]}
			} else {
				m.free[card].core += h.core
				m.free[card].blocks += h.blocks
			}
		}
	}
	delete(m.held, uid)
}

// Of pods that are over, or are being deleted and have no container that runs.
func (m *gpuManager) recycle(pods []pod) {
	active := map[string]bool{}
	for index := range pods {
		p := &pods[index]
		running := false
		for _, status := range p.Status.ContainerStatuses {
			running = running || status.State.Running != nil
		}
		over := p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded"
		active[p.Metadata.UID] = !over && (p.Metadata.Deleted == nil || running)
	}
	for uid := range m.held {
		if !active[uid] {
			m.release(uid)
		}
	}
}

// The indices of containers that nothing was handed out for.
func (m *gpuManager) open(p *pod) []int {
	var found []int
	for index := range p.Spec.Containers {
		core, blocks := amountsOf(&p.Spec.Containers[index])
		if _, done := m.held[p.Metadata.UID][index]; !done && needsCard(core, blocks) {
			found = append(found, index)
		}
	}
	return found
}

func (m *gpuManager) match(pods []pod, core int64) (*pod, int, error) {
	if p := m.unfinished; p != nil {
		if len(m.held[p.Metadata.UID]) == 0 {
			return nil, 0, fmt.Errorf("failed to find pod in cache")
		}
		index := m.open(p)[0]
		if p.Spec.Containers[index].limit(vcudaCore) != core {
			return nil, 0, fmt.Errorf("allocation request mismatch")
		}
		return p, index, nil
	}
	moment := func(p *pod) uint64 {
		text, there := p.Metadata.Annotations[predicateTime]
		if !there {
			return uint64(p.Metadata.Created.UnixNano())
		}
		value, _ := strconv.ParseUint(text, 10, 64)
		return value
	}
	sort.SliceStable(pods, func(a, b int) bool { return moment(&pods[a]) < moment(&pods[b]) })
	for each := range pods {
		p := &pods[each]
		mark, marked := p.Metadata.Annotations[gpuAssigned]
		failed := p.Status.Reason == admissionError || p.Status.Reason == preStartError
		if (marked && mark != "false") || failed {
			continue
		}
		for _, index := range m.open(p) {
			if p.Spec.Containers[index].limit(vcudaCore) == core {
				return p, index, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("unable to get candidate pod")
}

// Least compute left, least memory left, lowest number.
func (m *gpuManager) pick(core, blocks int64) []int {
	var order []int
	for card := range m.cards {
		order = append(order, card)
	}
	sort.SliceStable(order, func(a, b int) bool {
		x, y := m.free[order[a]], m.free[order[b]]
		return x.core < y.core || (x.core == y.core && x.blocks < y.blocks)
	})
	var whole []int
	for _, card := range order {
		free := m.free[card]
		if core < 100 && free.core >= core && free.blocks >= blocks {
			return []int{card}
		}
		if free.core == 100 {
			whole = append(whole, card)
		}
	}
	if count := int(core / 100); core >= 100 && len(whole) >= count {
		sort.Ints(whole)
		return whole[:count]
	}
	return nil
}

func (m *gpuManager) allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	defer m.save()
	core := int64(len(ids))
	known, err := m.api.pods("spec.nodeName=" + m.node)
	if err != nil {
		return nil, err
	}
	var pending []pod
	for _, p := range known {
		if p.Status.Phase == "Pending" {
			pending = append(pending, p)
		}
	}
	p, index, err := m.match(pending, core)
	if err != nil {
		return nil, err
	}
	m.recycle(known)
	_, blocks := amountsOf(&p.Spec.Containers[index])
	if core > 100 && core%100 != 0 {
		return nil, fmt.Errorf("must be multiple of 100")
	}
	cards := m.pick(core, blocks)
	if cards == nil {
		return nil, fmt.Errorf("no free node")
	}
	_, timed := p.Metadata.Annotations[predicateTime]
	mark, marked := p.Metadata.Annotations[gpuAssigned]
	predicted := timed && marked && mark != "true" && core > 0 && blocks > 0
	said := p.Metadata.Annotations[predicateIdx+strconv.Itoa(index)]
	if predicted && core < 100 && said != strconv.Itoa(cards[0]) {
		return nil, fmt.Errorf("Nvidia node mismatch for pod %s, pick up:/dev/nvidia%d predicate: /dev/nvidia%s",
			p.Metadata.Name, cards[0], said)
	}
	m.take(p.Metadata.UID, index, holding{core, blocks, cards})
	m.unfinished = nil
	if len(m.open(p)) > 0 {
		m.unfinished = p
	}
	if !predicted {
		marks := m.indices(p.Metadata.UID)
		marks[gpuAssigned] = "false"
		m.api.annotate(p, marks)
	}
	var uuids, paths []string
	for _, card := range cards {
		uuids = append(uuids, m.uuid(card))
		paths = append(paths, fmt.Sprintf("/dev/nvidia%d", card))
	}
	return &pluginapi.ContainerAllocateResponse{
		Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(uuids, ",")},
		Annotations: map[string]string{
			"tencent.com/vcuda-device": strings.Join(paths, ","),
		},
	}, nil
}

func (m *gpuManager) indices(uid string) map[string]any {
	found := map[string]any{}
	for index, h := range m.held[uid] {
		var cards []string
		for _, card := range h.cards {
			cards = append(cards, strconv.Itoa(card))
		}
		found[predicateIdx+strconv.Itoa(index)] = strings.Join(cards, ",")
	}
	return found
}

// Now kubelet says whose devices these are.
func (m *gpuManager) preStart(ids []string) error {
	uid, name, err := ownerOf(vcudaCore, ids)
	if err != nil {
		return err
	}
	known, err := m.api.pods("spec.nodeName=" + m.node)
	if err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for each := range known {
		p := &known[each]
		if p.Metadata.UID != uid {
			continue
		}
		for index := range p.Spec.Containers {
			if p.Spec.Containers[index].Name != name {
				continue
			}
			core, blocks := amountsOf(&p.Spec.Containers[index])
			kept, there := m.held[uid][index]
			if !there || kept.core != core || kept.blocks != blocks {
				m.release(uid)
				status := map[string]any{"phase": "Failed", "reason": preStartError,
					"message": "the containers of another pod were allocated"}
				m.api.do("PATCH", p.path()+"/status", strategicPatch, map[string]any{"status": status}, nil)
				return fmt.Errorf("PreStartContainer check failed")
			}
			marks := m.indices(uid)
			marks[gpuAssigned] = "true"
			return m.api.annotate(p, marks)
		}
	}
	return fmt.Errorf("failed to get pod from cache")
}

// The pod's uid and the container's name to which kubelet's device manager gave these devices.
func ownerOf(resource string, ids []string) (string, string, error) {
	text, err := os.ReadFile(kubeletDir + "kubelet_internal_checkpoint")
	if err != nil {
		return "", "", err
	}
	var checkpoint struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID        string
				ContainerName string
				ResourceName  string
				DeviceIDs     map[string][]string
			}
		}
	}
	if err := json.Unmarshal(text, &checkpoint); err != nil {
		return "", "", err
	}
	wanted := map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	for _, entry := range checkpoint.Data.PodDeviceEntries {
		count, same := 0, entry.ResourceName == resource
		for _, devices := range entry.DeviceIDs {
			for _, id := range devices {
				same = same && wanted[id]
				count++
			}
		}
		if same && count == len(ids) {
			return entry.PodUID, entry.ContainerName, nil
		}
	}
	return "", "", fmt.Errorf("no container has these devices")
}
