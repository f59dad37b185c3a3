package vcd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// A safe keeps a token in memory.
type safe struct {
	mu     sync.Mutex
	token  string
	err    error // of Store
	stored int
}

func (s *safe) Load(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, nil
}

func (s *safe) Store(_ context.Context, old, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.token != old:
		return vcd.ErrConflict
	}
	s.token = token
	s.stored++
	return nil
}

func (s *safe) set(token string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.err = token, err
}

// A registrar makes service accounts, as a person does.
type registrar struct {
	*WithT

	sim    *vcdsim.Simulator
	client *http.Client
	bearer string
}

func newRegistrar(t *testing.T, sim *vcdsim.Simulator) *registrar {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(sim.CA())
	r := &registrar{WithT: NewWithT(t), sim: sim, client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, sim.URL()+"/cloudapi/1.0.0/sessions", nil)
	r.Expect(err).NotTo(HaveOccurred())
	req.SetBasicAuth("admin@acme", "password")
	req.Header.Set("Accept", "application/json;version=37.0")
	res, err := r.client.Do(req)
	r.Expect(err).NotTo(HaveOccurred())
	_ = res.Body.Close()
	r.bearer = res.Header.Get("X-Vmware-Vcloud-Access-Token")
	return r
}

func (r *registrar) post(path, kind, body string) map[string]any {
	req, err := http.NewRequest(http.MethodPost, r.sim.URL()+path, strings.NewReader(body))
	r.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Accept", "application/json;version=37.0")
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer "+r.bearer)
	res, err := r.client.Do(req)
	r.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(res.StatusCode).To(BeNumerically("<", 300), "%s: %s", path, answer)
	out := map[string]any{}
	if len(bytes.TrimSpace(answer)) > 0 {
		r.Expect(json.Unmarshal(answer, &out)).To(Succeed())
	}
	return out
}

// account returns the first token of a new service account.
func (r *registrar) account(name string) string {
	form := "application/x-www-form-urlencoded"
	client := r.post("/oauth/tenant/acme/register", "application/json",
		`{"client_name":"`+name+`","software_id":"e0b7e8b8-7b6c-4f8c-8f31-000000000001","scope":"urn:vcloud:role:`+url.PathEscape(vcdsim.RoleCloudProvider)+`"}`)["client_id"].(string)
	device := r.post("/oauth/tenant/acme/device_authorization", form, url.Values{"client_id": {client}}.Encode())
	r.post("/cloudapi/1.0.0/deviceLookup/grant", "application/json", `{"userCode":"`+device["user_code"].(string)+`"}`)
	return r.post("/oauth/tenant/acme/token", form, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {client}, "device_code": {device["device_code"].(string)},
	}.Encode())["refresh_token"].(string)
}

// login returns a pool of its own, as a program has it, and how it gets its session.
func login(t *testing.T, sim *vcdsim.Simulator, tokens vcd.TokenStore) (*vcd.Pool, func() (*vcd.Session, error)) {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{RequestsPerSecond: 10000, Burst: 10000})
	config := vcd.Config{Site: sim.URL(), Org: "acme", CABundle: sim.CA(), ServiceAccount: vcd.NewServiceAccount(tokens)}
	return pool, func() (*vcd.Session, error) { return pool.Session(t.Context(), config) }
}

func TestServiceAccountsRotateTheirTokens(t *testing.T) {
	g, sim := NewWithT(t), vcdsimtest.Start(t, vcdsim.Config{})
	register := newRegistrar(t, sim)
	safes := []*safe{{token: register.account("manager")}, {token: register.account("ccm-a")}, {token: register.account("ccm-b")}}
	var sessions []func() (*vcd.Session, error)
	for _, s := range safes {
		pool, session := login(t, sim, s)
		t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
		sessions = append(sessions, session)
	}

	for round := range 100 {
		sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
		var all sync.WaitGroup
		for _, session := range sessions {
			for range 3 { // at the same time, with one token
				all.Go(func() {
					s, err := session()
					if err == nil {
						_, err = s.FindVApp(t.Context(), vcd.VDC{Ref: vcd.Ref{ID: "urn:vcloud:vdc:00000000-0000-4000-8000-000000000000"}}, "none")
					}
					if !errors.Is(err, vcd.ErrNotFound) {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
		}
		all.Wait()
	}

	for _, s := range safes {
		g.Expect(s.stored).To(BeNumerically("~", 100, 1))
	}
}

func TestATokenThatCannotBeWrittenDownIsKept(t *testing.T) {
	g, sim := NewWithT(t), vcdsimtest.Start(t, vcdsim.Config{})
	tokens := &safe{token: newRegistrar(t, sim).account("ccm")}
	first := tokens.token
	tokens.set(first, errors.New("no API server"))
	pool, session := login(t, sim, tokens)
	s, err := session()
	g.Expect(err).NotTo(HaveOccurred(), "what the login gave works")
	g.Expect(tokens.token).To(Equal(first))

	sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
	_, err = s.FindVDC(t.Context(), "acme-vdc")
	g.Expect(err).NotTo(HaveOccurred(), "another login takes the token that is not written down")

	tokens.set(first, nil)
	g.Expect(pool.Close(t.Context())).To(Succeed())
	g.Expect(tokens.token).NotTo(Equal(first), "it is written down at the end at the latest")
	next, session := login(t, sim, tokens)
	_, err = session()
	g.Expect(err).NotTo(HaveOccurred(), "so that the next process can log in")
	g.Expect(next.Close(t.Context())).To(Succeed())
}

func TestATokenThatWasRefusedIsTriedOnce(t *testing.T) {
	g, sim := NewWithT(t), vcdsimtest.Start(t, vcdsim.Config{})
	tokens := &safe{token: "stolen"}
	pool, session := login(t, sim, tokens)
	defer func() { _ = pool.Close(context.WithoutCancel(t.Context())) }()
	for range 5 {
		_, err := session()
		g.Expect(err).To(MatchError(vcd.ErrUnauthorized))
		g.Expect(err.Error()).NotTo(ContainSubstring("stolen"))
	}
	g.Expect(sim.Counters()).To(HaveKeyWithValue("POST /oauth/tenant/token", 1))
}
