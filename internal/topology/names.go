// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"cmp"
	"fmt"
	"text/template"
)

// Random stands for the random end that Cluster API gives names, and has its length.
const Random = "xxxxx"

// maxName is how long the names are that Cluster API generates.
const maxName = 63

// Templates of names that a class does not name.
const (
	clusterNaming = "{{ .cluster.name }}-{{ .random }}"
	workersNaming = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
)

// nameByTemplate returns the name that a template of a class makes, or a fallback if the class has none. Workers are
// those of a MachineDeployment by its name in the topology, empty for what has none.
func nameByTemplate(naming, fallback, cluster, workers string) (string, error) {
	naming = cmp.Or(naming, fallback)
	parsed, err := template.New("name").Option("missingkey=error").Parse(naming)
	if err != nil {
		return "", fmt.Errorf("reading the template %q of a name: %w", naming, err)
	}
	data := map[string]any{
		"cluster": map[string]any{"name": cluster},
		"random":  Random,
	}
	if workers != "" {
		data["machineDeployment"] = map[string]any{"topologyName": workers}
	}
	var name bytes.Buffer
	if err := parsed.Execute(&name, data); err != nil {
		return "", fmt.Errorf("rendering the template %q of a name: %w", naming, err)
	}
	if name.Len() > maxName {
		return name.String()[:maxName-len(Random)] + Random, nil
	}
	return name.String(), nil
}

// nameOfTemplate returns the name of a template, which begins with those of its cluster and of its workers.
func nameOfTemplate(prefix string) string {
	prefix += "-"
	return prefix[:min(len(prefix), maxName-len(Random))] + Random
}
