// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"

	"sigs.k8s.io/yaml"
)

// An assumptionsFile is a file with assumptions, as "vcdctl verify-site --report" writes it.
type assumptionsFile struct {
	Assumptions map[string]any `json:"assumptions"`

	// The following fields are only for human readers.

	APIVersions []string          `json:"apiVersions,omitempty"`
	Release     string            `json:"release,omitempty"`
	How         map[string]string `json:"how,omitempty"`
	NotProbed   map[string]string `json:"notProbed,omitempty"`
}

// maxAssumptionsFile is the maximum size of a file with assumptions, in bytes.
const maxAssumptionsFile = 1 << 20

// ReadAssumptions reads assumptions in YAML or JSON, as written by WriteAssumptions or "vcdctl verify-site --report".
// Assumptions that the file does not name keep their defaults. Unknown names are an error.
func ReadAssumptions(r io.Reader) (Assumptions, error) {
	a := DefaultAssumptions()
	text, err := io.ReadAll(io.LimitReader(r, maxAssumptionsFile))
	if err != nil {
		return a, fmt.Errorf("reading assumptions: %w", err)
	}
	var file assumptionsFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return a, fmt.Errorf("reading assumptions: %w", err)
	}
	for name := range file.Assumptions {
		if err := checkAssumptionName(name); err != nil {
			return a, err
		}
	}
	for _, texts := range []map[string]string{file.How, file.NotProbed} {
		for name := range texts {
			if err := checkAssumptionName(name); err != nil {
				return a, err
			}
		}
	}
	values, err := json.Marshal(file.Assumptions)
	if err == nil {
		err = json.Unmarshal(values, &a)
	}
	if err != nil {
		return a, fmt.Errorf("reading assumptions: %w", err)
	}
	return a, checkVersions(a)
}

// checkAssumptionName returns an error if there is no assumption of this name.
func checkAssumptionName(name string) error {
	if _, ok := reflect.TypeFor[Assumptions]().FieldByName(name); !ok {
		return fmt.Errorf("reading assumptions: unknown assumption %q", name)
	}
	return nil
}

var assumedVersion = regexp.MustCompile(`^[0-9]{2}\.[0-9]$`)

// checkVersions returns an error if an assumption about API versions is not a version that can be compared.
func checkVersions(a Assumptions) error {
	for _, version := range []string{a.EdgeRuleCreateSince, a.EdgeRuleTopSince} {
		if !assumedVersion.MatchString(version) {
			return fmt.Errorf("reading assumptions: %q is not an API version: quote it, for example \"38.1\"", version)
		}
	}
	return nil
}

// WriteAssumptions writes assumptions as YAML.
func WriteAssumptions(w io.Writer, a Assumptions) error {
	values, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing assumptions: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(values))
	decoder.UseNumber()
	var file assumptionsFile
	if err := decoder.Decode(&file.Assumptions); err != nil {
		return fmt.Errorf("writing assumptions: %w", err)
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return fmt.Errorf("writing assumptions: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing assumptions: %w", err)
	}
	return nil
}
