// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// The collections of the JSON API that a load balancer is made in.
const (
	servicesPath = "1.0.0/loadBalancer/virtualServices"
	poolsPath    = "1.0.0/loadBalancer/pools"
	setsPath     = "1.0.0/firewallGroups"
)

// TestTheContract runs the contract of backends on a simulated VCD.
func TestTheContract(t *testing.T) {
	for name, gateway := range map[string]vcdconfig.Gateway{
		"on the address":  network("", "nodes"),
		"in one-arm mode": oneArm(),
	} {
		t.Run(name, func(t *testing.T) {
			cpitest.Run(t, func(t *testing.T) cpitest.Cloud {
				t.Helper()
				return newContractSite(t).cloud(t, gateway)
			})
		})
	}
}

// A contractSite is a simulated VCD with a vApp of three VMs.
type contractSite struct {
	sim    *vcdsim.Simulator
	before int // objects of load balancers that others have
}

const contractVApp = "acme-vdc-vapp-000"

func newContractSite(t *testing.T) *contractSite {
	t.Helper()
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: 3}
	s := &contractSite{sim: vcdsimtest.Start(t, vcdsim.Config{Model: model})}
	s.before = s.left()
	return s
}

func (s *contractSite) cloud(t *testing.T, gateway vcdconfig.Gateway) cpitest.Cloud {
	t.Helper()
	machines := map[string]string{}
	for _, vm := range s.sim.State().VMs {
		if strings.HasPrefix(vm.Name, contractVApp) {
			machines[vm.Name] = vm.NICs[0].Address
		}
	}
	return cpitest.Cloud{
		Start:    func(p cpitest.Process) cpi.Backend { return s.backend(t, p, gateway) },
		Machines: machines,
		PowerOff: func(name string) { s.sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM(name)) }) },
		Remove:   func(name string) { s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM(name)) }) },
		SetAway: func(away bool) {
			s.sim.Faults().Clear()
			if away {
				s.sim.Faults().Add(vcdsim.Fault{Status: 503})
			}
		},
		Balancers: &cpitest.Balancers{
			Refused:  func(s *corev1.Service) { s.Spec.LoadBalancerIP = "9.9.9.9" },
			Break:    s.deleteServices,
			Standing: s.standing,
			Left:     func() int { return s.left() - s.before },
			Writes:   func() int { return writes(s.sim) },
		},
	}
}

// backend returns the backend of a new process: with a session and caches of its own.
func (s *contractSite) backend(t *testing.T, p cpitest.Process, gateway vcdconfig.Gateway) cpi.Backend {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{TaskPoll: 2 * time.Millisecond, RequestsPerSecond: 10000, Burst: 10000})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	sessions := cpivcd.NewSessions(pool, vcd.Config{Site: s.sim.URL(), Org: "acme", CABundle: s.sim.CA()},
		func() (vcd.Credentials, string, error) {
			return vcd.Credentials{Username: "ccm", Password: "password"}, "1", nil
		})
	gateways := []vcdconfig.Gateway{gateway}
	return cpi.Backend{
		Name:     cpivcd.ProviderName,
		Explain:  cpivcd.Explain("vcd"),
		Services: (&cpivcd.Dialect{Gateways: gateways}).Defaults(p.Cluster, false, false),
		Machines: cpivcd.NewMachines(cpivcd.MachineOptions{
			Session:   sessions.Session,
			ClusterID: "c1",
			VDCs:      []string{"acme-vdc"},
			VApps:     []string{contractVApp},
			Clock:     p.Clock,
			Nodes:     func() cpivcd.Nodes { return nodesOf(p.Nodes) },
		}),
		Balancer: cpivcd.NewBalancer(cpivcd.BalancerOptions{
			Session:   sessions.Session,
			Driver:    edge.New(sessions.Session, edge.Options{MaxAge: time.Millisecond}),
			ClusterID: p.Cluster,
			VDCs:      []string{"acme-vdc"},
			Gateways:  gateways,
		}),
	}
}

func nodesOf(lister corelisters.NodeLister) cpivcd.Nodes {
	var out cpivcd.Nodes
	all, _ := lister.List(labels.Everything())
	for _, node := range all {
		if node.Spec.ProviderID == "" {
			out.Nameless = append(out.Nameless, node.Name)
		} else {
			out.ProviderIDs = append(out.ProviderIDs, node.Spec.ProviderID)
		}
	}
	return out
}

// in returns the documents of some collections.
func in(documents []vcdsim.Document, paths ...string) []vcdsim.Document {
	return slices.DeleteFunc(slices.Clone(documents),
		func(d vcdsim.Document) bool { return !slices.Contains(paths, d.Path) })
}

func (s *contractSite) left() int {
	return len(in(s.sim.State().Documents, servicesPath, poolsPath, setsPath))
}

// deleteServices deletes all virtual services, as a person may.
func (s *contractSite) deleteServices() {
	services := in(s.sim.State().Documents, servicesPath)
	s.sim.Edit(func(e *vcdsim.Editor) {
		for _, d := range services {
			e.DeleteDocument(d.ID)
		}
	})
}

func (s *contractSite) standing() map[string]string {
	type ref struct{ ID string }
	type body struct {
		VirtualIPAddress string
		ServicePorts     []struct{ PortStart int }
		PoolRef          ref `json:"loadBalancerPoolRef"`
		MemberGroupRef   ref
		Members          []struct{ IPAddress string }
		IPAddresses      []string

		ExternalAddresses, InternalAddresses, DNATExternalPort string
	}
	documents := s.sim.State().Documents
	byID := map[string]body{}
	inside := map[string]string{}
	for _, d := range documents {
		var b body
		if json.Unmarshal(d.Body, &b) != nil {
			continue
		}
		byID[d.ID] = b
		if b.DNATExternalPort != "" {
			inside[b.InternalAddresses+":"+b.DNATExternalPort] = b.ExternalAddresses + ":" + b.DNATExternalPort
		}
	}
	out := map[string]string{}
	for _, d := range in(documents, servicesPath) {
		service := byID[d.ID]
		pool := byID[service.PoolRef.ID]
		members := slices.Clone(byID[pool.MemberGroupRef.ID].IPAddresses)
		for _, m := range pool.Members {
			members = append(members, m.IPAddress)
		}
		slices.Sort(members)
		front := fmt.Sprintf("%s:%d", service.VirtualIPAddress, service.ServicePorts[0].PortStart)
		if outside := inside[front]; outside != "" {
			front = outside
		}
		out[front] = strings.Join(members, " ")
	}
	return out
}
