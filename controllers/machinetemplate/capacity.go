package machinetemplate

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileCapacity finds out what a machine will have: from the vApp template, the sizing policy and the wished size
// of the disk.
func reconcileCapacity(ctx context.Context, s *scope) (phases.Outcome, error) {
	switch {
	case s.ambiguous:
		return phases.Wait(clusterRetry, infrav1.ClusterUnknownReason,
			"VCDClusters of this namespace are in different places: label the VCDMachineTemplate with "+
				"cluster.x-k8s.io/cluster-name to say which is meant"), nil
	case s.vcdCluster == nil:
		return phases.Wait(clusterRetry, infrav1.ClusterUnknownReason,
			"No VCDCluster says in which VCD the machines will be: create the cluster, or label the "+
				"VCDMachineTemplate with cluster.x-k8s.io/cluster-name"), nil
	case s.vcdCluster.Spec.OVDC == "":
		return phases.Fail(capacityRetry, infrav1.NotSupportedReason,
			"Failure domains are not supported yet: set spec.ovdc of VCDCluster %s", s.vcdCluster.Name), nil
	}
	opened, out, err := s.Identities.Open(ctx, s.Sessions, s.vcdCluster)
	if err == nil && out == phases.Done {
		out, err = s.readCapacity(ctx, opened)
	}
	if out != phases.Done {
		out.After = max(out.After, capacityRetry)
	}
	return out, err
}

// readCapacity asks VCD for what makes up the capacity. All of it is remembered by the session, as for machines.
func (s *scope) readCapacity(ctx context.Context, opened *session.Session) (phases.Outcome, error) {
	c, spec := s.vcdCluster, s.template.Spec.Template.Spec
	vdc, err := opened.FindVDC(ctx, placement.VDCName(c))
	if err != nil {
		return session.LookupProblem(err, infrav1.VDCNotFoundReason,
			"correct spec.ovdc of VCDCluster "+c.Name+", or give its user access to the VDC")
	}
	image, err := opened.FindTemplate(ctx, spec.Catalog, spec.Template)
	if err != nil {
		return session.TemplateProblem(err, placement.Choice{Name: spec.Catalog, Field: "spec.catalog"},
			placement.Choice{Name: spec.Template, Field: "spec.template"})
	}
	var sizing vcd.Policy
	if spec.SizingPolicy != "" {
		sizing, err = opened.FindSizingPolicy(ctx, vdc, spec.SizingPolicy)
	} else {
		sizing, err = opened.FindDefaultSizing(ctx, vdc)
	}
	if err != nil {
		return session.LookupProblem(err, infrav1.SizingPolicyNotFoundReason,
			"correct spec.sizingPolicy, or assign the policy to the VDC")
	}
	if spec.CPUs > 0 {
		sizing.CPUs = int64(spec.CPUs)
	}
	if memory := int64(spec.MemoryMiB); memory > 0 {
		sizing.MemoryMiB = memory
	}
	s.template.Status.Capacity = capacityOf(image, sizing, session.DiskMiB(&infrav1.VCDMachine{Spec: spec}))
	s.template.Status.NodeInfo = nodeInfoOf(image.OS)
	*s.known.Of(s.template.UID) = found{at: s.now(), generation: s.template.Generation}
	return phases.Done, nil
}

// capacityOf returns what a machine has. A policy that does not fix a size leaves that of the image.
func capacityOf(image vcd.Template, sizing vcd.Policy, wishedDiskMiB int64) corev1.ResourceList {
	capacity := corev1.ResourceList{}
	if cpus := cmp.Or(sizing.CPUs, image.CPUs); cpus > 0 {
		capacity[corev1.ResourceCPU] = *resource.NewQuantity(cpus, resource.DecimalSI)
	}
	if memory := cmp.Or(sizing.MemoryMiB, image.MemoryMiB); memory > 0 {
		capacity[corev1.ResourceMemory] = *resource.NewQuantity(memory*session.Mebibyte, resource.BinarySI)
	}
	if disk := max(wishedDiskMiB, image.DiskMiB); disk > 0 {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(disk*session.Mebibyte, resource.BinarySI)
	}
	return capacity
}

// nodeInfoOf returns what kind of node an image becomes, according to vSphere's name of its operating system.
func nodeInfoOf(guestOS string) infrav1.NodeInfo {
	var info infrav1.NodeInfo
	name := strings.ToLower(guestOS)
	switch {
	case strings.HasPrefix(name, "win"):
		info.OperatingSystem = "windows"
	case name == "", strings.HasPrefix(name, "darwin"), strings.HasPrefix(name, "freebsd"),
		strings.HasPrefix(name, "solaris"), strings.HasPrefix(name, "vmkernel"):
	default:
		info.OperatingSystem = "linux"
	}
	switch {
	case strings.Contains(name, "arm"):
		info.Architecture = "arm64"
	case strings.Contains(name, "64"):
		info.Architecture = "amd64"
	}
	return info
}
