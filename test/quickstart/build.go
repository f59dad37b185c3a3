// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (q *quickstart) build(ctx context.Context) error {
	var err error
	if q.root, err = framework.Root(); err != nil {
		return err
	}
	if q.programs, err = programs.Build(ctx, programs.Options{
		Cache:   q.cache,
		Out:     q.out,
		Assets:  q.assets,
		Present: true,
		Only:    stack.Programs(q.parts()),
	}); err != nil {
		return err
	}
	return q.during("Building this provider", func() error {
		if err := framework.BuildManager(ctx, q.root, q.manager()); err != nil {
			return err
		}
		q.components, err = framework.Components(ctx, q.root)
		return err
	})
}

// parts returns the providers of Cluster API in the management cluster.
func (q *quickstart) parts() []stack.Part {
	return append([]stack.Part{stack.Core, stack.Bootstrap, stack.ControlPlane}, q.providers...)
}

func (q *quickstart) manager() string {
	return filepath.Join(q.dir, "bin", "manager")
}

// startSimulator starts the simulated VCD. Its VMs become nodes of simulated clusters when they are powered on.
func (q *quickstart) startSimulator(ctx context.Context) error {
	var err, realErr error
	q.site, err = simsite.Start(context.WithoutCancel(ctx), q.dir, vcdsim.K8sTenant(), func(c *vcdsim.Config) {
		c.Profile = q.profile
		c.Seed = q.started.UnixNano()
		if q.realNodes {
			realErr = q.openBooted(ctx, c)
		}
	})
	if err = errors.Join(realErr, err); err != nil {
		return err
	}
	if q.booted != nil {
		q.booted.follow(ctx, q.site.Simulator)
	}
	q.printf("Simulated VMware Cloud Director is up at %s (profile %s)", q.site.Simulator.URL(), q.profile.Name)
	return nil
}

func (q *quickstart) startStack(ctx context.Context) error {
	q.printf("Starting etcd, kube-apiserver and Cluster API %s", programs.ClusterAPIVersion)
	var err error
	q.stack, err = stack.Start(ctx,
		stack.Options{Dir: q.dir, Cache: q.cache, Out: indented{q.out}, Parts: q.parts(), Env: q.env()})
	if err != nil {
		return fmt.Errorf("starting the management cluster: %w", err)
	}
	return q.newClient()
}

// installProvider installs and starts this provider from the files of a release, as clusterctl does.
func (q *quickstart) installProvider(ctx context.Context) error {
	q.printf("Installing this provider as it is shipped")
	program := q.manager()
	if q.wrap != nil {
		var err error
		if program, err = q.wrap(program); err != nil {
			return err
		}
	}
	manager, err := q.stack.InstallProvider(ctx, stack.ProviderInstall{
		ComponentsYAML: q.components,
		ManagerBinary:  program,
		Version:        framework.Version,
		Env:            q.env(),
		Args:           q.managerArgs(),
	})
	if err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("starting this provider's manager: %w", err)
	}
	if err := q.stack.InstallInventory(ctx); err != nil {
		return fmt.Errorf("recording the providers: %w", err)
	}
	return q.writeRepository()
}

// An indented indents the lines that it writes.
type indented struct{ file *os.File }

// Write implements io.Writer for whole lines.
func (i indented) Write(line []byte) (int, error) {
	_, err := fmt.Fprintf(i.file, "        %s", line)
	return len(line), err
}
