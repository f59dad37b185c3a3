// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// A target is what a machine is made of and where, as VCD knows it.
type target struct {
	vdc      vcd.VDC
	nics     []placement.NIC
	networks []vcd.Network   // of each NIC
	dual     bool            // the cluster is dual-stack
	static   [][]nics.Static // of each NIC; none if all addresses are VCD's to assign

	// Only until the VM exists.
	template vcd.Template
	sizing   *vcd.Policy
	policy   *vcd.Policy
	storage  *vcd.StorageProfile
	disks    []vcd.NewDisk // besides those of the template, once the VM exists, too
}

// wished returns the NICs as they should be.
func (t *target) wished() []nics.NIC {
	all := make([]nics.NIC, 0, len(t.nics))
	for i, nic := range t.nics {
		n := nics.NIC{Index: i, Spec: nic.NetworkSpec, Network: t.networks[i], DualStack: t.dual}
		if i < len(t.static) {
			n.Static = t.static[i]
		}
		all = append(all, n)
	}
	return all
}

// reconcilePlacement finds what the machine is made of. What is not needed any more is not looked up: a template that
// was deleted since does not make a running machine less ready.
func reconcilePlacement(ctx context.Context, s *scope) (phases.Outcome, error) {
	switch {
	case s.inputs.vcdCluster == nil:
		return phases.Wait(0, infrav1.WaitingForClusterReason,
			"Waiting for the VCDCluster that spec.infrastructureRef of the Cluster names").NoAccess(), nil
	case s.inputs.vcdCluster.Spec.InfraID == "" && session.ExternallyManaged(s.inputs.vcdCluster):
		return phases.Stop(infrav1.WaitingForClusterReason,
			"VCDCluster %s has no id, and is externally managed (%s): set spec.infraID to what shall mark the "+
				"cluster's VMs", s.inputs.vcdCluster.Name, clusterv1.ManagedByAnnotation).NoAccess(), nil
	case s.inputs.vcdCluster.Spec.InfraID == "":
		return phases.Wait(0, infrav1.WaitingForClusterReason, "Waiting for the VCDCluster to get its id").NoAccess(),
			nil
	}
	if out, err := s.claimProblem(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := s.placer.open(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if s.inputs.cameUp() {
		var out phases.Outcome
		var err error
		s.placement.vdc, out, err = s.vdcOf(ctx)
		return out, err
	}
	if out, err := s.placer.find(ctx); err != nil || out != phases.Done {
		return out, err
	}
	return s.placer.nameservers(ctx), nil
}

// zoneName returns the VCDDeploymentZone of the machine, empty if it has none. What is recorded counts for life; before
// that, it is what the Machine asks for, unless a VM exists that was created without.
func (i *inputs) zoneName() string {
	zone := i.vcdMachine.Annotations[infrav1.DeploymentZoneAnnotation]
	if zone != "" || i.machine == nil || i.mayHaveVM() {
		return zone
	}
	return i.machine.Spec.FailureDomain
}

// mayHaveVM reports whether VCD was asked to create a VM.
func (i *inputs) mayHaveVM() bool {
	return i.vcdMachine.Spec.ProviderID != "" || i.vcdMachine.Annotations[infrav1.CreationRequestedAnnotation] != ""
}

// vdcOf returns the VDC that the VM was created in.
func (s *scope) vdcOf(ctx context.Context) (vcd.VDC, phases.Outcome, error) {
	id := s.inputs.vcdMachine.Annotations[infrav1.OVDCIDAnnotation]
	switch {
	case id == "":
		return session.VDCOf(ctx, s.session, s.inputs.vcdCluster)
	case s.zone != nil:
		return vcd.VDC{Ref: vcd.Ref{ID: id, Name: s.zone.Domain.Spec.OVDC}}, phases.Done, nil
	}
	return vcd.VDC{Ref: vcd.Ref{ID: id, Name: id}}, phases.Done, nil
}

// reportFailureDomain reports the zone that the VM is in. A VM that was moved to another VDC is in none.
func (s *scope) reportFailureDomain() {
	m := s.inputs.vcdMachine
	m.Status.FailureDomain = m.Annotations[infrav1.DeploymentZoneAnnotation]
	if row := s.vm.row; row != nil && row.VDC.ID != "" && row.VDC.ID != m.Annotations[infrav1.OVDCIDAnnotation] {
		m.Status.FailureDomain = ""
	}
}

// The placer finds what a machine is created from, and where.
type placer struct{ scope *scope }

// open finds the zone of the machine and logs in with its identity. A VM that ran is worked with when its zone is gone,
// too, with the identity of the cluster. Nothing is created anywhere instead of in a zone that cannot be used.
func (s placer) open(ctx context.Context) (out phases.Outcome, err error) {
	if name := s.scope.inputs.zoneName(); name != "" {
		zone, out, err := zones.Find(ctx, s.scope.reconciler.Client, s.scope.inputs.vcdCluster, name)
		switch {
		case err != nil:
			return phases.Done, err
		case out == phases.Done:
			s.scope.zone = &zone
		case !s.scope.inputs.cameUp() && s.scope.inputs.vcdMachine.DeletionTimestamp.IsZero():
			return out.NoAccess(), nil
		}
	}
	if s.scope.zone != nil {
		s.scope.session, out, err = s.scope.reconciler.Identities.OpenZone(ctx, s.scope.reconciler.Sessions, s.scope.zone.VCDDeploymentZone)
		return out, err
	}
	s.scope.session, out, err = s.scope.reconciler.Identities.Open(ctx, s.scope.reconciler.Sessions, s.scope.inputs.vcdCluster)
	return out, err
}

// wished returns the placement that the zone or the cluster of the machine gives it.
func (s placer) wished() (placement.Placement, phases.Outcome) {
	if s.scope.zone != nil && !s.scope.inputs.mayHaveVM() {
		if out := zones.Admits(s.scope.inputs.vcdCluster, s.scope.zone.VCDDeploymentZone); out != phases.Done {
			return placement.Placement{}, out
		}
	}
	wished, err := placement.Of(s.scope.inputs.vcdCluster, s.scope.zone, s.scope.inputs.vcdMachine)
	if err != nil {
		return wished, phases.Fail(session.RemedyPoll, infrav1.PlacementInvalidReason, "%s",
			strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if id := s.scope.inputs.vcdMachine.Annotations[infrav1.OVDCIDAnnotation]; id != "" {
		wished.VDC.Name = id // A rename in VCD does no harm from now on.
	}
	return wished, phases.Done
}

// find finds what the machine still needs to come to life.
func (s placer) find(ctx context.Context) (phases.Outcome, error) {
	wished, out := s.wished()
	if out != phases.Done {
		return out, nil
	}
	if out, err := s.findVDC(ctx, wished); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := s.name(ctx); err != nil || out != phases.Done {
		return out, err
	}
	s.scope.placement.nics = wished.NICs
	s.scope.placement.dual = nics.DualStack(s.scope.inputs.cluster)
	if s.scope.inputs.vmID() != "" {
		return s.scope.disks.find(ctx, wished)
	}
	if out, err := s.findNetworks(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if !s.scope.inputs.marker().IsOf(s.scope.inputs.marker().String()) {
		return phases.Stop(infrav1.InfraIDInvalidReason, "VMs marked %q would not be recognised again: make the "+
			"cluster anew with a spec.infraID of the VCDCluster without blanks", s.scope.inputs.marker()), nil
	}
	return s.findParts(ctx, wished)
}

// findVDC finds the VDC of the VM. One that is yet to be created goes where the cluster has others of its zone.
func (s placer) findVDC(ctx context.Context, wished placement.Placement) (out phases.Outcome, err error) {
	s.scope.placement.vdc, out, err = zones.VDC(ctx, s.scope.session, wished.VDC)
	if err == nil && out == phases.Done && s.scope.zone != nil && !s.scope.inputs.mayHaveVM() {
		out = zones.Replaced(s.scope.inputs.vcdCluster, s.scope.zone.Name, s.scope.placement.vdc.ID)
	}
	return out, err
}

// findParts finds what a VM is made from that does not exist yet.
func (s placer) findParts(ctx context.Context, wished placement.Placement) (phases.Outcome, error) {
	out, err := s.findImage(ctx, wished)
	if err == nil && out == phases.Done {
		out, err = s.scope.disks.find(ctx, wished)
	}
	if err != nil || out != phases.Done {
		return s.withRollout(out), err
	}
	s.compareVersions()
	return phases.Done, nil
}

// name gives the machine the name of its VM, the id that marks it and its zone, for life. All are stored before
// anything is created in VCD, by a patch that a pass which saw an old object cannot make.
func (s placer) name(ctx context.Context) (phases.Outcome, error) {
	m := s.scope.inputs.vcdMachine
	if m.Annotations[infrav1.InstanceIDAnnotation] != "" && m.Annotations[infrav1.VMNameAnnotation] != "" {
		return phases.Done, nil
	}
	name, out := s.vmName()
	if out != phases.Done {
		return out, nil
	}
	before := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[infrav1.VMNameAnnotation] = name
	if s.scope.zone != nil {
		m.Annotations[infrav1.DeploymentZoneAnnotation] = s.scope.zone.Name
		m.Annotations[infrav1.OVDCIDAnnotation] = s.scope.placement.vdc.ID
	}
	if m.Annotations[infrav1.InstanceIDAnnotation] == "" {
		m.Annotations[infrav1.InstanceIDAnnotation] = string(m.UID)
	}
	status := m.Status.DeepCopy()
	version := m.ResourceVersion
	if err := s.scope.reconciler.Client.Patch(ctx, m,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return phases.Done, fmt.Errorf("storing the name of VM %s: %w", name, err)
	}
	m.Status = *status
	m.ResourceVersion = version // The patch at the end starts from what was read.
	return phases.Done, nil
}

// vmName returns the name of the VM, which is its host name too: one that the machine has already, be it without an
// instance id, else the one that its template gives, which is always the same.
func (s placer) vmName() (string, phases.Outcome) {
	if name := s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation]; name != "" {
		if err := vmname.Check(name); err != nil {
			return "", phases.Stop(infrav1.VMNameInvalidReason, "Annotation %s: %v: make the machine anew without it",
				infrav1.VMNameAnnotation, err)
		}
		return name, phases.Done
	}
	name, err := vmname.Render(s.scope.inputs.vcdMachine.Spec.VMNamingTemplate, vmname.Input{
		Cluster:    s.scope.inputs.cluster.Name,
		Machine:    named(s.scope.inputs.machine),
		VCDMachine: named(s.scope.inputs.vcdMachine),
	})
	if err != nil {
		return "", phases.Stop(infrav1.VMNameInvalidReason,
			"%v: correct spec.vmNamingTemplate in the VCDMachineTemplate", err)
	}
	return name, phases.Done
}

func named(obj client.Object) vmname.Object {
	return vmname.Object{
		Name:        obj.GetName(),
		Namespace:   obj.GetNamespace(),
		UID:         string(obj.GetUID()),
		Labels:      obj.GetLabels(),
		Annotations: obj.GetAnnotations(),
	}
}

// findNetworks finds the network of each NIC.
func (s placer) findNetworks(ctx context.Context) (phases.Outcome, error) {
	for _, nic := range s.scope.placement.nics {
		network, err := s.scope.session.FindNetwork(ctx, s.scope.placement.vdc, nic.Network.Name)
		if err != nil {
			return session.LookupProblem(err, infrav1.NetworkNotFoundReason,
				"correct "+nic.Network.Field+", or connect the network to the VDC")
		}
		s.scope.placement.networks = append(s.scope.placement.networks, network)
	}
	return phases.Done, nil
}

// nameservers warns, until the guest is up, that nothing gives it DNS servers.
func (s placer) nameservers(ctx context.Context) phases.Outcome {
	wished, out := s.wished()
	if out != phases.Done {
		return phases.Done
	}
	var names []string
	for _, nic := range wished.NICs {
		network, err := s.scope.session.FindNetwork(ctx, s.scope.placement.vdc, nic.Network.Name)
		if err != nil || len(nic.Nameservers) > 0 || nic.AddressSource == infrav1.AddressDHCP ||
			slices.ContainsFunc(network.Subnets, func(s vcd.Subnet) bool { return len(s.DNS) > 0 }) {
			return phases.Done
		}
		names = append(names, network.Name)
	}
	return phases.Warn(infrav1.NoNameserversReason, "The guest gets no DNS servers: set those of network %s in VCD, "+
		"or nameservers in spec.networks of the VCDMachineTemplate", strings.Join(names, ", "))
}

// findImage finds the template, the policies and the storage profile.
func (s placer) findImage(ctx context.Context, wished placement.Placement) (phases.Outcome, error) {
	p := &s.scope.placement
	var err error
	if p.template, err = s.scope.session.FindTemplate(ctx, wished.Catalog.Name, wished.Template.Name); err != nil {
		return session.TemplateProblem(err, wished.Catalog, wished.Template, session.Correct)
	}
	if out, err := s.diskProblem(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := s.findPolicies(ctx, wished); err != nil || out != phases.Done {
		return out, err
	}
	if choice := wished.StorageProfile; choice.Name != "" {
		profile, err := s.scope.session.FindStorageProfile(ctx, p.vdc, choice.Name)
		if err != nil {
			return session.LookupProblem(err, infrav1.StorageProfileNotFoundReason,
				"correct "+choice.Field+", or give the VDC the profile")
		}
		p.storage = &profile
	}
	if out, err := s.computeProblem(ctx, wished.SizingPolicy.Field); err != nil || out != phases.Done {
		return out, err
	}
	return s.hardwareProblem(ctx)
}

// findPolicies finds the sizing and the placement policy.
func (s placer) findPolicies(ctx context.Context, wished placement.Placement) (phases.Outcome, error) {
	p := &s.scope.placement
	if choice := wished.SizingPolicy; choice.Name != "" {
		policy, err := s.scope.session.FindSizingPolicy(ctx, p.vdc, choice.Name)
		if err != nil {
			return session.LookupProblem(err, infrav1.SizingPolicyNotFoundReason,
				"correct "+choice.Field+", or assign the policy to the VDC")
		}
		p.sizing = &policy
	}
	if choice := wished.PlacementPolicy; choice.Name != "" {
		policy, err := s.scope.session.FindPlacementPolicy(ctx, p.vdc, choice.Name)
		if err != nil {
			return session.LookupProblem(err, infrav1.PlacementPolicyNotFoundReason,
				"correct "+choice.Field+", or assign the policy to the VDC")
		}
		p.policy = &policy
	}
	return phases.Done, nil
}

// computeProblem says why CPUs and memory cannot be set: a policy fixes them, which field names.
func (s placer) computeProblem(ctx context.Context, field string) (phases.Outcome, error) {
	spec := s.scope.inputs.vcdMachine.Spec
	sizing := s.scope.placement.sizing
	sized := spec.CPUs > 0 || spec.MemoryMiB > 0
	switch p := s.scope.placement.policy; {
	case (sizing != nil || sized) && p != nil && (p.CPUs > 0 || p.MemoryMiB > 0):
		return phases.Fail(session.RemedyPoll, infrav1.PlacementInvalidReason,
			"placement policy %s gives VMs a size, as vGPU policies may: leave out spec.sizingPolicy, spec.cpus and "+
				"spec.memoryMiB of the VCDMachine, and spec.placementConstraint.sizingPolicy of its zone", p.Name), nil
	case !sized:
		return phases.Done, nil
	case sizing != nil:
		return phases.Fail(session.RemedyPoll, infrav1.PlacementInvalidReason,
			"spec.cpus and spec.memoryMiB are set, and %s names sizing policy %s: leave out one of them", field,
			sizing.Name), nil
	}
	return s.defaultSizingProblem(ctx)
}

// defaultSizingProblem says why CPUs and memory cannot be set beside the default policy of the VDC.
func (s placer) defaultSizingProblem(ctx context.Context) (phases.Outcome, error) {
	spec := s.scope.inputs.vcdMachine.Spec
	fixed, err := s.scope.session.FindDefaultSizing(ctx, s.scope.placement.vdc)
	if err != nil {
		return session.LookupProblem(err, infrav1.SizingPolicyNotFoundReason, "leave out spec.cpus and spec.memoryMiB")
	}
	if spec.CPUs > 0 && fixed.CPUs > 0 || spec.MemoryMiB > 0 && fixed.MemoryMiB > 0 {
		return phases.Fail(session.RemedyPoll, infrav1.PlacementInvalidReason,
			"spec.cpus and spec.memoryMiB cannot be set in VDC %s, whose default sizing policy %s fixes them: name a "+
				"policy in spec.sizingPolicy instead", s.scope.placement.vdc.Name, fixed.Name), nil
	}
	return phases.Done, nil
}

// hardwareProblem says why the VM cannot have the wished version of virtual hardware.
func (s placer) hardwareProblem(ctx context.Context) (phases.Outcome, error) {
	wished := s.scope.inputs.vcdMachine.Spec.HardwareVersion
	has := s.scope.placement.template.Hardware
	if wished == "" || wished == has {
		return phases.Done, nil
	}
	if versionNumber(wished) < versionNumber(has) {
		return phases.Fail(session.RemedyPoll, infrav1.PlacementInvalidReason,
			"spec.hardwareVersion is %s, template %s has %s, and VCD only upgrades: set at least that", wished,
			s.scope.placement.template.Name, has), nil
	}
	versions, err := s.scope.session.HardwareVersions(ctx, s.scope.placement.vdc)
	if err != nil {
		return session.Unread(err, "Reading the hardware versions of VDC "+s.scope.placement.vdc.Name)
	}
	if len(versions) > 0 && !slices.Contains(versions, wished) {
		return phases.Fail(session.RemedyPoll, infrav1.PlacementInvalidReason,
			"spec.hardwareVersion is %s, and VDC %s has %s: set one of them", wished, s.scope.placement.vdc.Name,
			strings.Join(versions, ", ")), nil
	}
	return phases.Done, nil
}

// versionNumber returns the number of a version such as vmx-19; 0 if there is none.
func versionNumber(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "vmx-"))
	if err != nil {
		return 0
	}
	return n
}

// diskProblem says why the disk cannot have the wished size.
func (s placer) diskProblem(ctx context.Context) (phases.Outcome, error) {
	wished := session.DiskMiB(s.scope.inputs.vcdMachine)
	has := s.scope.placement.template.DiskMiB
	switch {
	case wished > has && s.scope.placement.vdc.FastProvisioning:
		return s.scope.disks.problem(ctx)
	case wished == 0 || wished >= has:
		return phases.Done, nil
	}
	return phases.Fail(session.RemedyPoll, infrav1.DiskTooSmallReason,
		"spec.diskSize is %s, the disk of template %s has %dMi and cannot shrink: set a size of at least that",
		s.scope.inputs.vcdMachine.Spec.DiskSize, s.scope.placement.template.Name, has), nil
}
