package ccm

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A person works in VCD by hand, as an administrator of the organisation.
type person struct {
	t     *testing.T
	v     *vcd
	http  *http.Client
	token string
}

func (v *vcd) person(t *testing.T) *person {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(v.CA())
	p := &person{t: t, v: v, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}}
	header, _, err := p.ask(http.MethodPost, "1.0.0/sessions", nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	p.token = header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	return p
}

// ask asks the JSON API for something.
func (p *person) ask(method, path string, body any) (http.Header, []byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.v.URL()+"/cloudapi/"+path, bytes.NewReader(raw))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json;version=39.0")
	req.Header.Set("Content-Type", "application/json")
	if p.token == "" {
		req.SetBasicAuth("admin@"+vcdOrg, "password")
	} else {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	res, err := p.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return nil, nil, fmt.Errorf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	return res.Header, answer, nil
}

// must asks until VCD has time for it, and returns when it is done.
func (p *person) must(method, path string, body any) {
	p.t.Helper()
	g := NewWithT(p.t)
	var header http.Header
	g.Eventually(func() (err error) {
		header, _, err = p.ask(method, path, body)
		return err
	}, patience, poll).Should(Succeed())
	p.done(header)
}

// done waits for the task that an answer names.
func (p *person) done(header http.Header) {
	p.t.Helper()
	location := header.Get("Location")
	_, id, found := strings.Cut(location, "/api/task/")
	if !found {
		return
	}
	NewWithT(p.t).Eventually(func() string {
		for _, task := range p.v.State().Tasks {
			if task.ID == id {
				return string(task.Status)
			}
		}
		return "unknown"
	}, patience, poll).Should(Equal("success"))
}

// path is where a document is.
func pathOf(d vcdsim.Document) string {
	return strings.ReplaceAll(d.Path, "{gateway}", vcdsim.URN("gateway", d.Parent)) + "/" + d.ID
}

// deleteByHand deletes what is marked with an owner, of some kinds, one after the other.
func (v *vcd) deleteByHand(t *testing.T, uid string, kinds ...string) {
	t.Helper()
	p := v.person(t)
	for _, kind := range kinds {
		for _, d := range v.owned(kind, uid) {
			p.must(http.MethodDelete, pathOf(d), nil)
		}
	}
}

// owned are the documents of a kind that are marked with an owner.
func (v *vcd) owned(kind, uid string) []vcdsim.Document {
	wanted := ownedBy(uid)
	var out []vcdsim.Document
	for _, d := range v.State().Documents {
		if d.Path == kind && wanted(decode[struct{ Description string }](d).Description) {
			out = append(out, d)
		}
	}
	return out
}

// changeByHand changes documents of a kind that are marked with an owner.
func (v *vcd) changeByHand(t *testing.T, uid, kind string, change func(body map[string]any)) {
	t.Helper()
	p := v.person(t)
	for _, d := range v.owned(kind, uid) {
		body := decode[map[string]any](d)
		change(body)
		p.must(http.MethodPut, pathOf(d), body)
	}
}

// serviceAccount registers a service account, grants it the rights of cloud controller managers, and returns its first token.
func (p *person) serviceAccount(name string) string {
	p.t.Helper()
	client := p.post("/oauth/tenant/"+vcdOrg+"/register", "application/json", fmt.Sprintf(
		`{"client_name":%q,"software_id":"e0b7e8b8-7b6c-4f8c-8f31-000000000001","scope":"urn:vcloud:role:%s"}`, name, url.PathEscape(vcdsim.RoleCloudProvider)))["client_id"]
	id := fmt.Sprint(client)
	device := p.form("/oauth/tenant/"+vcdOrg+"/device_authorization", url.Values{"client_id": {id}})
	p.post("/cloudapi/1.0.0/deviceLookup/grant", "application/json", fmt.Sprintf(`{"userCode":%q}`, device["user_code"]))
	return fmt.Sprint(p.form("/oauth/tenant/"+vcdOrg+"/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {id}, "device_code": {fmt.Sprint(device["device_code"])},
	})["refresh_token"])
}

func (p *person) form(path string, values url.Values) map[string]any {
	p.t.Helper()
	return p.post(path, "application/x-www-form-urlencoded", values.Encode())
}

// post posts something that VCD must accept, and returns what is answered.
func (p *person) post(path, kind, body string) map[string]any {
	p.t.Helper()
	g := NewWithT(p.t)
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.v.URL()+path, strings.NewReader(body))
	g.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Accept", "application/json;version=39.0")
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer "+p.token)
	res, err := p.http.Do(req)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = res.Body.Close() }()
	answer := map[string]any{}
	raw, err := io.ReadAll(res.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(res.StatusCode).To(BeNumerically("<", http.StatusMultipleChoices), "%s", raw)
	if len(raw) > 0 {
		g.Expect(json.Unmarshal(raw, &answer)).To(Succeed(), "%s", raw)
	}
	return answer
}
