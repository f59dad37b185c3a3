// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheKubernetesVersionInANameIsKept(t *testing.T) {
	for name, version := range map[string]string{
		"ubuntu-2404-kube-v1.36.3":         "v1.36.3",
		"v1.33.1":                          "v1.33.1",
		"acme_v1.33.12+vmware.1-fips":      "v1.33.12",
		"acme-k8s-1.33.1":                  "",
		"acme-v1.33.1.7":                   "",
		"acme-v1.333.1":                    "",
		"acme-v11.33.1":                    "",
		"acmev1.33.1":                      "",
		"photon of 10.1.33.1":              "",
		"acme-v2.33.1 and then v1.30.0-b5": "v1.30.0",
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(kubernetesVersion(name)).To(Equal(version))
		})
	}
}

func TestNumbersInNamesAreSortedByValue(t *testing.T) {
	g := NewWithT(t)
	sorted := []string{"", "2", "10", "a", "a-2", "a-2-b", "a-10", "a-10-b", "b-1"}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	g.Expect(inOrder(shuffled, func(s string) string { return s })).To(Equal(sorted))
}
