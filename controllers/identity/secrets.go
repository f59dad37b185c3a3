// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
)

func sameOwnersAndFinalizers(a, b client.Object) bool {
	return equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers())
}

// releaseOldSecrets releases Secrets that the identity owns but no longer refers to.
func (s *scope) releaseOldSecrets(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := s.secrets.List(ctx, list, s.owned...); err != nil {
		return fmt.Errorf("listing Secrets: %w", err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.Name == s.spec.SecretRef.Name || !isOwner(s.obj, secret) {
			continue
		}
		used, err := s.othersUse(ctx, secret)
		if err != nil {
			return err
		}
		before := secret.DeepCopy()
		s.disown(secret)
		if !used {
			controllerutil.RemoveFinalizer(secret, infrav1.SecretFinalizer)
		}
		if err := client.IgnoreNotFound(s.patchSecret(ctx, secret, before)); err != nil {
			return err
		}
	}
	return nil
}

// releaseCurrentSecret releases the Secret of an identity in deletion, unless another identity uses it. The owner
// reference shows whether one does: if two identities are deleted at the same time, the second sees that the first has
// released it.
func (s *scope) releaseCurrentSecret(ctx context.Context) error {
	key := client.ObjectKey{Namespace: s.namespace, Name: s.spec.SecretRef.Name}
	secret := &corev1.Secret{}
	if err := s.identities.Live.Get(ctx, key, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	used, err := s.othersUse(ctx, secret)
	if err != nil {
		return err
	}
	before := secret.DeepCopy()
	if used {
		s.disown(secret)
	} else {
		s.logOut(ctx, secret)
		controllerutil.RemoveFinalizer(secret, infrav1.SecretFinalizer)
	}
	return client.IgnoreNotFound(s.patchSecret(ctx, secret, before))
}

// logOut ends the sessions of an identity that is no longer used.
func (s *scope) logOut(ctx context.Context, secret *corev1.Secret) {
	if s.logout == nil {
		return
	}
	config := s.identities.ConfigFor(s.spec, secret)
	config.Site = s.spec.Site
	s.logout(ctx, config)
}

// othersUse reports whether another identity uses the Secret. An identity in deletion does while it owns the Secret.
func (s *scope) othersUse(ctx context.Context, secret client.Object) (bool, error) {
	others, err := s.identitiesOf(ctx, secret)
	if err != nil {
		return false, err
	}
	for _, other := range others {
		if other.GetUID() != s.obj.GetUID() && (other.GetDeletionTimestamp().IsZero() || isOwner(other, secret)) {
			return true, nil
		}
	}
	return false, nil
}

// identitiesOf lists the identities that refer to a Secret, read live.
func (s *scope) identitiesOf(ctx context.Context, secret client.Object) ([]client.Object, error) {
	var found []client.Object
	namespaced := &infrav1.VCDIdentityList{}
	if err := s.identities.Live.List(ctx, namespaced, client.InNamespace(secret.GetNamespace())); err != nil {
		return nil, fmt.Errorf("listing VCDIdentities: %w", err)
	}
	for i := range namespaced.Items {
		if namespaced.Items[i].Spec.SecretRef.Name == secret.GetName() {
			found = append(found, &namespaced.Items[i])
		}
	}
	if secret.GetNamespace() != s.identities.Namespace {
		return found, nil
	}
	wide := &infrav1.VCDClusterIdentityList{}
	if err := s.identities.Live.List(ctx, wide); err != nil {
		return nil, fmt.Errorf("listing VCDClusterIdentities: %w", err)
	}
	for i := range wide.Items {
		if wide.Items[i].Spec.SecretRef.Name == secret.GetName() {
			found = append(found, &wide.Items[i])
		}
	}
	return found, nil
}

// disown removes the identity from the owners of a Secret.
func (s *scope) disown(secret client.Object) {
	var owners []metav1.OwnerReference
	for _, owner := range secret.GetOwnerReferences() {
		if owner.UID != s.obj.GetUID() {
			owners = append(owners, owner)
		}
	}
	secret.SetOwnerReferences(owners)
}

func isOwner(owner, obj client.Object) bool {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.UID == owner.GetUID() {
			return true
		}
	}
	return false
}

// patchSecret writes the metadata of a Secret if it changed. The patch fails on a conflict, because identities may
// share a Secret, and a patch replaces lists as a whole.
func (s *scope) patchSecret(ctx context.Context, secret, before client.Object) error {
	if sameOwnersAndFinalizers(secret, before) {
		return nil
	}
	change := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, secret, change); err != nil {
		return fmt.Errorf("patching Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// blockMoves keeps clusterctl from moving the token of a service account while the manager may still log in, which
// would invalidate the copy. The move is allowed once all clusters that use the token are paused, further logins are
// impossible, and the last token is stored.
func (s *scope) blockMoves(ctx context.Context, secret *corev1.Secret) error {
	_, blocked := secret.Annotations[clusterctlv1.BlockMoveAnnotation]
	block, err := s.mayRotate(ctx, secret)
	if err != nil || block == blocked {
		return err
	}
	store := &tokens.Secret{API: s.identities.Tokens(), Key: client.ObjectKeyFromObject(secret)}
	if block {
		return store.Change(ctx, func(secret *corev1.Secret) error {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, clusterctlv1.BlockMoveAnnotation, "")
			return nil
		})
	}
	err = s.identities.Accounts.Of(store.API, store.Key).Rest(ctx, func() error {
		return store.Change(ctx, func(secret *corev1.Secret) error {
			delete(secret.Annotations, clusterctlv1.BlockMoveAnnotation)
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("allowing clusterctl to move Secret %s: %w", store.Key, err)
	}
	return nil
}

// mayRotate reports whether the manager may log in, and thus rotate the token, with a Secret that moves with its
// identity.
func (s *scope) mayRotate(ctx context.Context, secret *corev1.Secret) (bool, error) {
	chain, _ := tokens.ChainOf(secret)
	if s.kind != infrav1.NamespacedIdentity || s.spec.Type != infrav1.CredentialServiceAccount ||
		chain.Holder != tokens.Manager {
		return false, nil
	}
	users, err := s.identities.Tokens().UsersOf(ctx, client.ObjectKeyFromObject(secret))
	return users.Active > 0, err
}
