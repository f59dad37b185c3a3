// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta1"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
)

// Constructor creates the converter of a kind. The scheme must contain all versions of the kind.
type Constructor = func(scheme *runtime.Scheme) (conversion.Converter, error)

// AddToScheme adds the versions of CAPVCD to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(v1beta1.AddToScheme(scheme), v1beta2.AddToScheme(scheme), v1beta3.AddToScheme(scheme))
}

// VCDCluster converts VCDClusters.
func VCDCluster() Constructor {
	k := clusterKind()
	return conversion.NewHubSpokeConverter(k.newHub(),
		spokeOf(k, func() *v1beta1.VCDCluster { return &v1beta1.VCDCluster{} }),
		spokeOf(k, func() *v1beta2.VCDCluster { return &v1beta2.VCDCluster{} }),
		spokeOf(k, func() *v1beta3.VCDCluster { return &v1beta3.VCDCluster{} }),
	)
}

// VCDClusterTemplate converts VCDClusterTemplates.
func VCDClusterTemplate() Constructor {
	k := clusterTemplateKind()
	return conversion.NewHubSpokeConverter(k.newHub(),
		spokeOf(k, func() *v1beta2.VCDClusterTemplate { return &v1beta2.VCDClusterTemplate{} }),
		spokeOf(k, func() *v1beta3.VCDClusterTemplate { return &v1beta3.VCDClusterTemplate{} }),
	)
}

// VCDMachine converts VCDMachines.
func VCDMachine() Constructor {
	k := machineKind()
	return conversion.NewHubSpokeConverter(k.newHub(),
		spokeOf(k, func() *v1beta1.VCDMachine { return &v1beta1.VCDMachine{} }),
		spokeOf(k, func() *v1beta2.VCDMachine { return &v1beta2.VCDMachine{} }),
		spokeOf(k, func() *v1beta3.VCDMachine { return &v1beta3.VCDMachine{} }),
	)
}

// VCDMachineTemplate converts VCDMachineTemplates.
func VCDMachineTemplate() Constructor {
	k := machineTemplateKind()
	return conversion.NewHubSpokeConverter(k.newHub(),
		spokeOf(k, func() *v1beta1.VCDMachineTemplate { return &v1beta1.VCDMachineTemplate{} }),
		spokeOf(k, func() *v1beta2.VCDMachineTemplate { return &v1beta2.VCDMachineTemplate{} }),
		spokeOf(k, func() *v1beta3.VCDMachineTemplate { return &v1beta3.VCDMachineTemplate{} }),
	)
}

// spokeOf returns the converter for one CAPVCD version. It converts to and from v1beta3 through JSON, because v1beta3
// has the same fields with the same names.
func spokeOf[Hub, Old, Spoke object](k *kind[Hub, Old], newSpoke func() Spoke) conversion.SpokeConverter[Hub] {
	narrow := func(old Old) (Old, error) {
		spoke := newSpoke()
		narrowed := k.newOld()
		if err := recode(old, spoke); err != nil {
			return narrowed, err
		}
		return narrowed, recode(spoke, narrowed)
	}
	toHub := func(_ context.Context, spoke Spoke, hub Hub) error {
		old := k.newOld()
		if err := recode(spoke, old); err != nil {
			return err
		}
		return k.upgrade(old, narrow, hub)
	}
	fromHub := func(_ context.Context, hub Hub, spoke Spoke) error {
		old, err := k.show(hub)
		if err != nil {
			return err
		}
		return recode(old, spoke)
	}
	return conversion.NewSpokeConverter(newSpoke(), fromHub, toHub)
}
