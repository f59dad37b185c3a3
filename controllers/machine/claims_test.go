// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// dualStack returns a tenant whose network "nodes" also has an IPv6 subnet.
func dualStack() vcdsim.Model {
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].Networks[0].Second = &vcdsim.SecondSubnet{Gateway: netip.MustParsePrefix("fd00:100::1/64")}
	return model
}

// fromPools returns a machine whose NICs claim addresses, each NIC from its own list of pools.
func fromPools(nics ...[]*controllertest.Pool) func(*infrav1.VCDMachine) {
	return func(m *infrav1.VCDMachine) {
		for i, pools := range nics {
			nic := infrav1.NetworkSpec{Name: []string{"nodes", "storage"}[i], AddressSource: infrav1.AddressIPAM}
			for _, pool := range pools {
				nic.PoolRefs = append(nic.PoolRefs, pool.IPPoolReference)
			}
			m.Spec.Networks = append(m.Spec.Networks, nic)
		}
	}
}

func v4Pool(n int) *controllertest.Pool {
	return controllertest.NewPool("v4", 24, "192.168.100.1", controllertest.Range("192.168.100.20", n)...)
}

func v6Pool(n int) *controllertest.Pool {
	return controllertest.NewPool("v6", 64, "fd00:100::1", controllertest.Range("fd00:100::20", n)...)
}

// withPools returns an environment in which pools assign addresses between reconciles.
func withPools(t *testing.T, model vcdsim.Model, pools []*controllertest.Pool, objects ...client.Object) *controllertest.Env {
	t.Helper()
	for _, pool := range pools {
		objects = append(objects, pool.Object())
	}
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model}, objects...)
	w.Between = func() {
		for _, pool := range pools {
			w.Expect(pool.Serve(w.Ctx, w.Client)).To(Succeed())
		}
	}
	return w
}

// remainingClaims returns the number of remaining claims and addresses.
func remainingClaims(w *controllertest.Env) (claims, addresses int) {
	w.Between()
	c := &ipamv1.IPAddressClaimList{}
	a := &ipamv1.IPAddressList{}
	w.Expect(w.Client.List(w.Ctx, c)).To(Succeed())
	w.Expect(w.Client.List(w.Ctx, a)).To(Succeed())
	return len(c.Items), len(a.Items)
}

func expectNothingClaimed(w *controllertest.Env) {
	claims, addresses := remainingClaims(w)
	w.Expect([]int{claims, addresses}).To(Equal([]int{0, 0}))
}

// guestOf reads the guest data of a VM as its cloud-init would.
func guestOf(w *controllertest.Env, vm *vcdsim.VM, prefix int) guest.Identity {
	nics := make([]guest.NIC, 0, len(vm.NICs))
	for _, nic := range vm.NICs {
		n := guest.NIC{MAC: nic.MAC, Network: nic.Network, Mode: guest.Mode(nic.Mode)}
		n.Address, _ = netip.ParsePrefix(fmt.Sprintf("%s/%d", nic.Address, prefix))
		n.Secondary, _ = netip.ParsePrefix(nic.Secondary + "/64")
		nics = append(nics, n)
	}
	id, err := guest.Read(vm.ExtraConfig, nics, guest.Machine{})
	w.Expect(err).NotTo(HaveOccurred())
	return id
}

// metadataOf returns the guest metadata of a VM as JSON.
func metadataOf(w *controllertest.Env, vm *vcdsim.VM) string {
	packed, err := base64.StdEncoding.DecodeString(vm.ExtraConfig["guestinfo.metadata"])
	w.Expect(err).NotTo(HaveOccurred())
	r, err := gzip.NewReader(bytes.NewReader(packed))
	w.Expect(err).NotTo(HaveOccurred())
	plain, err := io.ReadAll(r)
	w.Expect(err).NotTo(HaveOccurred())
	return string(plain)
}

