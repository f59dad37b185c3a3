// SPDX-License-Identifier: Apache-2.0

// Package identities resolves references to identities: who may use them, their credentials, and a session in VCD.
package identities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/credentials"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Resolver resolves references to identities.
type Resolver struct {
	// Client reads identities, clusters and namespaces from the cache, and writes the tokens of service accounts.
	Client client.Client
	// Live reads Secrets, which no cache holds.
	Live client.Reader
	// Secrets reads the Secrets of logins, and may return those that it read before if they have not changed. If nil,
	// Live reads them.
	Secrets client.Reader
	// Namespace contains the Secrets of VCDClusterIdentities.
	Namespace string
	// Accounts are the service accounts that log in. All Resolvers of a process share them.
	Accounts *tokens.Accounts
}

// Tokens returns the access to the tokens of service accounts.
func (r Resolver) Tokens() tokens.API {
	return tokens.API{Client: r.Client, Live: r.Live, Namespace: r.Namespace}
}

// A login is an identity ready for use.
type login struct {
	config vcd.Config
	name   string // kind and name of the identity, for messages

	allowedExtraConfig []string
}

// A grant holds the data of an identity that a namespace may use.
type grant struct {
	infrav1.VCDIdentitySpec

	name            string   // kind and name of the identity, for messages
	orgs            []string // organizations for which it may be used
	secretNamespace string
}

// An account describes the object that logs in, and the identity it uses.
type account struct {
	kind      string // of the object
	namespace string
	site, org string
	ref       infrav1.IdentityReference
	accepted  string // version of the identity's Secret that last logged in
}

// ofCluster returns the account of a cluster that uses an identity.
func ofCluster(c *infrav1.VCDCluster, ref infrav1.IdentityReference) account {
	return account{
		kind:      "VCDCluster",
		namespace: c.Namespace,
		site:      c.Spec.Site,
		org:       c.Spec.Org,
		ref:       ref,
		accepted:  c.Spec.RecordedState.CredentialsAccepted,
	}
}

// resolve returns the login of an account, or the problem that prevents it.
func (r Resolver) resolve(ctx context.Context, a account) (login, phases.Result, error) {
	ref := a.ref
	if ref.Kind == "" {
		ref.Kind = infrav1.NamespacedIdentity
	}
	l := login{name: string(ref.Kind) + " " + ref.Name}
	identity, out, err := r.find(ctx, a.namespace, ref)
	if err != nil || out != phases.Done {
		return l, out, err
	}
	// Check this before reading the Secret: users who can name a site must not learn anything about the password of
	// another site.
	if out := identity.covers(a); out != phases.Done {
		return l, out, nil
	}
	secret, out, err := r.known(ctx,
		types.NamespacedName{Namespace: identity.secretNamespace, Name: identity.SecretRef.Name}, l.name)
	if err != nil || out != phases.Done {
		return l, out, err
	}
	if out := credentialsProblem(identity.VCDIdentitySpec, secret, tokens.Manager); out != phases.Done {
		return l, out, nil
	}
	l.config = r.ConfigFor(identity.VCDIdentitySpec, secret)
	// Use the site of the identity, so that the client cannot interpret another spelling as another site.
	l.config.Site = strings.TrimSuffix(identity.Site, "/")
	l.config.Org = a.org
	l.allowedExtraConfig = identity.AllowedExtraConfig
	return l, phases.Done, nil
}

// covers returns a problem unless the identity is for the site and organization of an account.
func (g grant) covers(a account) phases.Result {
	if sites.Normal(g.Site) == "" || !sites.Same(g.Site, a.site) {
		return phases.Stop(infrav1.SiteNotAllowedReason,
			"spec.site of %s is %q, spec.site of the %s is %q. Credentials are sent only to the site of their identity: correct one of the two fields",
			g.name, g.Site, a.kind, a.site)
	}
	if !slices.Contains(g.orgs, a.org) && !slices.Contains(g.orgs, infrav1.AnyOrg) {
		return phases.Stop(infrav1.OrgNotAllowedReason,
			"spec.orgs of %s does not contain %q, the spec.org of the %s: add it, or correct spec.org",
			g.name, a.org, a.kind)
	}
	return phases.Done
}

