// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// claimsName is the name of the ConfigMap that records which Service has an address. Only the cloud controller
	// manager may write it.
	claimsName = "cloud-controller-manager-addresses"
	// requestTimeout limits requests to the API server.
	requestTimeout = 10 * time.Second
)

// errOutdated means that another process changed the claims.
var errOutdated = errors.New("the claims of addresses were changed meanwhile")

// A store keeps the claims in a ConfigMap, with an entry per address. A write succeeds only if the object has not
// changed since it was last read. Therefore, two processes never assign one address to two Services, even if both
// consider themselves the leader.
type store struct {
	client    kubernetes.Interface
	namespace string

	object *corev1.ConfigMap // as last read or written; nil: must be read
}

// load returns the claims. It reads the ConfigMap once, and again after a failed write.
func (s *store) load(ctx context.Context) (claims, error) {
	if s.object == nil {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		objects := s.client.CoreV1().ConfigMaps(s.namespace)
		found, err := objects.Get(ctx, claimsName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: claimsName}}
			found, err = objects.Create(ctx, empty, metav1.CreateOptions{})
		}
		if err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", s.namespace, claimsName, err)
		}
		s.object = found
	}
	return decode(s.object)
}

// save writes the claims. After an error, load reads them again.
func (s *store) save(ctx context.Context, next claims) error {
	data, err := encode(next)
	if err != nil {
		return err
	}
	change := map[string]any{}
	for key := range s.object.Data {
		change[key] = nil
	}
	for key, value := range data {
		change[key] = value
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             s.object.UID,
			"resourceVersion": s.object.ResourceVersion,
		},
		"data": change,
	})
	if err != nil {
		return fmt.Errorf("encoding the claims of addresses: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	written, err := s.client.CoreV1().ConfigMaps(s.namespace).Patch(ctx, claimsName, types.MergePatchType, patch,
		metav1.PatchOptions{})
	s.object = nil
	switch {
	case apierrors.IsConflict(err):
		return errOutdated
	case err != nil:
		return fmt.Errorf("writing ConfigMap %s/%s: %w", s.namespace, claimsName, err)
	}
	s.object = written
	return nil
}

// decode returns the claims in the object. An invalid entry is an error, because its address may be in use.
func decode(object *corev1.ConfigMap) (claims, error) {
	held := claims{}
	for key, value := range object.Data {
		addr, err := netip.ParseAddr(strings.ReplaceAll(key, "_", ":"))
		if err != nil {
			return nil, fmt.Errorf("key %q of ConfigMap %s is not an address: delete the key", key, claimsName)
		}
		var by holder
		if err := json.Unmarshal([]byte(value), &by); err != nil || by.UID == "" {
			return nil, fmt.Errorf("key %q of ConfigMap %s names no Service: delete the key", key, claimsName)
		}
		held[addr] = by
	}
	return held, nil
}

// encode returns the data of the object. It replaces colons, which keys of a ConfigMap cannot contain.
func encode(held claims) (map[string]string, error) {
	data := map[string]string{}
	for addr, by := range held {
		value, err := json.Marshal(by)
		if err != nil {
			return nil, fmt.Errorf("encoding the claim of %s: %w", addr, err)
		}
		data[strings.ReplaceAll(addr.String(), ":", "_")] = string(value)
	}
	return data, nil
}
