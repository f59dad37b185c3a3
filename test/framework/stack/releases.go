// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// A Release is a release of a provider for clusterctl.
type Release struct {
	// Provider is the name in clusterctl's labels, such as control-plane-kubeadm.
	Provider string
	// Version is the version of the release, such as v1.14.2.
	Version string
	// Files are the files of the release, by name. The name of the components file is the result of componentsFile.
	Files map[string][]byte
}

// componentsFile returns the name of a provider's components file in its releases.
func componentsFile(provider string) string {
	_, kind := providerNameAndType(provider)
	for known, file := range map[clusterctlv1.ProviderType]string{
		clusterctlv1.InfrastructureProviderType: ComponentsFile,
		clusterctlv1.BootstrapProviderType:      "bootstrap-components.yaml",
		clusterctlv1.ControlPlaneProviderType:   "control-plane-components.yaml",
		clusterctlv1.IPAMProviderType:           "ipam-components.yaml",
	} {
		if kind == known {
			return file
		}
	}
	return "core-components.yaml"
}

// write writes the release to a folder and returns the URL of its components.
func (r Release) write(dir string) (url string, err error) {
	folder := filepath.Join(dir, r.Provider, r.Version)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", fmt.Errorf("creating a local repository: %w", err)
	}
	for name, content := range r.Files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return "", fmt.Errorf("writing a local repository: %w", err)
		}
	}
	return "file://" + filepath.ToSlash(filepath.Join(folder, componentsFile(r.Provider))), nil
}

// Releases returns the releases of the parts that a stack has installed, with the images that their maintainers
// publish.
func Releases(s *Stack) ([]Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Release
	for _, m := range s.managers {
		image := programs.Images()[filepath.Base(m.install.ManagerBinary)]
		if image == "" || m.replica != "" {
			continue
		}
		content, err := WithImage(m.install.ComponentsYAML, image)
		if err != nil {
			return nil, fmt.Errorf("components of %s: %w", m.Name(), err)
		}
		metadata, err := metadataOf(m.install.Version)
		if err != nil {
			return nil, err
		}
		found = append(found, Release{
			Provider: m.Name(),
			Version:  m.install.Version,
			Files:    map[string][]byte{componentsFile(m.Name()): content, "metadata.yaml": metadata},
		})
	}
	return found, nil
}

// metadataOf returns release metadata, in which clusterctl looks up the contract.
func metadataOf(version string) ([]byte, error) {
	var major, minor int32
	if _, err := fmt.Sscanf(version, "v%d.%d.", &major, &minor); err != nil {
		return nil, fmt.Errorf("reading version %s: %w", version, err)
	}
	metadata := clusterctlv1.Metadata{
		ReleaseSeries: []clusterctlv1.ReleaseSeries{{
			Major:    major,
			Minor:    minor,
			Contract: clusterv1.GroupVersion.Version,
		}},
	}
	metadata.APIVersion = clusterctlv1.GroupVersion.String()
	metadata.Kind = "Metadata"
	return yaml.Marshal(metadata)
}

var (
	imageLine  = regexp.MustCompile(`(?m)^( *(?:- )?image:) \S+$`)
	policyLine = regexp.MustCompile(`(?m)^( *imagePullPolicy:) \S+$`)
)

// WithImage replaces the single image in components, and sets its pull policy to IfNotPresent as in releases.
func WithImage(components []byte, image string) ([]byte, error) {
	text := string(components)
	if count := len(imageLine.FindAllString(text, -1)); count != 1 {
		return nil, fmt.Errorf("there are %d images, but one was expected", count)
	}
	text = imageLine.ReplaceAllString(text, "$1 "+strings.ReplaceAll(image, "$", "$$"))
	return []byte(policyLine.ReplaceAllString(text, "$1 IfNotPresent")), nil
}
