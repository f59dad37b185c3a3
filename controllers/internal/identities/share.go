// SPDX-License-Identifier: Apache-2.0

package identities

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/credentials"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// systemOrg is the organization of VCD's provider.
const systemOrg = "system"

// Shared holds the credentials for a cloud controller manager.
type Shared struct {
	Config         vcd.Config
	Name           string // kind and name of the identity, for messages
	Secret         types.NamespacedName
	ServiceAccount bool // each login rotates the token: it is handed over once, and never tested
}

// Share returns the credentials for the cloud controller manager of c, or why it gets none. It does not read a Secret
// that may not be shared.
func (r Resolver) Share(ctx context.Context, c *infrav1.VCDCluster) (Shared, phases.Result, error) {
	account := accountOfCCM(c)
	got := Shared{Name: string(account.ref.Kind) + " " + account.ref.Name}
	if account.ref.Kind == infrav1.ClusterIdentity {
		return got, phases.Stop(infrav1.IdentityNotShareableReason,
			"%s may be used by several namespaces, so its credentials are never copied into a workload cluster: set a VCDIdentity in spec.cloudProvider.identityRef", got.Name), nil
	}
	identity, out, err := r.find(ctx, c.Namespace, account.ref)
	if err != nil || out != phases.Done {
		return got, out, err
	}
	got.ServiceAccount = identity.Type == infrav1.CredentialServiceAccount
	rotatesForManager := got.ServiceAccount && Same(c.Spec.IdentityRef, account.ref.Kind, account.ref.Name)
	if out := shareable(identity, account, rotatesForManager); out != phases.Done {
		return got, out, nil
	}
	secret, out, err := r.Secret(ctx, types.NamespacedName{Namespace: c.Namespace, Name: identity.SecretRef.Name},
		got.Name)
	if err != nil || out != phases.Done {
		return got, out, err
	}
	if out := credentialsProblem(identity.VCDIdentitySpec, secret, c.Spec.InfraID); out != phases.Done {
		return got, out, nil
	}
	got.Secret = client.ObjectKeyFromObject(secret)
	got.Config = credentials.Config(identity.VCDIdentitySpec, secret)
	got.Config.Site = strings.TrimSuffix(identity.Site, "/")
	got.Config.Org = account.org
	if isSystem(got.Config) {
		return got, phases.Stop(infrav1.IdentityNotShareableReason,
			"%s is a system administrator, whose credentials are never copied into a workload cluster: set an identity of organization %s in spec.cloudProvider.identityRef", got.Name, account.org), nil
	}
	return got, phases.Done, nil
}

// accountOfCCM returns the account of the cloud controller manager of c.
func accountOfCCM(c *infrav1.VCDCluster) account {
	ref := ptr.Deref(c.Spec.CloudProvider.IdentityRef, infrav1.IdentityReference{}) // the API requires it
	ref.Kind = cmp.Or(ref.Kind, infrav1.NamespacedIdentity)
	return ofCluster(c, ref)
}

// shareable returns why the credentials of an identity may not be copied into workload clusters. It does not read them.
func shareable(identity grant, a account, rotatesForManager bool) phases.Result {
	if out := identity.covers(a); out != phases.Done {
		return out
	}
	switch {
	case rotatesForManager:
		return phases.Stop(infrav1.IdentityNotShareableReason,
			"%s is a service account. Each login rotates its token, so only one client may use it: set another identity in spec.cloudProvider.identityRef", identity.name)
	case !ptr.Deref(identity.ShareWithClusters, false):
		return phases.Stop(infrav1.IdentityNotSharedReason,
			"%s does not allow its credentials in workload clusters: set its spec.shareWithClusters to true, or set another identity in spec.cloudProvider.identityRef",
			identity.name)
	}
	return phases.Done
}

// isSystem reports whether credentials belong to VCD's provider organization.
func isSystem(config vcd.Config) bool {
	org, _, found := strings.Cut(config.Credentials.Username, "/")
	return found && strings.EqualFold(org, systemOrg) || strings.EqualFold(config.Org, systemOrg)
}
