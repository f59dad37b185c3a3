// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// requests records on VCDMachines that the creation of their VMs is requested.
type requests struct {
	client client.Client
	live   client.Reader
}

// saveRequested records on the VCDMachine of c when the creation of its VM is requested, and the template if a selector chose
// it. first reports whether this is the first request. note fails if the machine is being deleted, or if another
// machine with its name has replaced it.
func (r requests) saveRequested(ctx context.Context, c batch.Member, at *metav1.Time) (first bool, err error) {
	m := &infrav1.VCDMachine{}
	if err := r.live.Get(ctx, c.Machine, m); err != nil {
		return false, fmt.Errorf("getting VCDMachine %s: %w", c.Machine, err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return false, fmt.Errorf("VCDMachine %s is being deleted", c.Machine)
	}
	return m.Spec.RecordedState.CreationRequestedAt == nil, r.patch(ctx, c, at)
}

// patch records when the creation of the VM of c was requested; nil means never.
func (r requests) patch(ctx context.Context, c batch.Member, at *metav1.Time) error {
	recorded := map[string]any{"creationRequestedAt": at}
	if c.Selected != nil {
		recorded["template"] = c.Selected
	}
	note, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": c.Key},
		"spec":     map[string]any{"recordedState": recorded},
	})
	if err != nil {
		return fmt.Errorf("recording a creation: %w", err)
	}
	m := &infrav1.VCDMachine{}
	m.Namespace = c.Machine.Namespace
	m.Name = c.Machine.Name
	if err := r.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, note)); err != nil {
		return fmt.Errorf("recording the creation of a VM on VCDMachine %s: %w", c.Machine, err)
	}
	return nil
}

// saveWithdrawn removes the records of members without earlier requests, after VCD certainly rejected the request. The
// deletion of such a machine then needs no proof that its VM is gone. It returns the keys of the members whose record
// was removed.
func (r requests) saveWithdrawn(ctx context.Context, members []batch.Member, err error) (withdrawn []string) {
	if !errors.Is(err, vcd.ErrInvalid) && !errors.Is(err, vcd.ErrQuota) && !errors.Is(err, vcd.ErrForbidden) &&
		!errors.Is(err, vcd.ErrBusy) {
		return nil
	}
	for _, c := range members {
		if !c.First {
			continue
		}
		if err := r.patch(ctx, c, nil); err != nil {
			ctrl.LoggerFrom(ctx).Info("Kept the record of a creation that VCD rejected", "reason", err.Error())
			continue
		}
		withdrawn = append(withdrawn, c.Key)
	}
	return withdrawn
}