func TestAddressesOfBothFamiliesComeFromPools(t *testing.T) {
	v4 := v4Pool(1)
	v6 := v6Pool(1)
	pools := []*controllertest.Pool{v6, v4}
	w := withPools(t, dualStack(), pools, controllertest.NewMachine("cp-0", fromPools(pools))...)

	w.Ready("cp-0")

	vm := w.Sim.State().VMs[0]
	w.Expect(vm.NICs).To(ConsistOf(And(HaveField("Mode", "MANUAL"), HaveField("Address", "192.168.100.20"),
		HaveField("SecondaryMode", "MANUAL"), HaveField("Secondary", "fd00:100::20"))))
	m := w.VCDMachine("cp-0")
	w.Expect(m.Status.Addresses).To(ContainElements(
		clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "192.168.100.20"},
		clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "fd00:100::20"}))
	w.Expect(conditions.IsTrue(m, infrav1.AddressesClaimedCondition)).To(BeTrue())
	w.ExpectSettled("cp-0")
	w.DeleteMachine("cp-0")
	expectNothingClaimed(w)
}

func TestTheGuestReceivesThePoolSettings(t *testing.T) {
	v4 := controllertest.NewPool("v4", 24, "192.168.100.254", "192.168.100.20")
	storage := controllertest.NewPool("storage", 24, "", "10.20.0.200")
	w := withPools(t, vcdsim.K8sTenant(), []*controllertest.Pool{v4, storage}, controllertest.NewMachine("cp-0",
		fromPools([]*controllertest.Pool{v4}, []*controllertest.Pool{storage}), func(m *infrav1.VCDMachine) {
			m.Spec.Networks[1].Routes = []infrav1.RouteSpec{{To: "172.16.0.0/12", Via: "10.20.0.9", Metric: 7}}
			m.Spec.Networks[0].GatewayMetric = 50
		})...)
	w.Ready("cp-0")

	id := guestOf(w, &w.Sim.State().VMs[0], 24)

	w.Expect(id.Address().String()).To(Equal("192.168.100.20"))
	network := metadataOf(w, &w.Sim.State().VMs[0])
	w.Expect(network).To(ContainSubstring(`"routes":[{"to":"0.0.0.0/0","via":"192.168.100.254","metric":50}]`))
	w.Expect(network).To(ContainSubstring(`"routes":[{"to":"172.16.0.0/12","via":"10.20.0.9","metric":7}]`))
	w.Expect(network).To(ContainSubstring(`"nameservers":{"addresses":["192.168.100.1"]`), "from the network")
}

func TestAMachineCanSpecifyItsAddresses(t *testing.T) {
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: dualStack()},
		controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
			m.Spec.Networks = []infrav1.NetworkSpec{{
				AddressSource: infrav1.AddressManual,
				Addresses:     []string{"192.168.100.120/24", "fd00:100::120/64"},
			}}
		})...)

	w.Ready("cp-0")

	w.Expect(w.Sim.State().VMs[0].NICs).To(ConsistOf(And(HaveField("Address", "192.168.100.120"),
		HaveField("Secondary", "fd00:100::120"))))
	w.DeleteMachine("cp-0")
}

func TestVCDPoolsGiveDualStackNodesBothFamilies(t *testing.T) {
	v6 := []vcdsim.Range{{From: netip.MustParseAddr("fd00:100::10"), To: netip.MustParseAddr("fd00:100::1f")}}
	for name, tt := range map[string]struct {
		pods []string
		pool []vcdsim.Range
		want string
	}{
		"a dual-stack cluster":                             {[]string{"100.96.0.0/11", "fd6a::/48"}, v6, "fd00:100::10"},
		"an IPv4-only cluster":                             {[]string{"100.96.0.0/11"}, v6, ""},
		"an IPv6 subnet in which VCD assigns no addresses": {[]string{"100.96.0.0/11", "fd6a::/48"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			model := dualStack()
			model.Orgs[1].VDCs[0].Networks[0].Second.StaticPool = tt.pool
			w := withPools(t, model, nil, controllertest.NewMachine("cp-0")...)
			owner := controllertest.NewCAPICluster()
			w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
			owner.Spec.ClusterNetwork.Pods.CIDRBlocks = tt.pods
			w.Expect(w.Client.Update(w.Ctx, owner)).To(Succeed())

			w.Ready("cp-0")

			vm := w.Sim.State().VMs[0]
			w.Expect(vm.NICs).To(ConsistOf(And(HaveField("Address", "192.168.100.10"), HaveField("Secondary", tt.want))))
			if tt.want != "" {
				w.Expect(metadataOf(w, &vm)).To(And(ContainSubstring(`"192.168.100.10/24"`), ContainSubstring(`"fd00:100::10/64"`),
					ContainSubstring(`"via":"fd00:100::1"`)))
				w.Expect(w.VCDMachine("cp-0").Status.Addresses).To(ContainElement(
					clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: tt.want}))
			}
			w.ExpectSettled("cp-0")
		})
	}
}

