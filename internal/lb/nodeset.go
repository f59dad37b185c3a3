// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A nodeSet is the IP set of the cluster's nodes. It is the zero value if pools list their members.
type nodeSet struct {
	ref    Ref
	object Object // if it exists
}

// planNodeSet plans the IP set of the cluster's nodes, so that a change of nodes needs one write for all pools.
func planNodeSet(in input, f loadbalancer.Family) (nodeSet, outcome) {
	sets := clusterSets(in, setKey(f))
	if len(sets) > 0 {
		first := sets[0].Object
		return nodeSet{Ref{first.ID, first.Name}, first}, updateSet(in, sets[0], f)
	}
	out := in.outcome()
	want := desiredSet(in, f, "")
	name := setName(in.desired.Owner.Cluster, in.observed.Gateway, setKey(f))
	out.step(phasePrepare, Step{
		Verb: Create,
		Kind: KindSet,
		Name: name,
		Set:  &want,
	})
	return nodeSet{ref: Ref{Name: name}}, out
}

// setKey returns the key of a family's IP set in names and markers.
func setKey(f loadbalancer.Family) string { return strings.ToLower(string(f)) }

// clusterSets returns the cluster's IP sets for this gateway, all or those of a key. Sets whose markers name the
// gateway come first, then older ones whose markers name none.
func clusterSets(in input, which string) []Set {
	var named, unnamed []Set
	for _, s := range in.observed.Sets {
		m, ok := ParseMarker(s.Description)
		switch {
		case !ok, !m.Owner.Is(loadbalancer.Owner{Cluster: in.desired.Owner.Cluster}), !m.For(in.observed.Gateway.ID),
			which != "" && m.Listener != which:
		case m.Gateway != "":
			named = append(named, s)
		default:
			unnamed = append(unnamed, s)
		}
	}
	return slices.Concat(named, unnamed)
}

// updateSet updates an IP set that deviates from the desired one. A set that appears to have been changed by others is
// read first.
func updateSet(in input, have Set, f loadbalancer.Family) outcome {
	out := in.outcome()
	want := desiredSet(in, f, have.Description)
	switch {
	case have.Generation > want.Generation: // it was written from a newer node list
	case want.Description != have.Description, have.State == Failed,
		have.Full && !slices.Equal(allOf(f, have.Members), want.Members):
		out.update(phasePrepare, have.Object, Step{
			Kind: KindSet,
			Set:  &want,
		})
	case !have.Full && have.State == Realized && hasOtherCount(in.owned.pools, len(want.Members)):
		out.need(FullSets)
	}
	return out
}

// desiredSet returns the desired IP set of a family's nodes. It keeps the text that users added to the description.
func desiredSet(in input, f loadbalancer.Family, description string) Set {
	members := in.desired.members(f)
	m := Marker{
		Owner:    loadbalancer.Owner{Cluster: in.desired.Owner.Cluster},
		Listener: setKey(f),
		Gateway:  short(in.observed.Gateway.ID),
		Wrote:    short(words(members)...),
	}
	return Set{
		Object:     Object{Description: describe(description, m)},
		Members:    members,
		Generation: in.desired.Generation,
	}
}

// hasOtherCount reports whether lists show a pool whose number of members differs from that of its group.
func hasOtherCount(pools []owned[Pool], n int) bool {
	return slices.ContainsFunc(pools, func(x owned[Pool]) bool {
		h := x.object.Hints
		return h != nil && h.ByGroup && h.Members >= 0 && h.Members != n && x.State == Realized
	})
}
