// SPDX-License-Identifier: Apache-2.0

package firsthour

import (
	"bytes"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A mistake is an error that a user makes, what they see, and how they correct it.
type mistake struct {
	name string
	make func(*trial) // before anything is created
	// later makes the mistake when cluster and machine are ready; nil: before they are created.
	later func(*trial)

	inMachine bool     // the VCDMachine reports it, not the VCDCluster
	reason    string   // of the condition and of the event
	says      []string // parts of the message: the object or field, and the cause
	mend      func(*trial)
}

// inVCD changes something in VCD.
func inVCD(change func(*vcdsim.Editor)) func(*trial) {
	return func(w *trial) { w.sim.Edit(change) }
}

func editCluster(change func(*infrav1.VCDCluster)) func(*trial) {
	return func(w *trial) { update(w, w.cluster, change) }
}

func mistakes() []mistake {
	return slices.Concat(credentialMistakes(), siteMistakes(), nameMistakes(), endpointMistakes(), machineMistakes())
}

func credentialMistakes() []mistake {
	return []mistake{
		{
			name:   "a wrong password",
			make:   func(w *trial) { w.secret.Data[infrav1.SecretPassword] = []byte("pasword") },
			reason: infrav1.CredentialsRejectedReason,
			says:   []string{"VCDIdentity", "vcd", "Secret"},
			mend:   func(w *trial) { w.put(infrav1.SecretPassword, []byte("password")) },
		},
		{
			name:   "no Secret",
			make:   func(w *trial) { w.secret = nil },
			reason: infrav1.SecretNotFoundReason,
			says:   []string{"Secret", "vcd"},
			mend: func(w *trial) {
				w.create(&corev1.Secret{
					ObjectMeta: w.meta("vcd"),
					Data: map[string][]byte{
						infrav1.SecretUsername: []byte("capvcd"),
						infrav1.SecretPassword: []byte("password"),
						infrav1.SecretCABundle: w.sim.CA(),
					},
				})
			},
		},
		{
			name:   "a certificate authority that is not trusted",
			make:   func(w *trial) { delete(w.secret.Data, infrav1.SecretCABundle) },
			reason: infrav1.CertificateNotTrustedReason,
			says:   []string{"spec.tls.caBundle", "ca.crt", "VCDIdentity"},
			mend:   func(w *trial) { w.put(infrav1.SecretCABundle, w.sim.CA()) },
		},
		{
			name: "a new certificate authority at the site",
			later: func(w *trial) {
				w.Expect(w.sim.RenewCertificate(true)).To(Succeed())
				w.machine = w.newMachine("demo-1")
				w.createMachine(w.machine)
			},
			inMachine: true,
			reason:    infrav1.CertificateNotTrustedReason,
			says:      []string{"spec.tls.caBundle", "ca.crt"},
			mend:      func(w *trial) { w.put(infrav1.SecretCABundle, w.sim.CA()) },
		},
		{
			name:   "an identity with another name",
			make:   func(w *trial) { w.cluster.Spec.IdentityRef.Name = "vdc" },
			reason: infrav1.IdentityNotFoundReason,
			says:   []string{"spec.identityRef", "vdc"},
			mend:   editCluster(func(c *infrav1.VCDCluster) { c.Spec.IdentityRef.Name = "vcd" }),
		},
		{
			name:   "a wrong organization",
			make:   func(w *trial) { w.cluster.Spec.Org = "acne" },
			reason: infrav1.CredentialsRejectedReason,
			says:   []string{"spec.org"},
			mend:   editCluster(func(c *infrav1.VCDCluster) { c.Spec.Org = "acme" }),
		},
	}
}

// at sets a wrong address of the site in all objects, as a template does.
func at(site string) func(*trial) {
	return func(w *trial) {
		w.cluster.Spec.Site = site
		w.identity.Spec.Site = site
	}
}

// correctSite corrects the address of the site.
func correctSite(w *trial) {
	update(w, w.identity, func(i *infrav1.VCDIdentity) { i.Spec.Site = w.sim.URL() })
	update(w, w.cluster, func(c *infrav1.VCDCluster) { c.Spec.Site = w.sim.URL() })
}

func siteMistakes() []mistake {
	return []mistake{
		{
			name: "an address that is not VCD's",
			make: func(w *trial) {
				web := httptest.NewTLSServer(http.NotFoundHandler())
				w.cleanup(web.Close)
				at(web.URL)(w)
				w.secret.Data[infrav1.SecretCABundle] = bytes.Join([][]byte{w.sim.CA(), pemOf(web)}, nil)
			},
			reason: infrav1.SiteUnreachableReason,
			says:   []string{"127.0.0.1", "not a response from VCD", "spec.site"},
			mend:   correctSite,
		},
		{
			name:   "a name that DNS does not know",
			make:   at("https://vcd.example.invalid"),
			reason: infrav1.SiteUnreachableReason,
			says:   []string{"vcd.example.invalid", "DNS", "spec.site"},
			mend:   correctSite,
		},
		{
			name:   "a port that refuses",
			make:   at("https://127.0.0.1:1"),
			reason: infrav1.SiteUnreachableReason,
			says:   []string{"127.0.0.1:1", "refused", "spec.site"},
			mend:   correctSite,
		},
		{
			name: "an address that does not answer",
			make: func(w *trial) {
				silent, err := (&net.ListenConfig{}).Listen(w.ctx, "tcp", "127.0.0.1:0")
				w.Expect(err).NotTo(HaveOccurred())
				w.cleanup(func() { _ = silent.Close() })
				at("https://" + silent.Addr().String())(w)
			},
			reason: infrav1.SiteUnreachableReason,
			says:   []string{"127.0.0.1", "did not respond", "spec.site"},
			mend:   correctSite,
		},
	}
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func nameMistakes() []mistake {
	return []mistake{
		{
			name:   "a wrong VDC",
			make:   func(w *trial) { w.cluster.Spec.OVDC = "acme-vcd" },
			reason: infrav1.VDCNotFoundReason,
			says:   []string{"acme-vcd", "spec.ovdc"},
			mend:   editCluster(func(c *infrav1.VCDCluster) { c.Spec.OVDC = "acme-vdc" }),
		},
		{
			name:   "a wrong network",
			make:   func(w *trial) { w.cluster.Spec.OVDCNetwork = "node" },
			reason: infrav1.NetworkNotFoundReason,
			says:   []string{"node", "spec.ovdcNetwork"},
			mend:   editCluster(func(c *infrav1.VCDCluster) { c.Spec.OVDCNetwork = "nodes" }),
		},
		{
			name: "an edge gateway that is misspelt",
			make: func(w *trial) {
				w.machine = nil
				w.cluster.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
					Type:        infrav1.EndpointEdgeGateway,
					EdgeGateway: &infrav1.EdgeGatewayEndpoint{Name: "acme-gateway"},
				}
			},
			reason: infrav1.EdgeGatewayNotFoundReason,
			says:   []string{"acme-gateway", "spec.controlPlaneLoadBalancer.edgeGateway"},
			mend: editCluster(func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneLoadBalancer.EdgeGateway.Name = "acme-vdc-gateway"
			}),
		},
	}
}