// find returns the grant of an identity to namespace, or the problem that prevents it.
func (r Resolver) find(ctx context.Context, namespace string, ref infrav1.IdentityReference) (grant, phases.Result, error) {
	g := grant{name: string(ref.Kind) + " " + ref.Name}
	if ref.Kind == infrav1.ClusterIdentity {
		identity := &infrav1.VCDClusterIdentity{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, identity); err != nil {
			out, err := identityMissing(err, ref)
			return g, out, err
		}
		allowed, err := r.allows(ctx, identity.Spec.AllowedNamespaces, namespace)
		if err != nil {
			return g, phases.Done, err
		}
		if !allowed {
			// No watch covers the labels of namespaces.
			return g, phases.Fail(intervals.Remedy, infrav1.NamespaceNotAllowedReason,
				"VCDClusterIdentity %s does not allow namespace %s: list or select it in spec.allowedNamespaces of the identity", ref.Name, namespace), nil
		}
		g.VCDIdentitySpec = identity.Spec.VCDIdentitySpec
		g.orgs = identity.Spec.Orgs
		g.secretNamespace = r.Namespace
		return g, phases.Done, nil
	}
	identity := &infrav1.VCDIdentity{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, identity); err != nil {
		out, err := identityMissing(err, ref)
		return g, out, err
	}
	g.VCDIdentitySpec = identity.Spec
	g.orgs = []string{infrav1.AnyOrg}
	g.secretNamespace = namespace
	return g, phases.Done, nil
}

func identityMissing(err error, ref infrav1.IdentityReference) (phases.Result, error) {
	if apierrors.IsNotFound(err) {
		return phases.Stop(infrav1.IdentityNotFoundReason,
			"%s %s does not exist: create it, or correct spec.identityRef", ref.Kind, ref.Name), nil
	}
	return phases.Done, fmt.Errorf("getting %s %s: %w", ref.Kind, ref.Name, err)
}

// allows reports whether namespace is allowed. By default no namespace is.
func (r Resolver) allows(ctx context.Context, allowed *infrav1.AllowedNamespaces, namespace string) (bool, error) {
	if allowed == nil {
		return false, nil
	}
	if slices.Contains(allowed.List, namespace) {
		return true, nil
	}
	if allowed.Selector == nil {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed.Selector)
	if err != nil {
		return false, nil //nolint:nilerr // A selector that cannot be read selects nothing; the identity's own condition says so.
	}
	ns := &corev1.Namespace{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return false, fmt.Errorf("getting Namespace %s: %w", namespace, err)
	}
	return selector.Matches(labels.Set(ns.Labels)), nil
}

// Secret reads the Secret of an identity from the API server.
func (r Resolver) Secret(ctx context.Context, key types.NamespacedName, identity string) (*corev1.Secret, phases.Result, error) {
	return readSecret(ctx, r.Live, key, identity)
}

// known returns the Secret of an identity for a login.
func (r Resolver) known(ctx context.Context, key types.NamespacedName, identity string) (*corev1.Secret, phases.Result, error) {
	return readSecret(ctx, cmp.Or(r.Secrets, r.Live), key, identity)
}

func readSecret(ctx context.Context, reader client.Reader, key types.NamespacedName, identity string) (*corev1.Secret,
	phases.Result, error,
) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, phases.Stop(infrav1.SecretNotFoundReason,
			"Secret %s does not exist: create it, or correct spec.secretRef of %s", key, identity), nil
	case err != nil:
		return nil, phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	}
	return secret, phases.Done, nil
}

// credentialsProblem returns why holder cannot use the Secret of an identity.
func credentialsProblem(identity infrav1.VCDIdentitySpec, secret *corev1.Secret, holder string) phases.Result {
	if out := MissingKeys(identity, secret); out != phases.Done {
		return out
	}
	return tokens.Problem(identity.Type, secret, holder)
}

