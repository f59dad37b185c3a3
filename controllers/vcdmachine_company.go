package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// line names the line for the machine's vApp. Clusters never share one: each has an identity of its own, and what one
// creates is not another's.
func (s *machineScope) line() string {
	if s.vcdCluster == nil {
		return ""
	}
	return string(s.vcdCluster.UID) + "/" + s.vcdCluster.Spec.InfraID + "/" + s.vAppName()
}

// company returns whose VMs are created in one request: the machine's own and those that wait for the same vApp, if they
// are of this cluster and suit. That the request is sent is stored on each before: from then on nobody may conclude from
// not seeing a VM that there never was one.
func (s *machineScope) company(ctx context.Context, suits func(creation) bool) ([]creation, error) {
	at := s.now().UTC().Format(time.RFC3339)
	var company []creation
	for _, c := range s.turn.vms {
		mine := c.key == s.key()
		marker, ok := vcd.ParseMarker(c.spec.Description)
		if !mine && (!ok || marker.Cluster != s.vcdCluster.Spec.InfraID || !suits(c)) {
			continue
		}
		switch err := s.noteCreation(ctx, c, at); {
		case err == nil:
			company = append(company, c)
		case mine:
			return nil, err
		default:
			ctrl.LoggerFrom(ctx).Info("Leaving out a machine that waits for the same vApp", "reason", err.Error())
		}
	}
	annotate(s.vcdMachine, infrav1.CreationRequestedAnnotation, at)
	return company, nil
}

// noteCreation stores on the VCDMachine of c when VCD was asked to create its VM. It fails if that is another object of
// the same name by now.
func (s *machineScope) noteCreation(ctx context.Context, c creation, at string) error {
	note, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         c.key,
		"annotations": map[string]string{infrav1.CreationRequestedAnnotation: at},
	}})
	if err != nil {
		return fmt.Errorf("noting a creation: %w", err)
	}
	m := &infrav1.VCDMachine{}
	m.Namespace, m.Name = c.machine.Namespace, c.machine.Name
	if err := s.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, note)); err != nil {
		return fmt.Errorf("noting on VCDMachine %s that its VM is asked for: %w", c.machine, err)
	}
	return nil
}

// specs returns the VMs of machines.
func specs(machines []creation) []vcd.VMSpec {
	result := make([]vcd.VMSpec, 0, len(machines))
	for _, c := range machines {
		result = append(result, c.spec)
	}
	return result
}