func endpointMistakes() []mistake {
	address := func(ip string) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneEndpoint.Host = ip }
	}
	return []mistake{
		{
			name: "the virtual IP of another cluster",
			make: func(w *trial) {
				w.create(w.identity)
				w.create(w.secret)
				first := w.newCluster("first")
				w.createCluster(first)
				w.Eventually(func() string { return w.ready(first) }, limitShown, "100ms").Should(HavePrefix("True"))
			},
			reason: infrav1.VIPInUseReason,
			says:   []string{"192.168.100.200", "VCDCluster first", "spec.controlPlaneEndpoint"},
			mend:   editCluster(address("192.168.100.201")),
		},
		{
			name: "the virtual IP of a VM",
			make: func(w *trial) {
				w.sim.Edit(func(e *vcdsim.Editor) {
					vm := e.VM("acme-vdc-vapp-000-000")
					vm.NICs[0].Mode = "MANUAL"
					vm.NICs[0].Address = "192.168.100.200"
				})
			},
			reason: infrav1.VIPInUseReason,
			says:   []string{"192.168.100.200", "acme-vdc-vapp-000-000", "spec.controlPlaneEndpoint"},
			mend:   editCluster(address("192.168.100.201")),
		},
		{
			name:   "a virtual IP in the static pool",
			make:   func(w *trial) { address("192.168.100.20")(w.cluster) },
			reason: infrav1.VIPInStaticPoolReason,
			says:   []string{"192.168.100.20", "spec.controlPlaneEndpoint"},
			mend:   editCluster(address("192.168.100.200")),
		},
	}
}