func TestAMachineWithoutNameserversCausesAWarning(t *testing.T) {
	for name, tt := range map[string]struct {
		dns    []netip.Addr
		nic    infrav1.NetworkSpec
		warned bool
	}{
		"the network has no nameserver": {nil, infrav1.NetworkSpec{AddressSource: infrav1.AddressStaticPool}, true},
		"the network has a nameserver":  {[]netip.Addr{netip.MustParseAddr("192.168.100.1")}, infrav1.NetworkSpec{}, false},
		"the NIC has a nameserver":      {nil, infrav1.NetworkSpec{Nameservers: []string{"192.168.100.2"}}, false},
		"a DHCP server may provide it":  {nil, infrav1.NetworkSpec{AddressSource: infrav1.AddressDHCP}, false},
	} {
		t.Run(name, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			model.Orgs[1].VDCs[0].Networks[0].DNS = tt.dns
			w := withPools(t, model, nil, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
				m.Spec.Networks = []infrav1.NetworkSpec{tt.nic}
			})...)

			w.Ready()
			want := infrav1.ReadyReason
			if tt.warned {
				want = infrav1.NoNameserversReason
			}
			w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, want)
			c := conditions.Get(w.VCDMachine("cp-0"), infrav1.PlacementReadyCondition)
			w.Expect(c.Status).To(Equal(metav1.ConditionTrue))
			w.Ready("cp-0")
			_, err := w.ReconcileMachine("cp-0")
			w.Expect(err).NotTo(HaveOccurred())
			events := w.EventTexts()
			w.ExpectSettled("cp-0")
			if !tt.warned {
				w.Expect(c.Message).To(BeEmpty())
				w.Expect(events).NotTo(ContainElement(ContainSubstring(infrav1.NoNameserversReason)))
				return
			}
			w.Expect(c.Message).To(Equal("The guest has no DNS servers: set the DNS servers of network nodes in VCD, or nameservers in spec.networks of the VCDMachineTemplate"))
			w.Expect(events).To(ContainElement(And(ContainSubstring("Warning"), ContainSubstring(c.Message))))
			w.Expect(w.EventTexts()).To(BeEmpty(), "once")
		})
	}
}

func TestUnusableAddressesAreReportedBeforeTheVMIsCreated(t *testing.T) {
	pool := func(prefix int32, gateway string, address string) *controllertest.Pool {
		return controllertest.NewPool("v4", prefix, gateway, address)
	}
	for name, tt := range map[string]struct {
		pools  []*controllertest.Pool
		reason string
		words  string
	}{
		"outside the network": {
			pools:  []*controllertest.Pool{pool(24, "", "10.9.9.9")},
			reason: infrav1.AddressInvalidReason,
			words:  "is in no subnet of network nodes",
		},
		"of a family without a subnet in the network": {
			pools:  []*controllertest.Pool{v6Pool(1)},
			reason: infrav1.AddressInvalidReason,
			words:  "is in no subnet of network nodes",
		},
		"two of one family": {
			pools:  []*controllertest.Pool{v4Pool(1), controllertest.NewPool("more", 0, "", "192.168.100.30")},
			reason: infrav1.AddressInvalidReason,
			words:  "same family",
		},
		"with another prefix": {
			pools:  []*controllertest.Pool{pool(16, "", "192.168.100.20")},
			reason: infrav1.AddressInvalidReason,
			words:  "prefix length 16",
		},
		"with a gateway outside the subnet": {
			pools:  []*controllertest.Pool{pool(24, "10.0.0.1", "192.168.100.20")},
			reason: infrav1.AddressInvalidReason,
			words:  "gateway 10.0.0.1",
		},
		"of the gateway": {
			pools:  []*controllertest.Pool{pool(24, "", "192.168.100.1")},
			reason: infrav1.AddressInvalidReason,
			words:  "of the gateway",
		},
		"in a DHCP range": {
			pools:  []*controllertest.Pool{pool(24, "", "192.168.100.160")},
			reason: infrav1.AddressInvalidReason,
			words:  "DHCP range",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withPools(t, vcdsim.K8sTenant(), tt.pools, controllertest.NewMachine("cp-0", fromPools(tt.pools))...)
			w.Ready()

			w.EventuallyMachine("cp-0", infrav1.AddressesClaimedCondition, tt.reason)

			message := conditions.Get(w.VCDMachine("cp-0"), infrav1.AddressesClaimedCondition).Message
			w.Expect(message).To(And(ContainSubstring(tt.words),
				ContainSubstring("then delete IPAddressClaim cp-0-0-")))
			w.Expect(w.Sim.State().VMs).To(BeEmpty())
			tt.pools[len(tt.pools)-1].Addresses = []string{"192.168.100.40"}
			tt.pools[len(tt.pools)-1].Gateway = ""
			tt.pools[len(tt.pools)-1].Prefix = 24
			if len(tt.pools) > 1 {
				w.DeleteMachine("cp-0")
				expectNothingClaimed(w)
				return
			}
			claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("cp-0-0-0")}
			w.Expect(w.Client.Delete(w.Ctx, claim)).To(Succeed())
			w.Ready("cp-0")
			w.Expect(w.Sim.State().VMs[0].NICs[0].Address).To(Equal("192.168.100.40"), "it recovered")
		})
	}
}

