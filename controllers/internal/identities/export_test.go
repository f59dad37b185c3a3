// SPDX-License-Identifier: Apache-2.0

package identities

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Resolve is for package identities_test, which is external because controllertest imports this package.
func (r Resolver) Resolve(ctx context.Context, namespace string, spec infrav1.VCDClusterSpec) (vcd.Config, phases.Result, error) {
	c := &infrav1.VCDCluster{Spec: spec}
	c.Namespace = namespace
	l, out, err := r.resolve(ctx, ofCluster(c, spec.IdentityRef))
	return l.config, out, err
}
