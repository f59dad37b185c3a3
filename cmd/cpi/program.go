// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	cloudprovider "k8s.io/cloud-provider"
	cloudconfig "k8s.io/cloud-provider/app/config"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// closeTimeout is the time limit for closing the backend on exit.
const closeTimeout = 5 * time.Second

// A program is a provider with its configuration.
type program struct {
	configuration *configuration
	flags         *ourFlags
	closing       sync.Once
	backend       *backend // nil until opened
}

// load reads the configuration. Its errors are permanent: retrying does not help.
func load(p provider, path string, flags *ourFlags, getenv func(string) string) (*program, error) {
	if p.validate != nil {
		if err := p.validate(); err != nil {
			return nil, err
		}
	}
	file, err := readConfig(path, p.config != "" && path == p.config)
	if err != nil {
		return nil, fmt.Errorf("--cloud-config: %w", err)
	}
	if flags.clusterID != "" && getenv(clusterIDVariable) == "" {
		id, err := os.ReadFile(flags.clusterID)
		if err != nil {
			return nil, fmt.Errorf("--cluster-id-file: %w", err)
		}
		environment := getenv
		getenv = func(name string) string {
			if name == clusterIDVariable {
				return string(id)
			}
			return environment(name)
		}
	}
	env := ccmconfig.Environment{Getenv: getenv, ReadFile: os.ReadFile, Environ: os.Environ}
	c, err := p.load(source{file: file, path: path, credentials: flags.credentials, env: env})
	if err != nil {
		return nil, fmt.Errorf("the configuration %s is invalid:\n%w", path, err)
	}
	return &program{configuration: c, flags: flags}, nil
}

// check prints warnings, and returns an error if the credentials are invalid.
func (p *program) check(to io.Writer) error {
	for _, warning := range p.configuration.warnings {
		fmt.Fprintln(to, "warning:", warning)
	}
	if p.configuration.credentials != nil {
		if err := p.configuration.credentials(); err != nil {
			return err
		}
	}
	fmt.Fprintln(to, "The configuration is valid.")
	return nil
}

// cloud opens the backend and returns it as a cloud provider. It stops when stop is closed, but must be closed with
// [program.close].
func (p *program) cloud(c *cloudconfig.CompletedConfig, stop <-chan struct{}) (cloudprovider.Interface, error) {
	klog.InfoS("Starting the cloud controller manager", append([]any{"version", version.Long()}, p.configuration.about...)...)
	if err := legacyregistry.Registerer().Register(version.Info()); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	for _, warning := range p.configuration.warnings {
		klog.InfoS("Configuration", "warning", warning)
	}
	core := c.SharedInformers.Core().V1()
	b, err := p.configuration.open(host{
		client:    c.Client,
		informers: core,
		nodes:     core.Nodes().Lister(),
		services:  core.Services().Lister(),
		recorder:  c.EventRecorder,
		namespace: p.flags.namespace,
		stop:      stop,
	})
	if err != nil {
		return nil, err
	}
	p.backend = b
	p.closeOnExit()
	ready := &readiness{}
	b.Parts = append(b.Parts, ready)
	cloud, err := cpi.New(cpi.Options{
		Backend:   b.Backend,
		Settings:  p.configuration.settings,
		Client:    c.Client,
		Informers: c.SharedInformers,
		Recorder:  c.EventRecorder,
		Namespace: p.flags.namespace,
		Manifest:  p.configuration.manifest,
		Self:      p.flags.self(),
		Metrics:   legacyregistry.Registerer(),
	})
	if err != nil {
		return nil, err
	}
	ready.machines = cloud.Machines()
	ready.rights = func(ctx context.Context) error { return cloud.Rights(ctx, ready.leads.Load()) }
	if err := serveProbes(c, p.flags.probes, ready, b.debug, stop); err != nil {
		return nil, err
	}
	return cloud, nil
}

// closeOnExit also closes the backend if k8s.io/cloud-provider exits the process, because the lease was lost or because
// of a fatal error.
func (p *program) closeOnExit() {
	exit := klog.OsExit
	klog.OsExit = func(code int) {
		_ = p.close()
		exit(code)
	}
}

// close closes the backend once.
func (p *program) close() (err error) {
	p.closing.Do(func() {
		if p.backend == nil || p.backend.Close == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		err = p.backend.Close(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // the cloud ends sessions by itself
	}
	return err
}
