// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// recoveryTimeout limits the time until the manager observes a correction. It checks VCD once a minute.
const recoveryTimeout = "5m"

// A mistake is wrong input to a cluster with a machine, and its correction.
type mistake struct {
	name    string
	config  func(*vcdsim.Config)
	prepare func(*site)
	cluster func(*infrav1.VCDCluster)
	machine func(*infrav1.VCDMachine)

	inCluster bool   // the VCDCluster reports the mistake, not the VCDMachine
	reason    string // of the condition and the event
	names     string // the field or object that the message names
	fix       func(*site)
}

func mistakes() []mistake {
	return slices.Concat(clusterMistakes(), endpointMistakes(), machineMistakes())
}

func clusterMistakes() []mistake {
	return []mistake{
		{
			name:      "an unknown VDC",
			cluster:   func(c *infrav1.VCDCluster) { c.Spec.OVDC = "nowhere" },
			reason:    infrav1.VDCNotFoundReason,
			names:     "spec.ovdc",
			inCluster: true,
			fix:       edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Name = "nowhere" }),
		},
		{
			name:      "an unknown network",
			cluster:   func(c *infrav1.VCDCluster) { c.Spec.OVDCNetwork = "nowhere" },
			reason:    infrav1.NetworkNotFoundReason,
			names:     "spec.ovdcNetwork",
			inCluster: true,
			fix:       edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Networks[0].Name = "nowhere" }),
		},
		{
			name:      "wrong credentials",
			prepare:   func(s *site) { s.credentials(map[string]string{infrav1.SecretPassword: "wrong"}) },
			reason:    infrav1.CredentialsRejectedReason,
			names:     "password",
			inCluster: true,
			fix:       func(s *site) { s.credentials(map[string]string{infrav1.SecretPassword: s.password()}) },
		},
		{
			name:      "a certificate of an unknown authority",
			prepare:   func(s *site) { s.credentials(map[string]string{infrav1.SecretCABundle: ""}) },
			reason:    infrav1.CertificateNotTrustedReason,
			names:     "spec.tls.caBundle",
			inCluster: true,
			fix:       func(s *site) { s.credentials(map[string]string{infrav1.SecretCABundle: string(s.CA())}) },
		},
		{
			name: "a virtual IP inside the static pool",
			cluster: func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = "192.168.100.20"
			},
			reason:    infrav1.VIPInStaticPoolReason,
			names:     "spec.controlPlaneEndpoint",
			inCluster: true,
			fix: edit(func(e *vcdsim.Editor) {
				pool := &e.Model.Orgs[1].VDCs[0].Networks[0].StaticPool[0]
				pool.From = pool.From.Next()
				for pool.From.String() != "192.168.100.21" {
					pool.From = pool.From.Next()
				}
			}),
		},
	}
}

func machineMistakes() []mistake {
	const template = "ubuntu-2404-kube-v1.36.3"
	rename := func(from, to string) func(*vcdsim.Editor) {
		return func(e *vcdsim.Editor) {
			for i := range e.Model.Orgs[1].Catalogs[0].Templates {
				if t := &e.Model.Orgs[1].Catalogs[0].Templates[i]; t.Name == from {
					t.Name = to
				}
			}
		}
	}
	policy := func(from, to string) func(*vcdsim.Editor) {
		return func(e *vcdsim.Editor) {
			for i := range e.Model.Policies {
				if e.Model.Policies[i].Name == from {
					e.Model.Policies[i].Name = to
				}
			}
			published := e.Model.Orgs[1].VDCs[0].Policies
			for i := range published {
				if published[i] == from {
					published[i] = to
				}
			}
		}
	}
	return []mistake{
		{
			name:    "an unknown catalog",
			machine: func(m *infrav1.VCDMachine) { m.Spec.Catalog = "nowhere" },
			reason:  infrav1.CatalogNotFoundReason,
			names:   "spec.catalog",
			fix:     edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].Catalogs[0].Name = "nowhere" }),
		},
		{
			name:    "an unknown template",
			machine: func(m *infrav1.VCDMachine) { m.Spec.Template = "nowhere" },
			reason:  infrav1.TemplateNotFoundReason,
			names:   "spec.template",
			fix:     edit(rename(template, "nowhere")),
		},
		{
			name:    "a template with no VM",
			machine: func(m *infrav1.VCDMachine) { m.Spec.Template = "no-vm" },
			reason:  infrav1.TemplateInvalidReason,
			names:   "spec.template",
			fix:     edit(func(e *vcdsim.Editor) { rename("no-vm", "away")(e); rename(template, "no-vm")(e) }),
		},
		{
			name:    "an unknown sizing policy",
			machine: func(m *infrav1.VCDMachine) { m.Spec.SizingPolicy = "nowhere" },
			reason:  infrav1.SizingPolicyNotFoundReason,
			names:   "spec.sizingPolicy",
			fix:     edit(policy("large", "nowhere")),
		},
		{
			name:    "an unknown placement policy",
			machine: func(m *infrav1.VCDMachine) { m.Spec.PlacementPolicy = "nowhere" },
			reason:  infrav1.PlacementPolicyNotFoundReason,
			names:   "spec.placementPolicy",
			fix:     edit(policy("rack-a", "nowhere")),
		},
		{
			name:    "an unknown network of a NIC",
			machine: func(m *infrav1.VCDMachine) { m.Spec.Networks = []infrav1.NetworkSpec{{}, {Name: "nowhere"}} },
			reason:  infrav1.NetworkNotFoundReason,
			names:   "spec.networks[1].name",
			fix:     edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Networks[1].Name = "nowhere" }),
		},
		{
			name:   "bootstrap data too large",
			reason: infrav1.BootstrapDataTooLargeReason,
			names:  "Secret machine-bootstrap",
			fix:    func(s *site) { s.bootstrap("machine-bootstrap", "#cloud-config\n") },
		},
	}
}

