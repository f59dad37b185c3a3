// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// values are the values of variables by name, as decoded from JSON.
type values map[string]any

// variables are the values of all variables of a topology.
type variables struct {
	global       values
	controlPlane values            // overrides of global values
	workers      map[string]values // overrides by name of the MachineDeployment in the topology
}

// resolveVariables returns the variables of a topology with the defaults of its class. It fails if values are invalid
// or missing.
func resolveVariables(topology clusterv1.Topology, class *clusterv1.ClusterClass) (variables, error) {
	known := definitionsOf(class)
	all := variables{workers: map[string]values{}}
	var errs []error
	resolve := func(given []clusterv1.ClusterVariable, override bool, place string) values {
		found, err := known.resolve(given, override)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
		}
		return found
	}
	all.global = resolve(topology.Variables, false, "spec.topology.variables")
	all.controlPlane = resolve(topology.ControlPlane.Variables.Overrides, true, "spec.topology.controlPlane.variables")
	for _, workers := range topology.Workers.MachineDeployments {
		all.workers[workers.Name] = resolve(workers.Variables.Overrides, true,
			"variables of machineDeployment "+workers.Name)
	}
	return all, errors.Join(errs...)
}

// definitions are the variables that a class defines.
type definitions struct {
	byName     map[string]clusterv1.ClusterClassVariable
	discovered bool // runtime extensions define more variables
}

func definitionsOf(class *clusterv1.ClusterClass) definitions {
	known := definitions{byName: map[string]clusterv1.ClusterClassVariable{}}
	for _, variable := range class.Spec.Variables {
		known.byName[variable.Name] = variable
	}
	for _, patch := range class.Spec.Patches {
		if patch.External != nil && patch.External.DiscoverVariablesExtension != "" {
			known.discovered = true
		}
	}
	return known
}

// resolve returns the given values with the defaults of their fields. Unless override is set, other variables get their
// default, and required ones must be given.
func (d definitions) resolve(given []clusterv1.ClusterVariable, override bool) (values, error) {
	found := values{}
	var errs []error
	for _, variable := range given {
		definition, defined := d.byName[variable.Name]
		switch {
		case defined:
			value, err := decode(variable.Value.Raw)
			if err != nil {
				errs = append(errs, fmt.Errorf("variable %s: %w", variable.Name, err))
				continue
			}
			found[variable.Name] = withDefaults(value, &definition.Schema.OpenAPIV3Schema)
		case !d.discovered: // inline patches cannot use variables of extensions
			errs = append(errs, fmt.Errorf("variable %s: the ClusterClass does not define it", variable.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.byName)) {
		definition := d.byName[name]
		if value, given := found[name]; given {
			errs = append(errs, check(name, value, &definition.Schema.OpenAPIV3Schema)...)
			continue
		}
		switch {
		case override:
		case definition.Schema.OpenAPIV3Schema.Default != nil:
			found[name] = withDefaults(nil, &definition.Schema.OpenAPIV3Schema)
		case ptr.Deref(definition.Required, false):
			errs = append(errs, fmt.Errorf("variable %s is required", name))
		}
	}
	return found, errors.Join(errs...)
}

// decode decodes JSON. Empty input results in nil.
func decode(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("reading its value: %w", err)
	}
	return value, nil
}
