// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
)

// checkIdentities logs in with the identities other than the cluster's.
func checkIdentities(ctx context.Context, logins []Login) findings {
	var f findings
	for _, login := range logins {
		name := fmt.Sprintf("%s %s", login.Ref.Kind, login.Ref.Name)
		_, err := login.Open(ctx)
		switch {
		case errors.Is(err, ErrUnknown):
			f.fact("%s, for %s: %v", name, login.User, err)
		case err != nil:
			f.problem("correct the Secret of the identity, or use another identity",
				"cannot use %s, the identity of %s: %v", name, login.User, err)
		default:
			f.fact("%s logs in, for %s", name, login.User)
		}
	}
	return f
}

// checkExtraConfig checks that the identity of the cluster allows the extra configuration of its machines. A nil
// identity means that the manifest does not contain it.
func checkExtraConfig(identity *infrav1.VCDIdentity, machines []Machines) findings {
	var f findings
	for _, m := range machines {
		switch {
		case len(m.Spec.ExtraConfig) == 0:
		case identity == nil:
			f.fact("whether the identity allows spec.extraConfig of VCDMachineTemplate %s is not known: it is not in the manifest", m.Name)
		default:
			f.foundOf(m, Problem, checks.ExtraConfig(m.Spec.ExtraConfig, "VCDIdentity "+identity.Name,
				identity.Spec.AllowedExtraConfig))
		}
	}
	return f
}
