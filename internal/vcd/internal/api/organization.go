// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// An Organization is the organization that a provider session works in. Every request must name it. If the organization
// is missing or hidden, no request can be sent, which is no evidence about the object of the request.
type Organization struct {
	name    string
	plain   *Client // its requests name no organization
	lookups *cache.Cache
}

// Send sends a request in the organization.
func (o *Organization) Send(ctx context.Context, r transport.Request) (transport.Answer, error) {
	id, err := o.ID(ctx)
	if err != nil {
		return transport.Answer{}, err
	}
	r.Header = r.Header.Clone()
	r.Header.Set("X-Vmware-Vcloud-Tenant-Context", urn.UUID(id))
	return o.plain.sender.Send(ctx, r)
}

// ID looks up the URN of the organization.
func (o *Organization) ID(ctx context.Context) (string, error) {
	return cache.Lookup(ctx, o.lookups, "org", func(ctx context.Context) (string, error) {
		if err := fiql.CheckName("organization", o.name, ""); err != nil {
			return "", failure.Invalid(err.Error())
		}
		var found types.QueryResultRecordsType
		err := o.plain.QueryPage(ctx, "organization", fiql.AllOf(fiql.Is("name", o.name)), 1, "", &found)
		if err != nil && !errors.Is(err, failure.ErrForbidden) {
			return "", fmt.Errorf("looking up organization %s: %w", o.name, err)
		}
		for _, record := range found.OrgRecord {
			if record.Name == o.name {
				return urn.Of(urn.Org, record.HREF), nil
			}
		}
		return "", failure.Invalid("organization " + o.name + " does not exist or is not visible to this user")
	})
}
