// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLabelValues(t *testing.T) {
	for name, want := range map[string]string{
		"large":                        "large",
		"Development Internal":         "Development-Internal",
		"Größe 2":                      "Gr--e-2",
		" -a- ":                        "a",
		"":                             "",
		strings.Repeat("a", 62) + "-b": strings.Repeat("a", 62),
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(LabelValue(name)).To(Equal(want))
		})
	}
}
