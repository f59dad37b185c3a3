// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"regexp"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// TemplateQuery returns what a vApp template of a catalog must match to be selected for a machine with a version of
// Kubernetes. Without a version, templates of all versions match.
func TemplateQuery(selector *infrav1.TemplateSelector, catalog, version string) vcd.TemplateQuery {
	query := vcd.TemplateQuery{
		Catalog: catalog,
		Pattern: withVersion(selector.NamePattern, bareVersion(version)),
		Name:    nameMatcher(selector.NamePattern, bareVersion(version)),
	}
	for _, entry := range selector.MatchMetadata {
		query.Metadata = append(query.Metadata, vcd.TextMetadata{Key: entry.Key, Value: entry.Value})
	}
	if selector.KubernetesVersionKey != "" && version != "" {
		query.Metadata = append(query.Metadata, vcd.TextMetadata{Key: selector.KubernetesVersionKey, Value: version})
	}
	return query
}

// bareVersion returns a version as names of templates have it, such as 1.36.3.
func bareVersion(version string) string {
	bare, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "+")
	return bare
}

// withVersion replaces the placeholder in a pattern: by an asterisk if no version is known.
func withVersion(pattern, version string) string {
	filled := strings.ReplaceAll(pattern, infrav1.KubernetesVersionPlaceholder, cmp.Or(version, "*"))
	return strings.ReplaceAll(filled, "**", "*")
}

// anyVersion matches a version of Kubernetes in the name of a template.
const anyVersion = `[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.]+)?`

// nameMatcher returns what matches the whole names that a pattern stands for. The version does not end within a number:
// 1.36.3 does not match the first characters of 1.36.30.
func nameMatcher(pattern, version string) *regexp.Regexp {
	if pattern == "" {
		pattern = "*"
	}
	exact := anyVersion
	if version != "" {
		exact = regexp.QuoteMeta(version)
	}
	quoted := regexp.QuoteMeta(pattern)
	for _, replaced := range [][2]string{
		{regexp.QuoteMeta(infrav1.KubernetesVersionPlaceholder + "*"), exact + `(?:[^0-9].*)?`},
		{regexp.QuoteMeta(infrav1.KubernetesVersionPlaceholder), exact},
		{regexp.QuoteMeta("*"), `.*`},
		{regexp.QuoteMeta("?"), `.`},
	} {
		quoted = strings.ReplaceAll(quoted, replaced[0], replaced[1])
	}
	return regexp.MustCompile(`^(?:` + quoted + `)$`)
}
