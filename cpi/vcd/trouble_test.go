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
		{"a silent site is away", vcd.ErrUnavailable, ReasonUnavailable, false},
		{"one that has no time, too", vcd.ErrThrottled, ReasonUnavailable, false},
		{"so is one that takes too long", context.DeadlineExceeded, ReasonUnavailable, false},
		{"refused credentials stay refused", vcd.ErrUnauthorized, ReasonRejected, true},
		{
			"also where they are found out with a load balancer",
			fmt.Errorf("%w: %w", loadbalancer.ErrRefused, vcd.ErrUnauthorized),
			ReasonRejected,
			true,
		},
		{"a certificate stays untrusted", vcd.ErrTLS, ReasonUntrusted, true},
		{"credentials that are missing can be anything", errors.New("no password"), ReasonUnusable, false},
		{"a gateway that is not found concerns all load balancers", &locateError{loadbalancer.ErrRefused}, ReasonUnusable, false},
		{"a busy gateway is no outage", loadbalancer.ErrBusy, "", false},
		{"a missing right is no outage", fmt.Errorf("%w: %w", loadbalancer.ErrRefused, vcd.ErrForbidden), "", false},
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
