// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// A Repository is a release of this provider for clusterctl (infrastructure-components.yaml, metadata.yaml and
// templates), and the variables of the user.
type Repository struct {
	// Version is the version of the release, such as v2.0.0.
	Version string
	// Files are the files of the release, by name.
	Files map[string][]byte
	// Variables are written to clusterctl.yaml.
	Variables map[string]string
	// Others are the releases of other providers, for clusterctl init.
	Others []Release
	// CertManager replaces the cert-manager that clusterctl init would download. Nil keeps the download.
	CertManager []byte
}

const (
	providerFullName = "infrastructure-vcd"
	// ComponentsFile is the name of the release file with all objects to install.
	ComponentsFile = "infrastructure-components.yaml"
)

// LocalRepository writes a release of this provider and a clusterctl.yaml that uses it to dir. It returns the path of
// the clusterctl.yaml.
func LocalRepository(dir string, repository Repository) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	var providers []map[string]string
	for _, r := range append([]Release{{
		Provider: providerFullName,
		Version:  repository.Version,
		Files:    repository.Files,
	}}, repository.Others...) {
		url, err := r.write(dir)
		if err != nil {
			return "", err
		}
		name, kind := providerNameAndType(r.Provider)
		providers = append(providers, map[string]string{"name": name, "type": string(kind), "url": url})
	}
	config := map[string]any{"providers": providers, "overridesFolder": filepath.Join(dir, "overrides")}
	if repository.CertManager != nil {
		url, err := certManagerRelease(repository.CertManager).write(dir)
		if err != nil {
			return "", err
		}
		config["cert-manager"] = map[string]string{"url": url, "version": certManagerVersion}
	}
	for name, value := range repository.Variables {
		config[name] = value
	}
	content, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("writing clusterctl.yaml: %w", err)
	}
	path := filepath.Join(dir, "clusterctl.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing clusterctl.yaml: %w", err)
	}
	return path, nil
}

// LocalRepository writes a release of this provider for Clusterctl.
func (s *Stack) LocalRepository(repository Repository) error {
	_, err := LocalRepository(s.clusterctlDir(), repository)
	return err
}

func (s *Stack) clusterctlDir() string {
	return filepath.Join(s.dir, "clusterctl")
}

// ClusterctlConfig returns the configuration file that LocalRepository writes.
func (s *Stack) ClusterctlConfig() string {
	return filepath.Join(s.clusterctlDir(), "clusterctl.yaml")
}

// Clusterctl runs clusterctl against the stack, with the local repository and without internet access, and returns its
// output.
func (s *Stack) Clusterctl(ctx context.Context, args ...string) ([]byte, error) {
	config := s.ClusterctlConfig()
	if _, err := os.Stat(config); err == nil {
		args = append(args, "--config="+config)
	}
	return s.output(ctx, nil, programs.Clusterctl, args...)
}

// Kubectl runs kubectl against the stack and returns its output.
func (s *Stack) Kubectl(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return s.output(ctx, stdin, programs.Kubectl, args...)
}

func (s *Stack) output(ctx context.Context, stdin io.Reader, name string, args ...string) ([]byte, error) {
	env := map[string]string{
		"KUBECONFIG":                      s.Kubeconfig(),
		"XDG_CONFIG_HOME":                 s.clusterctlDir(),
		"XDG_CACHE_HOME":                  s.clusterctlDir(),
		"KUBECACHEDIR":                    filepath.Join(s.dir, "kubectl-cache"),
		"CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
		"GOPROXY":                         "off",
		"NO_COLOR":                        "true",
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.Bin(name), args...) //nolint:gosec // our own programs
	cmd.Stdin = stdin
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	cmd.Env = cleanEnvironment()
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(),
			fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
