// SPDX-License-Identifier: Apache-2.0

// Package chart creates a Helm chart of the cloud controller manager for clusters without a manager of this project. It
// derives the templates from the manifests of package addons by replacing configurable values with Helm expressions.
package chart

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
)

// Name is the name of the chart and of its directory in the archive.
const Name = addons.Repository

// Placeholders in rendered manifests, which are replaced with Helm expressions.
const (
	imageMark = "chart.invalid/image:mark"
	hashMark  = "config-hash-mark"
	textMark  = "textmark"
	// textMark64 is textMark in base64, as it appears in the data of a Secret.
	textMark64 = "dGV4dG1hcms="
)

//go:embed values.yaml
var values string

//go:embed values.schema.json
var schema []byte

// Files returns the files of a release's chart, with paths relative to the directory of the chart.
func Files(registry, version string) ([]addons.File, error) {
	meta, err := metadata(version)
	if err != nil {
		return nil, err
	}
	files := []addons.File{
		{Name: "Chart.yaml", Content: meta},
		{Name: "values.schema.json", Content: schema},
		{Name: "templates/_image.tpl", Content: []byte(imageTemplate)},
	}
	var resources string
	for _, c := range clouds() {
		var text string
		if text, resources, err = c.program(); err != nil {
			return nil, fmt.Errorf("creating the templates of %s: %w", c.Title, err)
		}
		config, err := c.config()
		if err != nil {
			return nil, fmt.Errorf("creating the configuration of %s: %w", c.Title, err)
		}
		files = append(files,
			addons.File{Name: "templates/" + c.values + ".yaml", Content: c.only(text)},
			addons.File{Name: "templates/" + c.values + "-config.yaml", Content: c.only(config)})
	}
	repository, _, _ := strings.Cut(addons.Image(registry, "x"), ":x")
	filled := strings.NewReplacer(
		"REPOSITORY", repository, "RESOURCES", strings.TrimSpace(indent(resources, 2)),
	).Replace(values)
	return append(files, addons.File{Name: "values.yaml", Content: []byte(filled)}), nil
}

func metadata(version string) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion":  "v2",
		"name":        Name,
		"type":        "application",
		"version":     strings.TrimPrefix(version, "v"),
		"appVersion":  version,
		"description": "Cloud controller manager for VMware Cloud Director, vSphere and Apache CloudStack",
		"home":        "https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd",
		"kubeVersion": ">=1.30.0-0",
	})
}

// only wraps a template so that it is rendered for this cloud only.
func (c cloud) only(text string) []byte {
	return fmt.Appendf(nil, "{{- if eq .Values.cloud %q }}\n%s{{- end }}\n", c.Provider, text)
}

// program returns the service account, its roles and the Deployment as a template, and the default resources of the
// container.
func (c cloud) program() (text, resources string, err error) {
	ccm := addons.StandAloneCCM(imageMark, c.Cloud)
	ccm.ConfigHash = hashMark
	raw, err := ccm.YAML()
	if err != nil {
		return "", "", err
	}
	text, resources, err = cutResources(string(raw))
	if err != nil {
		return "", "", err
	}
	hash := fmt.Sprintf(`{{ include (print $.Template.BasePath "/%s-config.yaml") . | sha256sum | quote }}`, c.values)
	swaps := []swap{
		{`"` + imageMark + `"`, `{{ include "image" . | quote }}`},
		{`"` + hashMark + `"`, hash},
	}
	if !c.DaemonSet {
		swaps = append(swaps, swap{"\n  replicas: 1\n", "\n  replicas: {{ .Values.replicas }}\n"})
	}
	text, err = apply(text, swaps...)
	return text, resources, err
}

const resourcesKey = "          resources:\n"

// cutResources replaces the resources of the container with an expression, and returns them without indentation.
func cutResources(text string) (replaced, resources string, err error) {
	before, after, found := strings.Cut(text, resourcesKey)
	if !found || strings.Contains(after, resourcesKey) {
		return "", "", fmt.Errorf("the manifest needs one %q", strings.TrimSpace(resourcesKey))
	}
	const deeper = "            "
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, deeper) {
			break
		}
		resources += strings.TrimPrefix(line, deeper)
		after = after[len(line):]
	}
	return before + resourcesKey + deeper + "{{- toYaml .Values.resources | nindent 12 }}\n" + after, resources, nil
}

// A swap is a placeholder and the expression that replaces it.
type swap struct{ mark, expression string }

// apply replaces each placeholder, which must occur exactly once.
func apply(text string, swaps ...swap) (string, error) {
	for _, s := range swaps {
		if n := strings.Count(text, s.mark); n != 1 {
			return "", fmt.Errorf("the manifest contains %[2]q %[1]d times instead of once", n, s.mark)
		}
		text = strings.Replace(text, s.mark, s.expression, 1)
	}
	return text, nil
}

func indent(text string, by int) string {
	margin := strings.Repeat(" ", by)
	return margin + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+margin) + "\n"
}

// marshal encodes objects as YAML that can be appended to other documents.
func marshal(objects ...unstructured.Unstructured) (string, error) {
	raw, err := addons.Marshal(objects)
	return string(bytes.TrimRight(raw, "\n")) + "\n", err
}
