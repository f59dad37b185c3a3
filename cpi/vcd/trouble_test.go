// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestExplain(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		reason string // empty: it is no outage
		stays  bool
	}{
		{name: "a silent site is away", err: vcd.ErrUnavailable, reason: ReasonUnavailable},
		{name: "one that has no time, too", err: vcd.ErrThrottled, reason: ReasonUnavailable},
		{name: "so is one that takes too long", err: context.DeadlineExceeded, reason: ReasonUnavailable},
		{name: "refused credentials stay refused", err: vcd.ErrUnauthorized, reason: ReasonRejected, stays: true},
		{
			name:   "also where they are found out with a load balancer",
			err:    fmt.Errorf("%w: %w", loadbalancer.ErrRefused, vcd.ErrUnauthorized),
			reason: ReasonRejected,
			stays:  true,
		},
		{name: "a certificate stays untrusted", err: vcd.ErrTLS, reason: ReasonUntrusted, stays: true},
		{name: "credentials that are missing can be anything", err: errors.New("no password"), reason: ReasonUnusable},
		{name: "a gateway that is not found concerns all load balancers", err: &locateError{loadbalancer.ErrRefused}, reason: ReasonUnusable},
		{name: "a busy gateway is no outage", err: loadbalancer.ErrBusy},
		{name: "a missing right is no outage", err: fmt.Errorf("%w: %w", loadbalancer.ErrRefused, vcd.ErrForbidden)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			trouble, is := Explain("https://vcd.example.com")(fmt.Errorf("looking: %w", tt.err))

			g.Expect(is).To(Equal(tt.reason != ""))
			g.Expect(trouble.Reason).To(Equal(tt.reason))
			g.Expect(trouble.Stays).To(Equal(tt.stays))
			if is {
				g.Expect(trouble.Message).To(ContainSubstring("vcd.example.com"))
			}
		})
	}
}
