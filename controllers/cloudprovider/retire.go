package cloudprovider

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// retire undoes what mode Managed did: External leaves what is in the workload cluster to the user, None removes it.
func retire(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.cluster.Labels[infrav1.CloudProviderLabel] == "" {
		return phases.Done, nil
	}
	if out, err := s.read(ctx); err != nil || out != phases.Done {
		return out, err
	}
	// First, so that nothing comes back.
	if err := errors.Join(s.delete(ctx, &addonsv1.ClusterResourceSet{}, cloudProviderSuffix),
		s.delete(ctx, &addonsv1.ClusterResourceSet{}, seedSuffix)); err != nil {
		return phases.Done, err
	}
	if s.vcdCluster.Spec.CloudProvider.Mode == infrav1.CloudProviderNone && s.secret != nil {
		if out, err := s.removeAll(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	if err := errors.Join(s.delete(ctx, &corev1.Secret{}, seedSuffix),
		s.delete(ctx, &corev1.Secret{}, cloudProviderSuffix)); err != nil {
		return phases.Done, err
	}
	s.inspections.Drop(s.vcdCluster.UID)
	return phases.Done, s.set().Select(ctx, false)
}

// removeAll removes everything that we put into the workload cluster.
func (s *scope) removeAll(ctx context.Context) (phases.Outcome, error) {
	w, out := s.connect(ctx)
	if out != phases.Done {
		return out, nil
	}
	limited, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	items := slices.Concat(readItems(s.annotation(infrav1.CloudProviderInventoryAnnotation)),
		readItems(s.annotation(infrav1.CloudProviderDroppedAnnotation)),
		[]item{{APIVersion: "v1", Kind: "Secret", Namespace: addons.Namespace, Name: addons.ServiceAccountName}})
	removed, err := w.remove(limited, items)
	if err != nil {
		return s.unanswered(ctx, err)
	}
	if len(removed) > 0 {
		uninstalled(s.Recorder, s.vcdCluster, removed)
	}
	return phases.Done, nil
}
