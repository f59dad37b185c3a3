// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bufio"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

var manifest = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// TestManifestsInPagesHaveOnlyExistingFields decodes the YAML in pages strictly. Objects are decoded as their kind.
// Excerpts without a kind must match any kind.
func TestManifestsInPagesHaveOnlyExistingFields(t *testing.T) {
	decoded := 0
	for _, page := range allPages(t) {
		for _, match := range manifest.FindAllStringSubmatch(readPage(t, page), -1) {
			for _, text := range documents(t, strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n")) {
				known, err := decode(text)
				NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s:\n%s", page, text)
				if known {
					decoded++
				}
			}
		}
	}
	NewWithT(t).Expect(decoded).To(BeNumerically(">", 50))
}

func documents(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all = append(all, string(document))
	}
}

// decode decodes a manifest. It reports whether the manifest is of one of the known kinds.
func decode(text string) (bool, error) {
	var whole any
	if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
		return false, err
	}
	object, _ := whole.(map[string]any)
	if object["kind"] == nil && object["spec"] == nil && object["status"] == nil {
		return false, nil // A list or a configuration file.
	}
	var last error
	for _, kind := range kinds {
		of := reflect.TypeOf(kind)
		if object["kind"] != nil && object["kind"] != of.Name() {
			continue
		}
		if last = yaml.UnmarshalStrict([]byte(text), reflect.New(of).Interface()); last == nil {
			return true, nil
		}
	}
	return false, last
}
