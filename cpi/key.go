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
	mu        sync.Mutex
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
		return fmt.Errorf("reading the key that proves what is stored on Services, in Secret %s of the cloud "+
			"controller manager's namespace: %w (its manifests have this Secret and the right to read and update it: "+
			"apply them)",
			KeySecret, err)
	}
	k.key.Set(value)
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
			ObjectMeta: metav1.ObjectMeta{Name: KeySecret}, Data: map[string][]byte{keyField: value},
		}, metav1.CreateOptions{})
		return err
	}
	secret = secret.DeepCopy()
	secret.Data = map[string][]byte{keyField: value}
	_, err := k.client.CoreV1().Secrets(k.namespace).Update(ctx, secret, metav1.UpdateOptions{})
	return err
}
