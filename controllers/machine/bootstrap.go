// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileBootstrapReady waits for the bootstrap data, and validates it before anything is created in VCD.
func reconcileBootstrapReady(ctx context.Context, s *scope) (phases.Result, error) {
	if s.inputs.hasRun() {
		return phases.Done, nil
	}
	if !ptr.Deref(s.inputs.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return phases.Wait(0, infrav1.WaitingForClusterReason, "Waiting for the infrastructure of the Cluster"), nil
	}
	name := ptr.Deref(s.inputs.machine.Spec.Bootstrap.DataSecretName, "")
	if name == "" {
		return phases.Wait(0, infrav1.WaitingForBootstrapDataReason,
			"Waiting for the bootstrap provider, or for the control plane to be initialized"), nil
	}
	if s.state.bootstrapChecked == name {
		return phases.Done, nil
	}
	data, out, err := readBootstrap(ctx, s.reconciler.Live, s.inputs.vcdMachine, name)
	s.bootstrap = data
	if err == nil && out == phases.Done {
		s.state.bootstrapChecked = name
	}
	return out, err
}

// bootstrapData is the data of the bootstrap provider for the guest.
type bootstrapData struct {
	value  []byte
	format guestinfo.Format
}

// readBootstrap reads the bootstrap data of a machine from a Secret, and returns why it cannot be used.
func readBootstrap(ctx context.Context, live client.Reader, m *infrav1.VCDMachine, name string) (*bootstrapData, phases.Result, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: name}
	err := live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, phases.Fail(intervals.Remedy, infrav1.WaitingForBootstrapDataReason,
			"Secret %s in spec.bootstrap.dataSecretName of the Machine does not exist", name), nil
	case err != nil:
		return nil, phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	}
	data := &bootstrapData{value: secret.Data["value"], format: guestinfo.Format(secret.Data["format"])}
	return data, data.problem(name), nil
}

// problem returns why the bootstrap data cannot be used. The message quotes no part of the data.
func (b bootstrapData) problem(secret string) phases.Result {
	if len(b.value) == 0 {
		return phases.Fail(intervals.Remedy, infrav1.BootstrapDataInvalidReason,
			"Secret %s has no bootstrap data in the key value", secret)
	}
	switch b.format {
	case guestinfo.FormatCloudConfig, guestinfo.FormatIgnition, "":
	default:
		return phases.Fail(intervals.Remedy, infrav1.BootstrapDataInvalidReason,
			"Secret %s has an unknown format: use cloud-config or ignition in spec.format of the bootstrap config",
			secret)
	}
	err := guestinfo.Check(b.format, b.value)
	if _, ok := errors.AsType[*guestinfo.TooLargeError](err); ok {
		return phases.Fail(intervals.Remedy, infrav1.BootstrapDataTooLargeReason,
			"Bootstrap data in Secret %s (files and commands of the bootstrap config): %v", secret, err)
	}
	if err != nil {
		return phases.Fail(intervals.Remedy, infrav1.BootstrapDataInvalidReason, "Secret %s: %v", secret, err)
	}
	return phases.Done
}
