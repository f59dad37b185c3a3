package vcd

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
)

const spacesPath = "/cloudapi/1.0.0/ipSpaces"

// SpacePublic is the type of IP Spaces of which addresses to outside are allocated to organisations.
const SpacePublic = "PUBLIC"

// A UsageState says what an allocated address is used for.
type UsageState string

// Usage states. What VCD itself uses, such as for a virtual service, is Used; by hand only the others can be set.
const (
	Unused     UsageState = "UNUSED"
	Used       UsageState = "USED"
	UsedManual UsageState = "USED_MANUAL"
)

// floatingIP is the type of allocations of single addresses.
const floatingIP = "FLOATING_IP"

// A Suggestion names an IP Space that a gateway can have addresses from.
type Suggestion struct {
	Space  Ref
	Unused []netip.Addr // allocated to the organisation, and used for nothing that VCD knows
}

// An IPSpace is an IP Space.
type IPSpace struct {
	Ref

	Type   string // PUBLIC, SHARED_SERVICES or PRIVATE
	Ranges []AddressRange
}

// A FloatingIP is an address of an IP Space that is allocated to the organisation.
type FloatingIP struct {
	ID          string
	Address     netip.Addr
	Usage       UsageState
	Description string // carries the ownership marker
}

type wireSuggestion struct {
	Space  *wireRef `json:"ipSpaceRef"`
	Unused []string `json:"unusedValues"`
}

// IPSpaces are the IP Spaces and the addresses allocated from them.
type IPSpaces struct{ *client }

// Suggestions lists the IP Spaces that a gateway can have addresses from. A gateway that does not use IP Spaces answers with
// [ErrForbidden], as does a missing right "Organization vDC Gateway: View" (VCD 10.4.1).
func (i *IPSpaces) Suggestions(ctx context.Context, gateway string) ([]Suggestion, error) {
	l := listing{path: spacesPath + "/floatingIpSuggestions", what: "IP Spaces", sort: "ipSpaceRef.name", terms: []term{{"gatewayId", gateway}}}
	lines, err := listAll(ctx, i.client, l, func(w wireSuggestion) string { return w.Space.ref().ID })
	if err != nil {
		return nil, fmt.Errorf("listing IP Spaces of edge gateway %s: %w", gateway, err)
	}
	suggestions := make([]Suggestion, 0, len(lines))
	for _, line := range lines {
		suggestion := Suggestion{Space: line.Space.ref()}
		for _, text := range line.Unused {
			if addr := parseAddr(text); addr.IsValid() {
				suggestion.Unused = append(suggestion.Unused, addr)
			}
		}
		suggestions = append(suggestions, suggestion)
	}
	return suggestions, nil
}

type wireSpace struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Ranges *struct {
		Ranges []struct {
			Start string `json:"startIpAddress"`
			End   string `json:"endIpAddress"`
		} `json:"ipRanges"`
	} `json:"ipSpaceRanges"`
}

func (w *wireSpace) space() IPSpace {
	space := IPSpace{Ref: Ref{ID: w.ID, Name: w.Name}, Type: w.Type}
	if w.Ranges != nil {
		for _, r := range w.Ranges.Ranges {
			space.Ranges = appendRange(space.Ranges, r.Start, r.End)
		}
	}
	return space
}

// Space reads an IP Space by its URN.
func (i *IPSpaces) Space(ctx context.Context, id string) (IPSpace, error) {
	var doc wireSpace
	if err := i.getJSON(ctx, spacePath(id), "", &doc); err != nil {
		return IPSpace{}, fmt.Errorf("reading IP Space %s: %w", id, err)
	}
	return doc.space(), nil
}

func spacePath(id string) string { return spacesPath + "/" + url.PathEscape(id) }

type wireAllocation struct {
	ID          string     `json:"id"`
	Type        string     `json:"type"`
	Value       string     `json:"value"`
	Usage       UsageState `json:"usageState"`
	Description string     `json:"description"`
}

