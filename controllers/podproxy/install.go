// SPDX-License-Identifier: Apache-2.0

package podproxy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// versions are the versions of the API with mutating admission policies, in order of preference.
var versions = []string{"v1", "v1beta1"}

// install takes the next step towards policies in the workload cluster.
func install(ctx context.Context, s *scope) (phases.Result, error) {
	return phases.Sequence(ctx, s.ready, s.settings, s.set.Read, s.selectCluster, s.findVersion, s.write, s.inspect)
}

// settings reads the URLs of the proxy, and the destinations that are reached without it, from the settings of the
// nodes.
func (s *scope) settings(ctx context.Context) (phases.Result, error) {
	secret := &corev1.Secret{}
	key := s.set.Key(nodeproxy.SecretSuffix)
	if err := s.reconciler.Secrets.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	}
	proxy := s.vcdCluster.Spec.Proxy
	version := nodeproxy.Version(proxy.HTTPProxy, proxy.HTTPSProxy, proxy.NoProxy)
	direct, current := nodeproxy.DirectOf(secret.Data, version)
	if !current {
		return phases.Wait(addon.ApplyPoll, infrav1.WaitingForEarlierPhaseReason,
			"Waiting for "+infrav1.NodeProxyReadyCondition), nil
	}
	s.direct = direct
	s.httpProxy, s.httpsProxy = nodeproxy.URLsOf(secret.Data)
	return phases.Done, nil
}

// selectCluster labels the Cluster for the ClusterResourceSet.
func (s *scope) selectCluster(ctx context.Context) (phases.Result, error) {
	return phases.Done, s.set.Select(ctx, true)
}

// findVersion finds the version of the API with the policies that the workload cluster serves. It reads the version
// again periodically, because an upgrade may change it.
func (s *scope) findVersion(ctx context.Context) (phases.Result, error) {
	known := s.reconciler.known.Of(s.vcdCluster.UID)
	if known.version != "" && s.reconciler.now().Before(known.readAt.Add(s.reconciler.SyncPeriod)) {
		s.version = known.version
		return phases.Done, nil
	}
	return s.set.Ask(ctx, func(_ context.Context, w *addon.Guest) (phases.Result, error) {
		for _, version := range versions {
			kind := schema.GroupKind{Group: addons.AdmissionGroup, Kind: addons.MutatingPolicyKind}
			_, err := w.RESTMapper().RESTMapping(kind, version)
			if err == nil {
				s.version = version
				known.version = version
				known.readAt = s.reconciler.now()
				return phases.Done, nil
			}
			if !meta.IsNoMatchError(err) {
				return phases.Done, &addon.Error{Err: err}
			}
		}
		known.version = ""
		return phases.Fail(intervals.Remedy, infrav1.AdmissionPoliciesNotServedReason,
			"Pods get no proxy because the workload cluster does not serve MutatingAdmissionPolicies. Upgrade it to Kubernetes 1.36; on 1.34 or 1.35, start its API server with --feature-gates=MutatingAdmissionPolicy=true and --runtime-config=admissionregistration.k8s.io/v1beta1=true; or set spec.proxy.pods to None"), nil
	})
}

// render returns the policies. The time applied, if set, makes Cluster API apply them again.
func (s *scope) render(applied string) ([]unstructured.Unstructured, error) {
	objects, err := addons.PodProxy{
		Version: s.version,
		HTTP:    s.httpProxy,
		HTTPS:   s.httpsProxy,
		Direct:  s.direct,
	}.Objects()
	if err != nil {
		return nil, err
	}
	s.set.Mark(objects, applied)
	return objects, nil
}

// write writes the Secret if it changed, and creates the ClusterResourceSet that applies it.
func (s *scope) write(ctx context.Context) (phases.Result, error) {
	objects, err := s.render(s.set.Annotation(infrav1.CloudProviderAppliedAnnotation))
	if err != nil {
		return phases.Done, fmt.Errorf("rendering the policies: %w", err)
	}
	changed, err := s.set.Write(ctx, objects, nil)
	if err != nil {
		return phases.Done, err
	}
	out, err := s.set.Create(ctx, suffix, addonsv1.ClusterResourceSetStrategyReconcile)
	if err != nil || out != phases.Done {
		return out, err
	}
	if changed {
		return s.set.Applying(nil), nil
	}
	return phases.Done, nil
}

// inspect inspects the workload cluster if an inspection is due.
func (s *scope) inspect(ctx context.Context) (phases.Result, error) {
	return s.set.Inspect(ctx, &s.reconciler.known.Of(s.vcdCluster.UID).Inspection, s.reconciler.SyncPeriod, s.converge)
}

// converge compares the workload cluster with the desired objects, and repairs differences.
func (s *scope) converge(ctx context.Context, w *addon.Guest) (phases.Result, error) {
	if _, err := s.set.RemoveDropped(ctx, w); err != nil {
		return phases.Done, err
	}
	_, wrong, err := w.Compare(ctx, s.set.Secret.Data[resourceset.ManifestsKey])
	switch {
	case err != nil || len(wrong) == 0:
		return phases.Done, err
	case s.set.Fresh(s.reconciler.SyncPeriod):
		return s.set.Applying(wrong), nil
	}
	if err := s.set.Again(ctx, s.render, nil); err != nil {
		return phases.Done, err
	}
	repaired(s.reconciler.Recorder, s.vcdCluster, wrong)
	return s.set.Applying(wrong), nil
}

// retire removes the policies from the workload cluster.
func retire(ctx context.Context, s *scope) (phases.Result, error) {
	if !s.set.Selected() {
		return phases.Obsolete, nil
	}
	if out, err := s.set.Read(ctx); err != nil || out != phases.Done {
		return out, err
	}
	// First, so that Cluster API does not apply the policies again.
	if err := s.set.Delete(ctx, &addonsv1.ClusterResourceSet{}, suffix); err != nil {
		return phases.Done, err
	}
	if s.set.Secret != nil {
		out, err := s.set.Ask(ctx, func(ctx context.Context, w *addon.Guest) (phases.Result, error) {
			removed, err := s.set.RemoveAll(ctx, w)
			if err == nil && len(removed) > 0 {
				uninstalled(s.reconciler.Recorder, s.vcdCluster, removed)
			}
			return phases.Done, err
		})
		if err != nil || out != phases.Done {
			return out, err
		}
	}
	s.reconciler.known.Drop(s.vcdCluster.UID)
	return phases.Obsolete, errors.Join(s.set.Delete(ctx, &corev1.Secret{}, suffix), s.set.Select(ctx, false))
}
