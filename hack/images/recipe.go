// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"strings"
	"time"
)

const (
	module = "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd"
	// user is the user and group of every image. The manifests set the same IDs. No file in an image belongs to them.
	user = "65532:65532"
)

// A program is a program with its own image.
type program struct {
	name        string // target in the Dockerfile
	image       string // last part of the image name; empty for the manager, whose name is a flag
	pkg         string // folder of the main package, relative to the root
	binary      string // path in the image; the entrypoint
	args        []string
	ports       []string
	title       string
	description string
}

func programs() []program {
	return []program{
		{
			name:        "manager",
			pkg:         ".",
			binary:      "/manager",
			ports:       []string{"8443/tcp", "9440/tcp", "9443/tcp"},
			title:       "Cluster API Provider for VMware Cloud Director",
			description: "The controllers that make Kubernetes clusters on VMware Cloud Director.",
		},
		{
			// The name and the path are those of VMware's CPI, so that manifests and patches for it continue to work.
			name:        "cpi",
			image:       "cloud-provider-for-cloud-director",
			pkg:         "./cmd/cpi",
			binary:      "/opt/vcloud/bin/cloud-provider-for-cloud-director",
			ports:       []string{"10258/tcp"},
			title:       "Cloud controller manager for VMware Cloud Director",
			description: "Node addresses and load balancers of Kubernetes clusters on VMware Cloud Director.",
		},
		{
			name:        "vcdsim",
			image:       "vcdsim",
			pkg:         "./cmd/vcdsim",
			binary:      "/vcdsim",
			ports:       []string{"8443/tcp"},
			args:        []string{"--listen", ":8443"}, // the program's own default is only reachable from inside the container
			title:       "vcdsim",
			description: "A simulator of VMware Cloud Director, to try and test with.",
		},
	}
}

// A build contains the parameters of a build.
type build struct {
	root    string    // root of the source tree
	out     string    // output folder
	version string    // version of the release; also the tag of the images
	commit  string    // full hash, with the suffix "-dirty" if there are changes; may be empty
	created time.Time // timestamp of everything in the images: the time of the commit
	image   string    // name of the manager's image, including its registry

	only          []string // programs to build archives of; nil means all
	architectures []string // nil means all
	toRegistry    bool     // also push the images
}

// platforms returns the architectures to build for.
func (b build) platforms() []string {
	if b.architectures != nil {
		return b.architectures
	}
	return architectures()
}

// reference returns the reference of an image with registry and tag. An empty name means the manager's image.
func (b build) reference(name string) string {
	if name == "" {
		return b.image + ":" + b.version
	}
	return path.Join(path.Dir(b.image), name) + ":" + b.version
}

// file returns the name of an archive and its SBOMs without the extension.
func (b build) file(name string) string {
	if name == "" {
		return path.Base(b.image)
	}
	return name
}

// labels returns OCI's annotations, which are also set as labels.
func (b build) labels(title, description string) map[string]string {
	source := "https://" + module
	return map[string]string{
		"org.opencontainers.image.title":         title,
		"org.opencontainers.image.description":   description,
		"org.opencontainers.image.source":        source,
		"org.opencontainers.image.url":           source,
		"org.opencontainers.image.documentation": source + "/tree/main/docs",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       b.version,
		"org.opencontainers.image.revision":      strings.TrimSuffix(b.commit, "-dirty"),
		"org.opencontainers.image.created":       b.created.UTC().Format(time.RFC3339),
	}
}

func (b build) check() error {
	switch {
	case b.version == "":
		return fmt.Errorf("there is no --version")
	case !strings.Contains(b.image, "/"):
		return fmt.Errorf("--image %q is not a name with a registry", b.image)
	case strings.Contains(path.Base(b.image), ":"):
		return fmt.Errorf("--image %q has a tag: it is the version", b.image)
	}
	return nil
}
