package webhooks

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// feature is a part of the API that this release does not implement yet. Implementing it means to delete its row below.
type feature[S any] struct {
	// path of the field that asks for the feature, below the spec.
	path string
	// asked reports whether a spec asks for it.
	asked func(spec *S) bool
	// what is not implemented yet, and what to do instead.
	what, instead string
}

var machineFeatures = []feature[infrav1.VCDMachineSpec]{
	{
		"bootstrap.transport",
		func(s *infrav1.VCDMachineSpec) bool { return s.Bootstrap.Transport == infrav1.TransportOVFProperties },
		"transport OVFProperties", "use GuestInfo",
	},
	{
		"bootstrap.templateMode",
		func(s *infrav1.VCDMachineSpec) bool { return s.Bootstrap.TemplateMode == infrav1.TemplateLegacy },
		"template mode Legacy", "use an image whose cloud-init reads guestinfo (DataSourceVMware)",
	},
}

// notYet returns an error for each feature that the spec at path asks for.
func notYet[S any](features []feature[S], spec *S, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range features {
		if !f.asked(spec) {
			continue
		}
		errs = append(errs, field.Forbidden(path.Child(f.path), f.what+" is not implemented yet: "+f.instead))
	}
	return errs
}
