package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/world"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// brisk is quick, but slow enough for tasks to be seen running.
var brisk = vcdsim.Profile{Name: "brisk", Scale: 0.02}

// site is a management cluster with this provider, a simulated VCD, and the pretend clusters that its VMs become.
type site struct {
	*world.World

	log       *os.File
	workloads *workload.Workloads
	simulator *vcdsim.Simulator
}

func startSite(ctx context.Context, dir string) (_ *site, err error) {
	s := &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	if s.log, err = os.Create(filepath.Join(dir, "simulator.log")); err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	if s.workloads, err = workload.New(ctx, workload.Options{Log: log}); err != nil {
		return nil, fmt.Errorf("starting the pretend guests: %w", err)
	}
	s.simulator, err = vcdsim.New(vcdsim.Config{Model: tenant(), Profile: brisk, Seed: 1, Guest: s.workloads, Log: log})
	if err != nil {
		return nil, fmt.Errorf("preparing the simulator: %w", err)
	}
	if err := s.simulator.Start(); err != nil {
		return nil, fmt.Errorf("starting the simulator: %w", err)
	}
	s.World, err = world.Start(ctx, world.Options{Dir: filepath.Join(dir, "world"), Out: GinkgoWriter, Env: s.workloads.Env()})
	if err != nil {
		return nil, err
	}
	return s, openGates(ctx, s)
}

// tenant is the simulator's usual one with a second template, which has the Kubernetes version that upgrades start from.
func tenant() vcdsim.Model {
	model := vcdsim.K8sTenant()
	catalog := &model.Orgs[1].Catalogs[0]
	old := catalog.Templates[0]
	old.Name, old.KubernetesVersion = templateName(upgradeFrom), upgradeFrom
	old.VMs = slices.Clone(old.VMs)
	old.VMs[0].Name = old.Name
	catalog.Templates = append(catalog.Templates, old)
	return model
}

func templateName(version string) string {
	return "ubuntu-2404-kube-" + version
}

// left is what is still in the simulated VCD, and what it was asked for and does not know.
func (s *site) left() []string {
	state := s.simulator.State()
	left := s.simulator.Unhandled()
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

func (s *site) close() error {
	var errs []error
	if s.World != nil {
		errs = append(errs, s.Stop())
	}
	if s.simulator != nil {
		errs = append(errs, s.simulator.Close())
	}
	if s.workloads != nil {
		errs = append(errs, s.workloads.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(errs...)
}
