// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// retire reverts mode Managed: External leaves the objects in the workload cluster to the user, None removes them.
func retire(ctx context.Context, s *scope) (phases.Result, error) {
	if !s.set.Selected() {
		return phases.Obsolete, nil
	}
	if out, err := s.set.Read(ctx); err != nil || out != phases.Done {
		return out, err
	}
	// First, so that Cluster API does not apply the objects again.
	if err := errors.Join(s.set.Delete(ctx, &addonsv1.ClusterResourceSet{}, cloudProviderSuffix),
		s.set.Delete(ctx, &addonsv1.ClusterResourceSet{}, seedSuffix)); err != nil {
		return phases.Done, err
	}
	if s.vcdCluster.Spec.CloudProvider.Mode == infrav1.CloudProviderNone && s.set.Secret != nil {
		if out, err := s.removeAll(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	if err := errors.Join(s.set.Delete(ctx, &corev1.Secret{}, seedSuffix),
		s.set.Delete(ctx, &corev1.Secret{}, cloudProviderSuffix)); err != nil {
		return phases.Done, err
	}
	s.reconciler.inspections.Drop(s.vcdCluster.UID)
	return phases.Obsolete, s.set.Select(ctx, false)
}

// removeAll removes all objects that the provider has created in the workload cluster.
func (s *scope) removeAll(ctx context.Context) (phases.Result, error) {
	token, err := addons.ServiceAccount(nil) // only its name is needed
	if err != nil {
		return phases.Done, err
	}
	return s.set.Ask(ctx, func(ctx context.Context, w *addon.Guest) (phases.Result, error) {
		removed, err := s.set.RemoveAll(ctx, w, token)
		if err == nil && len(removed) > 0 {
			uninstalled(s.reconciler.Recorder, s.vcdCluster, removed)
		}
		return phases.Done, err
	})
}
