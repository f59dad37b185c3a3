// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// withEndpoint sets the endpoint and kube-vip's configuration.
func withEndpoint(w *controllertest.Env, host string, kube infrav1.KubeVIPEndpoint) {
	c := w.VCDCluster()
	c.Spec.ControlPlaneEndpoint.Host = host
	c.Spec.ControlPlaneLoadBalancer.KubeVIP = &kube
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// networkID returns the URN of the cluster's network.
func networkID(w *controllertest.Env) string {
	return vcdsim.URN("network", w.Sim.State().Model.Orgs[1].VDCs[0].Networks[0].ID)
}

// messageOf returns the message of the cluster's endpoint condition.
func messageOf(w *controllertest.Env) string {
	return conditions.GetMessage(w.VCDCluster(), infrav1.EndpointReadyCondition)
}

func manifest(w *controllertest.Env) string {
	return string(w.Secret("c1-kube-vip").Data["kube-vip.yaml"])
}

// namesake returns another VCDCluster with the virtual IP of the first.
func namesake(sim *vcdsim.Simulator, network string, created time.Time) *infrav1.VCDCluster {
	other := controllertest.NewVCDCluster(sim)
	other.ObjectMeta = metav1.ObjectMeta{
		Namespace:         controllertest.Namespace,
		Name:              "vc2",
		UID:               "uid-of-vc2",
		CreationTimestamp: metav1.NewTime(created.Truncate(time.Second)),
	}
	other.OwnerReferences = nil
	other.Spec.RecordedState.OVDCNetworkID = network
	return other
}

func TestAVirtualIPBelongsToOneCluster(t *testing.T) {
	const elsewhere = "urn:vcloud:network:11111111-2222-3333-4444-555555555555"
	for name, tt := range map[string]struct {
		change  func(other *infrav1.VCDCluster)
		refused bool
	}{
		"an older cluster": {nil, true},
		"an older cluster in another network": {
			func(c *infrav1.VCDCluster) {
				c.Spec.RecordedState.OVDCNetworkID = elsewhere
			},
			false,
		},
		"an older cluster at another site": {func(c *infrav1.VCDCluster) { c.Spec.Site = "https://other.example.com" }, false},
		"an older cluster with another address": {
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = "192.168.100.201"
			},
			false,
		},
		"an older cluster with the address as its second": {
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = "fd00:100::c8"
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.SecondaryAddress = controllertest.VIP
			},
			true,
		},
		"an older cluster that announces it for Services": {
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = "192.168.100.201"
				c.Spec.LoadBalancer.KubeVIP = &infrav1.KubeVIPServices{
					AddressRanges: []infrav1.AddressRange{{StartIP: "192.168.100.199", EndIP: controllertest.VIP}},
				}
			},
			true,
		},
		"a newer cluster": {
			func(c *infrav1.VCDCluster) {
				c.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
			},
			false,
		},
		"a newer, established cluster": {
			func(c *infrav1.VCDCluster) {
				c.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
				c.Spec.InfraID = "0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
				c.Spec.RecordedState.OVDCID = "urn:vcloud:vdc:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
			},
			true,
		},
		"the load balancer of an older cluster": {
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointExternal}
				c.Spec.ControlPlaneEndpoint.Host = controllertest.VIP
			},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.New(t)
			own := w.VCDCluster()
			own.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
			w.Expect(w.Client.Update(w.Ctx, own)).To(Succeed())
			other := namesake(w.Sim, networkID(w), time.Now().Add(-time.Hour))
			if tt.change != nil {
				tt.change(other)
			}
			w.Expect(w.Client.Create(w.Ctx, other)).To(Succeed())

			if !tt.refused {
				w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
				return
			}
			w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.VIPInUseReason)
			w.Expect(messageOf(w)).To(And(ContainSubstring("VCDCluster vc2"),
				ContainSubstring("set another address in spec.controlPlaneEndpoint")))
			w.Expect(w.VCDCluster().Spec.InfraID).To(BeEmpty())
			w.Expect(w.Client.Delete(w.Ctx, other)).To(Succeed())
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

