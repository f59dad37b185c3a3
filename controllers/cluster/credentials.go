// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/owned"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdidentities,verbs=create

// identityPoll is how long to wait until the cache shows an identity that was just created.
const identityPoll = time.Second

// A handover moves the credentials in a VCDCluster of CAPVCD to a Secret and to the VCDIdentity in its identityRef. The
// conversion has set the identity's name: that of CAPVCD's Secret if this is in the namespace and complete, or else a
// name that no other object uses.
type handover struct {
	client     client.Client
	live       client.Reader // uncached, because no cache holds Secrets
	vcdCluster *infrav1.VCDCluster
}

// handOverCredentials moves the credentials of CAPVCD before any phase runs. If there were any, the pass ends until the
// cache shows the identity. If they cannot be moved, no phase can log in.
func (s *scope) handOverCredentials(ctx context.Context) (phases.Result, error) {
	if s.vcdCluster.Spec.CAPVCDCredentials == nil {
		return phases.Done, nil
	}
	h := handover{
		client:     s.reconciler.Client,
		live:       s.reconciler.Live,
		vcdCluster: s.vcdCluster,
	}
	out, err := h.run(ctx)
	if err != nil {
		return phases.Done, err
	}
	s.login.held = out
	if out != phases.Done {
		return phases.Done, nil
	}
	s.vcdCluster.Spec.CAPVCDCredentials = nil
	if err := s.store.saveSpec(ctx); err != nil {
		return phases.Done, err
	}
	return phases.Wait(identityPoll, infrav1.WaitingForEarlierPhaseReason, "Waiting for VCDIdentity %s",
		s.vcdCluster.Spec.IdentityRef.Name), nil
}

// run writes the credentials to the Secret of the identity, and creates the identity.
func (h handover) run(ctx context.Context) (phases.Result, error) {
	c := h.vcdCluster
	held := c.Spec.CAPVCDCredentials
	exists, err := h.identityExists(ctx)
	if err != nil {
		return phases.Done, err
	}
	ref := held.SecretRef
	isElsewhere := ref != nil && ref.Namespace != "" && ref.Namespace != c.Namespace
	switch {
	case isElsewhere && !exists:
		return phases.Stop(infrav1.SecretInOtherNamespaceReason,
			"Secret %s/%s, to which the CAPVCD cluster referred, cannot be read from namespace %s: copy the Secret to the namespace of the VCDCluster and create VCDIdentity %s for it, or set another identity in spec.identityRef",
			ref.Namespace, ref.Name, c.Namespace, c.Spec.IdentityRef.Name), nil
	case isElsewhere, c.Spec.IdentityRef.Kind == infrav1.ClusterIdentity:
		return phases.Done, nil // A user chose another identity.
	}
	out, err := h.writeSecret(ctx, held)
	if err != nil || out != phases.Done || exists {
		return out, err
	}
	return phases.Done, h.createIdentity(ctx)
}

// identityExists reports whether the identity exists. A user may have created it and set it in spec.identityRef.
func (h handover) identityExists(ctx context.Context) (bool, error) {
	ref := h.vcdCluster.Spec.IdentityRef
	if ref.Kind == infrav1.ClusterIdentity {
		return true, nil
	}
	err := h.client.Get(ctx, h.key(ref.Name), &infrav1.VCDIdentity{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDIdentity %s: %w", ref.Name, err)
	}
	return err == nil, nil
}

// writeSecret writes the credentials to the Secret of the identity, unless the VCDCluster already names this Secret.
func (h handover) writeSecret(ctx context.Context, held *infrav1.CAPVCDCredentials) (phases.Result, error) {
	data := inline(held)
	name := h.vcdCluster.Spec.IdentityRef.Name
	if ref := held.SecretRef; ref != nil && ref.Name != "" && ref.Name != name {
		// As in CAPVCD, the values in a Secret override those in the object.
		out, err := h.addFrom(ctx, ref.Name, data)
		if err != nil || out != phases.Done {
			return out, err
		}
	}
	if len(data) == 0 {
		return phases.Done, nil
	}
	secret := &corev1.Secret{}
	err := h.live.Get(ctx, h.key(name), secret)
	switch {
	case apierrors.IsNotFound(err):
		return phases.Done, h.createSecret(ctx, data)
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", name, err)
	case !owned.By(h.vcdCluster, secret, clusterv1.ClusterNameLabel, capicluster.Name(h.vcdCluster, nil)):
		return owned.Conflict("Secret", name, "VCDCluster", "the VCDIdentity with the credentials of CAPVCD"), nil
	}
	before := secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, data)
	if equality.Semantic.DeepEqual(before.Data, secret.Data) {
		return phases.Done, nil
	}
	if err := h.client.Update(ctx, secret); err != nil {
		return phases.Done, fmt.Errorf("updating Secret %s: %w", name, err)
	}
	return phases.Done, nil
}

