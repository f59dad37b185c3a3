// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// storeSpec stores what a pass wrote into the spec, such as the endpoint. If the pass is complete, c gets the id that
// marks its objects in VCD, the first of which is made later. The API server lets nothing replace the id, nor what
// decides where the cluster is, so nothing is stored if the spec has changed since the pass read it.
func (s *scope) storeSpec(ctx context.Context, complete bool) error {
	c := s.vcdCluster
	if complete && c.DeletionTimestamp.IsZero() {
		s.identify()
	}
	if equality.Semantic.DeepEqual(s.read.Spec, c.Spec) {
		return nil
	}
	change := client.MergeFromWithOptions(s.read, client.MergeFromWithOptimisticLock{})
	if err := s.reconciler.Client.Patch(ctx, c.DeepCopy(), change); err != nil {
		return fmt.Errorf("storing the spec of VCDCluster %s: %w", klog.KObj(c), err)
	}
	return nil
}

// markProvisioned stores that the cluster was complete once, before Ready is true: readers of Ready rely on it.
func (s *scope) markProvisioned(ctx context.Context, complete bool) error {
	c := s.vcdCluster
	if !complete || !c.DeletionTimestamp.IsZero() || ptr.Deref(c.Status.Initialization.Provisioned, false) {
		return nil
	}
	c.Status.Initialization.Provisioned = ptr.To(true)
	phases.ProvisionedAfter(c, s.now())
	return s.save(ctx)
}

// save stores what phases changed in the object, now rather than at the end.
func (s *scope) save(ctx context.Context) error {
	helper, err := phases.Store(ctx, s.reconciler.Client, s.vcdCluster, s.patcher)
	if err == nil {
		s.patcher = helper
	}
	return err
}
