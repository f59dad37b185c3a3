// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestWhatTheOldCPIMadeIsAdopted replaces VMware's CPI 1.6.1 with our controller while objects of the former exist. The
// address stays, and nothing is left after the deletion of the Service.
func TestWhatTheOldCPIMadeIsAdopted(t *testing.T) {
	t.Parallel()
	for _, way := range ways() {
		t.Run("by gateway "+way, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "legacy"+way, fixtureOption{})
			g := NewWithT(t)
			v := w.vcd()
			g.Expect(w.controller.Stop()).To(Succeed())
			s := w.service(t, "web", by(way), ports(port("http", 80), port("https", 443)))
			svc, err := s.get()
			g.Expect(err).NotTo(HaveOccurred())
			old := oldCPI{
				admin:   v.admin(t),
				cluster: "cluster-legacy" + way,
				gateway: v.gateway(way),
				nodes:   v.machines()[:standing],
			}
			address := old.make(way, svc)
			svc.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
			g.Expect(w.client.Update(t.Context(), svc)).To(Succeed())
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
			g.Expect(w.client.Status().Update(t.Context(), svc)).To(Succeed())
			before := v.everything()
			g.Expect(v.left("")).NotTo(BeEmpty())

			g.Expect(w.controller.Start(t.Context())).To(Succeed())

			g.Expect(fmt.Sprint(s.served())).To(Equal("["+address+"]"), "the address stays")
			after := slices.DeleteFunc(v.everything(),
				func(name string) bool { return strings.HasPrefix(name, "IP set ") })
			g.Expect(after).To(HaveLen(len(before)), "what is there is used, nothing is made beside it; there was %v",
				before)

			t.Log("It is like any other from then on.")
			s.change(ports(port("http", 8080), port("https", 443)))
			g.Expect(fmt.Sprint(s.served())).To(Equal("[" + address + "]"))
			s.delete()
		})
	}
}

// gateway returns an edge gateway.
func (v *vcd) gateway(way string) vcdsim.EdgeGateway {
	return v.State().Model.Orgs[1].VDCs[0].EdgeGateways[slices.Index(ways(), way)]
}

// An oldCPI creates the objects of VMware's CPI 1.6.1, with its names.
type oldCPI struct {
	*admin

	cluster string
	gateway vcdsim.EdgeGateway
	nodes   []machine
}

func (o *oldCPI) make(way string, svc *corev1.Service) string {
	external := "100.64.1.40"
	inside := ""
	switch way {
	case oneArm:
		external = "100.64.11.40"
		inside = "192.168.8.7"
	case ipSpaces:
		external = "198.51.100.40"
		o.claim(external, fmt.Sprintf("cluster-%s-namespace-%s-service-%s", o.cluster, svc.Namespace, svc.Name))
	}
	for _, p := range svc.Spec.Ports {
		name := fmt.Sprintf("%s-%s-%s", svc.Name, o.cluster, p.Name)
		vip := external
		if inside != "" {
			vip = inside
			o.forward("ingress-vs-"+name, external, inside, p.Port)
		}
		o.balance(name, vip, p)
	}
	return external
}

func (o *oldCPI) ref() map[string]any {
	return map[string]any{"id": vcdsim.URN("gateway", o.gateway.ID), "name": o.gateway.Name}
}

// balance creates a pool and a virtual service.
func (o *oldCPI) balance(name, vip string, p corev1.ServicePort) {
	var members []any
	for _, n := range o.nodes {
		members = append(members,
			map[string]any{"ipAddress": n.Addresses[0].String(), "port": p.NodePort, "ratio": 1, "enabled": true})
	}
	o.must(http.MethodPost, poolsPath, map[string]any{
		"name":           "ingress-pool-" + name,
		"enabled":        true,
		"algorithm":      "ROUND_ROBIN",
		"defaultPort":    p.NodePort,
		"members":        members,
		"healthMonitors": []any{map[string]any{"type": "TCP"}},
		"gatewayRef":     o.ref(),
	})
	o.must(http.MethodPost, servicesPath, map[string]any{
		"name":                  "ingress-vs-" + name,
		"enabled":               true,
		"virtualIpAddress":      vip,
		"gatewayRef":            o.ref(),
		"loadBalancerPoolRef":   map[string]any{"id": o.find(poolsPath, "ingress-pool-"+name)},
		"serviceEngineGroupRef": o.engines(),
		"servicePorts": []any{map[string]any{
			"portStart":     p.Port,
			"tcpUdpProfile": map[string]any{"type": "TCP_PROXY"},
		}},
		"applicationProfile": map[string]any{"name": "System-L4-Application", "type": "L4", "systemDefined": true},
	})
}

// forward creates an application port profile and a DNAT rule.
func (o *oldCPI) forward(service, external, inside string, number int32) {
	port := strconv.Itoa(int(number))
	org := o.v.State().Model.Orgs[1]
	o.must(http.MethodPost, profilesPath, map[string]any{
		"name":             "appPort_dnat-" + service,
		"description":      "App Port Profile [" + port + "]",
		"scope":            "TENANT",
		"contextEntityId":  vcdsim.URN("vdc", org.VDCs[0].ID),
		"orgRef":           map[string]any{"id": vcdsim.URN("org", org.ID)},
		"applicationPorts": []any{map[string]any{"protocol": "TCP", "destinationPorts": []any{port}}},
	})
	o.must(http.MethodPost, strings.ReplaceAll(natPath, "{gateway}", vcdsim.URN("gateway", o.gateway.ID)),
		map[string]any{
			"name":                   "dnat-" + service,
			"enabled":                true,
			"ruleType":               "DNAT",
			"externalAddresses":      external,
			"internalAddresses":      inside,
			"dnatExternalPort":       port,
			"applicationPortProfile": map[string]any{"id": o.find(profilesPath, "appPort_dnat-"+service)},
		})
}

// claim allocates a floating IP and marks it.
func (o *oldCPI) claim(value, mark string) {
	space := o.v.State().Model.IPSpaces[0]
	path := "1.0.0/ipSpaces/" + vcdsim.URN("ipSpace", space.ID)
	o.must(http.MethodPost, path+"/allocate", map[string]any{"type": "FLOATING_IP", "quantity": 1, "value": value})
	for _, a := range o.v.State().Model.IPSpaces[0].Allocations {
		if a.Value == value {
			o.must(http.MethodPut, path+"/allocations/"+vcdsim.URN("ipSpaceIpAllocation", a.ID), map[string]any{
				"id":          vcdsim.URN("ipSpaceIpAllocation", a.ID),
				"type":        "FLOATING_IP",
				"value":       value,
				"usageState":  "USED_MANUAL",
				"description": mark,
			})
		}
	}
}

func (o *oldCPI) engines() any {
	for _, d := range o.v.State().Documents {
		if strings.HasSuffix(d.Path, "serviceEngineGroups/assignments") && d.Parent == o.gateway.ID {
			return decode[map[string]any](d)["serviceEngineGroupRef"]
		}
	}
	return nil
}

// find returns the ID of the object with a name.
func (o *oldCPI) find(kind, name string) string {
	for _, d := range o.v.State().Documents {
		if d.Path == kind && decode[struct{ Name string }](d).Name == name {
			return d.ID
		}
	}
	return ""
}
