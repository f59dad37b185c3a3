// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"cmp"
	"context"
	"slices"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// member is a machine of a group, with its VM and the VDC and vApp that contain the VM.
type member struct {
	affinity.Member

	vdc  string // URN; empty: the VDC of the cluster
	vApp string // name
}

// vdcPlan is the plan for one VDC.
type vdcPlan struct {
	affinity.Plan

	vdc     vcd.VDC
	session *session.Session
	unused  bool // there are neither members nor rules of the cluster
}

// reconcileRules takes the next step toward the requested rules. If no rules are requested and the old ones are
// deleted, it returns [phases.Obsolete], which removes the condition.
func reconcileRules(ctx context.Context, s *scope) (phases.Result, error) {
	out, err := keep(ctx, s)
	if err != nil || out != phases.Done || s.requested {
		return out, err
	}
	s.vcdCluster.Spec.RecordedState.AffinityRuleOVDCIDs = nil
	return phases.Obsolete, nil
}

// keep takes the next step toward the rules that the machines request.
func keep(ctx context.Context, s *scope) (phases.Result, error) {
	return phases.Sequence(ctx, s.settle, s.findMembers, s.plan, s.hold, s.gather, s.apply, s.forget, s.report)
}

// findMembers finds the machines of all groups that have VMs. It omits machines whose VMs were declared as deleted.
func (s *scope) findMembers(context.Context) (phases.Result, error) {
	clusterName := capicluster.Name(s.vcdCluster, s.cluster)
	for i := range s.machines {
		m := &s.machines[i]
		id, err := providerid.Parse(m.Spec.ProviderID)
		group := affinity.GroupOf(m)
		if err != nil || group.Name == "" || absence.IsDeclared(m) {
			continue
		}
		found := member{Member: affinity.Member{
			Group:   group,
			VM:      vcd.Ref{ID: id, Name: m.Spec.RecordedState.VMName},
			Leaving: !m.DeletionTimestamp.IsZero(),
		}}
		found.vdc = m.Spec.RecordedState.OVDCID
		found.vApp = found.VM.Name
		if !vapp.PerMachine(s.vcdCluster) {
			found.vApp = vapp.Numbered(
				vapp.NameIn(s.vcdCluster, clusterName, m.Spec.RecordedState.DeploymentZone),
				int(m.Spec.RecordedState.VAppNumber))
		}
		s.members = append(s.members, found)
	}
	return phases.Done, nil
}

// vdcs returns the URNs of the VDCs that contain VMs of the cluster or may contain rules of it.
func (s *scope) vdcs() []string {
	all := slices.Clone(s.vcdCluster.Spec.RecordedState.AffinityRuleOVDCIDs)
	own := placement.RecordedVDC(s.vcdCluster)
	for i := range s.members {
		s.members[i].vdc = cmp.Or(s.members[i].vdc, own)
		all = append(all, s.members[i].vdc)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(id string) bool { return id == "" })
}

// plan compares members and rules in each VDC. A problem in one VDC does not affect the others.
func (s *scope) plan(ctx context.Context) (phases.Result, error) {
	var settled []string
	for _, id := range s.vdcs() {
		p, out, err := s.planIn(ctx, id)
		switch {
		case err != nil:
			return phases.Done, err
		case out != phases.Done:
			s.problem = out
		default:
			s.plans = append(s.plans, p)
			settled = append(settled, p.Settled...)
		}
	}
	s.reconciler.Settled.Set(s.vcdCluster.UID, settled)
	return phases.Done, nil
}

// planIn compares members and rules in one VDC.
func (s *scope) planIn(ctx context.Context, id string) (vdcPlan, phases.Result, error) {
	vdc := vcd.VDC{Ref: vcd.Ref{ID: id, Name: id}}
	access := affinity.Access{Client: s.reconciler.Client, Identities: s.reconciler.Identities, Sessions: s.reconciler.Sessions}
	opened, out, err := access.Open(ctx, s.vcdCluster, id)
	if err != nil || out != phases.Done {
		return vdcPlan{}, out, err
	}
	rules, err := opened.AffinityRules(ctx, vdc)
	if err != nil {
		out, err := affinity.Unlisted(err, vdc.Ref)
		return vdcPlan{}, out, err
	}
	here, err := s.membersIn(ctx, opened, vdc, rules)
	if err != nil {
		out, err := problems.OfRead(err, "Listing VMs")
		return vdcPlan{}, out, err
	}
	infraID := s.vcdCluster.Spec.InfraID
	return vdcPlan{
		Plan:    affinity.PlanFor(infraID, here, rules),
		vdc:     vdc,
		session: opened,
		unused:  len(here) == 0 && len(affinity.OfCluster(infraID, rules)) == 0,
	}, phases.Done, nil
}

