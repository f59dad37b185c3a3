// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// A release is a version of Kubernetes for nodes.
type release struct {
	version string
	// module is the folder that pins its programs, relative to the root.
	module string
	// agnhost and busybox are the image tags of its end-to-end tests.
	agnhost, busybox string
}

// releases returns the supported releases, newest first. There are two, so that upgrades can be tested.
func releases() []release {
	return []release{
		{
			version: "v1.36.3",
			module:  "test/framework/stack/programs/kubernetes",
			agnhost: "2.63.0",
			busybox: "1.37.0-1",
		},
		{
			version: "v1.35.4",
			module:  "hack/nodeimage/programs/kubernetes-previous",
			agnhost: "2.59",
			busybox: "1.37.0-1",
		},
	}
}

// otherReleases returns the releases that the nodes of a cluster have besides r during an upgrade.
func otherReleases(r release) []release {
	return slices.DeleteFunc(releases(), func(other release) bool { return other.version == r.version })
}

func versions() []string {
	var found []string
	for _, r := range releases() {
		found = append(found, r.version)
	}
	return found
}

// name returns the name of the catalog template.
func (r release) name() string {
	return "debian-12-kube-" + r.version
}

// parseReleases parses a comma-separated list of versions, or "all".
func parseReleases(list string) ([]release, error) {
	if list == "all" {
		return releases(), nil
	}
	var found []release
	for version := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(releases(), func(r release) bool { return r.version == version })
		if i < 0 {
			return nil, fmt.Errorf("no image for Kubernetes %q: choose %s, or all", version,
				strings.Join(versions(), ", "))
		}
		found = append(found, releases()[i])
	}
	return found, nil
}
