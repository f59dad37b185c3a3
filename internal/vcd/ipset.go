package vcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
)

const groupsPath = "/cloudapi/1.0.0/firewallGroups"

// typeIPSet is how VCD calls IP sets among its firewall groups.
const typeIPSet = "IP_SET"

// An IPSet is a firewall group of addresses. Lists tell all of it but the addresses.
type IPSet struct {
	Ref

	Description string // carries the ownership marker
	Status      Realization
	Owner       Ref      // the gateway or VDC group it belongs to
	Addresses   []string // addresses, ranges and prefixes; nil in lists
}

// An IPSetSpec is what a new IP set looks like.
type IPSetSpec struct {
	Name        string
	Description string
	Owner       string // URN of the gateway or VDC group
	Addresses   []netip.Addr
}

// An IPSetChange is one change of an IP set: what is nil stays as it is.
type IPSetChange struct {
	Name        *string
	Description *string
	Addresses   *[]netip.Addr
}

type wireIPSet struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Status      Realization `json:"status"`
	Owner       *wireRef    `json:"ownerRef"`
	Gateway     *wireRef    `json:"edgeGatewayRef"`
	Type        string      `json:"typeValue"`
	Addresses   []string    `json:"ipAddresses"`
}

func (w *wireIPSet) set() IPSet {
	set := IPSet{Ref: Ref{ID: w.ID, Name: w.Name}, Description: w.Description, Status: w.Status, Owner: w.Owner.ref(), Addresses: w.Addresses}
	if set.Owner.ID == "" {
		set.Owner = w.Gateway.ref()
	}
	return set
}

// IPSets lists the IP sets of a gateway or VDC group, without their addresses, whoever they belong to. It takes the right
// "Organization vDC Gateway: View" (VCD 10.3 for its types).
func (f *Firewall) IPSets(ctx context.Context, owner string) ([]IPSet, error) {
	l := listing{path: groupsPath + "/summaries", what: "IP sets", sort: "name", terms: []term{{"_context", owner}, {"typeValue", typeIPSet}}}
	lines, err := listAll(ctx, f.client, l, func(w wireIPSet) string { return w.ID })
	if err != nil {
		return nil, fmt.Errorf("listing IP sets of %s: %w", owner, err)
	}
	var sets []IPSet
	for i := range lines {
		if lines[i].Type == typeIPSet {
			sets = append(sets, lines[i].set())
		}
	}
	return sets, nil
}

// IPSet reads an IP set by its URN.
func (f *Firewall) IPSet(ctx context.Context, id string) (IPSet, error) {
	var doc wireIPSet
	if err := f.getJSON(ctx, groupPath(id), "", &doc); err != nil {
		return IPSet{}, fmt.Errorf("reading IP set %s: %w", id, err)
	}
	return doc.set(), nil
}

func groupPath(id string) string { return groupsPath + "/" + url.PathEscape(id) }

// CreateIPSet starts creating an IP set; the task's owner is the new one. It takes the right
// "Organization vDC Gateway: Configure Firewall", as do all changes.
func (f *Firewall) CreateIPSet(ctx context.Context, spec IPSetSpec) (Task, error) {
	task, err := f.startJSON(ctx, http.MethodPost, groupsPath, map[string]any{
		"name": spec.Name, "description": spec.Description, "type": typeIPSet, "typeValue": typeIPSet, "ownerRef": refTo(spec.Owner),
		"ipAddresses": addressTexts(spec.Addresses),
	})
	if err != nil {
		return Task{}, fmt.Errorf("creating IP set %s: %w", spec.Name, err)
	}
	return task, nil
}

func addressTexts(addresses []netip.Addr) []string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	return texts
}

// UpdateIPSet reads an IP set, changes it and starts writing it back; what the change does not name stays as VCD wrote it. If it
// is so already, in whatever order, nothing is written, and the task has succeeded.
func (f *Firewall) UpdateIPSet(ctx context.Context, id string, change IPSetChange) (Task, error) {
	task, err := f.change(ctx, groupPath(id), change.apply)
	if err != nil {
		return Task{}, fmt.Errorf("changing IP set %s: %w", id, err)
	}
	return task, nil
}

func (c IPSetChange) apply(o object) (bool, error) {
	changed := setIf(o, "name", c.Name)
	changed = setIf(o, "description", c.Description) || changed
	if c.Addresses == nil {
		return changed, nil
	}
	var now []string
	_ = json.Unmarshal(o["ipAddresses"], &now) // null is none
	want := addressTexts(*c.Addresses)
	if slices.Equal(slices.Sorted(slices.Values(now)), slices.Sorted(slices.Values(want))) {
		return changed, nil
	}
	return o.set("ipAddresses", want) || changed, nil
}

// DeleteIPSet starts deleting an IP set, which no pool or rule may use.
func (f *Firewall) DeleteIPSet(ctx context.Context, id string) (Task, error) {
	task, err := f.startJSON(ctx, http.MethodDelete, groupPath(id), nil)
	if err != nil {
		return Task{}, fmt.Errorf("deleting IP set %s: %w", id, err)
	}
	return task, nil
}