// forget removes VDCs that the cluster no longer uses from the record. A VDC that is deleted later would not be visible.
func (s *scope) forget(context.Context) (phases.Result, error) {
	recorded := &s.vcdCluster.Spec.RecordedState
	recorded.AffinityRuleOVDCIDs = slices.DeleteFunc(recorded.AffinityRuleOVDCIDs, func(id string) bool {
		return slices.ContainsFunc(s.plans, func(p vdcPlan) bool { return p.vdc.ID == id && p.unused })
	})
	return phases.Done, nil
}

const (
	// restAge is the maximum age of the inventory that is searched first. It is the same as for unchanged machines.
	restAge = 5 * time.Minute
	// newAge is the maximum age of the inventory that is searched for a VM that the older one lacks, because the VM may
	// have been created or deleted since.
	newAge = 30 * time.Second
)

// membersIn returns the members whose VMs are in a VDC. It marks those that are not visible there as hidden.
func (s *scope) membersIn(ctx context.Context, opened *session.Session, vdc vcd.VDC, rules []vcd.AffinityRule) ([]affinity.Member, error) {
	var here []affinity.Member
	for _, m := range s.members {
		if m.vdc != vdc.ID {
			continue
		}
		shown, err := m.isShown(ctx, opened, vdc, rules)
		if err != nil {
			return nil, err
		}
		m.Hidden = !shown
		here = append(here, m.Member)
	}
	return here, nil
}

// isShown reports whether the VM is visible in a VDC. It looks in the rules, from which VCD removes deleted VMs, then
// in the inventory. Finally it queries the URN, because the VM may have been moved to another vApp, or its vApp
// renamed. It returns true for VMs that need no rule or whose machine is being deleted, because their visibility does
// not matter.
func (m member) isShown(ctx context.Context, opened *session.Session, vdc vcd.VDC, rules []vcd.AffinityRule) (bool, error) {
	inRule := func(r vcd.AffinityRule) bool { return r.Has(m.VM.ID) }
	if m.Leaving || !m.Group.NeedsRule || slices.ContainsFunc(rules, inRule) {
		return true, nil
	}
	for _, age := range []time.Duration{restAge, newAge} {
		rows, err := opened.VMs(ctx, vdc, m.vApp, age)
		if err != nil || slices.ContainsFunc(rows, func(r vcd.VMRecord) bool { return r.ID == m.VM.ID }) {
			return true, err
		}
	}
	row, err := opened.QueryVM(ctx, m.VM.ID)
	return row.VDC.ID == vdc.ID, vcd.IgnoreNotFound(err)
}

// report reports VDCs whose rules are not visible, failed steps, VMs in rules of other owners, and hidden VMs.
func (s *scope) report(context.Context) (phases.Result, error) {
	if out := cmp.Or(s.problem, s.held); out != phases.Done {
		return out, nil
	}
	var conflicts, hidden []string
	for _, p := range s.plans {
		for _, c := range p.Conflicts {
			conflicts = append(conflicts, c.VM+" in "+c.Rule)
		}
		hidden = append(hidden, p.Hidden...)
	}
	slices.Sort(conflicts)
	slices.Sort(hidden)
	switch {
	case len(conflicts) > 0:
		return phases.Fail(listEvery, infrav1.AffinityConflictReason,
			"A VM can be in only one affinity and one anti-affinity rule, and rules of other owners contain VMs of this cluster. In VCD, remove %s", phases.Few(conflicts)), nil
	case len(hidden) > 0:
		return phases.Unsure(intervals.Remedy, infrav1.VMUnverifiedReason,
			"Cannot see %s in VCD. They are not added to rules, and the rules of their groups are not deleted: check the conditions of their VCDMachines", phases.Few(hidden)), nil
	}
	return phases.Done, nil
}
