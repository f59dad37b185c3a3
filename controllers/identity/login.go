// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// loginAge is the interval at which logins are checked. VCDClusters that change trigger a check sooner.
	loginAge = 10 * time.Minute
	// grace is how long a Secret may be missing after its identity was created without a warning, because one manifest
	// may create both.
	grace = 10 * time.Second
)

// usersByOrg returns VCDClusters that use the identity, one for each organization.
func (s *scope) usersByOrg(ctx context.Context) ([]infrav1.VCDCluster, error) {
	clusters := &infrav1.VCDClusterList{}
	in := []client.ListOption{index.WithIdentity(s.kind, s.obj.GetName()), client.UnsafeDisableDeepCopy}
	if s.kind == infrav1.NamespacedIdentity {
		in = append(in, client.InNamespace(s.obj.GetNamespace()))
	}
	if err := s.client.List(ctx, clusters, in...); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	var users []infrav1.VCDCluster
	seen := sets.New[string]()
	for _, c := range clusters.Items {
		if seen.Has(c.Spec.Org) || !s.logsIn(&c) {
			continue
		}
		paused, err := capicluster.Paused(ctx, s.client, &c)
		if err != nil {
			return nil, err
		}
		if !paused {
			seen.Insert(c.Spec.Org)
			users = append(users, *c.DeepCopy())
		}
	}
	return users, nil
}

// zonesByOrg returns VCDDeploymentZones that use the identity, one for each organization. It skips a zone that has not
// yet logged in with a service account itself, because the login would rotate the token.
func (s *scope) zonesByOrg(ctx context.Context) ([]infrav1.VCDDeploymentZone, error) {
	zones := &infrav1.VCDDeploymentZoneList{}
	in := []client.ListOption{client.UnsafeDisableDeepCopy}
	if s.kind == infrav1.NamespacedIdentity {
		in = append(in, client.InNamespace(s.obj.GetNamespace()))
	}
	if err := s.client.List(ctx, zones, in...); err != nil {
		return nil, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	var users []infrav1.VCDDeploymentZone
	seen := sets.New[string]()
	for _, z := range zones.Items {
		wouldRotate := s.spec.Type == infrav1.CredentialServiceAccount && z.Annotations[infrav1.CredentialsAcceptedAnnotation] == ""
		if wouldRotate || !z.DeletionTimestamp.IsZero() || annotations.HasPaused(&z) || seen.Has(z.Spec.Org) ||
			!identities.Same(z.Spec.IdentityRef, s.kind, s.obj.GetName()) {
			continue
		}
		seen.Insert(z.Spec.Org)
		users = append(users, *z.DeepCopy())
	}
	return users, nil
}

// logsIn reports whether the cluster's own reconcile logs in, and a login for it here has no side effects. A login with
// a service account rotates its token, so the first one is left to the cluster.
func (s *scope) logsIn(c *infrav1.VCDCluster) bool {
	if s.spec.Type == infrav1.CredentialServiceAccount && c.Spec.RecordedState.CredentialsAccepted == "" {
		return false
	}
	return c.DeletionTimestamp.IsZero() && !capicluster.ExternallyManaged(c)
}

// reconcileLogin logs in for the clusters and zones that use the identity. Their own reconciles share the sessions, so
// this causes no additional logins.
func reconcileLogin(ctx context.Context, s *scope) (phases.Result, error) {
	for i := range s.users {
		if _, out, err := s.identities.Open(ctx, s.sessions, &s.users[i]); err != nil || out != phases.Done {
			return out, err
		}
	}
	for i := range s.zones {
		if _, out, err := s.identities.OpenZone(ctx, s.sessions, &s.zones[i]); err != nil || out != phases.Done {
			return out, err
		}
	}
	return phases.Done, nil
}

// isNew reports whether the identity was just created.
func (s *scope) isNew() bool {
	return time.Since(s.obj.GetCreationTimestamp().Time) < grace
}
