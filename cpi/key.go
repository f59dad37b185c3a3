// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

const (
	// KeySecret is the Secret with the key that proves what is stored on Services. The manifests bring it empty, so
	// that the right to write this one is enough.
	KeySecret = "cloud-controller-manager-service-key"
	// keyField is the key of the Secret's data, keyBytes how long its value is.
	keyField, keyBytes = "key", 32
	// keyTimeout is how long the API server may take to answer.
	keyTimeout = 10 * time.Second
)

// A keyLoader reads the key when it is first needed, and makes it if there is none yet.
type keyLoader struct {
	key       *service.Key
	client    kubernetes.Interface
	namespace string
	// manifest is the name of the file that brings the Secret and the right to it.
	manifest string
	// missing is called with what is wrong when the right is missing; nil: the error is all.
	missing func(message string)

	mu   sync.Mutex
	said bool
}

// load makes the key known. Until it is, nothing of a load balancer is read or written: what is stored on Services
// would be taken for a forgery.
func (k *keyLoader) load(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key.Known() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	value, err := k.value(ctx)
	if err != nil {
		return k.explained(err)
	}
	k.key.Set(value)
	return nil
}

// explained adds the remedy to an error, and emits it once if a right is missing.
func (k *keyLoader) explained(err error) error {
	remedy := fmt.Sprintf("the Role system:cloud-controller-manager in namespace %s needs the rule {apiGroups: "+
		"[\"\"], resources: [secrets], resourceNames: [%s], verbs: [get, update]}, which came with this Secret: "+
		"kubectl apply -f %s of this release, not only its image", k.namespace, KeySecret, k.manifest)
	if apierrors.IsForbidden(err) && k.missing != nil && !k.said {
		k.said = true
		k.missing("No load balancer can be worked on: " + remedy)
	}
	return fmt.Errorf("reading the key that proves what is stored on Services, in Secret %s: %w (%s)", KeySecret, err,
		remedy)
}

// readable fails if the right to read the key is missing. It writes nothing.
func (k *keyLoader) readable(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key.Known() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	_, err := k.client.CoreV1().Secrets(k.namespace).Get(ctx, KeySecret, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return k.explained(err)
	}
	return nil
}

func (k *keyLoader) value(ctx context.Context) ([]byte, error) {
	secret, err := k.client.CoreV1().Secrets(k.namespace).Get(ctx, KeySecret, metav1.GetOptions{})
	if err == nil && len(secret.Data[keyField]) >= keyBytes {
		return secret.Data[keyField], nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	value := make([]byte, keyBytes)
	if _, err := rand.Read(value); err != nil {
		return nil, err
	}
	return value, k.store(ctx, secret, err == nil, value)
}

// store writes a new key. If another process does so first, the error is a conflict, and the next attempt reads it.
func (k *keyLoader) store(ctx context.Context, secret *corev1.Secret, exists bool, value []byte) error {
	if !exists {
		_, err := k.client.CoreV1().Secrets(k.namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: KeySecret},
			Data:       map[string][]byte{keyField: value},
		}, metav1.CreateOptions{})
		return err
	}
	secret = secret.DeepCopy()
	secret.Data = map[string][]byte{keyField: value}
	_, err := k.client.CoreV1().Secrets(k.namespace).Update(ctx, secret, metav1.UpdateOptions{})
	return err
}
