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

// TestObjectsOfTheOldCPIAreAdopted replaces VMware's CPI 1.6.1, whose objects exist, with our controller. The address
// must not change, and the deletion of the Service must delete all objects.
func TestObjectsOfTheOldCPIAreAdopted(t *testing.T) {
	t.Parallel()
	for _, gateway := range gatewayNames() {
		t.Run("by gateway "+gateway, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "legacy"+gateway, fixtureOption{})
			g := NewWithT(t)
			v := w.vcd()
			g.Expect(w.controller.Stop()).To(Succeed())
			s := w.service(t, "web", by(gateway), ports(port("http", 80), port("https", 443)))
			svc, err := s.get()
			g.Expect(err).NotTo(HaveOccurred())
			old := oldCPI{
				admin:   v.admin(t),
				cluster: "cluster-legacy" + gateway,
				gateway: v.gateway(gateway),
				nodes:   v.machines()[:baseNodes],
			}
			address := old.create(gateway, svc)
			svc.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
			g.Expect(w.client.Update(t.Context(), svc)).To(Succeed())
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
			g.Expect(w.client.Status().Update(t.Context(), svc)).To(Succeed())
			before := v.everything()
			g.Expect(v.leftovers("")).NotTo(BeEmpty())

			g.Expect(w.controller.Start(t.Context())).To(Succeed())

			g.Expect(fmt.Sprint(s.awaitServed())).To(Equal("["+address+"]"), "the address should not change")
			after := slices.DeleteFunc(v.everything(),
				func(name string) bool { return strings.HasPrefix(name, "IP set ") })
			g.Expect(after).To(HaveLen(len(before)), "existing objects should be reused; they were %v",
				before)

			t.Log("The Service can be changed and deleted like any other.")
			s.change(ports(port("http", 8080), port("https", 443)))
			g.Expect(fmt.Sprint(s.awaitServed())).To(Equal("[" + address + "]"))
			s.delete()
		})
	}
}

// gateway returns an edge gateway.
func (v *vcd) gateway(gateway string) vcdsim.EdgeGateway {
	return v.State().Model.Orgs[1].VDCs[0].EdgeGateways[slices.Index(gatewayNames(), gateway)]
}

// An oldCPI creates the same objects, with the same names, as VMware's CPI 1.6.1.
type oldCPI struct {
	*admin

	cluster string
	gateway vcdsim.EdgeGateway
	nodes   []machine
}

// create creates the objects of a Service and returns its external address.
func (o *oldCPI) create(gateway string, svc *corev1.Service) string {
	external := "100.64.1.40"
	inside := ""
	switch gateway {
	case oneArm:
		external = "100.64.11.40"
		inside = "192.168.8.7"
	case ipSpaces:
		external = "198.51.100.40"
		o.claimFloatingIP(external, fmt.Sprintf("cluster-%s-namespace-%s-service-%s", o.cluster, svc.Namespace, svc.Name))
	}
	for _, p := range svc.Spec.Ports {
		name := fmt.Sprintf("%s-%s-%s", svc.Name, o.cluster, p.Name)
		vip := external
		if inside != "" {
			vip = inside
			o.createDNATRule("ingress-vs-"+name, external, inside, p.Port)
		}
		o.createVirtualService(name, vip, p)
	}
	return external
}

func (o *oldCPI) ref() map[string]any {
	return map[string]any{"id": vcdsim.URN("gateway", o.gateway.ID), "name": o.gateway.Name}
}

// createVirtualService creates a pool and a virtual service.
func (o *oldCPI) createVirtualService(name, vip string, p corev1.ServicePort) {
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

// createDNATRule creates an application port profile and a DNAT rule.
func (o *oldCPI) createDNATRule(service, external, inside string, number int32) {
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

// claimFloatingIP allocates a floating IP and sets its description to mark.
func (o *oldCPI) claimFloatingIP(value, mark string) {
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
