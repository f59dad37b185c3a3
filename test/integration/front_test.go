// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// A frontMode selects how a front changes VM queries.
type frontMode int32

const (
	unchanged frontMode = iota
	empty               // 200, with an empty list
	shifting            // one row per page, and the rows shift by one between the pages
)

// A front is a reverse proxy of a simulator. It changes responses as if the database or the permissions of VCD had
// changed.
type front struct {
	*httptest.Server

	mode atomic.Int32
}

// newFront puts a front in front of a site. Objects that are created afterwards use it.
func (s *site) newFront(t *testing.T) *front {
	t.Helper()
	roots := x509.NewCertPool()
	s.g.Expect(roots.AppendCertsFromPEM(s.Simulator.CA())).To(BeTrue())
	target, err := url.Parse(s.Simulator.URL())
	s.g.Expect(err).NotTo(HaveOccurred())
	f := &front{}
	f.Server = httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			f.rewriteRequest(r.Out.URL)
		},
		ModifyResponse: f.rewriteResponse,
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableCompression: true,
		},
	})
	t.Cleanup(f.Close)
	s.front = f
	return f
}

func (f *front) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

func (f *front) set(m frontMode) { f.mode.Store(int32(m)) }

func isVMQuery(u *url.URL) bool {
	return u.Path == "/api/query" && u.Query().Get("type") == "vm"
}

// rewriteRequest shifts the pages of a VM query in mode shifting.
func (f *front) rewriteRequest(u *url.URL) {
	if frontMode(f.mode.Load()) != shifting || !isVMQuery(u) {
		return
	}
	q := u.Query()
	page, _ := strconv.Atoi(q.Get("page")) // page 1 by default
	q.Set("page", strconv.Itoa(max(1, page-1)))
	q.Set("pageSize", "1")
	u.RawQuery = q.Encode()
}

var (
	vmRecord = regexp.MustCompile(`(?s)<VMRecord\b[^>]*?(/>|>.*?</VMRecord>)`)
	totalOf  = regexp.MustCompile(`total="\d+"`)
)

// rewriteResponse removes the rows from the response to a VM query in mode empty.
func (f *front) rewriteResponse(res *http.Response) error {
	if frontMode(f.mode.Load()) != empty || !isVMQuery(res.Request.URL) || res.StatusCode != http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	body = totalOf.ReplaceAll(vmRecord.ReplaceAll(body, nil), []byte(`total="0"`))
	res.Body = io.NopCloser(bytes.NewReader(body))
	res.ContentLength = int64(len(body))
	res.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
