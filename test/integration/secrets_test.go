// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// The canaries are secrets that must appear only in Secrets. The bootstrap data may also appear in the VM.
const (
	passwordCanary  = "canary-in-the-password-4f1c"
	tokenCanary     = "canary-in-the-api-token-9b7d"
	bootstrapCanary = "canary-in-the-bootstrap-data-2e60"
)

func TestNoSecretLeavesItsSecret(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *vcdsim.Config) {
		c.Model.Orgs[1].Users[1].Password = passwordCanary
		c.Model.Orgs[1].Users[1].APITokens = []string{tokenCanary}
	})
	s.cluster("canary")
	s.bootstrap("canary-0-bootstrap", "#cloud-config\nruncmd:\n- echo "+bootstrapCanary+"\n")
	m := s.machine("canary", "canary-0")
	broken := s.machine("canary", "canary-2", func(m *infrav1.VCDMachine) { m.Spec.Template = "nowhere" })
	s.ready(m)
	// Errors must not contain the password either.
	s.credentials(map[string]string{infrav1.SecretPassword: "wrong-" + passwordCanary})
	s.g.Eventually(func() (string, error) { return s.state(broken, infrav1.PlacementReadyCondition) }, timeout,
		"100ms").ShouldNot(BeEmpty())
	s.credentials(map[string]string{
		infrav1.SecretUsername: "",
		infrav1.SecretPassword: "",
		infrav1.SecretAPIToken: tokenCanary,
	})
	s.deleteMachine("canary-2")
	s.deleteMachine("canary-0")
	s.deleteCluster("canary")

	seen := s.allOutput()
	s.g.Expect(string(seen)).To(ContainSubstring("Creating vApp"), "the log must not be empty")
	s.g.Expect(string(seen)).To(ContainSubstring(s.namespace), "the log must include this test")
	for _, canary := range []string{passwordCanary, tokenCanary, bootstrapCanary} {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), basicAuth(canary)} {
			s.g.Expect(bytes.Contains(seen, []byte(form))).To(BeFalse(), "%q is in the log or an object", form)
		}
	}
}

// basicAuth returns the form in which a password is sent.
func basicAuth(password string) string {
	return base64.StdEncoding.EncodeToString([]byte("capvcd@acme:" + password))
}

// credentials changes keys of the Secret of the identity. An empty value removes the key.
func (s *site) credentials(values map[string]string) {
	s.t.Helper()
	s.g.Eventually(func() error { // The manager may be setting the owner of the Secret at the same time.
		secret := &corev1.Secret{ObjectMeta: s.meta("vcd")}
		if err := s.get(secret); err != nil {
			return err
		}
		for key, value := range values {
			if value == "" {
				delete(secret.Data, key)
				continue
			}
			secret.Data[key] = []byte(value)
		}
		return shared.client.Update(s.t.Context(), secret)
	}, timeout, "100ms").Should(Succeed())
}

// allOutput returns the log of the manager, all events, and all objects except Secrets.
func (s *site) allOutput() []byte {
	s.t.Helper()
	seen, err := os.ReadFile(shared.Manager.LogPath())
	s.g.Expect(err).NotTo(HaveOccurred())
	for _, list := range []client.ObjectList{
		&corev1.EventList{},
		&infrav1.VCDClusterList{},
		&infrav1.VCDMachineList{},
		&infrav1.VCDIdentityList{},
		&clusterv1.ClusterList{},
		&clusterv1.MachineList{},
	} {
		s.g.Expect(shared.client.List(s.t.Context(), list)).To(Succeed())
		content, err := json.Marshal(list)
		s.g.Expect(err).NotTo(HaveOccurred())
		seen = append(seen, content...)
	}
	return seen
}
