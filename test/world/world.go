// Package world puts the whole house in one place for tests and for trying it out: a management cluster of real
// programs, this provider installed in it as it is shipped, and a simulated VMware Cloud Director.
package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/stack"
)

// Version is what the inventory says of this provider.
const Version = "v2.0.0"

// Namespace is where this provider is installed. What its service accounts ask the API server for is audited.
const Namespace = "capvcd-system"

// Options say what to start and where.
type Options struct {
	// Dir holds everything; one world at a time can use it.
	Dir string
	// Out receives progress; nil for none.
	Out io.Writer
	// Parts are the providers to run besides this one; nil for all.
	Parts []stack.Part
	// Env is added to the environment of the parts and of this provider, such as HTTPS_PROXY to reach workload clusters.
	Env []string
	// Variables fill in ${NAME} in the components of the parts.
	Variables map[string]string
	// ManagerArgs follow the arguments that the manager is shipped with.
	ManagerArgs []string
}

// World is a running management cluster with this provider.
type World struct {
	*stack.Stack

	// Manager is this provider's manager. It can be killed and started again.
	Manager *stack.Manager
	// Components is the components file that was installed.
	Components []byte
	// Root is the folder of the repository.
	Root string
}

// Start builds what is missing, starts the management cluster and this provider in it.
func Start(ctx context.Context, opts Options) (*World, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	w := &World{Root: root}
	if w.Components, err = Components(ctx, root); err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "bin", "manager")
	if err := BuildManager(ctx, root, binary); err != nil {
		return nil, err
	}
	w.Stack, err = stack.Start(ctx, stack.Options{
		Dir: dir, Out: opts.Out, Parts: opts.Parts, Env: opts.Env, Variables: opts.Variables, AuditNamespace: Namespace,
	})
	if err != nil {
		return nil, err
	}
	if err := w.install(ctx, binary, opts); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *World) install(ctx context.Context, binary string, opts Options) error {
	var err error
	w.Manager, err = w.InstallProvider(ctx, stack.ProviderInstall{
		ComponentsYAML: w.Components, ManagerBinary: binary, Version: Version, Args: opts.ManagerArgs, Env: opts.Env,
	})
	if err != nil {
		return err
	}
	if err := w.Manager.Start(ctx); err != nil {
		return fmt.Errorf("starting the manager (its log is %s): %w", w.Manager.LogPath(), err)
	}
	return w.InstallInventory(ctx)
}