// pinID sets the cluster's ID before the cluster is provisioned.
func pinID(w *controllertest.Env) {
	c := w.VCDCluster()
	c.Spec.InfraID = infraUUID
	c.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

func TestACustomIDDoesNotTakeTheVirtualIPOfAnotherCluster(t *testing.T) {
	w := controllertest.New(t)
	pinID(w)
	w.Expect(w.Client.Create(w.Ctx, namesake(w.Sim, networkID(w), time.Now().Add(-time.Hour)))).To(Succeed())

	for range 3 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(conditions.GetReason(w.VCDCluster(), infrav1.EndpointReadyCondition)).To(Equal(infrav1.VIPInUseReason))
}

func TestAnEstablishedClusterKeepsItsVirtualIP(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.Client.Create(w.Ctx, namesake(w.Sim, networkID(w), time.Now().Add(-time.Hour)))).To(Succeed())

	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestAVirtualIPIsNotAssignedToAVM(t *testing.T) {
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: 1}
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model})
	taken := w.Sim.State().VMs[0].NICs[0].Address
	w.Sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Networks[0].StaticPool = nil })
	withEndpoint(w, taken, infrav1.KubeVIPEndpoint{})

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.VIPInUseReason)

	w.Expect(messageOf(w)).To(ContainSubstring(taken + " is the address of "))
	withEndpoint(w, controllertest.VIP, infrav1.KubeVIPEndpoint{})
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestBothFamiliesAreAnnounced(t *testing.T) {
	model := vcdsim.K8sTenant()
	network := &model.Orgs[1].VDCs[0].Networks[0]
	network.Second = &vcdsim.SecondSubnet{Gateway: netip.MustParsePrefix("fd00:100::1/64")}
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model})
	withEndpoint(w, controllertest.VIP, infrav1.KubeVIPEndpoint{SecondaryAddress: "fd00:100::c8"})

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(manifest(w)).To(ContainSubstring(controllertest.VIP + ",fd00:100::c8"))
	c := w.VCDCluster()
	w.Expect(c.Spec.ControlPlaneEndpoint.Host).To(Equal(controllertest.VIP))
	w.Expect(c.Status.VirtualIPs).To(Equal([]string{controllertest.VIP, "fd00:100::c8"}))
}

func TestBothFamiliesMustBeInTheNetwork(t *testing.T) {
	w := controllertest.New(t)
	withEndpoint(w, controllertest.VIP, infrav1.KubeVIPEndpoint{SecondaryAddress: "fd00:999::c8"})

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.VIPOutsideNetworkReason)
}

func peers(secret string) *infrav1.KubeVIPBGP {
	return &infrav1.KubeVIPBGP{
		ASNumber:        65001,
		RouterInterface: "ens192",
		Peers: []infrav1.KubeVIPPeer{{
			Address:           "192.168.100.1",
			ASNumber:          65000,
			PasswordSecretRef: &infrav1.SecretKeyReference{Name: secret, Key: "password"},
		}},
	}
}

func TestBGPAcceptsAddressesOutsideTheNetworkAndPasswordsFromASecret(t *testing.T) {
	w := controllertest.New(t)
	withEndpoint(w, "203.0.113.10", infrav1.KubeVIPEndpoint{BGP: peers("router")})
	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.PeerPasswordMissingReason)
	w.Expect(messageOf(w)).To(ContainSubstring("key password of Secret router"))

	w.Expect(w.Client.Create(w.Ctx, &corev1.Secret{
		ObjectMeta: controllertest.Meta("router"),
		Data:       map[string][]byte{"password": []byte("s3cret")},
	})).To(Succeed())

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(manifest(w)).To(ContainSubstring("192.168.100.1:65000:s3cret:false"))

	secret := w.Secret("router")
	secret.Data["password"] = nil
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(manifest(w)).To(ContainSubstring("192.168.100.1:65000::false"), "an empty password is not a password")
}

func TestAnUnreadableBGPPasswordIsRejectedAndNotShown(t *testing.T) {
	w := controllertest.New(t, &corev1.Secret{
		ObjectMeta: controllertest.Meta("router"),
		Data:       map[string][]byte{"password": []byte("geheim:x")},
	})
	withEndpoint(w, "203.0.113.10", infrav1.KubeVIPEndpoint{BGP: peers("router")})

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.VIPInvalidReason)

	w.Expect(messageOf(w)).To(And(ContainSubstring("BGP peer 192.168.100.1"),
		Not(ContainSubstring("geheim"))))
}

