// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// withHealthChecks sets health checks of its own, which only ports of TCP can have.
func withHealthChecks(s *corev1.Service) {
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].Protocol = corev1.ProtocolTCP
	}
	s.Annotations = map[string]string{
		prefix + "health-monitor":  "http",
		prefix + "health-path":     "/healthz",
		prefix + "health-codes":    "3xx, 2xx",
		prefix + "health-interval": "5s",
		prefix + "health-timeout":  "2s",
		prefix + "health-failures": "2",
	}
}

// monitors returns the intervals of the health monitors with their own settings.
func (c *cluster) monitors() []float64 {
	var out []float64
	for _, doc := range c.sim.State().Documents {
		var body struct {
			Interval float64 `json:"sendInterval"`
			HTTP     struct {
				Request string   `json:"requestHeader"`
				Codes   []string `json:"expectedResponseCodes"`
			} `json:"httpSettings"`
		}
		if doc.Path != "1.0.0/loadBalancer/healthMonitors" {
			continue
		}
		c.Expect(json.Unmarshal(doc.Body, &body)).To(Succeed())
		c.Expect(body.HTTP.Request).To(Equal("GET /healthz HTTP/1.0"))
		c.Expect(body.HTTP.Codes).To(Equal([]string{"HTTP_2XX", "HTTP_3XX"}))
		out = append(out, body.Interval)
	}
	return out
}

func TestAServiceHasItsOwnHealthChecks(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop", withHealthChecks)

	c.ensured(t, s)
	c.Expect(c.monitors()).To(Equal([]float64{5, 5}), "one for each of its ports")
	writes := c.writes()
	c.ensured(t, s)
	c.Expect(c.writes()).To(Equal(writes), "the second time changes nothing")

	s.Annotations[prefix+"health-interval"] = "30s"
	c.ensured(t, s)
	c.Expect(c.monitors()).To(Equal([]float64{30, 30}))

	s.Annotations[prefix+"health-timeout"] = "1h"
	writes = c.writes()
	c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
	_, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)
	c.Expect(err).To(HaveOccurred())
	c.Expect(c.events.Events).To(Receive(And(ContainSubstring("InvalidHealthCheck"), ContainSubstring("1s to 40m0s"))))
	c.Expect(c.writes()).To(Equal(writes), "nothing half-built")

	c.Eventually(func() error { return c.them.EnsureLoadBalancerDeleted(t.Context(), "", s) }).Should(Succeed())
	c.Expect(c.monitors()).To(BeEmpty())
}

func TestAServiceRedirectsToHTTPS(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop", func(s *corev1.Service) {
		s.Spec.Ports[0].AppProtocol = ptr.To("http")
		s.Annotations = map[string]string{prefix + "http-redirect-https": "443"}
	})
	policies := func() string {
		var out []string
		for _, doc := range c.sim.State().Documents {
			if strings.HasSuffix(doc.Path, "/httpPolicy/requestRules") {
				out = append(out, string(doc.Body))
			}
		}
		return strings.Join(out, " ")
	}

	c.ensured(t, s)
	c.Expect(policies()).To(And(ContainSubstring(`"protocol":"HTTPS"`), ContainSubstring(`"port":443`)))
	writes := c.writes()
	c.ensured(t, s)
	c.Expect(c.writes()).To(Equal(writes), "the second time changes nothing")

	s.Annotations = nil
	c.ensured(t, s)
	c.Expect(policies()).NotTo(ContainSubstring("HTTPS"))
}

func TestHealthChecksOfAServiceRequireVCD106(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant())
	c.sim = vcdsimtest.Start(t, vcdsim.Config{Model: vcdsim.K8sTenant(), Version: vcdsim.Version105})
	c.configure(t, network("", "nodes"))
	c.node("a", "192.168.100.11")
	s := c.service("shop", withHealthChecks)

	_, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)

	c.Expect(err).To(HaveOccurred())
	c.Expect(c.events.Events).To(Receive(And(
		ContainSubstring("Unsupported"), ContainSubstring("VCD 10.6 (API version 39.0)"), ContainSubstring("remove the annotations"),
	)))
	c.Expect(c.writes()).To(BeZero(), "nothing half-built")
	s.Annotations = nil
	c.ensured(t, s)
}
