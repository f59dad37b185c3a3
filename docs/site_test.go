// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestNavigationCoversEveryPage checks that docs/README.md, the navigation of the site, or the index of a folder links
// to each page.
func TestNavigationCoversEveryPage(t *testing.T) {
	g := NewWithT(t)
	linked := map[string]bool{"docs/README.md": true}
	for _, index := range allPages(t) {
		if filepath.Base(index) != "README.md" {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(readPage(t, index), -1) {
			linked[filepath.Join(filepath.Dir(index), match[1])] = true
		}
	}

	for _, page := range allPages(t) {
		if strings.HasPrefix(page, "docs/") {
			folder := filepath.Base(page) == "README.md" && linked[filepath.Dir(page)]
			g.Expect(linked[page] || folder).To(BeTrue(), "%s is not in docs/README.md", page)
		}
	}
}

// TestTheSiteIsPinned checks that the site generator has an exact version, and that the lock file has the checksum of
// each package.
func TestTheSiteIsPinned(t *testing.T) {
	g := NewWithT(t)
	g.Expect(readPage(t, "site/package.json")).To(MatchRegexp(`"vitepress": "\d+\.\d+\.\d+"`))
	lock := readPage(t, "site/package-lock.json")
	g.Expect(strings.Count(lock, `"integrity": "sha512-`)).To(BeNumerically(">", 100))

	// npm ci refuses a lock file without the packages of other platforms. npm omits them if it cannot load them.
	var locked struct {
		Packages map[string]struct {
			OptionalDependencies map[string]string `json:"optionalDependencies"`
		} `json:"packages"`
	}
	g.Expect(json.Unmarshal([]byte(lock), &locked)).To(Succeed())
	for name, pkg := range locked.Packages {
		for optional := range pkg.OptionalDependencies {
			g.Expect(locked.Packages).To(HaveKey("node_modules/"+optional), "of %s", name)
		}
	}
}
