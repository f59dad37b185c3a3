// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// Leases are the longest leases that an organization allows. 0 means that leases never expire.
type Leases struct{ Runtime, Storage time.Duration }

// Leases reads the longest leases of vApps. If the user may not read them, known is false and err is nil.
func (s *Session) Leases(ctx context.Context) (leases Leases, known bool, err error) {
	current, err := s.user.whoami(ctx)
	if err != nil {
		return Leases{}, false, readable(err)
	}
	org := current.Org.ID
	if s.client.Provider {
		if org, err = s.client.Organization.ID(ctx); err != nil {
			return Leases{}, false, err
		}
	}
	var doc struct {
		Settings *struct {
			Runtime int64 `xml:"DeploymentLeaseSeconds"`
			Storage int64 `xml:"StorageLeaseSeconds"`
		} `xml:"Settings>VAppLeaseSettings"`
	}
	err = s.client.GetXML(ctx, "/api/admin/org/"+urn.UUID(org), &doc)
	if err != nil || doc.Settings == nil {
		return Leases{}, false, readable(err)
	}
	return Leases{
		Runtime: time.Duration(doc.Settings.Runtime) * time.Second,
		Storage: time.Duration(doc.Settings.Storage) * time.Second,
	}, true, nil
}
