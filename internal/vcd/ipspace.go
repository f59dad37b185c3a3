// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const spacesPath = "/cloudapi/1.0.0/ipSpaces"

// SpacePublic is the type of IP Spaces from which external addresses are allocated to organizations.
const SpacePublic = "PUBLIC"

// A UsageState is the usage of an allocated address.
type UsageState string

// Usage states. VCD sets Used for addresses that it uses itself, such as for a virtual service. Clients can only set
// the others.
const (
	Unused     UsageState = "UNUSED"
	Used       UsageState = "USED"
	UsedManual UsageState = "USED_MANUAL"
)

// floatingIP is the allocation type of single addresses.
const floatingIP = "FLOATING_IP"

// A Suggestion is an IP Space that provides addresses to a gateway.
type Suggestion struct {
	Space  Ref
	Unused []netip.Addr // allocated to the organization, and unused according to VCD
}

// An IPSpace is an IP Space.
type IPSpace struct {
	Ref

	Type   string // PUBLIC, SHARED_SERVICES or PRIVATE
	Ranges []AddressRange
}

// A FloatingIP is an address of an IP Space that is allocated to the organization.
type FloatingIP struct {
	ID          string
	Address     netip.Addr
	Usage       UsageState
	Description string // contains the ownership marker
}

type wireSuggestion struct {
	Space  *wire.Ref `json:"ipSpaceRef"`
	Unused []string  `json:"unusedValues"`
}

func (w wireSuggestion) Key() string { return refOf(w.Space).ID }

func (w wireSuggestion) suggestion() Suggestion {
	return Suggestion{Space: refOf(w.Space), Unused: wire.Addresses(w.Unused)}
}

// IPSpaces is the client for IP Spaces and the addresses that are allocated from them.
type IPSpaces struct{ client *api.Client }

// Suggestions lists the IP Spaces that provide addresses to a gateway. It fails with [ErrForbidden] if the gateway does
// not use IP Spaces, or if the right "Organization vDC Gateway: View" is missing (VCD 10.4.1).
func (i *IPSpaces) Suggestions(ctx context.Context, gateway string) ([]Suggestion, error) {
	return api.ListAs(ctx, i.client, api.Listing{
		Path:  spacesPath + "/floatingIpSuggestions",
		What:  "IP Spaces",
		Of:    " of edge gateway " + gateway,
		Sort:  "ipSpaceRef.name",
		Terms: []fiql.Term{fiql.Is("gatewayId", gateway)},
	}, (*wireSuggestion).suggestion)
}

type wireSpace struct {
	wire.Ref

	Type   string `json:"type"`
	Ranges *struct {
		Ranges []struct {
			Start string `json:"startIpAddress"`
			End   string `json:"endIpAddress"`
		} `json:"ipRanges"`
	} `json:"ipSpaceRanges"`
}

func (w wireSpace) space() IPSpace {
	space := IPSpace{Ref: refOf(&w.Ref), Type: w.Type}
	if w.Ranges != nil {
		for _, r := range w.Ranges.Ranges {
			space.Ranges = appendRange(space.Ranges, r.Start, r.End)
		}
	}
	return space
}

func (w wireSpace) Key() string { return w.ID }

// Public lists the IP Spaces from which external addresses are allocated to organizations, without their ranges. The
// list is empty if the site has no IP Spaces.
func (i *IPSpaces) Public(ctx context.Context) ([]IPSpace, error) {
	all, err := api.ListAs(ctx, i.client, api.Listing{Path: spacesPath + "/summaries", What: "IP Spaces", Sort: "name"},
		(*wireSpace).space)
	return slices.DeleteFunc(all, func(s IPSpace) bool { return s.Type != SpacePublic }), err
}

// Space reads an IP Space by its URN.
func (i *IPSpaces) Space(ctx context.Context, id string) (IPSpace, error) {
	return api.Read(ctx, i.client, "IP Space", id, spacePath(id), (*wireSpace).space)
}

func spacePath(id string) string { return spacesPath + "/" + url.PathEscape(id) }

type wireAllocation struct {
	wire.Ref

	Type        string     `json:"type"`
	Value       string     `json:"value"`
	Usage       UsageState `json:"usageState"`
	Description string     `json:"description"`
}

// FloatingIPs lists the addresses of an IP Space that are allocated to the organization.
func (i *IPSpaces) FloatingIPs(ctx context.Context, space string) ([]FloatingIP, error) {
	lines, err := api.ListAll[wireAllocation](ctx, i.client, api.Listing{
		Path:  spacePath(space) + "/allocations",
		What:  "floating IPs",
		Of:    " of IP Space " + space,
		Sort:  "value",
		Terms: []fiql.Term{fiql.Is("type", floatingIP)},
	})
	var allocated []FloatingIP
	for j := range lines {
		if a := lines[j].allocation(); lines[j].Type == floatingIP && a.Address.IsValid() {
			allocated = append(allocated, a)
		}
	}
	return allocated, err
}

