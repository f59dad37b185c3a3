// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// entity makes a runtime defined entity of a type as another user, shares it with ours and returns its URN.
func (s *site) entity(t *testing.T, entityType, content string) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.sim.CA())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:    roots,
		MinVersion: tls.VersionTLS12,
	}}}
	send := func(method, path, body string, auth func(*http.Request)) (http.Header, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.sim.URL()+path, bytes.NewBufferString(body))
		s.Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Accept", "application/json;version=37.0")
		req.Header.Set("Content-Type", "application/json")
		auth(req)
		res, err := client.Do(req)
		s.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = res.Body.Close() }()
		answer, err := io.ReadAll(res.Body)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(res.StatusCode).To(BeNumerically("<", 300), "%s: %s", path, answer)
		return res.Header, answer
	}
	login, _ := send(http.MethodPost, "/cloudapi/1.0.0/sessions", "",
		func(r *http.Request) { r.SetBasicAuth("capvcd@acme", "password") })
	bearer := func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+login.Get("X-Vmware-Vcloud-Access-Token"))
	}
	send(http.MethodPost, "/cloudapi/1.0.0/entityTypes/urn:vcloud:type:"+entityType,
		`{"name":"cluster","entity":`+content+`}`, bearer)
	_, list := send(http.MethodGet, "/cloudapi/1.0.0/entities/types/"+strings.ReplaceAll(entityType, ":", "/"), "",
		bearer)
	var page struct{ Values []struct{ ID string } }
	s.Expect(json.Unmarshal(list, &page)).To(Succeed())
	s.Expect(page.Values).To(HaveLen(1))
	id := page.Values[0].ID
	send(http.MethodPost, "/cloudapi/1.0.0/entities/"+id+"/accessControls", `{"memberId":"`+s.user("ccm")+
		`","grantType":"MembershipAccessControlGrant","accessLevelId":"urn:vcloud:accessLevel:ReadWrite"}`, bearer)
	return id
}

// user returns the URN of a user of the tenant.
func (s *site) user(name string) string {
	for _, u := range s.sim.State().Model.Orgs[1].Users {
		if u.Name == name {
			return vcdsim.URN("user", u.ID)
		}
	}
	return ""
}

func (s *site) content(t *testing.T, id string) string {
	t.Helper()
	session, err := s.sessions.Session(t.Context())
	s.Expect(err).NotTo(HaveOccurred())
	entity, err := session.Entities.Get(t.Context(), id)
	s.Expect(err).NotTo(HaveOccurred())
	return string(entity.Content)
}

var owner = loadbalancer.Owner{Cluster: "c1", Namespace: "shop", Name: "web", UID: "u1"}

func standing(ids ...string) observation {
	o := observation{owner: owner, settled: true, addresses: []netip.Addr{netip.MustParseAddr("203.0.113.7")}}
	for _, id := range ids {
		o.objects = append(o.objects,
			loadbalancer.Object{Kind: lb.KindService, ID: id, Name: "vs-" + id, Addresses: o.addresses})
	}
	return o
}

// entityWrites counts the writes of entities so far.
func (s *site) entityWrites() int {
	n := 0
	for call, times := range s.sim.Counters() {
		if strings.HasPrefix(call, "PUT /cloudapi/1.0.0/entities") {
			n += times
		}
	}
	return n
}

