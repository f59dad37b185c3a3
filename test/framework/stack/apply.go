// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fieldOwner = client.FieldOwner("test-stack")
	parallel   = 8
)

// Apply applies objects of any kind, as kubectl apply --server-side would.
func (s *Stack) Apply(ctx context.Context, objects ...unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range objects {
		object := objects[i].DeepCopy()
		group.Go(func() error {
			err := s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner,
				client.ForceOwnership)
			if err != nil {
				return fmt.Errorf("applying %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// InstallCRDs applies CRDs and waits until the API server serves them.
func (s *Stack) InstallCRDs(ctx context.Context, crds ...unstructured.Unstructured) error {
	if err := s.Apply(ctx, crds...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for i := range crds {
		if err := s.waitEstablished(ctx, &crds[i]); err != nil {
			return fmt.Errorf("waiting for CRD %s to be served: %w", crds[i].GetName(), err)
		}
	}
	return nil
}

func (s *Stack) waitEstablished(ctx context.Context, crd *unstructured.Unstructured) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		current := crd.DeepCopy()
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return err
		}
		if established(current) && s.discovered(crd) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] == "Established" {
			return condition["status"] == "True"
		}
	}
	return false
}

// discovered reports whether discovery returns the kind. This takes a moment after the CRD is created.
func (s *Stack) discovered(crd *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		if version["served"] != true {
			continue
		}
		list, err := s.clients.Discovery().ServerResourcesForGroupVersion(fmt.Sprintf("%s/%s", group, version["name"]))
		if err != nil || !slices.ContainsFunc(list.APIResources,
			func(r metav1.APIResource) bool { return r.Name == plural }) {
			return false
		}
	}
	return true
}

func base64String(data []byte) string {
	return base64.StdEncoding.EncodeToString(data)
}
