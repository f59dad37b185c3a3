// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
)

// claim returns a machine's claim to the VM with instance ID "a".
func claim(uid string, mods ...func(*ownership.Claim)) ownership.Claim {
	m := &infrav1.VCDMachine{}
	m.UID = types.UID(uid)
	m.CreationTimestamp = metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	m.Spec.RecordedState.InstanceID = "a"
	c := ownership.Claim{Machine: m}
	for _, mod := range mods {
		mod(&c)
	}
	return c
}

func TestOnlyOneOfTwoMachinesOwnsAVM(t *testing.T) {
	refused := func(c *ownership.Claim) { c.Refused = true }
	ready := func(c *ownership.Claim) { c.Machine.Status.Initialization.Provisioned = ptr.To(true) }
	later := func(c *ownership.Claim) {
		c.Machine.CreationTimestamp = metav1.NewTime(c.Machine.CreationTimestamp.Add(time.Hour))
	}
	tests := []struct {
		name         string
		owner, other ownership.Claim
	}{
		{"the machine for which the VM was created", claim("a", later, refused), claim("b", ready)},
		{"otherwise the machine of an accepted cluster", claim("c", later), claim("b", refused, ready)},
		{"otherwise the machine that was ready here", claim("c", later, ready), claim("b")},
		{"otherwise the older machine", claim("c"), claim("b", later)},
		{"otherwise always the same machine", claim("b"), claim("c")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(tt.owner.Precedes(tt.other)).To(BeTrue())
			g.Expect(tt.other.Precedes(tt.owner)).To(BeFalse())
		})
	}
}
