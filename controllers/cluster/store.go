// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
)

// A store writes the spec of a VCDCluster.
type store struct {
	client     client.Client
	vcdCluster *infrav1.VCDCluster
	read       *infrav1.VCDCluster // as the pass found it
	patcher    *phases.Patcher
}

// saveSpec stores changes of a pass to the spec, such as the endpoint. The ID of the cluster, and fields that determine
// where it is, are immutable. If the spec has changed since the pass read it, saveSpec therefore stores nothing, and
// returns a conflict. Changes of the recorded state alone are stored with the rest of the object.
func (s *store) saveSpec(ctx context.Context) error {
	if equality.Semantic.DeepEqual(settings.Spec(s.read), settings.Spec(s.vcdCluster)) {
		return nil
	}
	change := client.MergeFromWithOptions(s.read, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, s.vcdCluster.DeepCopy(), change); err != nil {
		return fmt.Errorf("storing the spec of VCDCluster %s: %w", klog.KObj(s.vcdCluster), err)
	}
	return nil
}
