// SPDX-License-Identifier: Apache-2.0

// Package webhooks validates the objects of the API at admission: what neither the schema nor a CEL rule of the CRDs
// can say. It also registers the conversion between versions.
//
// Defaults are the schema's, and so is what is immutable in objects, but for requests in the versions of CAPVCD; what is
// immutable in templates is checked here, because the topology controller's dry runs must pass. The package knows nothing
// of VMware Cloud Director: what only VCD knows is a condition of the controllers. Nothing here blocks a deletion, a status
// or an object whose spec stays as it is.
package webhooks

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/conversion"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdcluster,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters,versions=v1beta4,name=validation.vcdcluster.infrastructure.cluster.x-k8s.io
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdclustertemplate,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcdclustertemplates,versions=v1beta4,name=validation.vcdclustertemplate.infrastructure.cluster.x-k8s.io
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdmachine,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines,versions=v1beta4,name=validation.vcdmachine.infrastructure.cluster.x-k8s.io
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdmachinetemplate,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcdmachinetemplates,versions=v1beta4,name=validation.vcdmachinetemplate.infrastructure.cluster.x-k8s.io
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdidentity,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcdidentities,versions=v1beta4,name=validation.vcdidentity.infrastructure.cluster.x-k8s.io
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdclusteridentity,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcdclusteridentities,versions=v1beta4,name=validation.vcdclusteridentity.infrastructure.cluster.x-k8s.io
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdfailuredomain,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcdfailuredomains,versions=v1beta4,name=validation.vcdfailuredomain.infrastructure.cluster.x-k8s.io
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcddeploymentzone,mutating=false,failurePolicy=fail,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,groups=infrastructure.cluster.x-k8s.io,resources=vcddeploymentzones,versions=v1beta4,name=validation.vcddeploymentzone.infrastructure.cluster.x-k8s.io

// Setup registers the webhooks of all kinds with the manager.
func Setup(mgr ctrl.Manager) error {
	clusters := clusterValidator()
	clusters.own = (&self{client: mgr.GetClient()}).made
	return errors.Join(
		setup(mgr, &infrav1.VCDCluster{}, clusters, conversion.VCDCluster()),
		setup(mgr, &infrav1.VCDClusterTemplate{}, clusterTemplateValidator(), conversion.VCDClusterTemplate()),
		setup(mgr, &infrav1.VCDMachine{}, machineValidator(), conversion.VCDMachine()),
		setup(mgr, &infrav1.VCDMachineTemplate{}, machineTemplateValidator(), conversion.VCDMachineTemplate()),
		setup(mgr, &infrav1.VCDIdentity{}, identityValidator(), nil),
		setup(mgr, &infrav1.VCDClusterIdentity{}, clusterIdentityValidator(), nil),
		setup(mgr, &infrav1.VCDFailureDomain{}, failureDomainValidator(), nil),
		setup(mgr, &infrav1.VCDDeploymentZone{}, deploymentZoneValidator(), nil),
	)
}

// setup registers the webhooks of a kind; one with a single version has no converter.
func setup[T client.Object](mgr ctrl.Manager, object T, v *validator[T], converter conversion.Constructor) error {
	return ctrl.NewWebhookManagedBy(mgr, object).WithValidator(v).WithConverter(converter).Complete()
}
