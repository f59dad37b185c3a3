// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// As with the providers for other clouds, kinds have short names, and kubectl get shows why an object is not ready.
func TestKindsHaveShortNamesAndColumns(t *testing.T) {
	g := NewWithT(t)
	taken := map[string]string{}
	for kind, c := range loadCRDs(t) {
		names := c.definition.Spec.Names.ShortNames
		g.Expect(names).To(HaveLen(1), kind)
		g.Expect(taken).NotTo(HaveKey(names[0]), kind)
		taken[names[0]] = kind
		var columns []string
		for _, column := range c.definition.Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, column.Name)
		}
		g.Expect(columns).To(ContainElement("Age"), kind)
		if !strings.HasSuffix(kind, "Template") {
			g.Expect(columns).To(ContainElements("Ready", "Reason"), kind)
		}
	}
}
