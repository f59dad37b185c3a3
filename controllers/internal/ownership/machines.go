// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
)

// Rivals returns the other VCDMachines that claim the VM of m, because they have the same instance ID. The instance ID
// is the UID of one VCDMachine, so the VM was created for at most one of them, regardless of their names.
func Rivals(ctx context.Context, r client.Reader, m *infrav1.VCDMachine) ([]*infrav1.VCDMachine, error) {
	id := m.Spec.RecordedState.InstanceID
	if id == "" {
		return nil, nil
	}
	list := &infrav1.VCDMachineList{}
	if err := r.List(ctx, list, index.WithInstanceID(id), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines with instance ID %s: %w", id, err)
	}
	var rivals []*infrav1.VCDMachine
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != m.UID {
			rivals = append(rivals, other)
		}
	}
	return rivals, nil
}

// A Claim is the evidence for a VCDMachine's right to a VM that others claim, too.
type Claim struct {
	Machine *infrav1.VCDMachine
	Refused bool // its cluster may not use its ID
}

// Precedes reports whether the VM belongs to this claim rather than the other. It belongs to the machine whose UID is
// the instance ID. After a move or a restore, all machines have new UIDs. Then the machine of an accepted cluster
// precedes, then one that was complete here, then the older one.
func (c Claim) Precedes(other Claim) bool {
	a := c.Machine
	b := other.Machine
	for _, proof := range []func(Claim) bool{IsOriginalMachine, accepted, complete} {
		if has := proof(c); has != proof(other) {
			return has
		}
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// IsOriginalMachine reports whether the VM was created for the VCDMachine, in this management cluster.
func IsOriginalMachine(c Claim) bool {
	return c.Machine.Spec.RecordedState.InstanceID == string(c.Machine.UID)
}

func accepted(c Claim) bool { return !c.Refused }

func complete(c Claim) bool { return ptr.Deref(c.Machine.Status.Initialization.Provisioned, false) }