func TestAMachineWaitsForItsPool(t *testing.T) {
	pool := v4Pool(1)
	w := withPools(t, vcdsim.K8sTenant(), nil, controllertest.NewMachine("cp-0",
		fromPools([]*controllertest.Pool{pool}))...)
	w.Ready()

	w.EventuallyMachine("cp-0", infrav1.AddressesClaimedCondition, infrav1.PoolNotFoundReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.AddressesClaimedCondition)).To(Equal(
		"spec.networks[0].poolRefs[0] refers to ExamplePool v4, which does not exist: create it, or correct the name"))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	w.Expect(w.Client.Create(w.Ctx, pool.Object())).To(Succeed())
	w.Between = func() { w.Expect(pool.Serve(w.Ctx, w.Client)).To(Succeed()) }
	w.Ready("cp-0")
	w.Expect(w.Sim.State().VMs[0].NICs[0].Address).To(Equal("192.168.100.20"))
}

func TestAmbiguousNICsAreReportedBeforeTheVMIsCreated(t *testing.T) {
	first := v4Pool(1)
	second := controllertest.NewPool("more", 24, "", "192.168.100.30")
	pools := []*controllertest.Pool{first, second}
	w := withPools(t, vcdsim.K8sTenant(), pools, controllertest.NewMachine("cp-0",
		fromPools([]*controllertest.Pool{first}, []*controllertest.Pool{second}), func(m *infrav1.VCDMachine) {
			m.Spec.Networks[1].Name = "nodes"
		})...)
	w.Ready()

	w.EventuallyMachine("cp-0", infrav1.AddressesClaimedCondition, infrav1.AddressInvalidReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.AddressesClaimedCondition)).To(And(
		ContainSubstring("192.168.100.30, from IPAddressClaim cp-0-1-0"), ContainSubstring("together with NIC 0"),
		ContainSubstring("then delete IPAddressClaim cp-0-1-0")))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	w.DeleteMachine("cp-0")
	expectNothingClaimed(w)
}

func TestAnAddressInUseInVCDIsNotAssignedToAVM(t *testing.T) {
	pool := v4Pool(1)
	other := func(m *infrav1.VCDMachine) {
		m.Spec.Networks = []infrav1.NetworkSpec{
			{AddressSource: infrav1.AddressManual, Addresses: []string{"192.168.100.20/24"}},
		}
	}
	w := withPools(t, vcdsim.K8sTenant(), []*controllertest.Pool{pool},
		append(controllertest.NewMachine("other", other),
			controllertest.NewMachine("cp-0", fromPools([]*controllertest.Pool{pool}))...)...)
	w.Ready("other")
	writes := w.Writes()

	w.EventuallyMachine("cp-0", infrav1.AddressesClaimedCondition, infrav1.AddressInUseReason)

	message := conditions.Get(w.VCDMachine("cp-0"), infrav1.AddressesClaimedCondition).Message
	w.Expect(message).To(
		Equal("192.168.100.20, from IPAddressClaim cp-0-0-0, is used by other in network nodes: free it in VCD, or correct ExamplePool v4, then delete IPAddressClaim cp-0-0-0"))
	w.Expect(w.Writes()).To(Equal(writes))
	w.DeleteMachine("other")
	w.Ready("cp-0")
}

