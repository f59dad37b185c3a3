// SPDX-License-Identifier: Apache-2.0

// Package webhooks validates API objects at admission. It implements the rules that neither the schema nor CEL rules of
// the CRDs can express, and registers the conversion between versions.
//
// The schema sets defaults and makes fields of objects immutable, except for requests in CAPVCD's versions.
// Immutability of templates is validated here, because dry runs of the topology controller must pass. The package does
// not depend on VMware Cloud Director: problems that only VCD can reveal become conditions of the controllers. It never
// blocks a deletion, a status update, or an update that does not change the spec.
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

// Options are the options of the webhooks.
type Options struct {
	InPlaceUpdates bool // whether Cluster API may change CPUs and memory of VMs
}

// Setup registers the webhooks of all kinds with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	clusters := clusterValidator()
	clusters.byController = (&managerUser{client: mgr.GetClient()}).sent
	return errors.Join(
		setup(mgr, &infrav1.VCDCluster{}, clusters, conversion.VCDCluster()),
		setup(mgr, &infrav1.VCDClusterTemplate{}, clusterTemplateValidator(), conversion.VCDClusterTemplate()),
		setup(mgr, &infrav1.VCDMachine{}, machineValidator(o.InPlaceUpdates), conversion.VCDMachine()),
		setup(mgr, &infrav1.VCDMachineTemplate{}, machineTemplateValidator(), conversion.VCDMachineTemplate()),
		setup(mgr, &infrav1.VCDIdentity{}, identityValidator(), nil),
		setup(mgr, &infrav1.VCDClusterIdentity{}, clusterIdentityValidator(), nil),
		setup(mgr, &infrav1.VCDFailureDomain{}, failureDomainValidator(), nil),
		setup(mgr, &infrav1.VCDDeploymentZone{}, deploymentZoneValidator(), nil),
	)
}

// setup registers the webhooks of a kind. converter is nil for a kind with a single version.
func setup[T client.Object](mgr ctrl.Manager, object T, v *validator[T], converter conversion.Constructor) error {
	return ctrl.NewWebhookManagedBy(mgr, object).WithValidator(v).WithConverter(converter).Complete()
}
