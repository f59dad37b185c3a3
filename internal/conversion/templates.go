// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Templates of v1beta4 do not have fields that all clusters or machines created from a template would share: the host
// of the endpoint, the name of the vApp, the entity, the providerID.

func clusterTemplateKind() *kind[*infrav1.VCDClusterTemplate, *v1beta3.VCDClusterTemplate] {
	return &kind[*infrav1.VCDClusterTemplate, *v1beta3.VCDClusterTemplate]{
		newHub: func() *infrav1.VCDClusterTemplate { return &infrav1.VCDClusterTemplate{} },
		newOld: func() *v1beta3.VCDClusterTemplate { return &v1beta3.VCDClusterTemplate{} },
		toHub: func(old *v1beta3.VCDClusterTemplate, hub *infrav1.VCDClusterTemplate) {
			clusterSpecToHub(&old.Spec.Template.Spec, old, &hub.Spec.Template.Spec)
			hub.Spec.Template.Spec.ControlPlaneEndpoint.Port = endpointToHub(old.Spec.Template.Spec.ControlPlaneEndpoint).Port
		},
		fromHub: func(hub *infrav1.VCDClusterTemplate, old *v1beta3.VCDClusterTemplate) {
			clusterSpecFromHub(&hub.Spec.Template.Spec, hub, &old.Spec.Template.Spec)
			old.Spec.Template.Spec.ControlPlaneEndpoint.Port = int(hub.Spec.Template.Spec.ControlPlaneEndpoint.Port)
		},
		settle: func(hub, former *infrav1.VCDClusterTemplate) {
			settleClusterSpec(&hub.Spec.Template.Spec)
			settleIdentity(&hub.Spec.Template.Spec, &former.Spec.Template.Spec, hub)
		},
		credentials: &credentials[*infrav1.VCDClusterTemplate, *v1beta3.VCDClusterTemplate]{
			ofHub: func(hub *infrav1.VCDClusterTemplate) **infrav1.CAPVCDCredentials {
				return &hub.Spec.Template.Spec.CAPVCDCredentials
			},
			ofOld: func(old *v1beta3.VCDClusterTemplate) *v1beta3.UserCredentialsContext {
				return &old.Spec.Template.Spec.UserCredentialsContext
			},
		},
	}
}

func machineTemplateKind() *kind[*infrav1.VCDMachineTemplate, *v1beta3.VCDMachineTemplate] {
	return &kind[*infrav1.VCDMachineTemplate, *v1beta3.VCDMachineTemplate]{
		newHub: func() *infrav1.VCDMachineTemplate { return &infrav1.VCDMachineTemplate{} },
		newOld: func() *v1beta3.VCDMachineTemplate { return &v1beta3.VCDMachineTemplate{} },
		toHub: func(old *v1beta3.VCDMachineTemplate, hub *infrav1.VCDMachineTemplate) {
			hub.Spec.Template.ObjectMeta.Labels = old.Spec.Template.ObjectMeta.Labels
			hub.Spec.Template.ObjectMeta.Annotations = old.Spec.Template.ObjectMeta.Annotations
			machineSpecToHub(&old.Spec.Template.Spec, &hub.Spec.Template.Spec)
		},
		fromHub: func(hub *infrav1.VCDMachineTemplate, old *v1beta3.VCDMachineTemplate) {
			old.Spec.Template.ObjectMeta.Labels = hub.Spec.Template.ObjectMeta.Labels
			old.Spec.Template.ObjectMeta.Annotations = hub.Spec.Template.ObjectMeta.Annotations
			machineSpecFromHub(&hub.Spec.Template.Spec, &old.Spec.Template.Spec)
		},
		settle: func(hub, former *infrav1.VCDMachineTemplate) {
			settleMachineSpec(&hub.Spec.Template.Spec, &former.Spec.Template.Spec)
		},
	}
}
