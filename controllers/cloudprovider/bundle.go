package cloudprovider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// cloudProviderSuffix follows the name of the Cluster in the names of the Secret with the manifests and of its
	// ClusterResourceSet.
	cloudProviderSuffix = "-cloud-provider"
	// seedSuffix follows it in the names of those that are applied once.
	seedSuffix = cloudProviderSuffix + "-seed"
	// manifestsKey is the key of the manifests in their Secret.
	manifestsKey = resourceset.ManifestsKey
)

// A bundle is what the management cluster holds for the workload cluster: a Secret with manifests, and the
// ClusterResourceSets that apply it.
type bundle struct {
	*Reconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster

	secret *corev1.Secret // with the manifests; nil: not written yet. Set by read
}

// set returns what applies the manifests.
func (b *bundle) set() resourceset.Set {
	return resourceset.Set{
		Client: b.Client, Owner: b.vcdCluster, Cluster: b.cluster, Label: infrav1.CloudProviderLabel,
		WatchFilter: b.WatchFilterValue,
	}
}

// key returns the name of an object of the bundle.
func (b *bundle) key(suffix string) client.ObjectKey { return b.set().Key(suffix) }

// annotation returns an annotation of the Secret with the manifests.
func (b *bundle) annotation(annotation string) string {
	if b.secret == nil {
		return ""
	}
	return b.secret.Annotations[annotation]
}

// read reads the Secret, if it was written earlier.
func (b *bundle) read(ctx context.Context) (phases.Outcome, error) {
	secret := &corev1.Secret{}
	key := b.key(cloudProviderSuffix)
	err := b.Live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return phases.Done, nil
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	case !b.owns(secret):
		return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason,
			"Secret %s exists and is not this VCDCluster's: delete or rename it", key.Name), nil
	}
	b.secret = secret
	return phases.Done, nil
}

// owns reports whether a Secret is one that we wrote for this cluster. A restore from a backup may have removed its
// owner; type and label are still ours then.
func (b *bundle) owns(secret *corev1.Secret) bool {
	if metav1.GetControllerOf(secret) != nil {
		return metav1.IsControlledBy(secret, b.vcdCluster)
	}
	return secret.Type == addonsv1.ClusterResourceSetSecretType &&
		secret.Labels[infrav1.CloudProviderLabel] == b.cluster.Name
}

// annotate records on the Secret what is in it, with which credentials, and what was in it and must be removed.
func (b *bundle) annotate(secret *corev1.Secret, items []item, credentials string, changed bool) error {
	notes := secret.Annotations
	if notes == nil {
		notes = map[string]string{}
	}
	dropped := append(readItems(notes[infrav1.CloudProviderDroppedAnnotation]),
		readItems(notes[infrav1.CloudProviderInventoryAnnotation])...)
	for annotation, list := range map[string][]item{
		infrav1.CloudProviderInventoryAnnotation: items,
		infrav1.CloudProviderDroppedAnnotation:   without(dropped, items),
	} {
		text, err := writeItems(list)
		if err != nil {
			return err
		}
		notes[annotation] = text
	}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	notes[infrav1.CloudProviderCredentialsAnnotation] = credentials
	if changed {
		notes[infrav1.CloudProviderWrittenAnnotation] = b.now().UTC().Format(time.RFC3339)
	}
	secret.Annotations = notes
	return nil
}

// store creates or updates the Secret.
func (b *bundle) store(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		if err := b.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
		}
		installing(b.Recorder, b.vcdCluster, imageOf(b.vcdCluster.Spec.CloudProvider.Image, b.Image))
	} else if err := b.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("updating Secret %s: %w", secret.Name, err)
	}
	b.secret = secret
	return nil
}

// delete deletes an object of the bundle.
func (b *bundle) delete(ctx context.Context, obj client.Object, suffix string) error {
	key := b.key(suffix)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	if err := b.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, key, err)
	}
	return nil
}

// hash identifies what should be in the workload cluster.
func (b *bundle) hash() string {
	sum := sha256.Sum256(slices.Concat(b.secret.Data[manifestsKey],
		[]byte(b.annotation(infrav1.CloudProviderDroppedAnnotation))))
	return hex.EncodeToString(sum[:])
}

// applying waits for Cluster API.
func (b *bundle) applying(missing []string) phases.Outcome {
	what := "the manifests"
	if len(missing) > 0 {
		what = phases.Few(missing)
	}
	return phases.Wait(applyPoll, infrav1.CloudProviderApplyingReason, "Waiting for ClusterResourceSet %s to apply %s",
		b.key(cloudProviderSuffix).Name, what)
}
