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

// A mistake is an error of a user, the expected report, and its correction.
type mistake struct {
	name  string
	setup func(*trial) // makes the mistake before the objects are created
	// later makes the mistake after cluster and machine are ready. Nil means that setup makes the mistake.
	later func(*trial)

	inMachine bool     // the VCDMachine reports the mistake, not the VCDCluster
	reason    string   // of the condition and the event
	messages  []string // parts of the message: the object or field, and the cause
	fix       func(*trial)
}

// inVCD returns a change in VCD.
func inVCD(change func(*vcdsim.Editor)) func(*trial) {
	return func(w *trial) { w.sim.Edit(change) }
}

// editCluster returns a change of the VCDCluster.
func editCluster(change func(*infrav1.VCDCluster)) func(*trial) {
	return func(w *trial) { update(w, w.cluster, change) }
}

func mistakes() []mistake {
	return slices.Concat(credentialMistakes(), siteMistakes(), nameMistakes(), endpointMistakes(), machineMistakes())
}

func credentialMistakes() []mistake {
	return []mistake{
		{
			name:     "a wrong password",
			setup:    func(w *trial) { w.secret.Data[infrav1.SecretPassword] = []byte("pasword") },
			reason:   infrav1.CredentialsRejectedReason,
			messages: []string{"VCDIdentity", "vcd", "Secret"},
			fix:      func(w *trial) { w.put(infrav1.SecretPassword, []byte("password")) },
		},
		{
			name:     "no Secret",
			setup:    func(w *trial) { w.secret = nil },
			reason:   infrav1.SecretNotFoundReason,
			messages: []string{"Secret", "vcd"},
			fix: func(w *trial) {
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
			name:     "an untrusted certificate authority",
			setup:    func(w *trial) { delete(w.secret.Data, infrav1.SecretCABundle) },
			reason:   infrav1.CertificateNotTrustedReason,
			messages: []string{"spec.tls.caBundle", "ca.crt", "VCDIdentity"},
			fix:      func(w *trial) { w.put(infrav1.SecretCABundle, w.sim.CA()) },
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
			messages:  []string{"spec.tls.caBundle", "ca.crt"},
			fix:       func(w *trial) { w.put(infrav1.SecretCABundle, w.sim.CA()) },
		},
		{
			name:     "a wrong identity name",
			setup:    func(w *trial) { w.cluster.Spec.IdentityRef.Name = "vdc" },
			reason:   infrav1.IdentityNotFoundReason,
			messages: []string{"spec.identityRef", "vdc"},
			fix:      editCluster(func(c *infrav1.VCDCluster) { c.Spec.IdentityRef.Name = "vcd" }),
		},
		{
			name:     "a wrong organization",
			setup:    func(w *trial) { w.cluster.Spec.Org = "acne" },
			reason:   infrav1.CredentialsRejectedReason,
			messages: []string{"spec.org"},
			fix:      editCluster(func(c *infrav1.VCDCluster) { c.Spec.Org = "acme" }),
		},
	}
}

// wrongSite sets a wrong site URL in all objects, as a wrong variable of a template does.
func wrongSite(site string) func(*trial) {
	return func(w *trial) {
		w.cluster.Spec.Site = site
		w.identity.Spec.Site = site
	}
}

// correctSite fixes the site URL in all objects.
func correctSite(w *trial) {
	update(w, w.identity, func(i *infrav1.VCDIdentity) { i.Spec.Site = w.sim.URL() })
	update(w, w.cluster, func(c *infrav1.VCDCluster) { c.Spec.Site = w.sim.URL() })
}

func siteMistakes() []mistake {
	return []mistake{
		{
			name: "a server that is not VCD",
			setup: func(w *trial) {
				web := httptest.NewTLSServer(http.NotFoundHandler())
				w.cleanup(web.Close)
				wrongSite(web.URL)(w)
				w.secret.Data[infrav1.SecretCABundle] = bytes.Join([][]byte{w.sim.CA(), pemOf(web)}, nil)
			},
			reason:   infrav1.SiteUnreachableReason,
			messages: []string{"127.0.0.1", "not a response from VCD", "spec.site"},
			fix:      correctSite,
		},
		{
			name:     "an unknown host name",
			setup:    wrongSite("https://vcd.example.invalid"),
			reason:   infrav1.SiteUnreachableReason,
			messages: []string{"vcd.example.invalid", "DNS", "spec.site"},
			fix:      correctSite,
		},
		{
			name:     "a port that refuses connections",
			setup:    wrongSite("https://127.0.0.1:1"),
			reason:   infrav1.SiteUnreachableReason,
			messages: []string{"127.0.0.1:1", "refused", "spec.site"},
			fix:      correctSite,
		},
		{
			name: "a server that does not respond",
			setup: func(w *trial) {
				silent, err := (&net.ListenConfig{}).Listen(w.ctx, "tcp", "127.0.0.1:0")
				w.Expect(err).NotTo(HaveOccurred())
				w.cleanup(func() { _ = silent.Close() })
				wrongSite("https://" + silent.Addr().String())(w)
			},
			reason:   infrav1.SiteUnreachableReason,
			messages: []string{"127.0.0.1", "did not respond", "spec.site"},
			fix:      correctSite,
		},
	}
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func nameMistakes() []mistake {
	return []mistake{
		{
			name:     "a wrong VDC",
			setup:    func(w *trial) { w.cluster.Spec.OVDC = "acme-vcd" },
			reason:   infrav1.VDCNotFoundReason,
			messages: []string{"acme-vcd", "spec.ovdc"},
			fix:      editCluster(func(c *infrav1.VCDCluster) { c.Spec.OVDC = "acme-vdc" }),
		},
		{
			name:     "a wrong network",
			setup:    func(w *trial) { w.cluster.Spec.OVDCNetwork = "node" },
			reason:   infrav1.NetworkNotFoundReason,
			messages: []string{"node", "spec.ovdcNetwork"},
			fix:      editCluster(func(c *infrav1.VCDCluster) { c.Spec.OVDCNetwork = "nodes" }),
		},
		{
			name: "a misspelled edge gateway",
			setup: func(w *trial) {
				w.machine = nil
				w.cluster.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
					Type:        infrav1.EndpointEdgeGateway,
					EdgeGateway: &infrav1.EdgeGatewayEndpoint{Name: "acme-gateway"},
				}
			},
			reason:   infrav1.EdgeGatewayNotFoundReason,
			messages: []string{"acme-gateway", "spec.controlPlaneLoadBalancer.edgeGateway"},
			fix: editCluster(func(c *infrav1.VCDCluster) {
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
			setup: func(w *trial) {
				w.create(w.identity)
				w.create(w.secret)
				first := w.newCluster("first")
				w.createCluster(first)
				w.Eventually(func() string { return w.ready(first) }, limitReported, "100ms").Should(HavePrefix("True"))
			},
			reason:   infrav1.VIPInUseReason,
			messages: []string{"192.168.100.200", "VCDCluster first", "spec.controlPlaneEndpoint"},
			fix:      editCluster(address("192.168.100.201")),
		},
		{
			name: "the virtual IP of a VM",
			setup: func(w *trial) {
				w.sim.Edit(func(e *vcdsim.Editor) {
					vm := e.VM("acme-vdc-vapp-000-000")
					vm.NICs[0].Mode = "MANUAL"
					vm.NICs[0].Address = "192.168.100.200"
				})
			},
			reason:   infrav1.VIPInUseReason,
			messages: []string{"192.168.100.200", "acme-vdc-vapp-000-000", "spec.controlPlaneEndpoint"},
			fix:      editCluster(address("192.168.100.201")),
		},
		{
			name:     "a virtual IP in the static pool",
			setup:    func(w *trial) { address("192.168.100.20")(w.cluster) },
			reason:   infrav1.VIPInStaticPoolReason,
			messages: []string{"192.168.100.20", "spec.controlPlaneEndpoint"},
			fix:      editCluster(address("192.168.100.200")),
		},
	}
}

// replaceMachine replaces the machine with a valid one, because the existing one is immutable.
func replaceMachine(w *trial) {
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
			name:      "no free address in the network",
			setup:     func(w *trial) { w.sim.Edit(static("192.168.100.10")) }, // used by another VM
			inMachine: true,
			reason:    infrav1.TaskFailedReason,
			messages:  []string{"insufficient IP addresses", "add IP addresses"},
			fix:       inVCD(static("192.168.100.99")),
		},
		{
			name:      "a wrong template",
			setup:     func(w *trial) { w.machine.Spec.Template = "ubuntu-2404-kube-v1.36.4" },
			inMachine: true,
			reason:    infrav1.TemplateNotFoundReason,
			messages:  []string{"ubuntu-2404-kube-v1.36.4"},
			fix:       replaceMachine,
		},
		{
			name:      "a wrong catalog",
			setup:     func(w *trial) { w.machine.Spec.Catalog = "kubernets" },
			inMachine: true,
			reason:    infrav1.CatalogNotFoundReason,
			messages:  []string{"kubernets"},
			fix:       replaceMachine,
		},
		{
			name:      "a missing sizing policy",
			setup:     func(w *trial) { w.machine.Spec.SizingPolicy = "tiny" },
			inMachine: true,
			reason:    infrav1.SizingPolicyNotFoundReason,
			messages:  []string{"tiny", "acme-vdc"},
			fix:       replaceMachine,
		},
		{
			name:      "a missing storage profile",
			setup:     func(w *trial) { w.machine.Spec.StorageProfile = "gold" },
			inMachine: true,
			reason:    infrav1.StorageProfileNotFoundReason,
			messages:  []string{"gold", "acme-vdc"},
			fix:       replaceMachine,
		},
		{
			name:      "a missing right",
			setup:     inVCD(role(roleWithoutVMs)),
			inMachine: true,
			reason:    infrav1.ForbiddenReason,
			messages:  []string{"Creating the vApp", "grant the right"},
			fix:       inVCD(role(vcdsim.RoleClusterAuthor)),
		},
	}
}

// role returns a change that assigns a role to the user of the manager.
func role(name string) func(*vcdsim.Editor) {
	return func(e *vcdsim.Editor) { e.SetRole("acme", "capvcd", name) }
}
