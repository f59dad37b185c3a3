// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// entityURN matches the URN of the entity of a cluster.
var entityURN = regexp.MustCompile(
	`^urn:vcloud:entity:vmware:capvcdCluster:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func rdeErrors(spec infrav1.RDESpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ID != "" && !entityURN.MatchString(spec.ID) {
		errs = append(errs, field.Invalid(path.Child("id"), spec.ID,
			"must be the URN of an entity, urn:vcloud:entity:vmware:capvcdCluster:<UUID>: remove the field to create an entity"))
	}
	if spec.Mode == infrav1.RDEProject {
		return errs
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"id", spec.ID != ""},
		{"parentUID", spec.ParentUID != ""},
		{"useAsManagementCluster", spec.UseAsManagementCluster != nil},
		{"includeKubeconfig", spec.IncludeKubeconfig != nil},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name),
				"has no effect unless mode is Project: set the mode, or remove this field"))
		}
	}
	return errs
}
