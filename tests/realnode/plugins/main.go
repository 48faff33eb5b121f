// SPDX-License-Identifier: Apache-2.0

// Stand-ins for the device plugins that gpuledger works with: they speak kubelet's device plugin API
// as the real ones do and find out whose Allocate call it is as the real ones do, but their cards are
// made up. Each file says which source it follows. What a card is shows in the container's
// environment and nowhere else.
//
//	plugins --kind gpushare --node NAME --kubeconfig FILE --cards 16,16 [--client-rate unlimited]
//
// SIGHUP: the file named by --unhealthy is read again; it lists numbers of cards.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const kubeletDir = "/var/lib/kubelet/device-plugins/"

// What all kinds share: the node, its cards, and the way to the API server.
type host struct {
	node    string
	release string
	cards   []int64 // in the unit of the kind
	options map[string]string
	api     *client

	mutex     sync.Mutex
	unhealthy map[int]bool
	changed   []func()
	calls     *json.Encoder
}

func (h *host) uuid(card int) string {
	return "GPU-" + h.node + "-" + strconv.Itoa(card)
}

func (h *host) healthy(card int) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return !h.unhealthy[card]
}

// Written down for the judge, which learns from kubelet's checkpoint for whom a call really was.
func (h *host) record(entry map[string]any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	entry["time"] = float64(time.Now().UnixNano()) / 1e9
	h.calls.Encode(entry)
}

func (h *host) readUnhealthy(path string) {
	text, err := os.ReadFile(path)
	found := map[int]bool{}
	if err == nil {
		for _, field := range strings.Fields(string(text)) {
			if card, err := strconv.Atoi(field); err == nil {
				found[card] = true
			}
		}
	}
	h.mutex.Lock()
	h.unhealthy = found
	changed := h.changed
	h.mutex.Unlock()
	for _, tell := range changed {
		tell()
	}
}

// The resources that each kind registers; a constructor may write to the API server first.
var kinds = map[string]func(*host) []resource{
	"gpushare":     newGpushare,
	"gpu-manager":  newGpuManager,
	"hami":         newHami,
	"volcano":      newVolcano,
	"volcano-vgpu": newVolcanoVgpu,
	"nvidia":       newNvidia,
}

func main() {
	kind := flag.String("kind", "", "which plugin to be")
	node := flag.String("node", "", "name of the Node")
	kubeconfig := flag.String("kubeconfig", "", "server, CA and token, as JSON")
	cards := flag.String("cards", "16,16", "size of each card, in the plugin's unit")
	release := flag.String("release", "", "which version of the plugin to be, where they differ")
	rate := flag.String("client-rate", "default", "default: as client-go's, 5 a second, burst 10; unlimited")
	unhealthy := flag.String("unhealthy", "/nonexistent", "file with the numbers of unhealthy cards")
	calls := flag.String("calls", "/dev/null", "file to which each call is written, a line of JSON")
	options := flag.String("options", "", "KEY=VALUE,... of the kind")
	flag.Parse()
	log.SetFlags(log.Lmicroseconds)

	make, ok := kinds[*kind]
	if !ok || *node == "" {
		log.Fatalf("--kind and --node are needed; there is no kind %q", *kind)
	}
	output, err := os.OpenFile(*calls, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	h := &host{
		node:    *node,
		release: *release,
		api:     newClient(*kubeconfig, *rate != "unlimited"),
		calls:   json.NewEncoder(output),
		options: map[string]string{},
	}
	for _, size := range strings.Split(*cards, ",") {
		value, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			log.Fatalf("--cards: %v", err)
		}
		h.cards = append(h.cards, value)
	}
	for _, option := range strings.Split(*options, ",") {
		key, value, _ := strings.Cut(option, "=")
		h.options[key] = value
	}
	h.readUnhealthy(*unhealthy)
	for _, r := range make(h) {
		s := &server{host: h, resource: r}
		h.mutex.Lock()
		h.changed = append(h.changed, s.tell)
		h.mutex.Unlock()
		go s.run()
	}
	signals := signalChannel()
	for range signals {
		h.readUnhealthy(*unhealthy)
	}
}

// Until it is done: the Node may not be there yet.
func (h *host) insist(try func() error) {
	for count := 0; count < 60; count++ {
		err := try()
		if err == nil {
			return
		}
		log.Print(err)
		time.Sleep(500 * time.Millisecond)
	}
}

func signalChannel() chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals
}
