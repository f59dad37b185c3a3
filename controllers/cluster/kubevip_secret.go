package cluster

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A kubeVIPSecret is the Secret with kube-vip's manifest for the templates' control-plane nodes.
type kubeVIPSecret struct{ *scope }

// write writes the Secret unless it is as it should be. One that is not this VCDCluster's is left alone.
func (s kubeVIPSecret) write(ctx context.Context, data map[string][]byte) (phases.Outcome, error) {
	key := client.ObjectKey{Namespace: s.vcdCluster.Namespace, Name: s.cluster.Name + kubeVIPSuffix}
	secret := &corev1.Secret{}
	err := s.Live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return s.create(ctx, key, data)
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	case !s.owns(secret):
		return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason,
			"Secret %s exists and is not this VCDCluster's: delete or rename it, for kube-vip's manifest "+
				"needs its name", key.Name), nil
	}
	before := secret.DeepCopy()
	secret.Data = data
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	maps.Copy(secret.Labels, session.OfCluster(s.cluster.Name))
	if err := controllerutil.SetControllerReference(s.vcdCluster, secret, s.Client.Scheme()); err != nil {
		return phases.Done, fmt.Errorf("owning Secret %s: %w", key, err)
	}
	if reflect.DeepEqual(before, secret) {
		return phases.Done, nil
	}
	if err := s.Client.Update(ctx, secret); err != nil {
		return phases.Done, fmt.Errorf("updating Secret %s: %w", key, err)
	}
	return phases.Done, nil
}

// owns reports whether a Secret is one that we wrote for this cluster. A restore from a backup may have
// removed its owner; type and label are still ours then.
func (s kubeVIPSecret) owns(secret *corev1.Secret) bool {
	if metav1.GetControllerOf(secret) != nil {
		return metav1.IsControlledBy(secret, s.vcdCluster)
	}
	return secret.Type == clusterv1.ClusterSecretType && secret.Labels[clusterv1.ClusterNameLabel] == s.cluster.Name
}

func (s kubeVIPSecret) create(
	ctx context.Context, key client.ObjectKey, data map[string][]byte,
) (phases.Outcome, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: session.OfCluster(s.cluster.Name),
		},
		Type: clusterv1.ClusterSecretType,
		Data: data,
	}
	if err := controllerutil.SetControllerReference(s.vcdCluster, secret, s.Client.Scheme()); err != nil {
		return phases.Done, fmt.Errorf("owning Secret %s: %w", key, err)
	}
	spoofGuard, err := s.session.SpoofGuard(ctx, s.network.Ref)
	if err != nil {
		return phases.Done, err
	}
	if err := s.Client.Create(ctx, secret); err != nil {
		return phases.Done, fmt.Errorf("creating Secret %s: %w", key, err)
	}
	if spoofGuard != "" {
		vipMayBeFiltered(s.Recorder, s.vcdCluster, s.network.Name, spoofGuard)
	}
	return phases.Done, nil
}
