package webhooks

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func failureDomainValidator() *validator[*infrav1.VCDFailureDomain] {
	return &validator[*infrav1.VCDFailureDomain]{
		kind: "VCDFailureDomain",
		spec: func(d *infrav1.VCDFailureDomain) any { return d.Spec },
		rules: func(d *infrav1.VCDFailureDomain) field.ErrorList {
			path := field.NewPath("spec")
			errs := notYet(failureDomainFeatures, &d.Spec, path)
			errs = append(errs, objectErrors(d.Spec.OVDC, typeVDC, path.Child("ovdc"))...)
			errs = append(errs, objectErrors(d.Spec.PlacementPolicy, typePolicy, path.Child("placementPolicy"))...)
			errs = append(errs, labelValueErrors(d.Spec.Region, path.Child("region"))...)
			return append(errs, labelValueErrors(d.Spec.Zone, path.Child("zone"))...)
		},
	}
}

func deploymentZoneValidator() *validator[*infrav1.VCDDeploymentZone] {
	return &validator[*infrav1.VCDDeploymentZone]{
		kind: "VCDDeploymentZone",
		spec: func(z *infrav1.VCDDeploymentZone) any { return z.Spec },
		rules: func(z *infrav1.VCDDeploymentZone) field.ErrorList {
			return notYet(deploymentZoneFeatures, &z.Spec, field.NewPath("spec"))
		},
	}
}

// labelValueErrors checks what becomes a label of Nodes.
func labelValueErrors(value string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}
