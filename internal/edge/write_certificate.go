// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// importCertificate imports a certificate into the organization's library. VCD does that without a task.
func importCertificate(ctx context.Context, w writer, step lb.Step) error {
	want := step.Certificate
	item := lb.CertificateItem{Object: written(step, want.Description)}
	_, err := create(ctx, w, w.gateway.certificates, item, func() (vcd.Task, error) {
		made, err := w.session.Balancers.CreateCertificate(ctx, vcd.CertificateSpec{
			Alias:       step.Name,
			Description: want.Description,
			Certificate: []byte(want.Chain),
			PrivateKey:  []byte(want.Key),
		})
		return vcd.Task{State: vcd.TaskSucceeded, Owner: made.ID}, err
	})
	return err
}

func deleteCertificate(ctx context.Context, w writer, step lb.Step) error {
	return remove(ctx, w, w.gateway.certificates, step.ID, func() (vcd.Task, error) {
		return vcd.Task{State: vcd.TaskSucceeded}, w.session.Balancers.DeleteCertificate(ctx, step.ID)
	})
}
