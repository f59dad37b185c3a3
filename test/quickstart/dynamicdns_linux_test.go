// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

// apiName is the DHCP reservation and the DNS record of the endpoint. The record has the address Before until DHCP
// assigns Address, because kube-vip starts only if the name resolves.
var apiName = hypervisor.Reservation{
	Client:  "api",
	Name:    "api.demo.example.com",
	Address: netip.MustParseAddr("192.168.100.210"),
	Before:  netip.MustParseAddr("192.168.100.240"),
}

// TestDynamicDNSOfRealNodes creates a cluster whose endpoint is a name. The control plane with kube-vip's lease
// requests the address from a DHCP server, which updates DNS. Then its VM is powered off, and another control plane
// requests the address.
func TestDynamicDNSOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) {
		o.controlPlanes = 3
		o.change = changeEach(withDynamicDNS)
		o.wrap = withEndpointInHosts
		o.prepare = func(q *quickstart) error {
			q.booted.hypervisor.Reserve(apiName)
			return nil
		}
	})
	s.run("the API server responds at its name, with the address from DHCP", (*realCluster).testEndpointName)
	s.run("the address fails over to another control plane", (*realCluster).testFailover)
	s.run("the name resolves to another control plane", (*realCluster).testEndpointName)
	s.deleteCluster()
}

// withDynamicDNS sets a name as the endpoint, with an address from DHCP.
func withDynamicDNS(o *unstructured.Unstructured) error {
	if o.GetKind() != "VCDCluster" {
		return nil
	}
	return errors.Join(
		unstructured.SetNestedField(o.Object, apiName.Name, "spec", "controlPlaneEndpoint", "host"),
		unstructured.SetNestedMap(o.Object, map[string]any{
			"type":    "KubeVIP",
			"kubeVIP": map[string]any{"addressSource": "DHCP"},
		}, "spec", "controlPlaneLoadBalancer"))
}

// withHosts runs a program with a separate /etc/hosts. That of the machine is unchanged.
const withHosts = `#!/bin/sh
exec unshare --mount sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' %q %q "$@"
`

// withEndpointInHosts wraps the manager so that it resolves the name of the endpoint, which is a preflight check of the
// manager. Other programs reach the API server through the proxy, which resolves the name.
func withEndpointInHosts(manager string) (string, error) {
	dir := filepath.Join(filepath.Dir(manager), "resolving")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	hosts := filepath.Join(dir, "hosts")
	wrapper := filepath.Join(dir, filepath.Base(manager))
	lines := fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", apiName.Before, apiName.Name)
	if err := os.WriteFile(hosts, []byte(lines), 0o600); err != nil {
		return "", err
	}
	return wrapper, os.WriteFile(wrapper, fmt.Appendf(nil, withHosts, hosts, manager), 0o700)
}

// testEndpointName checks that the API server responds at its name, that only the node with kube-vip's lease has the
// address from DHCP, and that nodes resolve the name with DNS.
func (s *realCluster) testEndpointName() {
	s.Expect(s.config().Host).To(Equal("https://" + apiName.Name + ":6443"))
	s.Eventually(s.vipHolder, nodeWithin, pollTest).ShouldNot(BeEmpty())
	holder := s.vipHolder()
	s.Expect(s.q.booted.hypervisor.Holder(apiName.Client)).To(Equal(strings.ToLower(s.vm(holder).NICs[0].MAC)))
	for _, m := range append(s.machines(true), s.machines(false)...) {
		if s.vm(m.Name).Status != vcdsim.PoweredOn {
			continue
		}
		s.Expect(s.inVM(m.Name, "getent", "ahostsv4", apiName.Name)).To(HavePrefix(apiName.Address.String()+" "), m.Name)
		cards := s.inVM(m.Name, "ip", "-brief", "-4", "address", "show", "ens192")
		s.Expect(cards).NotTo(ContainSubstring(apiName.Before.String()), m.Name)
		if m.Name == holder {
			s.Expect(cards).To(ContainSubstring(apiName.Address.String()+"/32"), m.Name)
		} else {
			s.Expect(cards).NotTo(ContainSubstring(apiName.Address.String()+"/32"), m.Name)
		}
	}
	s.Expect(s.inVM(s.worker(), "curl", "--insecure", "--silent", "https://"+apiName.Name+":6443/readyz")).To(Equal("ok"))
}