// FloatingIPs lists the addresses of an IP Space that are allocated to the organisation, whoever asked for them.
func (i *IPSpaces) FloatingIPs(ctx context.Context, space string) ([]FloatingIP, error) {
	l := listing{path: spacePath(space) + "/allocations", what: "floating IPs", sort: "value", terms: []term{{"type", floatingIP}}}
	lines, err := listAll(ctx, i.client, l, func(w wireAllocation) string { return w.ID })
	if err != nil {
		return nil, fmt.Errorf("listing addresses allocated from IP Space %s: %w", space, err)
	}
	var allocated []FloatingIP
	for _, line := range lines {
		if a := line.allocation(); line.Type == floatingIP && a.Address.IsValid() {
			allocated = append(allocated, a)
		}
	}
	return allocated, nil
}

// Allocate starts allocating a certain address of an IP Space to the organisation (VCD 10.4.2). Allocations take no
// description: whoever asks notes the address first, so that nobody has to guess whose it is. It takes the right "IP Spaces:
// Allocate". The task's result tells the id; [AllocatedID] reads it.
func (i *IPSpaces) Allocate(ctx context.Context, space string, address netip.Addr) (Task, error) {
	body := map[string]any{"type": floatingIP, "value": address.String()}
	task, err := i.startJSON(ctx, http.MethodPost, spacePath(space)+"/allocate", body)
	if err != nil {
		return Task{}, fmt.Errorf("allocating %s: %w", address, err)
	}
	return task, nil
}

// AllocatedID returns the id of an address in the result of the task that allocated it; empty if it does not tell.
func AllocatedID(task Task, address netip.Addr) string {
	var result []wireAllocation
	if decodeJSON([]byte(task.Result), &result) != nil {
		return ""
	}
	for _, a := range result {
		if parseAddr(a.Value) == address {
			return a.ID
		}
	}
	return ""
}

// FloatingIP reads an allocated address.
func (i *IPSpaces) FloatingIP(ctx context.Context, space, id string) (FloatingIP, error) {
	var doc wireAllocation
	if err := i.getJSON(ctx, allocationPath(space, id), "", &doc); err != nil {
		return FloatingIP{}, fmt.Errorf("reading an address of IP Space %s: %w", space, err)
	}
	return doc.allocation(), nil
}

func (w wireAllocation) allocation() FloatingIP {
	return FloatingIP{ID: w.ID, Address: parseAddr(w.Value), Usage: w.Usage, Description: w.Description}
}

// Mark reads an allocated address, lets mark say what it is used for and by whom, and starts writing that back. Of one
// that VCD itself uses, only the description changes. It takes the right "IP Spaces: Allocate".
func (i *IPSpaces) Mark(ctx context.Context, space, id string, mark func(now FloatingIP) (UsageState, string, error)) (Task, error) {
	task, err := i.change(ctx, allocationPath(space, id), func(o object) (bool, error) {
		now := FloatingIP{
			ID: o.textOf("id"), Address: parseAddr(o.textOf("value")), Usage: UsageState(o.textOf("usageState")), Description: o.textOf("description"),
		}
		usage, description, err := mark(now)
		if err != nil {
			return false, err
		}
		changed := o.set("description", description)
		if now.Usage != Used {
			changed = o.set("usageState", usage) || changed
		}
		return changed, nil
	})
	if err != nil {
		return Task{}, fmt.Errorf("marking an address of IP Space %s: %w", space, err)
	}
	return task, nil
}

func allocationPath(space, id string) string {
	return spacePath(space) + "/allocations/" + url.PathEscape(id)
}

// Release starts giving an allocated address back; it must be marked [Unused] before.
func (i *IPSpaces) Release(ctx context.Context, space, id string) (Task, error) {
	task, err := i.startJSON(ctx, http.MethodDelete, allocationPath(space, id), nil)
	if err != nil {
		return Task{}, fmt.Errorf("releasing an address of IP Space %s: %w", space, err)
	}
	return task, nil
}