// withMachine creates another machine of the cluster, like a user who cannot change the existing one.
func withMachine(w *trial) {
	w.Expect(api.Delete(w.ctx, &clusterv1.Machine{ObjectMeta: w.meta(w.machine.Name)})).To(Succeed())
	w.machine = w.newMachine("demo-1")
	w.createMachine(w.machine)
}

func machineMistakes() []mistake {
	static := func(last string) func(*vcdsim.Editor) {
		return func(e *vcdsim.Editor) {
			e.VDC("acme-vdc").Networks[0].StaticPool = []vcdsim.Range{
				{From: netip.MustParseAddr("192.168.100.10"), To: netip.MustParseAddr(last)},
			}
		}
	}
	return []mistake{
		{
			name:      "a network without a free address",
			make:      func(w *trial) { w.sim.Edit(static("192.168.100.10")) }, // the address of another VM
			inMachine: true,
			reason:    infrav1.TaskFailedReason,
			says:      []string{"insufficient IP addresses", "add IP addresses"},
			mend:      inVCD(static("192.168.100.99")),
		},
		{
			name:      "a wrong template",
			make:      func(w *trial) { w.machine.Spec.Template = "ubuntu-2404-kube-v1.36.4" },
			inMachine: true,
			reason:    infrav1.TemplateNotFoundReason,
			says:      []string{"ubuntu-2404-kube-v1.36.4"},
			mend:      withMachine,
		},
		{
			name:      "a wrong catalog",
			make:      func(w *trial) { w.machine.Spec.Catalog = "kubernets" },
			inMachine: true,
			reason:    infrav1.CatalogNotFoundReason,
			says:      []string{"kubernets"},
			mend:      withMachine,
		},
		{
			name:      "a sizing policy that is missing",
			make:      func(w *trial) { w.machine.Spec.SizingPolicy = "tiny" },
			inMachine: true,
			reason:    infrav1.SizingPolicyNotFoundReason,
			says:      []string{"tiny", "acme-vdc"},
			mend:      withMachine,
		},
		{
			name:      "a storage profile that is missing",
			make:      func(w *trial) { w.machine.Spec.StorageProfile = "gold" },
			inMachine: true,
			reason:    infrav1.StorageProfileNotFoundReason,
			says:      []string{"gold", "acme-vdc"},
			mend:      withMachine,
		},
		{
			name:      "a right that is missing",
			make:      inVCD(role(roleWithoutVMs)),
			inMachine: true,
			reason:    infrav1.ForbiddenReason,
			says:      []string{"Creating the vApp", "grant the right"},
			mend:      inVCD(role(vcdsim.RoleClusterAuthor)),
		},
	}
}

// role assigns a role to the user of the manager.
func role(name string) func(*vcdsim.Editor) {
	return func(e *vcdsim.Editor) { e.SetRole("acme", "capvcd", name) }
}
