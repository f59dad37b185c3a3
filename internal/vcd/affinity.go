// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// RightAffinity is the name in VCD's API of the right to view and change affinity rules.
const RightAffinity = "Organization vDC: VM-VM Affinity Edit"

const (
	polarityApart = types.PolarityAntiAffinity
	// MinRuleVMs is the minimum number of VMs in an affinity rule.
	MinRuleVMs = 2
	// affinityAge is how long the list of the rules of a VDC is cached.
	affinityAge = 4 * time.Minute
)

// An AffinityRule keeps VMs of a VDC on different hosts, or on one host. In VCD, a VM can be in at most one rule of
// each polarity, and the names of rules need not be unique.
type AffinityRule struct {
	Ref // the name identifies the owner, because no other field of a rule can contain a marker

	Apart     bool // anti-affinity: on different hosts; false: on one host
	Enabled   bool
	Mandatory bool  // VCD does not power on a VM if that would violate the rule
	VMs       []Ref // sorted by ID
}

// Has reports whether a VM is in the rule.
func (r AffinityRule) Has(vmID string) bool {
	return slices.ContainsFunc(r.VMs, func(vm Ref) bool { return vm.ID == vmID })
}

// AffinityRules is the client for the affinity and anti-affinity rules of VDCs.
type AffinityRules struct {
	client *api.Client

	lists    *cache.Cache // by VDC and revision; rules change rarely, and all clusters in a VDC share one list
	revision atomic.Int64 // incremented by each ForgetAffinityRules
}

func newAffinityRules(c *api.Client, lists *cache.Cache) *AffinityRules {
	return &AffinityRules{client: c, lists: lists}
}

func affinityRuleFrom(w *wire.AffinityRule) AffinityRule {
	rule := AffinityRule{
		Ref:       Ref{ID: urn.Of(urn.AffinityRule, w.ID), Name: w.Name},
		Apart:     w.Polarity == polarityApart,
		Enabled:   w.Enabled,
		Mandatory: w.Mandatory,
	}
	if rule.ID == "" {
		rule.ID = urn.Of(urn.AffinityRule, w.HREF)
	}
	if w.VMs != nil {
		for _, vm := range w.VMs.VMs {
			rule.VMs = append(rule.VMs, Ref{ID: urn.Of(urn.VM, vm.HRef), Name: vm.Name})
		}
	}
	slices.SortFunc(rule.VMs, func(a, b Ref) int { return strings.Compare(a.ID, b.ID) })
	return rule
}

// AffinityRules returns the rules of a VDC, sorted by ID. It caches the list for a few minutes, or until
// [AffinityRules.ForgetAffinityRules] is called.
func (a *AffinityRules) AffinityRules(ctx context.Context, vdc VDC) ([]AffinityRule, error) {
	// A response that was in flight when the rules changed is cached under the previous revision.
	name := cache.Key(vdc.ID, fmt.Sprint(a.revision.Load()))
	return cache.Lookup(ctx, a.lists, name, func(ctx context.Context) ([]AffinityRule, error) {
		return a.list(ctx, vdc)
	})
}

// ForgetAffinityRules clears the cache, so that the next [AffinityRules.AffinityRules] queries VCD. Call it after a
// write, and again when the task of the write has finished.
func (a *AffinityRules) ForgetAffinityRules() {
	a.revision.Add(1)
	a.lists.Clear()
}

func (a *AffinityRules) list(ctx context.Context, vdc VDC) ([]AffinityRule, error) {
	var doc struct {
		Rules []wire.AffinityRule `xml:"VmAffinityRule"`
	}
	if err := a.client.GetXML(ctx, urn.Path(urn.VDC, vdc.ID)+"/vmAffinityRules/", &doc); err != nil {
		return nil, fmt.Errorf("listing affinity rules of VDC %s: %w", vdc.Name, err)
	}
	rules := make([]AffinityRule, 0, len(doc.Rules))
	for i := range doc.Rules {
		rules = append(rules, affinityRuleFrom(&doc.Rules[i]))
	}
	slices.SortFunc(rules, func(a, b AffinityRule) int { return strings.Compare(a.ID, b.ID) })
	return rules, nil
}

// CreateAffinityRule starts the creation of a rule for VMs of a VDC. It fails with [ErrInvalid] if there are fewer than
// [MinRuleVMs].
func (a *AffinityRules) CreateAffinityRule(ctx context.Context, vdc VDC, rule AffinityRule) (Task, error) {
	if len(rule.VMs) < MinRuleVMs {
		return Task{}, &LookupError{
			Kind:   "affinity rule",
			Name:   rule.Name,
			In:     "VDC " + vdc.Name,
			Err:    ErrInvalid,
			Reason: fmt.Sprintf("requires %d VMs", MinRuleVMs),
		}
	}
	a.ForgetAffinityRules()
	return startXML(ctx, a.client, http.MethodPost, urn.Path(urn.VDC, vdc.ID)+"/vmAffinityRules/", wire.MIMEAffinityRule, a.wire(rule))
}

// UpdateAffinityRule starts replacing the rule that has the ID of rule.
func (a *AffinityRules) UpdateAffinityRule(ctx context.Context, rule AffinityRule) (Task, error) {
	a.ForgetAffinityRules()
	return startXML(ctx, a.client, http.MethodPut, urn.Path(urn.AffinityRule, rule.ID), wire.MIMEAffinityRule, a.wire(rule))
}

// DeleteAffinityRule starts the deletion of a rule. Its VMs are kept.
func (a *AffinityRules) DeleteAffinityRule(ctx context.Context, id string) (Task, error) {
	a.ForgetAffinityRules()
	return startXML(ctx, a.client, http.MethodDelete, urn.Path(urn.AffinityRule, id), "", nil)
}

func (a *AffinityRules) wire(rule AffinityRule) wire.AffinityRule {
	w := wire.AffinityRule{
		Xmlns:     wire.NamespaceVCloud,
		Name:      rule.Name,
		Enabled:   rule.Enabled,
		Mandatory: rule.Mandatory,
		Polarity:  types.PolarityAffinity,
		VMs:       &wire.RuleVMs{},
	}
	if rule.Apart {
		w.Polarity = polarityApart
	}
	for _, vm := range rule.VMs {
		w.VMs.VMs = append(w.VMs.VMs, wire.XMLRef{HRef: a.client.Href(urn.VM, vm.ID)})
	}
	return w
}
