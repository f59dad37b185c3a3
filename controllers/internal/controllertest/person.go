// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
)

// VCloud declares the namespace of request bodies.
const VCloud = `xmlns="http://www.vmware.com/vcloud/v1.5"`

// A Person works in VCD by hand.
type Person struct {
	w     *Env
	http  *http.Client
	token string
}

// Person logs in to VCD as an administrator of the organization.
func (w *Env) Person() *Person { return w.login("admin") }

// Driver logs in to VCD as a storage driver that uses the provider's user, who then owns its disks.
func (w *Env) Driver() *Person { return w.login("capvcd") }

// login logs in as a user of the organization, or of the one after an @.
func (w *Env) login(user string) *Person {
	if !strings.Contains(user, "@") {
		user += "@acme"
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.Sim.CA())
	p := &Person{
		w: w,
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs:    roots,
			MinVersion: tls.VersionTLS12,
		}}},
	}
	path := "/cloudapi/1.0.0/sessions"
	if strings.HasSuffix(user, "@System") {
		path += "/provider"
	}
	req, err := http.NewRequestWithContext(w.Ctx, http.MethodPost, w.Sim.URL()+path, nil)
	w.Expect(err).NotTo(HaveOccurred())
	req.SetBasicAuth(user, "password")
	req.Header.Set("Accept", "application/json;version=39.0")
	res, err := p.http.Do(req)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(res.Body.Close()).To(Succeed())
	p.token = res.Header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	w.Expect(p.token).NotTo(BeEmpty())
	return p
}

// Post sends a request with a body. The test fails if VCD rejects it.
func (p *Person) Post(path, body string) { p.send(http.MethodPost, path, body) }

// Delete sends a DELETE request. The test fails if VCD rejects it.
func (p *Person) Delete(path string) { p.send(http.MethodDelete, path, "") }

func (p *Person) send(method, path, body string) {
	req, err := http.NewRequestWithContext(p.w.Ctx, method, p.w.Sim.URL()+path, bytes.NewBufferString(body))
	p.w.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Accept", "application/*+xml;version=39.0")
	req.Header.Set("Content-Type", "application/*+xml")
	res, err := p.http.Do(req)
	p.w.Expect(err).NotTo(HaveOccurred())
	answer, err := io.ReadAll(res.Body)
	p.w.Expect(err).NotTo(HaveOccurred())
	p.w.Expect(res.Body.Close()).To(Succeed())
	p.w.Expect(res.StatusCode).To(BeNumerically("<", 300), "%s", answer)
}
