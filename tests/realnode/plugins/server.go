// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// One resource of a plugin, as kubelet's device manager sees it.
type resource interface {
	name() string
	devices() []*pluginapi.Device
	allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error)
}

// What a resource may do besides.
type (
	preferrer interface {
		prefer(available, must []string, size int) []string
	}
	prestarter interface{ preStart(ids []string) error }
	preparer   interface{ prepare() } // before it registers
	registrant interface{ registered() }
	reporter   interface{ report() } // when the health of cards has changed
)

type server struct {
	pluginapi.UnimplementedDevicePluginServer
	host     *host
	resource resource

	mutex   sync.Mutex
	streams map[chan struct{}]bool
}

func (s *server) socket() string {
	return "test-" + filepath.Base(s.resource.name()) + ".sock"
}

// Serves, registers, and does so again whenever kubelet has restarted: it empties the folder then.
// Its socket's inode may be used again, so it is known by its time.
func (s *server) run() {
	path := kubeletDir + s.socket()
	for {
		before := kubeletTime()
		os.Remove(path)
		listener, err := net.Listen("unix", path)
		if err != nil {
			log.Printf("%s: %v", s.resource.name(), err)
			time.Sleep(200 * time.Millisecond)
			continue
		}
		serving := grpc.NewServer()
		pluginapi.RegisterDevicePluginServer(serving, s)
		go serving.Serve(listener)
		if p, ok := s.resource.(preparer); ok {
			p.prepare()
		}
		err = s.register()
		if err != nil {
			log.Printf("%s: register: %v", s.resource.name(), err)
		} else {
			log.Printf("%s: registered", s.resource.name())
			if r, ok := s.resource.(registrant); ok {
				r.registered()
			}
			for kubeletTime() == before {
				if _, err := os.Stat(path); err != nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		serving.Stop()
		if err != nil {
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func kubeletTime() syscall.Timespec {
	var stat syscall.Stat_t
	if syscall.Stat(kubeletDir+"kubelet.sock", &stat) != nil {
		return syscall.Timespec{}
	}
	return stat.Ctim
}

func (s *server) register() error {
	connection, err := grpc.NewClient("unix://"+kubeletDir+"kubelet.sock",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	options, _ := s.GetDevicePluginOptions(context.Background(), nil)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(connection).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     s.socket(),
		ResourceName: s.resource.name(),
		Options:      options,
	})
	return err
}

// The devices have changed.
func (s *server) tell() {
	if r, ok := s.resource.(reporter); ok {
		r.report()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for stream := range s.streams {
		select {
		case stream <- struct{}{}:
		default:
		}
	}
}

func (s *server) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	_, prefers := s.resource.(preferrer)
	_, prestarts := s.resource.(prestarter)
	return &pluginapi.DevicePluginOptions{
		GetPreferredAllocationAvailable: prefers,
		PreStartRequired:                prestarts,
	}, nil
}

func (s *server) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	changed := make(chan struct{}, 1)
	s.mutex.Lock()
	if s.streams == nil {
		s.streams = map[chan struct{}]bool{}
	}
	s.streams[changed] = true
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		delete(s.streams, changed)
		s.mutex.Unlock()
	}()
	for {
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: s.resource.devices()}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (s *server) GetPreferredAllocation(_ context.Context, request *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, each := range request.ContainerRequests {
		ids := s.resource.(preferrer).prefer(each.AvailableDeviceIDs, each.MustIncludeDeviceIDs,
			int(each.AllocationSize))
		response.ContainerResponses = append(response.ContainerResponses,
			&pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return response, nil
}

func (s *server) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for _, each := range request.ContainerRequests {
		begun := time.Now()
		answer, err := s.resource.allocate(each.DevicesIds)
		entry := map[string]any{"call": "Allocate", "resource": s.resource.name(),
			"devices": each.DevicesIds, "seconds": time.Since(begun).Seconds()}
		if err != nil {
			entry["error"] = err.Error()
			s.host.record(entry)
			return nil, err
		}
		entry["environment"] = answer.Envs
		s.host.record(entry)
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

func (s *server) PreStartContainer(_ context.Context, request *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	err := s.resource.(prestarter).preStart(request.DevicesIds)
	if err != nil {
		s.host.record(map[string]any{"call": "PreStartContainer", "resource": s.resource.name(),
			"devices": request.DevicesIds, "error": err.Error()})
	}
	return &pluginapi.PreStartContainerResponse{}, err
}
