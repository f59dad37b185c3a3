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

// A store writes a VCDCluster.
type store struct {
	client     client.Client
	vcdCluster *infrav1.VCDCluster
	read       *infrav1.VCDCluster // as the pass found it
	patcher    *phases.Patcher
}

// saveSpec stores what a pass wrote into the spec, such as the endpoint. The API server lets nothing replace the id of
// the cluster, nor what decides where the cluster is, so nothing is stored, with a conflict, if the spec has changed
// since the pass read it. What was only recorded is stored with the rest of the object.
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
