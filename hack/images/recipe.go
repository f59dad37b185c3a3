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
	// user and group of every image: the ones that the manifests set, and that no file in an image belongs to.
	user = "65532:65532"
)

// A program becomes an image of its own.
type program struct {
	name        string // of the target in the Dockerfile
	image       string // last part of the image's name; empty for the manager, whose name is given
	pkg         string // folder of its main package, from the root
	binary      string // where it lies in the image; the entrypoint
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
			// Name and path are those of VMware's CPI: manifests and patches written for it find them.
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
			args:        []string{"--listen", ":8443"}, // its own default is reached from inside the container only
			title:       "vcdsim",
			description: "A simulator of VMware Cloud Director, to try and test with.",
		},
	}
}

// A build says what is built from what.
type build struct {
	root    string    // the source tree
	out     string    // folder to write to
	version string    // release, and tag of the images
	commit  string    // full hash, "-dirty" after it if there are changes; may be empty
	created time.Time // of everything inside: the time of the commit
	image   string    // name of the manager's image with its registry

	only          []string // programs to make archives of; nil for all
	architectures []string // nil for all
	toRegistry    bool     // push the images, too
}

// platforms are the architectures to build for.
func (b build) platforms() []string {
	if b.architectures != nil {
		return b.architectures
	}
	return architectures()
}

// reference names an image with registry and tag; an empty name is the manager's.
func (b build) reference(name string) string {
	if name == "" {
		return b.image + ":" + b.version
	}
	return path.Join(path.Dir(b.image), name) + ":" + b.version
}

// file is what an archive and its SBOMs are called, without the ending.
func (b build) file(name string) string {
	if name == "" {
		return path.Base(b.image)
	}
	return name
}

// labels are OCI's annotations, which are also set as labels.
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
