// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Validate returns why the webhooks refuse the creation of an object, nil if they do not. It asks no API server, and
// accepts objects of kinds that have no webhook.
func Validate(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "VCDCluster":
		return validateCreation(clusterValidator(), object)
	case "VCDClusterTemplate":
		return validateCreation(clusterTemplateValidator(), object)
	case "VCDMachine":
		return validateCreation(machineValidator(), object)
	case "VCDMachineTemplate":
		return validateCreation(machineTemplateValidator(), object)
	case "VCDIdentity":
		return validateCreation(identityValidator(), object)
	case "VCDClusterIdentity":
		return validateCreation(clusterIdentityValidator(), object)
	case "VCDFailureDomain":
		return validateCreation(failureDomainValidator(), object)
	case "VCDDeploymentZone":
		return validateCreation(deploymentZoneValidator(), object)
	}
	return nil
}

// validateCreation validates the creation of an object of a kind. A field that the kind does not have is an error.
func validateCreation[T any, P interface {
	*T
	client.Object
}](v *validator[P], object *unstructured.Unstructured) error {
	typed := P(new(T))
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	_, err := v.creation(typed)
	return err
}
