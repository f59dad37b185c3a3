// SPDX-License-Identifier: Apache-2.0

// Package simsite runs a simulated VMware Cloud Director whose VMs become nodes of simulated workload clusters, and the
// management clusters that use it.
package simsite

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// brisk returns a profile that is fast, but slow enough to observe running tasks.
func brisk() vcdsim.Profile { return vcdsim.Profile{Name: "brisk", Scale: 0.02} }

// A Site is a simulated VCD, its workload clusters, and the management clusters that use it.
type Site struct {
	Workloads *workload.Workloads
	Simulator *vcdsim.Simulator

	dir      string
	log      *os.File
	clusters []*framework.ManagementCluster
}

// Start starts a simulator with a model of a tenant. It writes all files, such as the log, to dir. Tasks take as long
// as in brisk, unless a mod changes the profile.
func Start(ctx context.Context, dir string, model vcdsim.Model, mods ...func(*vcdsim.Config)) (_ *Site, err error) {
	s := &Site{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("creating the directory of the site: %w", err)
	}
	if s.log, err = os.Create(filepath.Join(dir, "simulator.log")); err != nil { //nolint:gosec // the caller's folder
		return nil, fmt.Errorf("opening the simulator's log: %w", err)
	}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	if s.Workloads, err = workload.New(ctx, workload.Options{Log: log}); err != nil {
		return nil, fmt.Errorf("starting the simulated guests: %w", err)
	}
	config := vcdsim.Config{Model: model, Profile: brisk(), Seed: 1, Guest: s.Workloads, Log: log}
	for _, mod := range mods {
		mod(&config)
	}
	if s.Simulator, err = vcdsim.New(config); err != nil {
		return nil, fmt.Errorf("preparing the simulator: %w", err)
	}
	if err := s.Simulator.Start(); err != nil {
		return nil, fmt.Errorf("starting the simulator: %w", err)
	}
	return s, nil
}

// NewManagementCluster starts a management cluster with this provider and all of Cluster API. It can reach the workload
// clusters. Close stops it.
func (s *Site) NewManagementCluster(
	ctx context.Context, options framework.Options,
) (*framework.ManagementCluster, error) {
	options.Dir = filepath.Join(s.dir, options.Dir)
	options.Env = append(options.Env, s.Workloads.Env()...)
	m, err := framework.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	s.clusters = append(s.clusters, m)
	return m, nil
}

// Variables returns the clusterctl.yaml variables of a user of the simulated tenant.
func (s *Site) Variables() map[string]string { return Variables(s.Simulator) }

// Variables returns the clusterctl.yaml variables of a user of a simulator's first tenant.
func Variables(simulator *vcdsim.Simulator) map[string]string {
	org := simulator.State().Model.Orgs[1]
	user := org.Users[1]
	vdc := org.VDCs[0]
	ccm := user
	for _, u := range org.Users {
		if u.Role == vcdsim.RoleCloudProvider {
			ccm = u
		}
	}
	encode := base64.StdEncoding.EncodeToString
	return map[string]string{
		"VCD_SITE":                     simulator.URL(),
		"VCD_ORGANIZATION":             org.Name,
		"VCD_ORGANIZATION_VDC":         vdc.Name,
		"VCD_ORGANIZATION_VDC_NETWORK": vdc.Networks[0].Name,
		"VCD_CATALOG":                  org.Catalogs[0].Name,
		"VCD_TEMPLATE_NAME":            TemplateName(programs.KubernetesVersion),
		"VCD_USERNAME_B64":             encode([]byte(user.Name)),
		"VCD_PASSWORD_B64":             encode([]byte(user.Password)),
		"VCD_CCM_USERNAME_B64":         encode([]byte(ccm.Name)),
		"VCD_CCM_PASSWORD_B64":         encode([]byte(ccm.Password)),
		"VCD_CA_BUNDLE_B64":            encode(simulator.CA()),
	}
}

// TemplateName returns the name of the vApp template of a Kubernetes version.
func TemplateName(version string) string { return "ubuntu-2404-kube-" + version }

// Left returns the remaining objects in the simulated VCD, and the received requests that it does not implement.
func (s *Site) Left() []string {
	state := s.Simulator.State()
	var left []string
	for _, route := range s.Simulator.Unhandled() {
		left = append(left, "an unimplemented request: "+route)
	}
	for i := range state.VApps {
		left = append(left, "vApp "+state.VApps[i].Name)
	}
	for i := range state.VMs {
		left = append(left, strings.TrimSpace("VM "+state.VMs[i].Name+" "+state.VMs[i].Boot.Failure))
	}
	for i := range state.Disks {
		left = append(left, "disk "+state.Disks[i].Name)
	}
	return left
}

// Writes returns the requests since an index that changed something in a simulated VCD.
func Writes(simulator *vcdsim.Simulator, since int) []string {
	var writes []string
	for _, r := range simulator.Requests()[since:] {
		if r.Changes() {
			writes = append(writes, r.Operation)
		}
	}
	return writes
}

// Close stops the management clusters, the simulator and the workload clusters.
func (s *Site) Close() error {
	var errs []error
	for _, m := range s.clusters {
		errs = append(errs, m.Stop())
	}
	if s.Simulator != nil {
		errs = append(errs, s.Simulator.Close())
	}
	if s.Workloads != nil {
		errs = append(errs, s.Workloads.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(errs...)
}

// ReleaseFiles returns the files of a release for clusterctl, by name: the components, the metadata, and the templates
// whose paths match the patterns. Patterns are relative to the root of the repository.
func ReleaseFiles(root string, components []byte, patterns ...string) (map[string][]byte, error) {
	files := map[string][]byte{stack.ComponentsFile: components}
	for _, pattern := range append(patterns, "metadata.yaml") {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, fmt.Errorf("finding the files of a release: %w", err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path) //nolint:gosec // a file of the repository
			if err != nil {
				return nil, fmt.Errorf("reading a file of a release: %w", err)
			}
			files[filepath.Base(path)] = content
		}
	}
	return files, nil
}
