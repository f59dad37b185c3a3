// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// verifyCredentials logs in with the credentials for the cloud controller manager, once for each version of the login.
// Invalid credentials must not replace working ones. A successful login to the organization also proves that the user
// is not a system administrator.
func (s *scope) verifyCredentials(ctx context.Context) (phases.Result, error) {
	verified := s.set.Annotation(infrav1.CloudProviderCredentialsAnnotation)
	if s.shared.ServiceAccount || verified == loginVersion(s.shared.Config) {
		return phases.Done, nil
	}
	config := s.shared.Config
	if _, err := s.reconciler.Sessions(ctx, config); err != nil {
		out, err := identities.LoginProblem(err, config.Site, s.shared.Name)
		if err != nil {
			err = fmt.Errorf("logging in to %s: %w", config.Site, err)
		}
		return out, err
	}
	return phases.Done, nil
}

// loginVersion returns a text that changes with the credentials in the Secret and with the settings of the identity.
func loginVersion(config vcd.Config) string {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%q %q %q %t", config.Site, config.Org, config.CABundle, config.Insecure)
	return config.Version + "/" + hex.EncodeToString(hash.Sum(nil))[:hashLength]
}
