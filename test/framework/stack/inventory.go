// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	clusterctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/config"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// InstallInventory records all installed providers as clusterctl init does, so that clusterctl treats this cluster as
// an initialized management cluster.
func (s *Stack) InstallInventory(ctx context.Context) error {
	crds, err := utilyaml.ToUnstructured(clusterctlconfig.ClusterctlAPIManifest)
	if err != nil {
		return fmt.Errorf("reading clusterctl's CRD: %w", err)
	}
	for i := range crds {
		crds[i].SetLabels(map[string]string{
			clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue,
		})
	}
	if err := s.InstallCRDs(ctx, crds...); err != nil {
		return err
	}
	s.mu.Lock()
	managers := slices.Clone(s.managers)
	s.mu.Unlock()
	var providers []unstructured.Unstructured
	for _, m := range managers {
		providers = append(providers, inventoryEntry(m.Name(), m.Namespace(), m.install.Version))
	}
	return s.Apply(ctx, providers...)
}

func inventoryEntry(provider, namespace, version string) unstructured.Unstructured {
	name, kind := providerNameAndType(provider)
	entry := unstructured.Unstructured{Object: map[string]any{
		"providerName":     name,
		"type":             string(kind),
		"version":          version,
		"watchedNamespace": "",
	}}
	entry.SetAPIVersion(clusterctlv1.GroupVersion.String())
	entry.SetKind("Provider")
	entry.SetName(provider)
	entry.SetNamespace(namespace)
	entry.SetLabels(map[string]string{
		clusterctlv1.ClusterctlLabel:     "",
		providerLabel:                    provider,
		clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue,
	})
	return entry
}

func providerNameAndType(provider string) (string, clusterctlv1.ProviderType) {
	for prefix, kind := range map[string]clusterctlv1.ProviderType{
		"bootstrap-":      clusterctlv1.BootstrapProviderType,
		"control-plane-":  clusterctlv1.ControlPlaneProviderType,
		"infrastructure-": clusterctlv1.InfrastructureProviderType,
		"ipam-":           clusterctlv1.IPAMProviderType,
	} {
		if name, found := strings.CutPrefix(provider, prefix); found {
			return name, kind
		}
	}
	return provider, clusterctlv1.CoreProviderType
}