func TestAHostnameMustResolveIntoTheNetwork(t *testing.T) {
	for name, tt := range map[string]struct {
		found  []netip.Addr
		err    error
		reason string
		words  string
	}{
		"a nonexistent record": {
			err:    &net.DNSError{Err: "no such host", Name: "api.example.com", IsNotFound: true},
			reason: infrav1.NameResolutionFailedReason,
			words:  "DNS has no IPv4 address for api.example.com",
		},
		"unresponsive servers": {
			err:    &net.DNSError{Err: "i/o timeout", Server: "10.0.0.53", IsTimeout: true},
			reason: infrav1.NameResolutionFailedReason,
			words:  "cannot resolve api.example.com: no answer",
		},
		"another error": {err: errors.New("refused"), reason: infrav1.NameResolutionFailedReason, words: "refused"},
		"an address of another network": {
			found:  []netip.Addr{netip.MustParseAddr("::ffff:10.9.9.9")},
			reason: infrav1.VIPOutsideNetworkReason,
			words:  "correct the record of api.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.New(t)
			found := tt.found
			err := tt.err
			w.Cluster.Lookup = func(context.Context, string, string) ([]netip.Addr, error) { return found, err }
			withEndpoint(w, "api.example.com", infrav1.KubeVIPEndpoint{AddressSource: infrav1.VIPSourceDHCP})

			w.EventuallyCluster(infrav1.EndpointReadyCondition, tt.reason)
			w.Expect(messageOf(w)).To(ContainSubstring(tt.words))
			found = []netip.Addr{netip.MustParseAddr(controllertest.VIP)}
			err = nil
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.Expect(manifest(w)).To(And(ContainSubstring("api.example.com"), ContainSubstring("vip_ddns")))
			w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("api.example.com"))
			found = nil
			err = &net.DNSError{Err: "no such host", IsNotFound: true}
			_, problem := w.ReconcileCluster()
			w.Expect(problem).NotTo(HaveOccurred())
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

func TestAUserManagedRecordIsAnnouncedWithoutDHCP(t *testing.T) {
	w := controllertest.New(t)
	w.Cluster.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(controllertest.VIP)}, nil
	}
	c := w.VCDCluster()
	c.Spec.ControlPlaneLoadBalancer.KubeVIP = nil
	c.Spec.ControlPlaneEndpoint.Host = "api.example.com"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(manifest(w)).To(And(ContainSubstring("api.example.com"), Not(ContainSubstring("vip_ddns"))))
}

func TestControlPlaneZonesInSeveralNetworksRequireBGP(t *testing.T) {
	w := controllertest.NewInZones(t)
	z := w.DeploymentZone("b")
	z.Status.Networks = []infrav1.ResourceReference{{
		Name: "dmz",
		ID:   "urn:vcloud:network:11111111-2222-3333-4444-555555555555",
	}}
	w.Expect(w.Client.Status().Update(w.Ctx, z)).To(Succeed())

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.ControlPlaneNetworkMismatchReason)

	w.Expect(messageOf(w)).To(ContainSubstring("VCDDeploymentZone b is in network dmz, not in nodes"))
	z.Spec.ControlPlane = new(false)
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestControlPlanesInSeveralNetworksRequireBGP(t *testing.T) {
	apart := controllertest.NewMachine("cp-2", func(m *infrav1.VCDMachine) {
		m.Labels[clusterv1.MachineControlPlaneLabel] = ""
		m.Spec.Networks = []infrav1.NetworkSpec{{Name: "storage"}}
	})
	worker := controllertest.NewMachine("w-1", func(m *infrav1.VCDMachine) {
		m.Spec.Networks = []infrav1.NetworkSpec{{Name: "storage"}}
	})
	w := controllertest.New(t, append(apart, worker...)...)

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.ControlPlaneNetworkMismatchReason)

	w.Expect(messageOf(w)).To(And(ContainSubstring("Control plane cp-2"),
		ContainSubstring("set spec.controlPlaneLoadBalancer.kubeVIP.bgp"), ContainSubstring("EdgeGateway")))
	kube := infrav1.KubeVIPEndpoint{BGP: peers("router")}
	kube.BGP.Peers[0].PasswordSecretRef = nil
	withEndpoint(w, controllertest.VIP, kube)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}
