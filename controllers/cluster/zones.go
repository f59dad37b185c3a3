// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/preflight"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// FailureDomains are the zones that a cluster selects.
type failureDomains struct {
	usable   []placement.Zone // sorted by name
	excluded []string         // why others are not, by name
	pending  []string         // names of those that were not validated yet
	unseen   bool             // some for control planes are excluded for what VCD showed, or did not
	found    bool             // by this pass
}

// reconcileFailureDomains reports whether there are zones that machines can go into.
func reconcileFailureDomains(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	found := &s.failureDomains
	if err := s.findZones(ctx); err != nil {
		return phases.Done, err
	}
	if found.waits(c) {
		return phases.Wait(session.TaskPoll, infrav1.NoFailureDomainReason,
			"Waiting for VCDDeploymentZones to be validated: %s", phases.Few(found.pending)), nil
	}
	if !slices.ContainsFunc(found.usable, placement.Zone.ControlPlane) {
		out := phases.Fail(session.RemedyPoll, infrav1.NoFailureDomainReason, "%s", found.problem())
		if found.unseen {
			out = out.NoAccess() // What VCD does not show may be there.
		}
		return out, nil
	}
	return phases.Done, nil
}

// findZones finds and publishes, once per pass, the zones that machines can go into. Those that were published stay
// while none can be used: without any, machines would be created without a failure domain.
func (s *scope) findZones(ctx context.Context) error {
	c := s.vcdCluster
	f := &s.failureDomains
	if f.found || c.Spec.FailureDomainSelector == nil {
		return nil
	}
	if err := f.find(ctx, s.reconciler.Client, c); err != nil {
		return err
	}
	f.found = true
	if f.waits(c) || !slices.ContainsFunc(f.usable, placement.Zone.ControlPlane) {
		return nil
	}
	c.Status.FailureDomains = nil
	for _, z := range f.usable {
		c.Status.FailureDomains = append(c.Status.FailureDomains, clusterv1.FailureDomain{
			Name:         z.Name,
			ControlPlane: ptr.To(z.ControlPlane()),
			Attributes:   map[string]string{"region": z.Domain.Spec.Region, "zone": z.Domain.Spec.Zone},
		})
	}
	return nil
}

// waits reports whether the first zones of a cluster are not validated yet: they are published together.
func (f *failureDomains) waits(c *infrav1.VCDCluster) bool {
	return len(f.pending) > 0 && len(c.Status.FailureDomains) == 0
}

// find finds out which of the selected zones can be used.
func (f *failureDomains) find(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster) error {
	list := &infrav1.VCDDeploymentZoneList{}
	if err := reader.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	selected, err := placement.Select(c, list.Items)
	if err != nil {
		return err
	}
	for i := range selected {
		z := &selected[i]
		domain, out, err := zones.DomainOf(ctx, reader, z)
		if err != nil {
			return err
		}
		out = cmp.Or(zones.Mismatch(c, z), out)
		if z.Status.OVDC != nil {
			out = cmp.Or(out, zones.Replaced(c, z.Name, z.Status.OVDC.ID))
		}
		if out != phases.Done {
			f.excluded = append(f.excluded, out.Message)
			continue
		}
		f.add(placement.Zone{VCDDeploymentZone: z, Domain: domain})
	}
	return nil
}

// add adds a zone that is for the cluster.
func (f *failureDomains) add(z placement.Zone) {
	switch {
	case !z.DeletionTimestamp.IsZero():
		f.excluded = append(f.excluded, "VCDDeploymentZone "+z.Name+" is being deleted")
	case z.Status.Usable == nil:
		f.pending = append(f.pending, z.Name)
	case !*z.Status.Usable:
		f.excluded = append(f.excluded, "see VCDDeploymentZone "+z.Name)
		f.unseen = f.unseen || z.ControlPlane()
	default:
		f.usable = append(f.usable, z)
	}
}

// problem says why there is no zone for control planes.
func (f *failureDomains) problem() string {
	switch {
	case len(f.usable) > 0:
		return "No usable zone that spec.failureDomainSelector selects is for control planes: set spec.controlPlane " +
			"of " +
			"one to true, or label another"
	case len(f.excluded) > 0:
		return "No zone that spec.failureDomainSelector selects can be used: " + strings.Join(f.excluded, "; ")
	}
	return "spec.failureDomainSelector selects no VCDDeploymentZone in the namespace: create or label one"
}

// report adds to the condition of published zones which selected ones are not among them.
func (f *failureDomains) report(c *infrav1.VCDCluster) {
	switch {
	case c.Spec.FailureDomainSelector == nil:
		c.Status.FailureDomains = nil
		conditions.Delete(c, infrav1.FailureDomainsReadyCondition)
	case len(f.excluded) > 0 && conditions.IsTrue(c, infrav1.FailureDomainsReadyCondition):
		phases.Set(c, infrav1.FailureDomainsReadyCondition, metav1.ConditionTrue, infrav1.FailureDomainsExcludedReason,
			"No new machines go into other zones: "+strings.Join(f.excluded, "; "))
	}
}

// A candidate is a VDC and a network in which load balancers of the cluster may be.
type candidate struct{ vdc, network string }

