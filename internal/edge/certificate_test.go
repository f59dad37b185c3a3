package edge_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// selfSigned makes a certificate and its key.
func selfSigned(t *testing.T) (chain, key string) {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"web.example"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	g.Expect(err).NotTo(HaveOccurred())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// aliases lists the certificate library.
func (w *world) aliases() []string {
	var found []string
	for _, doc := range w.sim.State().Documents {
		if strings.HasSuffix(doc.Path, "ssl/certificateLibrary") {
			found = append(found, doc.ID)
		}
	}
	return found
}

func TestCertificatesAreImportedReplacedAndRemoved(t *testing.T) {
	w := newWorld(t, vcdsim.K8sTenant())
	d := wish(service("c1", "web"), 443)
	chain, key := selfSigned(t)
	d.Listeners[0].Application = lb.HTTPS
	d.Listeners[0].Certificate = lb.Certificate{Chain: chain, Key: key, Source: "Secret default/web"}

	w.insist(&d)
	_, writes, calls := w.calls()
	w.Expect(writes).To(Equal(2+1+1), "%v", calls)
	first := w.aliases()
	w.Expect(first).To(HaveLen(1))
	w.Expect(w.driver.Owners(t.Context(), w.gateway, "c1")).To(ContainElement(d.Owner))

	chain, key = selfSigned(t)
	d.Listeners[0].Certificate.Chain, d.Listeners[0].Certificate.Key = chain, key
	w.insist(&d)
	w.Expect(w.aliases()).To(HaveLen(1))
	w.Expect(w.aliases()).NotTo(Equal(first), "the new one took its place")

	w.remove(d)
	w.Expect(w.left("")).To(BeEmpty())
	w.Expect(w.aliases()).To(BeEmpty())
}

func TestACertificateOfPeopleStays(t *testing.T) {
	model := vcdsim.K8sTenant()
	chain, key := selfSigned(t)
	model.Orgs[1].Certificates = []vcdsim.Certificate{{Alias: "theirs", PEM: chain, Key: key}}
	w := newWorld(t, model)
	d := wish(service("c1", "web"), 443)
	d.Listeners[0].Application, d.Listeners[0].Certificate = lb.HTTPS, lb.Certificate{Alias: "theirs"}

	plan := w.insist(&d)
	w.Expect(plan.Status.Ready).To(BeTrue())
	w.remove(d)
	w.Expect(w.aliases()).To(HaveLen(1))

	d = wish(service("c1", "web"), 443)
	d.Listeners[0].Application, d.Listeners[0].Certificate = lb.HTTPS, lb.Certificate{Alias: "nope"}
	plan, err := w.reach(&d)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(HaveLen(1))
	w.Expect(w.left("c1")).To(BeEmpty(), "nothing half-built")
}