func TestReporter(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"kind":"CAPVCDCluster","status":{"csi":{"x":1}}}`)
	clock := testingclock.NewFakeClock(time.Now())
	r := NewReporter(ReporterOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0", Clock: clock})
	writes := s.entityWrites

	s.Expect(r.write(t.Context())).To(Succeed())
	s.Expect(s.content(t,
		id)).To(MatchJSON(`{"kind":"CAPVCDCluster","status":{"csi":{"x":1},"cpi":{"name":"cloud-controller-manager","version":"2.0.0"}}}`))
	s.Expect(r.write(t.Context())).To(Succeed())
	s.Expect(writes()).To(Equal(1), "nothing new, nothing written")

	r.note(observation{owner: owner})
	r.note(standing("a", "b"))
	r.note(standing("a", "b"))
	r.note(observation{owner: owner, gateway: "elsewhere", absent: true, settled: true})
	r.note(observation{owner: owner, err: errors.New("no room")})
	r.note(observation{owner: owner, err: errors.New("no room")})
	s.Expect(r.write(t.Context())).To(Succeed())
	s.Expect(writes()).To(Equal(2))
	content := s.content(t, id)
	s.Expect(content).To(And(ContainSubstring(`"virtualIPs":["203.0.113.7"]`), ContainSubstring(`"id":"b"`)))
	s.Expect(strings.Count(content, "CreatedLoadbalancer")).To(Equal(1))
	s.Expect(strings.Count(content, "no room")).To(Equal(1))

	r.note(standing("a"))
	s.Expect(r.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(And(Not(ContainSubstring(`"id":"b"`)), Not(ContainSubstring("no room")),
		ContainSubstring("203.0.113.7")))

	r.note(observation{owner: owner, absent: true, settled: true})
	s.Expect(r.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(And(ContainSubstring("DeletedLoadbalancer"), ContainSubstring(`"virtualIPs":[]`),
		ContainSubstring(`"vcdResourceSet":[]`)))
}

func TestTheReporterRetriesFailedWrites(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"kind":"CAPVCDCluster"}`)
	clock := testingclock.NewFakeClock(time.Now())
	r := NewReporter(ReporterOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0", Clock: clock})
	s.sim.Faults().Add(vcdsim.Fault{Operation: "PUT /cloudapi/1.0.0/entities*", Status: 503, Count: 1})
	r.note(standing("a"))
	s.Expect(r.write(t.Context())).NotTo(Succeed())

	r.note(standing("b"))
	s.Expect(r.write(t.Context())).To(Succeed())

	s.Expect(s.content(t, id)).To(And(ContainSubstring(`"id":"b"`), Not(ContainSubstring(`"id":"a"`))))
}

func TestARejectedReportIsRetriedWithBackoff(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"kind":"CAPVCDCluster"}`)
	clock := testingclock.NewFakeClock(time.Now())
	r := NewReporter(ReporterOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0", Clock: clock})
	operation := "PUT /cloudapi/1.0.0/entities*"
	s.sim.Faults().Add(vcdsim.Fault{Operation: operation, Status: http.StatusBadRequest})
	before := s.entityWrites()

	for range 60 { // minutes
		r.note(standing("a"))
		_ = r.write(t.Context())
		clock.Step(time.Minute)
	}

	s.Expect(s.entityWrites() - before).To(BeNumerically("<=", 4))
	s.sim.Faults().Clear()
	clock.Step(reportPauseMax)
	s.Expect(r.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(ContainSubstring(`"id":"a"`))
}

func TestTheReporterWritesAtTheEnd(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"kind":"CAPVCDCluster"}`)
	r := NewReporter(ReporterOptions{
		Session: s.sessions.Session,
		ID:      id,
		Version: "2.0.0",
		Clock:   testingclock.NewFakeClock(time.Now()),
	})
	s.Expect(r.Flush(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).NotTo(ContainSubstring("2.0.0"), "who never led has nothing to say")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Start(ctx)
	s.Eventually(func() string { return s.content(t, id) }).Should(ContainSubstring("2.0.0"))

	r.note(standing("a"))
	cancel()
	s.Expect(r.Flush(t.Context())).To(Succeed())

	s.Expect(s.content(t, id)).To(ContainSubstring(`"id":"a"`))
}

func TestTheReporterRetriesAfterConflicts(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"kind":"CAPVCDCluster"}`)
	s.sim.Faults().Add(vcdsim.Fault{Operation: "PUT /cloudapi/1.0.0/entities*", Status: 412, Count: 2})
	r := NewReporter(ReporterOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0"})

	s.Expect(r.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(ContainSubstring("2.0.0"))
}

func TestWithoutAnEntityNothingIsReported(t *testing.T) {
	s := newSite(t, 0, 0)
	clock := testingclock.NewFakeClock(time.Now())
	r := NewReporter(ReporterOptions{
		Session: s.sessions.Session,
		ID:      "urn:vcloud:entity:vmware:capvcdCluster:00000000-0000-4000-8000-000000000000",
		Version: "2.0.0",
		Clock:   clock,
	})
	s.Expect(r.write(t.Context())).To(MatchError(vcd.ErrForbidden))
	s.sim.ResetCounters()

	for i := range 2 * keptDrops {
		r.note(standing(fmt.Sprint(i)))
		s.Expect(r.write(t.Context())).To(Succeed(), "it is not asked for again")
	}
	s.Expect(r.change.Put).To(HaveLen(1))
	s.Expect(r.change.Drop).To(HaveLen(keptDrops), "what cannot be written is not collected for ever")
	s.Expect(s.sim.Counters()).To(BeEmpty())
	clock.Step(reportPauseMax)
	s.Expect(r.write(t.Context())).NotTo(Succeed())
}
