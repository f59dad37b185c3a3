// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kube-vip/kube-vip/pkg/bgp"
	"github.com/kube-vip/kube-vip/pkg/kubevip"
	"github.com/kube-vip/kube-vip/pkg/networkinterface"
	"github.com/kube-vip/kube-vip/pkg/vip"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rendered is the folder in which package kubevip keeps rendered manifests.
const rendered = "../../internal/kubevip/testdata"

// parse reads the settings of a rendered pod with kube-vip's own parser.
func parse(t *testing.T, name string) *kubevip.Config {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(rendered, name))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(raw, pod); err != nil {
		t.Fatal(err)
	}
	return parsePod(t, &pod.Spec)
}

// parseServices reads the settings of a rendered DaemonSet for Services with kube-vip's own parser.
func parseServices(t *testing.T, name string) *kubevip.Config {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(rendered, name))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		set := &appsv1.DaemonSet{}
		if err := yaml.Unmarshal([]byte(document), set); err != nil {
			t.Fatal(err)
		}
		if set.Kind == "DaemonSet" {
			return parsePod(t, &set.Spec.Template.Spec)
		}
	}
	t.Fatal("no DaemonSet in " + name)
	return nil
}

func parsePod(t *testing.T, pod *corev1.PodSpec) *kubevip.Config {
	t.Helper()
	for _, env := range pod.Containers[0].Env {
		if env.ValueFrom != nil {
			env.Value = "node-1"
		}
		if env.Name == "bgp_routerinterface" {
			env.Value = uplink(t)
		}
		t.Setenv(env.Name, env.Value)
	}
	config := &kubevip.Config{}
	if err := kubevip.ParseEnvironment(config); err != nil {
		t.Fatal(err)
	}
	return config
}

// uplink returns an interface with an address, in place of a node's interface.
func uplink(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, nic := range all {
		if addresses, err := nic.Addrs(); err == nil && nic.Flags&net.FlagLoopback == 0 && len(addresses) > 0 {
			return nic.Name
		}
	}
	t.Skip("no network interface except the loopback interface")
	return ""
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestKubeVIPReadsTheEndpointOfOneFamily(t *testing.T) {
	c := parse(t, "pod-arp.yaml")

	expect(t, "ARP, BGP", []bool{c.EnableARP, c.EnableBGP}, []bool{true, false})
	expect(t, "control plane, Services", []bool{c.EnableControlPlane, c.EnableServices}, []bool{true, false})
	expect(t, "address", c.Address, "192.168.100.200")
	expect(t, "port", c.Port, uint16(6443))
	expect(t, "lease", []int{c.LeaseDuration, c.RenewDeadline, c.RetryPeriod}, []int{15, 10, 2})
	expect(t, "node", c.NodeName, "node-1")
}

func TestKubeVIPReadsBothFamilies(t *testing.T) {
	c := parse(t, "pod-dual-stack.yaml")

	addresses := vip.Split(c.Address)
	expect(t, "addresses", addresses, []string{"fd00:100::c8", "192.168.100.200"})
	for i, bits := range []string{"128", "32"} {
		subnet, err := vip.SelectSubnet(addresses[i], c.VIPSubnet)
		expect(t, "error", err, nil)
		expect(t, "subnet of "+addresses[i], subnet, bits)
	}
}

func TestKubeVIPReadsPeers(t *testing.T) {
	c := parse(t, "pod-bgp.yaml")

	expect(t, "ARP, BGP", []bool{c.EnableARP, c.EnableBGP}, []bool{false, true})
	expect(t, "interface", c.Interface, "lo")
	expect(t, "AS", c.BGPConfig.AS, uint32(4200000001))
	expect(t, "source", c.BGPConfig.SourceIF, "ens224")
	if c.BGPConfig.RouterID == "" {
		t.Error("no router ID: the server would not start")
	}
	expect(t, "peers", c.BGPConfig.Peers, []bgp.Peer{
		{Address: "192.168.100.1", AS: 65000, Port: 179, Password: "s3cret!{x}"},
		{Address: "fd00:100::1", AS: 65001, Port: 179, MultiHop: true},
	})
}

func TestABGPServerStartsWithTheParsedConfiguration(t *testing.T) {
	c := parse(t, "pod-bgp.yaml")
	c.BGPConfig.RouterID = "192.0.2.7"

	server, err := bgp.NewBGPServer(&c.BGPConfig, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, address := range []string{"203.0.113.10/32", "2001:db8:1::10/128"} {
		expect(t, "announcing "+address, server.AddHost(address), nil)
	}
	expect(t, "stopping", server.Close(), nil)
}

func TestKubeVIPReadsDynamicDNS(t *testing.T) {
	c := parse(t, "pod-dynamic-dns.yaml")

	expect(t, "dynamic DNS", c.DDNS, true)
	expect(t, "address", c.Address, "api.demo.example.com")
	expect(t, "mode", c.DNSMode, "ipv4")
}

// The manager waits for the record because of this behavior. If a release can start without a record, this test fails
// and the wait can be removed.
func TestKubeVIPExitsIfADynamicNameDoesNotResolve(t *testing.T) {
	networks, err := vip.NewConfig("does-not-resolve.invalid", "lo", false, "32", true, 0, 0, 0, "ipv4", "", "", false,
		networkinterface.NewManager())
	if err != nil || len(networks) != 1 {
		t.Fatal(networks, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("it continues without an address")
		}
	}()

	_ = networks[0].SetMask("32")
}

func TestKubeVIPReadsServices(t *testing.T) {
	c := parseServices(t, "services.yaml")

	expect(t, "ARP, BGP", []bool{c.EnableARP, c.EnableBGP}, []bool{true, false})
	expect(t, "control plane, Services", []bool{c.EnableControlPlane, c.EnableServices}, []bool{false, true})
	expect(t, "an election for each Service", c.EnableServicesElection, false)
	expect(t, "lease", c.ServicesLeaseName, "plndr-svcs-lock")
	expect(t, "times", []int{c.LeaseDuration, c.RenewDeadline, c.RetryPeriod}, []int{15, 10, 2})
	expect(t, "only a class", c.LoadBalancerClassOnly, false)
	expect(t, "subnets", c.VIPSubnet, "32,128")
}

func TestKubeVIPReadsTheClassOfServices(t *testing.T) {
	c := parseServices(t, "services-class.yaml")

	expect(t, "only a class", c.LoadBalancerClassOnly, true)
	expect(t, "class", c.LoadBalancerClassName, "example.com/kube-vip")
	expect(t, "interface", c.Interface, "ens192")
}