// Allocate starts the allocation of a specific address of an IP Space to the organization (VCD 10.4.2). Allocation
// requests have no description, so the caller must record the address first. It requires the right "IP Spaces:
// Allocate". The result of the task contains the ID, see [AllocatedID].
func (i *IPSpaces) Allocate(ctx context.Context, space string, address netip.Addr) (Task, error) {
	body := map[string]any{"type": floatingIP, "value": address.String()}
	task, err := startJSON(ctx, i.client, http.MethodPost, spacePath(space)+"/allocate", body)
	return task, failure.Wrap(err, "allocating", address.String())
}

// AllocatedID returns the ID of an address from the result of the task that allocated it, or the empty string.
func AllocatedID(task Task, address netip.Addr) string {
	var result []wireAllocation
	if wire.DecodeJSON([]byte(task.Result), &result) != nil {
		return ""
	}
	for _, a := range result {
		if wire.Address(a.Value) == address {
			return a.ID
		}
	}
	return ""
}

// FloatingIP reads an allocated address.
func (i *IPSpaces) FloatingIP(ctx context.Context, space, id string) (FloatingIP, error) {
	return api.Read(ctx, i.client, "an address of IP Space", space, allocationPath(space, id), (*wireAllocation).allocation)
}

func (w *wireAllocation) allocation() FloatingIP {
	return FloatingIP{ID: w.ID, Address: wire.Address(w.Value), Usage: w.Usage, Description: w.Description}
}

// Mark reads an allocated address, calls mark to get its new usage and description, and starts writing them back. If
// VCD itself uses the address, only the description changes. It requires the right "IP Spaces: Allocate".
func (i *IPSpaces) Mark(ctx context.Context, space, id string, mark func(now FloatingIP) (UsageState, string, error)) (Task, error) {
	task, err := startEditing(ctx, i.client, allocationPath(space, id), func(o wire.Object) (bool, error) {
		now := FloatingIP{
			ID:          o.Text("id"),
			Address:     wire.Address(o.Text("value")),
			Usage:       UsageState(o.Text("usageState")),
			Description: o.Text("description"),
		}
		usage, description, err := mark(now)
		if err != nil {
			return false, err
		}
		changed := o.Set("description", description)
		if now.Usage != Used {
			changed = o.Set("usageState", usage) || changed
		}
		return changed, nil
	})
	return task, failure.Wrap(err, "marking an address of IP Space", space)
}

func allocationPath(space, id string) string {
	return spacePath(space) + "/allocations/" + url.PathEscape(id)
}

// Release starts the release of an allocated address, which must be marked [Unused] before.
func (i *IPSpaces) Release(ctx context.Context, space, id string) (Task, error) {
	task, err := startJSON(ctx, i.client, http.MethodDelete, allocationPath(space, id), nil)
	return task, failure.Wrap(err, "releasing an address of IP Space", space)
}

// unlimited is the value of an unlimited quota.
const unlimited = -1

type wireRoom struct {
	Ranges *struct {
		Quota  *int64 `json:"defaultFloatingIpQuota"`
		Ranges []struct {
			Total     string `json:"totalIpCount"`
			Allocated string `json:"allocatedIpCount"`
		} `json:"ipRanges"`
	} `json:"ipSpaceRanges"`
}

// Room returns the number of floating IPs that the organization can still allocate from an IP Space: the free ones, up
// to the quota. A custom quota of the organization is not visible to tenants.
func (i *IPSpaces) Room(ctx context.Context, space string) (int64, error) {
	doc, err := api.Read(ctx, i.client, "IP Space", space, spacePath(space), func(w *wireRoom) wireRoom { return *w })
	if err != nil || doc.Ranges == nil {
		return 0, err
	}
	var left int64
	for _, r := range doc.Ranges.Ranges {
		total, _ := strconv.ParseInt(r.Total, 10, 64) // invalid numbers count as 0
		allocated, _ := strconv.ParseInt(r.Allocated, 10, 64)
		left += max(0, total-allocated)
	}
	if doc.Ranges.Quota == nil || *doc.Ranges.Quota == unlimited {
		return left, nil
	}
	own, err := i.FloatingIPs(ctx, space)
	return min(left, max(0, *doc.Ranges.Quota-int64(len(own)))), err
}
