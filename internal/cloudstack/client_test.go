// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

func start(t *testing.T, o cloudstacksim.Options) (*cloudstacksim.Simulator, string) {
	t.Helper()
	sim := cloudstacksim.New(o)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return sim, server.URL
}

func client(url string, mods ...func(*cloudstack.Options)) *cloudstack.Client {
	o := cloudstack.Options{
		URL:    url,
		Key:    cloudstacksim.UserKey,
		Secret: cloudstacksim.UserSecret,
		Poll:   time.Millisecond,
	}
	for _, mod := range mods {
		mod(&o)
	}
	return cloudstack.New(o)
}

func TestSignaturesAreAccepted(t *testing.T) {
	g := NewWithT(t)
	sim, url := start(t, cloudstacksim.Options{})
	network := sim.AddNetwork("nodes", "")
	sim.AddAddresses("203.0.113.1")
	c := client(url)
	a, err := c.Associate(t.Context(), cloudstack.Network{ID: network}, "")
	g.Expect(err).NotTo(HaveOccurred())

	value := `A b+c*d~e/f,"g"=ü&h`
	g.Expect(c.Tag(t.Context(), cloudstack.TagAddress, []string{a.ID}, cloudstack.Tag{Key: "k", Value: value})).To(Succeed())

	all, err := c.Addresses(t.Context(), cloudstack.Network{ID: network})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveExactElements(HaveField("Tags", []cloudstack.Tag{{Key: "k", Value: value}})))
}

func TestErrorsAreClassified(t *testing.T) {
	wrong := func(o *cloudstack.Options) { o.Secret = "canary" }
	unknown := func(o *cloudstack.Options) { o.Project = "none" }
	late := func(o *cloudstack.Options) { o.Now = func() time.Time { return time.Now().Add(-time.Hour) } }
	away := func(o *cloudstack.Options) { o.URL = "http://127.0.0.1:1/client/api" }
	tests := []struct {
		name string
		mod  func(*cloudstack.Options)
		want error
	}{
		{"an incorrect secret", wrong, cloudstack.ErrUnauthorized},
		{"a slow clock", late, cloudstack.ErrUnauthorized},
		{"an unknown project", unknown, cloudstack.ErrNotFound},
		{"no answer", away, cloudstack.ErrUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			_, url := start(t, cloudstacksim.Options{})

			_, err := client(url, tt.mod).VMs(t.Context(), "")

			g.Expect(err).To(MatchError(tt.want))
			g.Expect(err.Error()).NotTo(Or(ContainSubstring("canary"), ContainSubstring("user-"),
				ContainSubstring("signature=")))
		})
	}
}

func TestCodesOfErrors(t *testing.T) {
	for code, want := range map[int]error{
		401: cloudstack.ErrUnauthorized,
		432: cloudstack.ErrForbidden,
		531: cloudstack.ErrForbidden,
		431: cloudstack.ErrInvalid,
		533: cloudstack.ErrLimit,
		535: cloudstack.ErrLimit,
		537: cloudstack.ErrConflict,
		536: cloudstack.ErrBusy,
		429: cloudstack.ErrBusy,
		503: cloudstack.ErrUnavailable,
		502: cloudstack.ErrUnavailable,
	} {
		sim, url := start(t, cloudstacksim.Options{})
		sim.Fail(cloudstacksim.Fault{Code: code})

		_, err := client(url).VMs(t.Context(), "")

		NewWithT(t).Expect(err).To(MatchError(want), "%d", code)
	}
}

func TestResponsesThatAreNotFromCloudStack(t *testing.T) {
	for _, body := range []string{"<html>", "[]", `{"other":{}}`, ""} {
		server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(to, body)
		}))
		t.Cleanup(server.Close)

		_, err := client(server.URL).VMs(t.Context(), "")

		NewWithT(t).Expect(err).To(MatchError(cloudstack.ErrUnavailable), body)
	}
}

func TestAnUntrustedCertificate(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(cloudstacksim.New(cloudstacksim.Options{}))
	t.Cleanup(server.Close)

	_, err := client(server.URL).VMs(t.Context(), "")
	g.Expect(err).To(MatchError(cloudstack.ErrTLS))
	_, err = client(server.URL, func(o *cloudstack.Options) { o.Insecure = true }).VMs(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	g := NewWithT(t)
	requests := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)

	_, err := client(server.URL).VMs(t.Context(), "")

	g.Expect(err).To(HaveOccurred())
	g.Expect(requests).To(BeZero())
}

