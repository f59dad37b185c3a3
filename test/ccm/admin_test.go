// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// An admin changes VCD manually, as an administrator of the organization.
type admin struct {
	t     *testing.T
	v     *vcd
	http  *http.Client
	token string
}

func (v *vcd) admin(t *testing.T) *admin {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(v.CA())
	p := &admin{
		t: t,
		v: v,
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		}},
	}
	header, _, err := p.send(http.MethodPost, "1.0.0/sessions", nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	p.token = header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	return p
}

// send sends a request to the JSON API. It returns an error if the status is not a success.
func (p *admin) send(method, path string, body any) (http.Header, []byte, error) {
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

// must retries a request until it succeeds, and waits for its task.
func (p *admin) must(method, path string, body any) {
	p.t.Helper()
	g := NewWithT(p.t)
	var header http.Header
	g.Eventually(func() (err error) {
		header, _, err = p.send(method, path, body)
		return err
	}, timeout, poll).Should(Succeed())
	p.awaitTask(header)
}

// awaitTask waits until the task in the Location header of a response succeeds. Without a task, it returns immediately.
func (p *admin) awaitTask(header http.Header) {
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
	}, timeout, poll).Should(Equal("success"))
}

// pathOf returns the path of a document.
func pathOf(d vcdsim.Document) string {
	return strings.ReplaceAll(d.Path, "{gateway}", vcdsim.URN("gateway", d.Parent)) + "/" + d.ID
}

// deleteByHand deletes the objects of some kinds with an owner's marker. List kinds before the kinds that they refer
// to. The controller may recreate an object before the objects that it refers to are deleted. In this case, it is
// deleted again.
func (v *vcd) deleteByHand(t *testing.T, uid string, kinds ...string) {
	t.Helper()
	p := v.admin(t)
	found := map[string]bool{}
	for _, kind := range kinds {
		for _, d := range v.owned(kind, uid) {
			found[d.ID] = true
		}
	}
	NewWithT(t).Eventually(func() (err error) {
		var left []vcdsim.Document
		for _, kind := range kinds {
			left = append(left, v.owned(kind, uid)...)
		}
		if !slices.ContainsFunc(left, func(d vcdsim.Document) bool { return found[d.ID] }) {
			return nil
		}
		for _, d := range left {
			header, _, failed := p.send(http.MethodDelete, pathOf(d), nil)
			if err = errors.Join(err, failed); failed == nil {
				p.awaitTask(header)
			}
		}
		return err
	}, timeout, poll).Should(Succeed())
}

// owned returns the documents of a kind with an owner's marker.
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

// changeByHand changes the documents of a kind with an owner's marker.
func (v *vcd) changeByHand(t *testing.T, uid, kind string, change func(body map[string]any)) {
	t.Helper()
	p := v.admin(t)
	for _, d := range v.owned(kind, uid) {
		body := decode[map[string]any](d)
		change(body)
		p.must(http.MethodPut, pathOf(d), body)
	}
}
