// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Validate returns the error with which the webhooks would reject the creation of an object, or nil. It does not use an
// API server, and accepts objects of kinds without a webhook.
func Validate(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "VCDCluster":
		return validateCreation(clusterValidator(), object)
	case "VCDClusterTemplate":
		return validateCreation(clusterTemplateValidator(), object)
	case "VCDMachine":
		return validateCreation(machineValidator(false), object)
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

// validateCreation validates the creation of an object of a kind. Unknown fields are errors.
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