func TestAllPagesAreRead(t *testing.T) {
	g := NewWithT(t)
	sim, url := start(t, cloudstacksim.Options{PageSize: 2})
	for i := range 5 {
		sim.AddVM(fmt.Sprint("node-", i), nil, nil)
	}

	all, err := client(url).VMs(t.Context(), "")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(5))
	g.Expect(sim.Calls()).To(HaveLen(3))
}

func TestAListThatShrinksIsIncomplete(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		page := map[string]any{"count": 3}
		if r.PostFormValue("page") == "" {
			page["virtualmachine"] = []map[string]any{{"id": "1"}}
		}
		_ = json.NewEncoder(to).Encode(map[string]any{"listvirtualmachinesresponse": page})
	}))
	t.Cleanup(server.Close)

	_, err := client(server.URL).VMs(t.Context(), "")

	g.Expect(err).To(MatchError(cloudstack.ErrChanged))
}

func TestAListThatChangesBetweenPagesIsIncomplete(t *testing.T) {
	for name, second := range map[string]map[string]any{
		"one element fewer, so that one moves to the previous page": {"count": 2, "virtualmachine": []map[string]any{}},
		"the end, without a count":                                  {},
		"one element more":                                          {"count": 4, "virtualmachine": []map[string]any{{"id": "2"}, {"id": "3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
				page := map[string]any{"count": 3, "virtualmachine": []map[string]any{{"id": "1"}, {"id": "2"}}}
				if r.PostFormValue("page") == "2" {
					page = second
				}
				_ = json.NewEncoder(to).Encode(map[string]any{"listvirtualmachinesresponse": page})
			}))
			t.Cleanup(server.Close)

			all, err := client(server.URL).VMs(t.Context(), "")

			g.Expect(err).To(MatchError(cloudstack.ErrChanged))
			g.Expect(err).To(MatchError(cloudstack.ErrUnavailable))
			g.Expect(all).To(ContainElements(HaveField("ID", "1"), HaveField("ID", "2")), "listed elements exist")
		})
	}
}

// growing has one more machine each time that machines are listed.
func growing(size int) cloudstacksim.Options {
	n := 0
	return cloudstacksim.Options{
		PageSize: size,
		Before: func(s *cloudstacksim.Simulator, command string) {
			if command == "listVirtualMachines" {
				n++
				s.AddVM(fmt.Sprintf("more-%d", n), nil, nil)
			}
		},
	}
}

func TestAnEverChangingListReturnsEachElementOnce(t *testing.T) {
	g := NewWithT(t)
	sim, url := start(t, growing(2))
	for i := range 5 {
		sim.AddVM(fmt.Sprint("node-", i), nil, nil)
	}

	all, err := client(url).VMs(t.Context(), "")

	g.Expect(err).To(MatchError(cloudstack.ErrChanged))
	names := map[string]int{}
	for _, vm := range all {
		names[vm.Name]++
	}
	for i := range 5 {
		g.Expect(names).To(HaveKeyWithValue(fmt.Sprint("node-", i), 1))
	}
}

func TestOtherListsFailWhileTheyChange(t *testing.T) {
	g := NewWithT(t)
	n := 0
	sim, url := start(t, cloudstacksim.Options{
		PageSize: 2,
		Before: func(s *cloudstacksim.Simulator, _ string) {
			n++
			s.AddNetwork(fmt.Sprint("more-", n), "")
		},
	})
	for range 5 {
		sim.AddNetwork("n", "")
	}

	all, err := client(url).Networks(t.Context(), "")

	g.Expect(err).To(MatchError(cloudstack.ErrUnavailable))
	g.Expect(all).To(BeNil(), "missing elements prove nothing")
}

