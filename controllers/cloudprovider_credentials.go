package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// systemOrg is the organisation of VCD's provider.
const systemOrg = "system"

// shared is what a cloud controller manager is given to log in with.
type shared struct {
	config         vcd.Config
	name           string // kind and name of the identity, for messages
	secret         types.NamespacedName
	serviceAccount bool // the token changes with each use: it is given once, and never tried
}

// share returns the credentials for the cloud controller manager of c, or says why it gets none. Nothing is read that may not be shared.
func (i Identities) share(ctx context.Context, c *infrav1.VCDCluster) (shared, outcome, error) {
	spec, own := specOfCCM(c)
	got := shared{name: string(spec.IdentityRef.Kind) + " " + spec.IdentityRef.Name}
	if spec.IdentityRef.Kind == infrav1.ClusterIdentity {
		return got, stop(infrav1.IdentityNotShareableReason,
			"%s is for several namespaces, and its credentials are never put into a workload cluster: name a VCDIdentity in spec.cloudProvider.identityRef", got.name), nil
	}
	identity, out, err := i.find(ctx, c.Namespace, spec.IdentityRef)
	if err != nil || out != done {
		return got, out, err
	}
	got.serviceAccount = identity.Type == infrav1.CredentialServiceAccount
	if out := shareable(identity, spec, got.serviceAccount && !own); out != done {
		return got, out, nil
	}
	secret, out, err := i.secret(ctx, types.NamespacedName{Namespace: c.Namespace, Name: identity.SecretRef.Name}, got.name)
	if err != nil || out != done {
		return got, out, err
	}
	if out := credentialsProblem(identity.VCDIdentitySpec, secret, c.Spec.InfraID); out != done {
		return got, out, nil
	}
	got.secret = client.ObjectKeyFromObject(secret)
	got.config = configFor(identity.VCDIdentitySpec, secret)
	got.config.Site, got.config.Org = strings.TrimSuffix(identity.Site, "/"), spec.Org
	if isSystem(got.config) {
		return got, stop(infrav1.IdentityNotShareableReason,
			"%s is a system administrator, whose credentials are never put into a workload cluster: name an identity of organisation %s in spec.cloudProvider.identityRef", got.name, spec.Org), nil
	}
	return got, done, nil
}

// specOfCCM is the spec of c with the identity of its cloud controller manager, and says whether that has one of its own.
func specOfCCM(c *infrav1.VCDCluster) (infrav1.VCDClusterSpec, bool) {
	spec, own := c.Spec, c.Spec.CloudProvider.IdentityRef != nil
	if own {
		spec.IdentityRef = *c.Spec.CloudProvider.IdentityRef
	}
	if spec.IdentityRef.Kind == "" {
		spec.IdentityRef.Kind = infrav1.NamespacedIdentity
	}
	return spec, own
}

// shareable says why the credentials of an identity are not for workload clusters, before they are read.
func shareable(identity grant, spec infrav1.VCDClusterSpec, rotatesForManager bool) outcome {
	if out := identity.covers(spec); out != done {
		return out
	}
	switch {
	case rotatesForManager:
		return stop(infrav1.IdentityNotShareableReason,
			"%s is a service account, whose token changes with each use and can have one user only: name another identity in spec.cloudProvider.identityRef", identity.name)
	case !ptr.Deref(identity.ShareWithClusters, false):
		return stop(infrav1.IdentityNotSharedReason,
			"%s does not allow that its credentials are put into the workload cluster: set its spec.shareWithClusters to true, or name another identity in spec.cloudProvider.identityRef", identity.name)
	}
	return done
}

// give writes down that the token of a service account is the cloud controller manager's of a cluster from now on. The first who
// does so has it: the token may be used from the moment that it is in the workload cluster.
func (i Identities) give(ctx context.Context, secret types.NamespacedName, cluster string) error {
	store := &tokenSecret{identities: i, key: secret}
	return store.change(ctx, func(secret *corev1.Secret) error {
		if out := tokenProblem(infrav1.CredentialServiceAccount, secret, cluster); out != done {
			return &storeError{out: out}
		}
		chain, _ := chainOf(secret)
		chain.Holder = cluster
		return chain.write(secret)
	})
}

// isSystem says whether credentials are those of VCD's provider.
func isSystem(config vcd.Config) bool {
	org, _, found := strings.Cut(config.Credentials.Username, "/")
	return found && strings.EqualFold(org, systemOrg) || strings.EqualFold(config.Org, systemOrg)
}

// proveCredentials logs in with what the cloud controller manager gets, once for each version of it: what does not work replaces nothing
// that may, and what logs in as a user of the organisation is no system administrator.
func (s *cloudProviderScope) proveCredentials(ctx context.Context) (outcome, error) {
	if s.shared.serviceAccount || s.written(infrav1.CloudProviderCredentialsAnnotation) == s.shared.config.Version {
		return done, nil
	}
	config := s.shared.config
	if _, err := s.Sessions(ctx, config); err != nil {
		out, err := loginProblem(err, config.Site, s.shared.name)
		if err != nil {
			err = fmt.Errorf("logging in to %s: %w", config.Site, err)
		}
		return out, err
	}
	return done, nil
}
