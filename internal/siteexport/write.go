// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"cmp"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Write writes the file as YAML.
func (e Export) Write(to io.Writer) error {
	text, err := yaml.Marshal(e.Model)
	if err != nil {
		return fmt.Errorf("writing the site: %w", err)
	}
	if _, err := fmt.Fprintf(to, "%s%s", e.header(), text); err != nil {
		return fmt.Errorf("writing the site: %w", err)
	}
	return nil
}

// header returns a comment about the origin of the file and its use.
func (e Export) header() string {
	oldest := "unknown"
	newest := "unknown"
	if all := e.Versions.API; len(all) > 0 {
		oldest = all[0]
		newest = all[len(all)-1]
	}
	return fmt.Sprintf(`# An organization of a site without its names and addresses, exported by vcdctl export-site.
# VMware Cloud Director: %s
# API versions: %s to %s
# Start it with: vcdsim --model FILE
# Log in to the organization %s as admin or capvcd, with the password %q.
`, cmp.Or(e.Versions.Release, "release unknown"), oldest, newest, orgName, password)
}
