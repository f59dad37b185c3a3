// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// A report is a file that users attach to an issue and that vcdsim --assumptions reads. Whatever a site responds, it
// only contains versions, results, and sentences of closed lists.
type report struct {
	APIVersions []string        `json:"apiVersions,omitempty"`
	Release     string          `json:"release,omitempty"`
	Assumptions map[string]any  `json:"assumptions"`
	How         map[string]Text `json:"how,omitempty"`
	NotProbed   map[string]Text `json:"notProbed,omitempty"`
}

// fullRelease matches a VCD release with its build number. It matches no IP address.
var fullRelease = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]{1,2})?\.[0-9]{7,9}$`)

// versionText matches an API version, such as 39.0.
var versionText = regexp.MustCompile(`^[0-9]{2,3}\.[0-9]{1,2}$`)

// Report returns the result as YAML. It contains nothing that identifies the site.
func (r Result) Report() ([]byte, error) {
	out := report{
		Assumptions: map[string]any{},
		How:         map[string]Text{},
		NotProbed:   map[string]Text{},
	}
	for _, v := range r.APIVersions {
		if versionText.MatchString(v) {
			out.APIVersions = append(out.APIVersions, v)
		}
	}
	if fullRelease.MatchString(r.Release) {
		out.Release = r.Release
	}
	for _, row := range Table() {
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Assumption == row.Name })
		if i < 0 {
			continue
		}
		f := r.Findings[i]
		if value, ok := row.value(f.Site); ok {
			out.Assumptions[row.Name] = value
			out.How[row.Name] = f.How.known()
			continue
		}
		out.NotProbed[row.Name] = f.Reason.known()
	}
	text, err := yaml.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing the report: %w", err)
	}
	return text, nil
}