// MissingKeys returns a problem if keys are missing in the Secret of an identity.
func MissingKeys(identity infrav1.VCDIdentitySpec, secret *corev1.Secret) phases.Result {
	if len(secret.Data[infrav1.SecretAPIToken]) > 0 || len(secret.Data[infrav1.SecretRefreshToken]) > 0 {
		return phases.Done
	}
	if identity.Type == infrav1.CredentialServiceAccount {
		return phases.Stop(infrav1.SecretIncompleteReason,
			"Secret %s has no %s: it needs the first API token of the service account",
			client.ObjectKeyFromObject(secret), infrav1.SecretAPIToken)
	}
	var missing []string
	for _, key := range []string{infrav1.SecretUsername, infrav1.SecretPassword} {
		if len(secret.Data[key]) == 0 {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return phases.Done
	}
	return phases.Stop(infrav1.SecretIncompleteReason, "Secret %s has no %s: it needs %s and %s, or %s",
		client.ObjectKeyFromObject(secret),
		strings.Join(missing, " and no "), infrav1.SecretUsername, infrav1.SecretPassword, infrav1.SecretAPIToken)
}

// ConfigFor returns the manager's login configuration. For a service account, it stays the same while the token
// rotates.
func (r Resolver) ConfigFor(identity infrav1.VCDIdentitySpec, secret *corev1.Secret) vcd.Config {
	config := credentials.Config(identity, secret)
	if identity.Type != infrav1.CredentialServiceAccount {
		return config
	}
	chain, _ := tokens.ChainOf(secret)
	config.Credentials = vcd.Credentials{Username: config.Credentials.Username}
	config.ServiceAccount = r.Accounts.Of(r.Tokens(), client.ObjectKeyFromObject(secret))
	config.Version = string(secret.UID) + "/" + chain.First
	return config
}

// Open logs in for a cluster, or returns the problem that prevents it. Every problem is retried after a while, because
// the return of a missing identity or Secret only wakes objects whose VCDCluster noticed the problem.
func (r Resolver) Open(ctx context.Context, sessions session.Opener, c *infrav1.VCDCluster) (*session.Session, phases.Result, error) {
	return r.open(ctx, sessions, ofCluster(c, c.Spec.IdentityRef))
}

// OpenZone is [Resolver.Open] for the VDC of a zone.
func (r Resolver) OpenZone(ctx context.Context, sessions session.Opener, z *infrav1.VCDDeploymentZone) (*session.Session,
	phases.Result, error,
) {
	return r.open(ctx, sessions, account{
		kind:      "VCDDeploymentZone " + z.Name,
		namespace: z.Namespace,
		site:      z.Spec.Site,
		org:       z.Spec.Org,
		ref:       z.Spec.IdentityRef,
		accepted:  z.Annotations[infrav1.CredentialsAcceptedAnnotation],
	})
}

func (r Resolver) open(ctx context.Context, sessions session.Opener, a account) (*session.Session, phases.Result, error) {
	l, out, err := r.resolve(ctx, a)
	if err != nil || out != phases.Done {
		out.After = cmp.Or(out.After, intervals.Remedy)
		return nil, out.NoAccess(), err
	}
	l.config.Accepted = a.accepted == l.config.Version
	s, err := sessions(ctx, l.config)
	if err != nil {
		out, err := LoginProblem(err, l.config.Site, l.name)
		if l.config.ServiceAccount != nil && out.Reason == infrav1.CredentialsRejectedReason {
			out.After = tokenPoll
		}
		if err != nil {
			err = fmt.Errorf("logging in to %s: %w", l.config.Site, err)
		}
		return nil, out, err
	}
	s.Version = l.config.Version
	s.Identity = l.name
	s.AllowedExtraConfig = l.allowedExtraConfig
	return s, phases.Done, nil
}

// RefersTo reports whether c uses the identity with the given kind and name.
func RefersTo(c *infrav1.VCDCluster, kind infrav1.IdentityKind, name string) bool {
	refs := []infrav1.IdentityReference{c.Spec.IdentityRef}
	if other := c.Spec.CloudProvider.IdentityRef; other != nil {
		refs = append(refs, *other)
	}
	return slices.ContainsFunc(refs, func(ref infrav1.IdentityReference) bool { return Same(ref, kind, name) })
}

// Same reports whether ref refers to the identity with the given kind and name.
func Same(ref infrav1.IdentityReference, kind infrav1.IdentityKind, name string) bool {
	return cmp.Or(ref.Kind, infrav1.NamespacedIdentity) == cmp.Or(kind, infrav1.NamespacedIdentity) && ref.Name == name
}
