// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestBadConfiguration checks that the program does not start with an invalid configuration, and reports all errors.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	v, err := newVCD(1)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(v.close()).To(Succeed()) })
	for i, tc := range []struct {
		name     string
		settings settings
		secrets  map[string]string
		messages []string
		recovers bool // the missing object may be created while the program runs
	}{
		{
			name:     "several unknown keys",
			settings: settings{"clusterid": "c", "vcd.hots": "x", "loadbalancer.algorythm": "y"},
			messages: []string{"vcd.hots", "loadbalancer.algorythm"},
		},
		{
			name: "a range whose end precedes its start",
			settings: settings{
				"clusterid":                   "c",
				"loadbalancer.oneArm.startIP": "192.168.8.9",
				"loadbalancer.oneArm.endIP":   "192.168.8.2",
			},
			messages: []string{"oneArm"},
		},
		{name: "no cluster ID", messages: []string{"clusterid"}},
		{
			name:     "no credentials",
			settings: settings{"clusterid": "c"},
			secrets:  map[string]string{"username": "ccm", "password": ""},
			messages: []string{"refreshToken"},
			recovers: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			config, files, err := v.files(tc.settings)
			g.Expect(err).NotTo(HaveOccurred())
			for name, content := range tc.secrets {
				files["basic-auth/"+name] = content
			}
			c, err := newController(t.Context(), sharedCluster, "bad-"+string(rune('a'+i)), files, config)
			g.Expect(err).NotTo(HaveOccurred())

			out, err := c.validate(t.Context())
			g.Expect(err).To(HaveOccurred(), "--validate-config should fail")
			for _, s := range tc.messages {
				g.Expect(out).To(ContainSubstring(s))
			}

			g.Expect(out).NotTo(ContainSubstring("goroutine"), "the program should report errors, not crash")
			if tc.recovers {
				return
			}
			g.Expect(c.Start(t.Context())).To(MatchError(ContainSubstring(tc.messages[0])),
				"the program should not start, and report the error")
		})
	}
}

// TestGoodConfiguration checks that --validate-config accepts the configuration of all other tests.
func TestGoodConfiguration(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	v, err := newVCD(1)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(v.close()).To(Succeed()) })
	config, files, err := v.files(settings{"clusterid": "c"})
	g.Expect(err).NotTo(HaveOccurred())
	c, err := newController(t.Context(), sharedCluster, "good", files, config)
	g.Expect(err).NotTo(HaveOccurred())
	out, err := c.validate(t.Context())
	g.Expect(err).NotTo(HaveOccurred(), out)
}

// TestRotatedSecret changes the password in VCD and then in the Secret on disk. Requests in the meantime wait.
func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "rotated", fixtureOption{})
	s := w.service(t, "web")
	s.awaitServed()

	w.vcd().Edit(func(e *vcdsim.Editor) {
		e.SetPassword(vcdOrg, "ccm", "another")
		e.ExpireSessions()
	})
	s.change(ports(port("http", 80), port("more", 81)))
	s.g.Eventually(s.warnings, timeout, poll).ShouldNot(BeEmpty(), "an event should report the rejected credentials")
	s.g.Expect(w.controller.write(map[string]string{"basic-auth/password": "another"})).To(Succeed())

	s.awaitServed()
	s.g.Expect(w.controller.log()).NotTo(ContainSubstring("another"), "secrets are not logged")
}

// TestWrongSecret starts with credentials that VCD rejects. The program tries each password only once, so that the
// account is not locked, and recovers after the credentials are corrected.
func TestWrongSecret(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "wrong", fixtureOption{vcd: []vcdOption{func(c *vcdsim.Config) {
		users := c.Model.Orgs[1].Users
		for i := range users {
			if users[i].Name == "ccm" {
				users[i].Password = "right"
			}
		}
	}}})
	s := w.service(t, "web")
	s.g.Eventually(s.warnings, timeout, poll).ShouldNot(BeEmpty())
	logins := func() int { return len(describe(w.cloud.requests(), loggingIn)) }
	before := logins()
	s.g.Consistently(logins, "8s", time.Second).Should(BeNumerically("<=", before+1),
		"a wrong password is tried only once")

	s.g.Expect(w.controller.write(map[string]string{"basic-auth/password": "right"})).To(Succeed())

	s.awaitServed()
}

// TestRestart restarts the controller, which must not write to the cloud or change any object.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "restart", fixtureOption{})
	g := NewWithT(t)
	var all []*service
	for _, gateway := range gatewayNames() {
		all = append(all, w.service(t, "web", by(gateway), ports(port("http", 80), port("https", 443))))
	}
	for _, s := range all {
		s.awaitServed()
	}
	before := w.cloud.leftovers("")
	w.cloud.forget()

	g.Expect(w.controller.Restart(t.Context())).To(Succeed())

	for _, s := range all {
		s.expectUnchanged()
		s.awaitServed()
	}
	g.Expect(describe(w.cloud.requests(), writing)).To(BeEmpty())
	g.Expect(w.cloud.leftovers("")).To(Equal(before))
}
