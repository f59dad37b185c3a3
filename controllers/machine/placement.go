package machine

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// A placement is what a machine is made of and where, as VCD knows it.
type placement struct {
	vdc      vcd.VDC
	networks []vcd.Network // of each NIC

	// Only until the VM exists.
	template vcd.Template
	sizing   *vcd.Policy
	policy   *vcd.Policy
	storage  *vcd.StorageProfile
}

// reconcilePlacement finds what the machine is made of. What is not needed any more is not looked up: a template that
// was deleted since does not make a running machine less ready.
func reconcilePlacement(ctx context.Context, s *scope) (phases.Outcome, error) {
	switch {
	case s.vcdCluster == nil:
		return phases.Wait(0, infrav1.WaitingForClusterReason,
			"Waiting for the VCDCluster that spec.infrastructureRef of the Cluster names").NoAccess(), nil
	case s.vcdCluster.Spec.InfraID == "" && session.ExternallyManaged(s.vcdCluster):
		return phases.Stop(infrav1.WaitingForClusterReason,
			"VCDCluster %s has no id, and is externally managed (%s): set spec.infraID to what shall mark the "+
				"cluster's VMs", s.vcdCluster.Name, clusterv1.ManagedByAnnotation).NoAccess(), nil
	case s.vcdCluster.Spec.InfraID == "":
		return phases.Wait(0, infrav1.WaitingForClusterReason, "Waiting for the VCDCluster to get its id").NoAccess(),
			nil
	}
	if domain := s.machine.Spec.FailureDomain; domain != "" && !s.cameUp() {
		return phases.Stop(infrav1.NotSupportedReason, "Failure domain %s: failure domains are not supported yet: "+
			"leave out spec.failureDomain of the Machine and of what it is made from", domain), nil
	}
	opened, out, err := s.Identities.Open(ctx, s.Sessions, s.vcdCluster)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.session = opened
	if s.cameUp() {
		s.placement.vdc, out, err = session.VDCOf(ctx, s.session, s.vcdCluster)
		return out, err
	}
	return s.placer.find(ctx)
}

// The placer finds what a machine is created from, and where.
type placer struct{ *scope }