func TestFreeAddressesAreReturnedWhileTheirListChanges(t *testing.T) {
	g := NewWithT(t)
	n := 0
	sim, url := start(t, cloudstacksim.Options{
		PageSize: 2,
		Before: func(s *cloudstacksim.Simulator, _ string) {
			n++
			s.AddAddresses(fmt.Sprint("198.51.100.", n))
		},
	})
	sim.AddAddresses("203.0.113.1", "203.0.113.2", "203.0.113.3")

	all, err := client(url).FreeAddresses(t.Context(), cloudstack.Network{})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(ContainElement(HaveField("IPAddress", "203.0.113.3")))
}

func TestRotatedKeysAreUsed(t *testing.T) {
	g := NewWithT(t)
	sim, url := start(t, cloudstacksim.Options{})
	key := cloudstacksim.UserKey
	secret := cloudstacksim.UserSecret
	c := client(url, func(o *cloudstack.Options) {
		o.Keys = func() (string, string) { return key, secret }
	})
	_, err := c.VMs(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())

	sim.Rotate(cloudstacksim.UserKey, "new-key", "new-secret")
	_, err = c.VMs(t.Context(), "")
	g.Expect(err).To(MatchError(cloudstack.ErrUnauthorized))
	key = "new-key"
	secret = "new-secret"

	_, err = c.VMs(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
}

func TestAnInternalListErrorIsACloudFailure(t *testing.T) {
	g := NewWithT(t)
	sim, url := start(t, cloudstacksim.Options{})
	sim.Fail(cloudstacksim.Fault{Times: -1})
	c := client(url)

	_, err := c.Networks(t.Context(), "")
	g.Expect(err).To(MatchError(cloudstack.ErrFailing))
	_, err = c.VMs(t.Context(), "")
	g.Expect(err).To(MatchError(cloudstack.ErrFailing))
	g.Expect(c.DeleteRule(t.Context(), "r")).NotTo(MatchError(cloudstack.ErrFailing), "the error may refer to the rule")
}

func TestJobs(t *testing.T) {
	g := NewWithT(t)
	sim, url := start(t, cloudstacksim.Options{Latency: time.Hour})
	network := sim.AddNetwork("nodes", "")
	sim.AddAddresses("203.0.113.1")
	patient := client(url, func(o *cloudstack.Options) { o.Patience = 20 * time.Millisecond })

	_, err := patient.Associate(t.Context(), cloudstack.Network{ID: network}, "")
	g.Expect(err).To(MatchError(cloudstack.ErrBusy))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client(url).Associate(ctx, cloudstack.Network{ID: network}, "")
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestAFailedJob(t *testing.T) {
	g := NewWithT(t)
	sim, url := start(t, cloudstacksim.Options{})
	network := sim.AddNetwork("nodes", "")
	sim.AddAddresses("203.0.113.1")
	id := sim.Allocate("203.0.113.1", network)
	c := client(url)
	tag := cloudstack.Tag{Key: "k", Value: "v"}
	g.Expect(c.Tag(t.Context(), cloudstack.TagAddress, []string{id}, tag)).To(Succeed())

	err := c.Tag(t.Context(), cloudstack.TagAddress, []string{id}, tag)

	g.Expect(err).To(MatchError(ContainSubstring("tag k already on the resource")))
}

func TestAPlainUserIsEnough(t *testing.T) {
	g := NewWithT(t)
	_, url := start(t, cloudstacksim.Options{Version: "4.18.2.0"})

	version, err := client(url).Version(t.Context())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(Equal("4.18.2.0"))
}

func TestMetricsCountCommands(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	metrics, err := cloudstack.NewMetrics(registry)
	g.Expect(err).NotTo(HaveOccurred())
	sim, url := start(t, cloudstacksim.Options{})
	c := client(url, func(o *cloudstack.Options) { o.Metrics = metrics })
	sim.Fail(cloudstacksim.Fault{Command: "listNetworks", Code: 432})

	_, _ = c.Networks(t.Context(), "")
	_, _ = c.Networks(t.Context(), "")

	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var counted []string
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Counter != nil {
				counted = append(counted,
					fmt.Sprint(m.Label[0].GetValue(), " ", m.Label[1].GetValue(), " ", m.Counter.GetValue()))
			}
		}
	}
	g.Expect(strings.Join(counted, ", ")).To(Equal("listNetworks forbidden 1, listNetworks ok 1"))
}
