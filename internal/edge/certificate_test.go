// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// selfSigned creates a certificate and its key.
func selfSigned(t *testing.T) (chain, key string) {
	t.Helper()
	c, k := vcdsimtest.SelfSigned(t)
	return string(c), string(k)
}

// aliases lists the certificate library.
func (w *fixture) aliases() []string {
	var found []string
	for _, doc := range w.sim.State().Documents {
		if strings.HasSuffix(doc.Path, "ssl/certificateLibrary") {
			found = append(found, doc.ID)
		}
	}
	return found
}

func TestCertificatesAreImportedReplacedAndRemoved(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 443)
	chain, key := selfSigned(t)
	d.Listeners[0].Application = lb.HTTPS
	d.Listeners[0].Certificate = lb.Certificate{Chain: chain, Key: key, Source: "Secret default/web"}

	w.converge(&d)
	_, writes, calls := w.calls()
	w.Expect(writes).To(Equal(2+1+1), "%v", calls)
	first := w.aliases()
	w.Expect(first).To(HaveLen(1))
	w.Expect(w.driver.Owners(t.Context(), w.gateway, "c1")).To(ContainElement(d.Owner))

	chain, key = selfSigned(t)
	d.Listeners[0].Certificate.Chain = chain
	d.Listeners[0].Certificate.Key = key
	w.converge(&d)
	w.Expect(w.aliases()).To(HaveLen(1))
	w.Expect(w.aliases()).NotTo(Equal(first), "the new certificate replaced it")

	w.remove(d)
	w.Expect(w.left("")).To(BeEmpty())
	w.Expect(w.aliases()).To(BeEmpty())
}

func TestAUserCertificateIsKept(t *testing.T) {
	model := vcdsim.K8sTenant()
	chain, key := selfSigned(t)
	model.Orgs[1].Certificates = []vcdsim.Certificate{{Alias: "theirs", PEM: chain, Key: key}}
	w := newFixture(t, model)
	d := desired(service("c1", "web"), 443)
	d.Listeners[0].Application = lb.HTTPS
	d.Listeners[0].Certificate = lb.Certificate{Alias: "theirs"}

	plan := w.converge(&d)
	w.Expect(plan.Done()).To(BeTrue())
	w.remove(d)
	w.Expect(w.aliases()).To(HaveLen(1))

	d = desired(service("c1", "web"), 443)
	d.Listeners[0].Application = lb.HTTPS
	d.Listeners[0].Certificate = lb.Certificate{Alias: "nope"}
	plan, err := w.reach(&d)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(HaveLen(1))
	w.Expect(w.left("c1")).To(BeEmpty(), "no partial load balancer")
}