// find finds what the machine still needs to come to life.
func (s placer) find(ctx context.Context) (phases.Outcome, error) {
	vdc, err := s.session.FindVDC(ctx, session.VDCName(s.vcdCluster))
	if err != nil {
		return session.LookupProblem(err, infrav1.VDCNotFoundReason,
			"correct spec.ovdc of the VCDCluster, or give its user access to the VDC")
	}
	s.placement.vdc = vdc
	if out, err := s.name(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := s.findNetworks(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if s.vmID() != "" {
		return phases.Done, nil
	}
	if !s.marker().IsOf(s.marker().String()) {
		return phases.Stop(infrav1.InfraIDInvalidReason, "VMs marked %q would not be recognised again: make the "+
			"cluster anew with a spec.infraID of the VCDCluster without blanks", s.marker()), nil
	}
	return s.findImage(ctx)
}

// name gives the machine the name of its VM and the id that marks it, for life. Both are stored before anything is
// created in VCD, by a patch that a pass which saw an old object cannot make.
func (s placer) name(ctx context.Context) (phases.Outcome, error) {
	m := s.vcdMachine
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
	if m.Annotations[infrav1.InstanceIDAnnotation] == "" {
		m.Annotations[infrav1.InstanceIDAnnotation] = string(m.UID)
	}
	status, version := m.Status.DeepCopy(), m.ResourceVersion
	if err := s.Client.Patch(ctx, m,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return phases.Done, fmt.Errorf("storing the name of VM %s: %w", name, err)
	}
	m.Status, m.ResourceVersion = *status, version // The patch at the end starts from what was read.
	return phases.Done, nil
}

// vmName returns the name of the VM, which is its host name too: one that the machine has already, be it without an
// instance id, else the one that its template gives, which is always the same.
func (s placer) vmName() (string, phases.Outcome) {
	if name := s.vcdMachine.Annotations[infrav1.VMNameAnnotation]; name != "" {
		if err := vmname.Check(name); err != nil {
			return "", phases.Stop(infrav1.VMNameInvalidReason, "Annotation %s: %v: make the machine anew without it",
				infrav1.VMNameAnnotation, err)
		}
		return name, phases.Done
	}
	name, err := vmname.Render(s.vcdMachine.Spec.VMNamingTemplate, vmname.Input{
		Cluster: s.cluster.Name, Machine: named(s.machine), VCDMachine: named(s.vcdMachine),
	})
	if err != nil {
		return "", phases.Stop(infrav1.VMNameInvalidReason,
			"%v: correct spec.vmNamingTemplate in the VCDMachineTemplate", err)
	}
	return name, phases.Done
}

func named(obj client.Object) vmname.Object {
	return vmname.Object{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: string(obj.GetUID()), Labels: obj.GetLabels(),
		Annotations: obj.GetAnnotations(),
	}
}

// findNetworks finds the network of each NIC.
func (s placer) findNetworks(ctx context.Context) (phases.Outcome, error) {
	for i, nic := range nics(s.vcdMachine) {
		field, name := fmt.Sprintf("spec.networks[%d].name", i), nic.Name
		if name == "" {
			field, name = "spec.ovdcNetwork of the VCDCluster",
				session.NetworkName(s.vcdCluster)
		}
		if nic.AddressSource == infrav1.AddressIPAM {
			return phases.Stop(infrav1.NotSupportedReason, "Addresses from IPAM pools are not supported yet: set "+
				"spec.networks[%d].addressSource to Pool, DHCP or Manual", i), nil
		}
		network, err := s.session.FindNetwork(ctx, s.placement.vdc, name)
		if err != nil {
			return session.LookupProblem(err, infrav1.NetworkNotFoundReason,
				"correct "+field+", or connect the network to the VDC")
		}
		s.placement.networks = append(s.placement.networks, network)
	}
	return phases.Done, nil
}

// findImage finds the template, the policies and the storage profile.
func (s placer) findImage(ctx context.Context) (phases.Outcome, error) {
	spec, p := s.vcdMachine.Spec, &s.placement
	var err error
	if p.template, err = s.session.FindTemplate(ctx, spec.Catalog, spec.Template); err != nil {
		return session.TemplateProblem(err, spec)
	}
	if out, err := s.diskProblem(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if spec.SizingPolicy != "" {
		policy, err := s.session.FindSizingPolicy(ctx, p.vdc, spec.SizingPolicy)
		if err != nil {
			return session.LookupProblem(err, infrav1.SizingPolicyNotFoundReason,
				"correct spec.sizingPolicy, or assign the policy to the VDC")
		}
		p.sizing = &policy
	}
	if spec.PlacementPolicy != "" {
		policy, err := s.session.FindPlacementPolicy(ctx, p.vdc, spec.PlacementPolicy)
		if err != nil {
			return session.LookupProblem(err, infrav1.PlacementPolicyNotFoundReason,
				"correct spec.placementPolicy, or assign the policy to the VDC")
		}
		p.policy = &policy
	}
	if spec.StorageProfile != "" {
		profile, err := s.session.FindStorageProfile(ctx, p.vdc, spec.StorageProfile)
		if err != nil {
			return session.LookupProblem(err, infrav1.StorageProfileNotFoundReason,
				"correct spec.storageProfile, or give the VDC the profile")
		}
		p.storage = &profile
	}
	return phases.Done, nil
}

// diskProblem says why the disk cannot have the wished size.
func (s placer) diskProblem(ctx context.Context) (phases.Outcome, error) {
	wished, has := session.DiskMiB(s.vcdMachine), s.placement.template.DiskMiB
	switch {
	case wished > has && s.placement.vdc.FastProvisioning:
		return s.disks.problem(ctx)
	case wished == 0 || wished >= has:
		return phases.Done, nil
	}
	return phases.Fail(session.RemedyPoll, infrav1.DiskTooSmallReason,
		"spec.diskSize is %s, the disk of template %s has %dMi and cannot shrink: set a size of at least that",
		s.vcdMachine.Spec.DiskSize, s.placement.template.Name, has), nil
}

// nics returns the wished NICs.
func nics(m *infrav1.VCDMachine) []infrav1.NetworkSpec {
	if len(m.Spec.Networks) > 0 {
		return m.Spec.Networks
	}
	return []infrav1.NetworkSpec{{AddressSource: infrav1.AddressPool}}
}
