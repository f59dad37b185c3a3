// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// watchInterval is the interval between two looks of a watcher.
const watchInterval = 2 * time.Second

// A watcher looks at a site while the run lasts. It compares each look with the previous one.
type watcher struct {
	vms     map[string]string    // names of the VMs of the last look, by ID
	served  map[types.UID]bool   // clusters whose endpoint was seen at an edge gateway
	missing map[types.UID]string // endpoints that the last look did not find
}

// A loss is something that a watcher misses.
type loss struct {
	cluster string
	text    string
	about   string // the part of paths that names the object
}

func newWatcher() *watcher {
	return &watcher{
		vms:     map[string]string{},
		served:  map[types.UID]bool{},
		missing: map[types.UID]string{},
	}
}

// watch looks at a site until ctx ends.
func (w *world) watch(ctx context.Context, s *site) {
	watcher := newWatcher()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		state := s.State()
		machines := &infrav1.VCDMachineList{} // after the state: a Machine is deleted before its VM
		clusters := &infrav1.VCDClusterList{}
		if w.client.List(ctx, machines) != nil || w.client.List(ctx, clusters) != nil {
			continue // The API server is busy; the next look sees the same.
		}
		losses := watcher.look(&state, machines.Items, ofSite(clusters.Items, s.URL()))
		for _, l := range losses {
			w.judge.report(violation{
				At:      w.now(),
				Cluster: l.cluster,
				Text:    l.text,
				Calls:   lastCalls(s.Requests(), l.about),
			})
		}
	}
}

func ofSite(all []infrav1.VCDCluster, url string) []infrav1.VCDCluster {
	var out []infrav1.VCDCluster
	for i := range all {
		if all[i].Spec.Site == url {
			out = append(out, all[i])
		}
	}
	return out
}

// look compares a site with the objects that use it, and returns what was lost since the last look.
func (w *watcher) look(state *vcdsim.State, machines []infrav1.VCDMachine, clusters []infrav1.VCDCluster) []loss {
	var out []loss
	out = append(out, w.lostVMs(state, machines)...)
	out = append(out, w.lostEndpoints(state, clusters)...)
	return append(out, sharedAddresses(state)...)
}

// lostVMs returns the VMs that disappeared although their machine is not being deleted.
func (w *watcher) lostVMs(state *vcdsim.State, machines []infrav1.VCDMachine) []loss {
	now := map[string]string{}
	for i := range state.VMs {
		now[state.VMs[i].ID] = state.VMs[i].Name
	}
	var out []loss
	for id, name := range w.vms {
		if _, exists := now[id]; exists {
			continue
		}
		for i := range machines {
			m := &machines[i]
			if m.DeletionTimestamp.IsZero() && strings.HasSuffix(m.Spec.ProviderID, id) {
				out = append(out, loss{
					cluster: m.Labels[clusterv1.ClusterNameLabel],
					text:    fmt.Sprintf("VM %s (%s) is gone, and its machine is not being deleted", name, id),
					about:   id,
				})
			}
		}
	}
	w.vms = now
	return out
}

// lostEndpoints returns the endpoints at edge gateways that two looks in a row did not find.
func (w *watcher) lostEndpoints(state *vcdsim.State, clusters []infrav1.VCDCluster) []loss {
	addresses := virtualServices(state)
	var out []loss
	missing := map[types.UID]string{}
	for i := range clusters {
		c := &clusters[i]
		host := c.Spec.ControlPlaneEndpoint.Host
		isEdge := c.Spec.ControlPlaneLoadBalancer.Type == infrav1.EndpointEdgeGateway
		if !isEdge || host == "" || !c.DeletionTimestamp.IsZero() {
			continue
		}
		if _, exists := addresses[host]; exists {
			w.served[c.UID] = true
			continue
		}
		if !w.served[c.UID] {
			continue
		}
		missing[c.UID] = host
		if w.missing[c.UID] == host {
			out = append(out, loss{
				cluster: c.Name,
				text:    fmt.Sprintf("no virtual service has the endpoint %s anymore", host),
				about:   "/loadBalancer/virtualServices",
			})
		}
	}
	w.missing = missing
	return out
}

// virtualServices returns the virtual services of a site, by address.
func virtualServices(state *vcdsim.State) map[string]virtualService {
	out := map[string]virtualService{}
	for i := range state.Documents {
		d := &state.Documents[i]
		if !strings.HasSuffix(d.Path, "/loadBalancer/virtualServices") {
			continue
		}
		var service virtualService
		if json.Unmarshal(d.Body, &service) == nil {
			out[service.Address] = service
		}
	}
	return out
}

// A virtualService is the part of a virtual service that judges read.
type virtualService struct {
	Address string `json:"virtualIpAddress"`
	Pool    struct {
		ID string `json:"id"`
	} `json:"loadBalancerPoolRef"`
}

// sharedAddresses returns the addresses that several VMs have in one network.
func sharedAddresses(state *vcdsim.State) []loss {
	var out []loss
	owners := map[string]string{}
	for i := range state.VMs {
		vm := &state.VMs[i]
		for _, nic := range vm.NICs {
			if nic.Address == "" {
				continue
			}
			key := nic.Network + " " + nic.Address
			if other, used := owners[key]; used {
				out = append(out, loss{
					text:  fmt.Sprintf("VMs %s and %s both have address %s", other, vm.Name, nic.Address),
					about: vm.ID,
				})
			}
			owners[key] = vm.Name
		}
	}
	return out
}
