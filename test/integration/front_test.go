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

// A mood is the behavior of a front for VM queries.
type mood int32

const (
	honest   mood = iota
	empty         // 200, with an empty list
	shifting      // one row per page, and the rows shift by one between the pages
)

// A front is a proxy in front of a simulator. It changes responses, like a VCD whose database or permissions have
// changed.
type front struct {
	*httptest.Server

	mood atomic.Int32
}

// newFront puts a front before a site. Objects that are created from then on use it.
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
			f.ask(r.Out.URL)
		},
		ModifyResponse: f.answer,
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

func (f *front) set(m mood) { f.mood.Store(int32(m)) }

func isVMQuery(u *url.URL) bool {
	return u.Path == "/api/query" && u.Query().Get("type") == "vm"
}

// ask shifts the pages of a VM query in mood shifting.
func (f *front) ask(u *url.URL) {
	if mood(f.mood.Load()) != shifting || !isVMQuery(u) {
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

// answer removes the rows from the response to a VM query in mood empty.
func (f *front) answer(res *http.Response) error {
	if mood(f.mood.Load()) != empty || !isVMQuery(res.Request.URL) || res.StatusCode != http.StatusOK {
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