// inline returns the credentials in the VCDCluster itself.
func inline(held *infrav1.CAPVCDCredentials) map[string][]byte {
	data := map[string][]byte{}
	for key, value := range map[string]string{
		infrav1.SecretUsername:     held.Username,
		infrav1.SecretPassword:     held.Password,
		infrav1.SecretRefreshToken: held.RefreshToken,
	} {
		if value != "" {
			data[key] = []byte(value)
		}
	}
	return data
}

// addFrom adds the credentials in a Secret of the namespace to data.
func (h handover) addFrom(ctx context.Context, name string, data map[string][]byte) (phases.Result, error) {
	secret := &corev1.Secret{}
	err := h.live.Get(ctx, h.key(name), secret)
	if apierrors.IsNotFound(err) {
		return phases.Stop(infrav1.SecretNotFoundReason,
			"Secret %s, to which the CAPVCD cluster referred, does not exist: create it, or set another identity in spec.identityRef", name), nil
	}
	if err != nil {
		return phases.Done, fmt.Errorf("getting Secret %s: %w", name, err)
	}
	for _, key := range []string{infrav1.SecretUsername, infrav1.SecretPassword, infrav1.SecretRefreshToken} {
		if value := secret.Data[key]; len(value) > 0 {
			data[key] = value
		}
	}
	return phases.Done, nil
}

func (h handover) createSecret(ctx context.Context, data map[string][]byte) error {
	secret := &corev1.Secret{
		ObjectMeta: h.meta(),
		Data:       data,
	}
	if err := h.own(secret); err != nil {
		return err
	}
	if err := h.client.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
	}
	return nil
}

// createIdentity creates the identity. If its Secret was created for it, the VCDCluster owns the identity. If a user
// created the Secret, the identity has no owner, because other VCDClusters may refer to the same Secret.
func (h handover) createIdentity(ctx context.Context) error {
	c := h.vcdCluster
	identity := &infrav1.VCDIdentity{ObjectMeta: h.meta()}
	identity.Spec.Site = c.Spec.Site
	identity.Spec.SecretRef.Name = identity.Name
	if ref := c.Spec.CAPVCDCredentials.SecretRef; ref == nil || ref.Name != identity.Name {
		if err := h.own(identity); err != nil {
			return err
		}
	}
	if err := h.client.Create(ctx, identity); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating VCDIdentity %s: %w", identity.Name, err)
	}
	return nil
}

// meta returns the metadata of the Secret and the identity.
func (h handover) meta() metav1.ObjectMeta {
	c := h.vcdCluster
	labels := map[string]string(capicluster.Labels(capicluster.Name(c, nil)))
	if filter := c.Labels[clusterv1.WatchLabel]; filter != "" {
		labels[clusterv1.WatchLabel] = filter
	}
	return metav1.ObjectMeta{
		Namespace: c.Namespace,
		Name:      c.Spec.IdentityRef.Name,
		Labels:    labels,
	}
}

func (h handover) own(object client.Object) error {
	if err := controllerutil.SetControllerReference(h.vcdCluster, object, h.client.Scheme()); err != nil {
		return fmt.Errorf("owning %s: %w", object.GetName(), err)
	}
	return nil
}

func (h handover) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.vcdCluster.Namespace, Name: name}
}
