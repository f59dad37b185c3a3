// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"regexp"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// TemplateQuery returns the query for the vApp templates of a catalog that a machine with a Kubernetes version can use.
// Without a version, templates of all versions match.
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

// bareVersion returns a version in the form that template names contain, such as 1.36.3.
func bareVersion(version string) string {
	bare, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "+")
	return bare
}

// withVersion replaces the version placeholder in a pattern. If the version is empty, the replacement is an asterisk.
func withVersion(pattern, version string) string {
	filled := strings.ReplaceAll(pattern, infrav1.KubernetesVersionPlaceholder, cmp.Or(version, "*"))
	return strings.ReplaceAll(filled, "**", "*")
}

// anyVersion matches any Kubernetes version in the name of a template.
const anyVersion = `[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.]+)?`

// nameMatcher returns a matcher for whole names. The version must not end within a number: 1.36.3 does not match the
// first characters of 1.36.30.
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
