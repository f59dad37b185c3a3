// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const groupsPath = "/cloudapi/1.0.0/firewallGroups"

// typeIPSet is the type of IP sets among VCD's firewall groups.
const typeIPSet = "IP_SET"

// An IPSet is a firewall group of addresses.
type IPSet struct {
	Ref

	Description string // contains the ownership marker
	Status      Realization
	Owner       Ref          // the gateway or VDC group that it belongs to
	Addresses   []netip.Addr // nil in lists; ranges and prefixes are omitted
}

// An IPSetChange is one change of an IP set. Nil fields stay unchanged.
type IPSetChange struct {
	Name        *string
	Description *string
	Addresses   *[]netip.Addr
}

type wireIPSet struct {
	wireObject

	Owner     *wire.Ref `json:"ownerRef"`
	Gateway   *wire.Ref `json:"edgeGatewayRef"`
	Type      string    `json:"typeValue"`
	Addresses []string  `json:"ipAddresses"`
}

func (w *wireIPSet) set() IPSet {
	return IPSet{
		Ref:         refOf(&w.Ref),
		Description: w.Description,
		Status:      w.Status,
		Owner:       cmp.Or(refOf(w.Owner), refOf(w.Gateway)),
		Addresses:   wire.Addresses(w.Addresses),
	}
}

// IPSets lists the IP sets of a gateway or VDC group, or all visible ones if owner is empty, without their addresses.
// It requires the right "Organization vDC Gateway: View" (VCD 10.3 for its types).
func (f *Firewall) IPSets(ctx context.Context, owner string) ([]IPSet, error) {
	terms := []fiql.Term{fiql.Is("typeValue", typeIPSet)}
	switch {
	case isVDCGroup(owner):
		terms = append(terms, fiql.Is("ownerRef.id", owner))
	case owner != "":
		terms = append(terms, fiql.Is("_context", owner))
	}
	lines, err := api.ListAll[wireIPSet](ctx, f.client, api.Listing{
		Path:  groupsPath + "/summaries",
		What:  "IP sets",
		Of:    " of " + owner,
		Sort:  "name",
		Terms: terms,
	})
	var sets []IPSet
	for i := range lines {
		if lines[i].Type == typeIPSet {
			sets = append(sets, lines[i].set())
		}
	}
	return sets, err
}

// IPSet reads an IP set by its URN.
func (f *Firewall) IPSet(ctx context.Context, id string) (IPSet, error) {
	return api.Read(ctx, f.client, "IP set", id, groupPath(id), (*wireIPSet).set)
}

func groupPath(id string) string { return groupsPath + "/" + url.PathEscape(id) }

// CreateIPSet starts the creation of an IP set. The owner of the task is the new IP set. Like all changes, it requires
// the right "Organization vDC Gateway: Configure Firewall".
func (f *Firewall) CreateIPSet(ctx context.Context, set IPSet) (Task, error) {
	return startCreating(ctx, f.client, "IP set", set.Name, groupsPath, map[string]any{
		"name":        set.Name,
		"description": set.Description,
		"type":        typeIPSet,
		"typeValue":   typeIPSet,
		"ownerRef":    wire.RefTo(set.Owner.ID),
		"ipAddresses": wire.AddressTexts(set.Addresses),
	})
}

// UpdateIPSet reads an IP set, changes it and starts writing it back. Fields that the change does not set are sent as
// VCD returned them. If nothing but the order changes, UpdateIPSet writes nothing and returns a succeeded task.
func (f *Firewall) UpdateIPSet(ctx context.Context, id string, change IPSetChange) (Task, error) {
	return startChanging(ctx, f.client, "IP set", id, groupPath(id), change.apply)
}

func (c IPSetChange) apply(o wire.Object) (bool, error) {
	return wire.Either(wire.SetIf(o, "name", c.Name), wire.SetIf(o, "description", c.Description), wire.SetBy(o, c.Addresses, setAddresses)),
		nil
}

func setAddresses(o wire.Object, addresses []netip.Addr) bool {
	var now []string
	_ = json.Unmarshal(o["ipAddresses"], &now) // may be null
	want := wire.AddressTexts(addresses)
	same := slices.Equal(slices.Sorted(slices.Values(now)), slices.Sorted(slices.Values(want)))
	return !same && o.Set("ipAddresses", want)
}

// DeleteIPSet starts the deletion of an IP set, which must not be in use by a pool or rule.
func (f *Firewall) DeleteIPSet(ctx context.Context, id string) (Task, error) {
	return startDeleting(ctx, f.client, "IP set", id, groupPath(id))
}
