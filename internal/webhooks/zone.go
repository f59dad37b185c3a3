// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func failureDomainValidator() *validator[*infrav1.VCDFailureDomain] {
	return &validator[*infrav1.VCDFailureDomain]{
		kind:      "VCDFailureDomain",
		finalizer: infrav1.FailureDomainFinalizer,
		spec:      func(d *infrav1.VCDFailureDomain) any { return d.Spec },
		rules: func(d *infrav1.VCDFailureDomain) field.ErrorList {
			path := field.NewPath("spec")
			errs := objectErrors(d.Spec.OVDC, typeVDC, path.Child("ovdc"))
			errs = append(errs, objectErrors(d.Spec.PlacementPolicy, typePolicy, path.Child("placementPolicy"))...)
			errs = append(errs, labelValueErrors(d.Spec.Region, path.Child("region"))...)
			return append(errs, labelValueErrors(d.Spec.Zone, path.Child("zone"))...)
		},
	}
}

func deploymentZoneValidator() *validator[*infrav1.VCDDeploymentZone] {
	return &validator[*infrav1.VCDDeploymentZone]{
		kind:      "VCDDeploymentZone",
		finalizer: infrav1.DeploymentZoneFinalizer,
		spec:      func(z *infrav1.VCDDeploymentZone) any { return z.Spec },
		rules: func(z *infrav1.VCDDeploymentZone) field.ErrorList {
			return append(zoneNameErrors(z), constraintErrors(&z.Spec.PlacementConstraint,
				field.NewPath("spec", "placementConstraint"))...)
		},
	}
}

// maxZoneName is the maximum length of an annotation key after its prefix.
const maxZoneName = 63

// zoneNameErrors validates the name of a zone, which is part of the names of vApps and of annotation keys on
// VCDClusters.
func zoneNameErrors(z *infrav1.VCDDeploymentZone) field.ErrorList {
	if len(z.Name) <= maxZoneName {
		return nil
	}
	return field.ErrorList{field.TooLong(field.NewPath("metadata", "name"), "", maxZoneName)}
}

// constraintErrors validates references to objects in VCD.
func constraintErrors(c *infrav1.PlacementConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, network := range c.Networks {
		errs = append(errs, objectErrors(network, typeNetwork, path.Child("networks").Index(i))...)
	}
	errs = append(errs, objectErrors(c.StorageProfile, typeStorageProfile, path.Child("storageProfile"))...)
	errs = append(errs, objectErrors(c.SizingPolicy, typePolicy, path.Child("sizingPolicy"))...)
	return append(errs, objectErrors(c.Catalog, typeCatalog, path.Child("catalog"))...)
}

// labelValueErrors validates a value that becomes a label of Nodes.
func labelValueErrors(value string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}
