// SPDX-License-Identifier: Apache-2.0

// Package framework runs a management cluster of real programs with this provider installed as it is shipped, for the
// test suites and the quickstart. Package simsite adds a simulated VMware Cloud Director, and package workload adds the
// nodes of workload clusters.
package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

// Version is the provider's version in clusterctl's inventory.
const Version = "v2.0.0"

// Namespace is the namespace of this provider. Requests of its service accounts are audited.
const Namespace = "capvcd-system"

// Options are the options of a management cluster.
type Options struct {
	// Dir contains data, logs and programs. Only one management cluster at a time can use it.
	Dir string
	// Out receives the progress. Nil discards it.
	Out io.Writer
	// Parts are the additional providers to run. Nil means all.
	Parts []stack.Part
	// Env is appended to the environment of the parts and of this provider, for example HTTPS_PROXY to reach workload
	// clusters.
	Env []string
	// Variables replace ${NAME} in the components of the parts.
	Variables map[string]string
	// StorageVersionsOnly leaves out all versions of the providers' kinds but those that are stored, for tests that do
	// not use the others. See [stack.Options].
	StorageVersionsOnly bool
	// ManagerArgs are appended to the shipped arguments of the manager.
	ManagerArgs []string
}

// A ManagementCluster is a running management cluster with this provider installed.
type ManagementCluster struct {
	*stack.Stack

	// Manager is the manager of this provider. It can be killed and restarted.
	Manager *stack.Manager
	// Components is the installed components file.
	Components []byte
	// Root is the root folder of the repository.
	Root string
}

// Start builds missing programs, starts the management cluster, and installs and starts this provider in it.
func Start(ctx context.Context, opts Options) (*ManagementCluster, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	m := &ManagementCluster{Root: root}
	if m.Components, err = Components(ctx, root); err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "bin", "manager")
	if err := BuildManager(ctx, root, binary); err != nil {
		return nil, err
	}
	m.Stack, err = stack.Start(ctx, stack.Options{
		Dir:            dir,
		Out:            opts.Out,
		Parts:          opts.Parts,
		Env:            opts.Env,
		Variables:      opts.Variables,
		AuditNamespace: Namespace,

		StorageVersionsOnly: opts.StorageVersionsOnly,
	})
	if err != nil {
		return nil, err
	}
	if err := m.install(ctx, binary, opts); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

func (m *ManagementCluster) install(ctx context.Context, binary string, opts Options) error {
	var err error
	m.Manager, err = m.InstallProvider(ctx, stack.ProviderInstall{
		ComponentsYAML: m.Components,
		ManagerBinary:  binary,
		Version:        Version,
		Args:           opts.ManagerArgs,
		Env:            opts.Env,
	})
	if err != nil {
		return err
	}
	if err := m.Manager.Start(ctx); err != nil {
		return fmt.Errorf("starting the manager (its log is %s): %w", m.Manager.LogPath(), err)
	}
	return m.InstallInventory(ctx)
}