func TestAVirtualIPIsNotReportedAsANodeAddress(t *testing.T) {
	for holder, address := range map[string]string{"VCDCluster vc1": controllertest.VIP, "VCDCluster vc2": "192.168.100.20"} {
		t.Run(holder, func(t *testing.T) {
			pool := controllertest.NewPool("v4", 24, "192.168.100.1", address, "192.168.100.30")
			w := withPools(t, vcdsim.K8sTenant(), []*controllertest.Pool{pool},
				controllertest.NewMachine("cp-0", fromPools([]*controllertest.Pool{pool}))...)
			w.Ready()
			addNeighbor(w, "vc2", "192.168.100.20")
			writes := w.Writes()

			w.EventuallyMachine("cp-0", infrav1.AddressesClaimedCondition, infrav1.AddressInUseReason)

			w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.AddressesClaimedCondition)).To(Equal(
				address + ", from IPAddressClaim cp-0-0-0, is the virtual IP of " + holder + ": correct ExamplePool v4, then delete IPAddressClaim cp-0-0-0"))
			w.Expect(w.Writes()).To(Equal(writes))
			pool.Addresses = pool.Addresses[1:]
			claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("cp-0-0-0")}
			w.Expect(w.Client.Delete(w.Ctx, claim)).To(Succeed())
			w.Ready("cp-0")
		})
	}
}

// addNeighbor adds another cluster to the network of the first.
func addNeighbor(w *controllertest.Env, name, virtualIP string) {
	other := controllertest.NewVCDCluster(w.Sim)
	other.ObjectMeta = controllertest.Meta(name)
	other.Spec.RecordedState.OVDCNetworkID = w.VCDCluster().Spec.RecordedState.OVDCNetworkID
	other.Spec.ControlPlaneEndpoint.Host = virtualIP
	w.Expect(w.Client.Create(w.Ctx, other)).To(Succeed())
}

func TestADeletedClaimIsReportedAndTheAddressKept(t *testing.T) {
	pool := v4Pool(1)
	w := withPools(t, vcdsim.K8sTenant(), []*controllertest.Pool{pool},
		controllertest.NewMachine("cp-0", fromPools([]*controllertest.Pool{pool}))...)
	w.Ready("cp-0")

	claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("cp-0-0-0")}
	w.Expect(w.Client.Delete(w.Ctx, claim)).To(Succeed())

	w.EventuallyMachine("cp-0", infrav1.AddressesReadyCondition, infrav1.AddressClaimLostReason)
	w.Expect(conditions.IsTrue(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue(), "its address is held")
	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.AddressesReadyCondition)).To(Equal(
		"IPAddressClaim cp-0-0-0 does not exist, but its IPAddress cp-0-0-0 is held until this VCDMachine is deleted"))
	claims, addresses := remainingClaims(w)
	w.Expect([]int{claims, addresses}).To(Equal([]int{0, 1}), "no other machine gets the address while the VM has it")
	w.DeleteMachine("cp-0")
	expectNothingClaimed(w)
}

func TestAMachineWithoutAVMReleasesItsAddresses(t *testing.T) {
	pools := []*controllertest.Pool{v4Pool(1), v6Pool(0)}
	w := withPools(t, dualStack(), pools, controllertest.NewMachine("cp-0", fromPools(pools))...)
	w.Ready()
	w.EventuallyMachine("cp-0", infrav1.AddressesClaimedCondition, infrav1.WaitingForIPAddressClaimReason)
	claims, addresses := remainingClaims(w)
	w.Expect([]int{claims, addresses}).To(Equal([]int{2, 1}), "one pool is exhausted")

	w.DeleteMachine("cp-0")

	expectNothingClaimed(w)
}
