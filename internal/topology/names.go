// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"cmp"
	"fmt"
	"text/template"
)

// Random is a placeholder for the random suffix of names that Cluster API generates. It has the same length.
const Random = "xxxxx"

// maxName is the maximum length of names that Cluster API generates.
const maxName = 63

// Default templates of names, for classes without a naming template.
const (
	clusterNaming = "{{ .cluster.name }}-{{ .random }}"
	workersNaming = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
)

// nameByTemplate renders the naming template of a class, or fallback if the class has none. workers is the name of a
// MachineDeployment in the topology, or empty for other objects.
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

// nameOfTemplate returns the name of a template. prefix consists of the names of its cluster and its workers.
func nameOfTemplate(prefix string) string {
	prefix += "-"
	return prefix[:min(len(prefix), maxName-len(Random))] + Random
}
