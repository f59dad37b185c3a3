// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func createProfile(ctx context.Context, w writer, step lb.Step) error {
	f, err := w.gateway.fact(ctx, w.session)
	if err != nil {
		return err
	}
	want := *step.Profile
	want.Object = written(step, want.Description)
	_, err = create(ctx, w, w.gateway.profiles, want, func() (vcd.Task, error) {
		return w.session.NAT.CreatePortProfile(ctx, f.gateway, vcd.PortProfile{
			Ref:         vcd.Ref{Name: want.Name},
			Description: want.Description,
			Protocol:    string(want.Protocol),
			Port:        want.Port,
		})
	})
	return err
}

func updateProfile(ctx context.Context, w writer, step lb.Step) error {
	f, err := w.gateway.fact(ctx, w.session)
	if err != nil {
		return err
	}
	want := *step.Profile
	want.Object = written(step, want.Description)
	change := vcd.PortProfileChange{
		Description: &want.Description,
		Port: &vcd.ProfilePort{
			Protocol: string(want.Protocol),
			Port:     want.Port,
		},
	}
	return update(ctx, w, objectUpdate[lb.Profile]{
		list:  w.gateway.profiles,
		step:  step,
		start: func() (vcd.Task, error) { return w.session.NAT.UpdatePortProfile(ctx, f.gateway, step.ID, change) },
		edit:  func(p *lb.Profile) { *p = want },
	})
}

func deleteProfile(ctx context.Context, w writer, step lb.Step) error {
	return remove(ctx, w, w.gateway.profiles, step.ID, func() (vcd.Task, error) {
		return w.session.NAT.DeletePortProfile(ctx, step.ID)
	})
}
