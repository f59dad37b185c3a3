// SPDX-License-Identifier: Apache-2.0

package verifysite_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/verifysite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// quick is a profile with tasks that are just long enough for another request.
var quick = vcdsim.Profile{Name: "quick", Scale: 0.01}

// instant ends tasks with the response to their request.
func instant(cfg *vcdsim.Config) { cfg.Profile = vcdsim.Instant }

// A target is a simulated site with a session.
type target struct {
	*WithT

	sim     *vcdsim.Simulator
	session *vcd.Session
}

// newTarget runs a simulator, and logs in as a user of the organization acme.
func newTarget(t *testing.T, model vcdsim.Model, user string, mods ...func(*vcdsim.Config)) *target {
	t.Helper()
	cfg := vcdsim.Config{Model: model, Seed: 1, Profile: quick}
	for _, mod := range mods {
		mod(&cfg)
	}
	to := &target{WithT: NewWithT(t)}
	sim, err := vcdsim.New(cfg)
	to.Expect(err).NotTo(HaveOccurred())
	to.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	to.sim = sim
	to.session = to.login(t, user)
	return to
}

// login starts another session.
func (to *target) login(t *testing.T, user string) *vcd.Session {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{
		RequestsPerSecond: 100_000,
		Burst:             100_000,
		InFlight:          8,
		TaskPoll:          5 * time.Millisecond,
	})
	t.Cleanup(func() { _ = pool.Close(t.Context()) })
	session, err := pool.Session(t.Context(), vcd.Config{
		Site:        to.sim.URL(),
		Org:         "acme",
		CABundle:    to.sim.CA(),
		Credentials: vcd.Credentials{Username: user, Password: "password"},
	})
	to.Expect(err).NotTo(HaveOccurred())
	return session
}

// options select the objects of which the presets have several.
func options(only ...string) verifysite.Options {
	return verifysite.Options{
		VDC:         "acme-vdc",
		Network:     "nodes",
		Template:    "kubernetes/ubuntu-2404-kube-v1.36.3",
		EdgeGateway: "acme-vdc-gateway",
		Only:        only,
		Poll:        2 * time.Millisecond,
	}
}

// verify runs the probes and returns the findings by name.
func (to *target) verify(t *testing.T, o verifysite.Options) map[string]verifysite.Finding {
	t.Helper()
	v, err := verifysite.Prepare(t.Context(), to.session, o)
	to.Expect(err).NotTo(HaveOccurred())
	result, err := v.Run(t.Context())
	to.Expect(err).NotTo(HaveOccurred())
	byName := map[string]verifysite.Finding{}
	for _, f := range result.Findings {
		byName[f.Assumption] = f
	}
	return byName
}

// left lists the objects in the simulator that are not in its model.
func (to *target) left() []string {
	state := to.sim.State()
	var names []string
	for _, v := range state.VApps {
		names = append(names, "vApp "+v.Name)
	}
	for _, d := range state.Disks {
		names = append(names, "disk "+d.Name)
	}
	for _, d := range state.Documents {
		// Firewall rules are in a document of their gateway.
		if text := fmt.Sprint(d); strings.Contains(text, verifysite.NamePrefix) {
			names = append(names, text)
		}
	}
	slices.Sort(names)
	return names
}

// field returns a field of the live assumptions.
func field(e *vcdsim.Editor, name string) reflect.Value {
	return reflect.ValueOf(e.Assumptions()).Elem().FieldByName(name)
}

// text formats a value as in a finding.
func text(value any) string { return fmt.Sprint(value) }

// written lists the requests that change something.
func (to *target) written() []string {
	var all []string
	for _, r := range to.sim.Requests() {
		if r.Changes() {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}
