package e2e

import (
	"context"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/stack/programs"
)

// openGates starts the managers that know taints of Machines once more, with the feature gate that one of the specs needs.
func openGates(ctx context.Context, s *site) error {
	set, err := programs.Build(ctx, programs.Options{})
	if err != nil {
		return err
	}
	for provider, program := range map[string]string{
		"cluster-api": programs.CoreManager, "control-plane-kubeadm": programs.ControlPlaneManager,
	} {
		if err := restart(ctx, s, set, provider, program); err != nil {
			return fmt.Errorf("opening the feature gate of %s: %w", provider, err)
		}
	}
	return nil
}

func restart(ctx context.Context, s *site, set *programs.Set, provider, program string) error {
	components, err := set.Components(program)
	if err != nil {
		return err
	}
	if err := s.Stack.Manager(provider).Stop(); err != nil {
		return err
	}
	manager, err := s.InstallProvider(ctx, stack.ProviderInstall{
		ComponentsYAML: components, ManagerBinary: set.Bin(program), Version: programs.ClusterAPIVersion, Env: s.workloads.Env(),
		Variables: map[string]string{"CLUSTER_TOPOLOGY": "true", "EXP_MACHINE_TAINT_PROPAGATION": "true"},
	})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
