// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of these types.
	GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta4"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds these types to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&VCDCluster{}, &VCDClusterList{},
		&VCDClusterTemplate{}, &VCDClusterTemplateList{},
		&VCDMachine{}, &VCDMachineList{},
		&VCDMachineTemplate{}, &VCDMachineTemplateList{},
		&VCDIdentity{}, &VCDIdentityList{},
		&VCDClusterIdentity{}, &VCDClusterIdentityList{},
		&VCDFailureDomain{}, &VCDFailureDomainList{},
		&VCDDeploymentZone{}, &VCDDeploymentZoneList{},
		&VCDRemediation{}, &VCDRemediationList{},
		&VCDRemediationTemplate{}, &VCDRemediationTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
