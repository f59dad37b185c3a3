// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// proveCredentials logs in with what the cloud controller manager gets, once for each version of it: what does not work
// replaces nothing that may, and what logs in as a user of the organization is no system administrator.
func (s *scope) proveCredentials(ctx context.Context) (phases.Result, error) {
	proved := s.set.Annotation(infrav1.CloudProviderCredentialsAnnotation)
	if s.shared.ServiceAccount || proved == s.shared.Config.Version {
		return phases.Done, nil
	}
	config := s.shared.Config
	if _, err := s.reconciler.Sessions(ctx, config); err != nil {
		out, err := session.LoginProblem(err, config.Site, s.shared.Name)
		if err != nil {
			err = fmt.Errorf("logging in to %s: %w", config.Site, err)
		}
		return out, err
	}
	return phases.Done, nil
}