func TestInvalidInputIsReportedAndCanBeFixed(t *testing.T) {
	t.Parallel()
	for _, tt := range mistakes() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.options()...)
			tt.before(s)
			c := s.cluster("bad", tt.changesToCluster()...)
			if strings.Contains(tt.names, "machine-bootstrap") {
				s.bootstrap("machine-bootstrap", "#cloud-config\n# "+noise(100_000)+"\n")
			}
			m := s.machine("bad", "machine", tt.changesToMachine()...)
			var subject conditioned = m
			if tt.inCluster {
				subject = c
			}

			s.g.Eventually(func() (string, error) { return s.state(subject, "Ready") }, timeout, "100ms").Should(And(
				HavePrefix("False "+tt.reason), ContainSubstring(tt.names)))
			s.g.Eventually(func() []string { return s.events(subject) }, timeout, "100ms").Should(ContainElement(And(
				HavePrefix("Warning "+tt.reason), ContainSubstring(tt.names))))
			s.checkConditions()
			s.g.Expect(s.State().VMs).To(BeEmpty(), "invalid input created objects in VCD")
			s.g.Expect(s.State().VApps).To(BeEmpty(), "invalid input created objects in VCD")

			tt.fix(s)

			s.g.Eventually(func() (string, error) { return s.state(m, "Ready") }, recoveryTimeout,
				"250ms").Should(HavePrefix("True"))
			s.g.Expect(s.State().VMs).To(HaveLen(1))
			s.deleteMachine("machine")
			s.deleteCluster("bad")
			s.empty()
		})
	}
}

func (tt mistake) options() []func(*vcdsim.Config) {
	if tt.config == nil {
		return nil
	}
	return []func(*vcdsim.Config){tt.config}
}

func (tt mistake) before(s *site) {
	if tt.prepare != nil {
		tt.prepare(s)
	}
}

func (tt mistake) changesToCluster() []func(*infrav1.VCDCluster) {
	if tt.cluster == nil {
		return nil
	}
	return []func(*infrav1.VCDCluster){tt.cluster}
}

func (tt mistake) changesToMachine() []func(*infrav1.VCDMachine) {
	if tt.machine == nil {
		return nil
	}
	return []func(*infrav1.VCDMachine){tt.machine}
}

// edit returns a correction in VCD.
func edit(f func(*vcdsim.Editor)) func(*site) {
	return func(s *site) { s.Edit(f) }
}

// bootstrap creates or updates the Secret with the bootstrap data of a machine.
func (s *site) bootstrap(name, value string) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: s.meta(name)}
	if s.get(secret) != nil {
		secret.StringData = map[string]string{"value": value}
		s.create(secret)
		return
	}
	secret.StringData = map[string]string{"value": value}
	s.g.Expect(shared.client.Update(s.t.Context(), secret)).To(Succeed())
}

// noise returns data that does not compress.
func noise(size int) string {
	b := make([]byte, size)
	_, _ = rand.Read(b) // It never returns an error.
	return base64.StdEncoding.EncodeToString(b)
}