// candidates are that which the cluster names, or was recorded for it, and those of its zones: the ones for control
// planes first.
func (f *failureDomains) candidates(c *infrav1.VCDCluster) []candidate {
	var found []candidate
	if vdc, network := placement.VDCName(c), placement.NetworkName(c); vdc != "" && network != "" {
		found = append(found, candidate{vdc, network})
	}
	for _, forControlPlanes := range []bool{true, false} {
		for _, z := range f.usable {
			network := c.Spec.OVDCNetwork
			if network == "" && len(z.Status.Networks) > 0 {
				network = z.Status.Networks[0].ID
			}
			if z.ControlPlane() == forControlPlanes && z.Status.OVDC != nil && network != "" {
				found = append(found, candidate{z.Status.OVDC.ID, network})
			}
		}
	}
	return found
}

// findHome finds the VDC and network of a cluster. One that is in zones has that of the first; when that is lost, the
// checks of its endpoint go on with another.
func findHome(ctx context.Context, s *scope) (vdc vcd.VDC, network vcd.Network, first phases.Outcome, err error) {
	all := s.failureDomains.candidates(s.vcdCluster)
	if len(all) == 0 {
		return vdc, network, phases.Fail(session.RemedyPoll, infrav1.NetworkNotFoundReason,
			"Neither the VCDCluster nor a zone for control planes names a network: set spec.ovdcNetwork, or "+
				"spec.placementConstraint.networks of the VCDDeploymentZones"), nil
	}
	for _, at := range all {
		var out phases.Outcome
		if vdc, network, out, err = at.find(ctx, s.session); err != nil || out == phases.Done {
			return vdc, network, phases.Done, err
		}
		if first == phases.Done {
			first = out
		}
	}
	return vdc, network, first, nil
}

func (at candidate) find(ctx context.Context, in *session.Session) (vcd.VDC, vcd.Network, phases.Outcome, error) {
	vdc, err := in.FindVDC(ctx, at.vdc)
	if err != nil {
		out, err := hidden(session.LookupProblem(err, infrav1.VDCNotFoundReason,
			"correct spec.ovdc of the VCDCluster, or give its user access to the VDC; if another one has its name "+
				"now, remove annotation "+infrav1.OVDCIDAnnotation))
		return vdc, vcd.Network{}, out, err
	}
	network, err := in.FindNetwork(ctx, vdc, at.network)
	if err != nil {
		out, err := hidden(session.LookupProblem(err, infrav1.NetworkNotFoundReason,
			"correct spec.ovdcNetwork of the VCDCluster, or connect the network to the VDC; if another one has its "+
				"name now, remove annotation "+infrav1.OVDCNetworkIDAnnotation))
		return vdc, network, out, err
	}
	return vdc, network, phases.Done, nil
}

// preflight reports what would keep machines from being created in the VDC that was found, and returns when to
// reconcile again. While it finds something, the VDC is read again.
func (s *scope) preflight(result ctrl.Result) ctrl.Result {
	if s.vdc.ID == "" || preflight.Report(s.reconciler.Recorder, s.vcdCluster, s.vdc) {
		return result
	}
	s.session.ForgetVDC(s.vdc.Ref)
	s.reconciler.homes.Drop(s.vcdCluster.UID)
	if result.RequeueAfter == 0 || result.RequeueAfter > session.RemedyPoll {
		result.RequeueAfter = session.RemedyPoll
	}
	return result
}

// A where is the home of vApps with the session to work there.
type where struct {
	vapp.Home

	session *session.Session
	vdc     vcd.VDC
}

// homesOf returns where the cluster has, or may have, vApps: in its own VDC, unless it is in zones only, and in zones.
func homesOf(c *infrav1.VCDCluster, name string) []vapp.Home {
	inZones := vapp.Zones(c, name)
	if c.Spec.OVDC == "" && c.Annotations[infrav1.VAppCreatedAnnotation] == "" && c.Spec.FailureDomainSelector != nil {
		return inZones
	}
	return append([]vapp.Home{{First: vapp.Name(c, name)}}, inZones...)
}

// openIn logs in where vApps of the cluster are: with the identity of the zone, or with that of the cluster if the zone
// is gone.
func (s *scope) openIn(ctx context.Context, home vapp.Home) (where, phases.Outcome, error) {
	at := where{Home: home}
	if home.Zone == "" {
		out, err := s.open(ctx)
		if err == nil && out == phases.Done {
			at.session = s.session
			at.vdc, out, err = session.VDCOf(ctx, s.session, s.vcdCluster)
		}
		return at, out, err
	}
	at.vdc = vcd.VDC{Ref: vcd.Ref{ID: home.VDC, Name: home.VDC}}
	zone, out, err := zones.Find(ctx, s.reconciler.Client, s.vcdCluster, home.Zone)
	switch {
	case err != nil:
		return at, phases.Done, err
	case out == phases.Done:
		at.vdc.Name = zone.Domain.Spec.OVDC
		at.session, out, err = s.reconciler.Identities.OpenZone(ctx, s.reconciler.Sessions, zone.VCDDeploymentZone)
		return at, out, err
	}
	out, err = s.open(ctx)
	at.session = s.session
	return at, out, err
}

// first returns the first of several outcomes that is not done, after all were tried.
type first struct {
	out phases.Outcome
	err error
}

func (f *first) add(out phases.Outcome, err error) {
	if f.out == phases.Done {
		f.out = out
	}
	f.err = errors.Join(f.err, err)
}
