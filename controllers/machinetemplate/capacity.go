// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileCapacity determines the capacity of a machine from the vApp template, the sizing policy and the requested
// size of the disk.
func reconcileCapacity(ctx context.Context, s *scope) (phases.Result, error) {
	switch {
	case s.ambiguous:
		return phases.Wait(clusterRetry, infrav1.ClusterUnknownReason,
			"VCDClusters of this namespace differ in VDC or identity: label the VCDMachineTemplate with cluster.x-k8s.io/cluster-name to select one"), nil
	case s.vcdCluster == nil:
		return phases.Wait(clusterRetry, infrav1.ClusterUnknownReason,
			"The VCD of the machines is unknown without a VCDCluster: create the cluster, or label the VCDMachineTemplate with cluster.x-k8s.io/cluster-name"), nil
	}
	zone, out, err := s.findZone(ctx)
	if err == nil && out == phases.Done {
		out, err = s.readCapacity(ctx, zone)
	}
	if out != phases.Done {
		out.After = max(out.After, capacityRetry)
	}
	return out, err
}

// findZone returns the first usable zone of a cluster without a VDC; nil if the cluster has a VDC. The zones of the
// machines are unknown, so the capacity is that of the first zone.
func (s *scope) findZone(ctx context.Context) (*placement.Zone, phases.Result, error) {
	c := s.vcdCluster
	if c.Spec.OVDC != "" {
		return nil, phases.Done, nil
	}
	list := &infrav1.VCDDeploymentZoneList{}
	if err := s.reconciler.Client.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return nil, phases.Done, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	selected, err := placement.Select(c, list.Items)
	if err != nil {
		return nil, phases.Done, err
	}
	for i := range selected {
		if !ptr.Deref(selected[i].Status.Usable, false) {
			continue
		}
		zone, out, err := zones.Find(ctx, s.reconciler.Client, c, selected[i].Name)
		if err != nil || out == phases.Done {
			return &zone, out, err
		}
	}
	return nil, phases.Wait(clusterRetry, infrav1.NoFailureDomainReason,
		"VCDCluster %s has no usable zone yet: check its condition %s", c.Name, infrav1.FailureDomainsReadyCondition), nil
}

// inNewTemplate is the remedy for a problem of a template, which is immutable.
func inNewTemplate(fields ...string) string {
	return "create a new VCDMachineTemplate with another " + strings.Join(fields, " and ") +
		", and set it in the infrastructureRef"
}

// readCapacity reads the parts of the capacity from VCD. The session caches them all, as it does for machines.
func (s *scope) readCapacity(ctx context.Context, zone *placement.Zone) (phases.Result, error) {
	spec := s.template.Spec.Template.Spec
	opened, out, err := s.open(ctx, zone)
	if err != nil || out != phases.Done {
		return out, err
	}
	// Machines report contradictions.
	desired, _ := placement.Of(s.vcdCluster, zone, &infrav1.VCDMachine{Spec: spec})
	vdc, err := opened.FindVDC(ctx, desired.VDC.Name)
	if err != nil {
		return problems.OfField(err, checks.VDC, desired.VDC.Field)
	}
	image, out, err := findImage(ctx, opened, spec.TemplateSelector, desired)
	if err != nil || out != phases.Done {
		return out, err
	}
	var sizing vcd.Policy
	if choice := desired.SizingPolicy; choice.Name != "" {
		sizing, err = opened.FindSizingPolicy(ctx, vdc, choice.Name)
	} else {
		sizing, err = opened.FindDefaultSizing(ctx, vdc)
	}
	if err != nil {
		return problems.OfLookup(err, checks.SizingPolicy.Reason,
			inNewTemplate(ofTemplate(desired.SizingPolicy).Field)+", or "+checks.SizingPolicy.Otherwise)
	}
	s.template.Status.Capacity = capacityOf(sizes.Of(&spec, image, sizing))
	s.template.Status.NodeInfo = checks.NodeInfo(image.OS)
	*s.reconciler.known.Of(s.template.UID) = found{at: s.reconciler.now(), generation: s.template.Generation}
	return phases.Done, nil
}

// findImage finds the vApp template of the machines. A selector selects the newest one for any Kubernetes version,
// because the version of the machines is unknown.
func findImage(ctx context.Context, opened *session.Session, selector *infrav1.TemplateSelector, desired placement.Placement,
) (vcd.Template, phases.Result, error) {
	catalog := ofTemplate(desired.Catalog)
	if selector != nil {
		image, err := opened.SelectTemplate(ctx, checks.TemplateQuery(selector, desired.Catalog.Name, ""))
		if err != nil {
			out, err := problems.OfSelector(err, catalog, "spec.template.spec.templateSelector", inNewTemplate)
			return vcd.Template{}, out, err
		}
		return image, phases.Done, nil
	}
	image, err := opened.FindTemplate(ctx, desired.Catalog.Name, desired.Template.Name)
	if err != nil {
		out, err := problems.OfTemplate(err, catalog, ofTemplate(desired.Template), inNewTemplate)
		return vcd.Template{}, out, err
	}
	return image, phases.Done, nil
}

// open logs in with the identity of the zone, or of the cluster if zone is nil.
func (s *scope) open(ctx context.Context, zone *placement.Zone) (*session.Session, phases.Result, error) {
	if zone != nil {
		return s.reconciler.Identities.OpenZone(ctx, s.reconciler.Sessions, zone.VCDDeploymentZone)
	}
	return s.reconciler.Identities.Open(ctx, s.reconciler.Sessions, s.vcdCluster)
}

// ofTemplate changes the name of a machine's field to that in the template.
func ofTemplate(choice placement.Choice) placement.Choice {
	if field, ok := strings.CutSuffix(choice.Field, " of the VCDMachine"); ok {
		choice.Field = "spec.template." + field
	}
	return choice
}

// capacityOf returns the resources of a machine of a given size, without unknown ones.
func capacityOf(size sizes.Size) corev1.ResourceList {
	capacity := corev1.ResourceList{}
	if cpus := size.CPUs; cpus > 0 {
		capacity[corev1.ResourceCPU] = *resource.NewQuantity(cpus, resource.DecimalSI)
	}
	if memory := size.MemoryMiB; memory > 0 {
		capacity[corev1.ResourceMemory] = *resource.NewQuantity(memory*sizes.Mebibyte, resource.BinarySI)
	}
	if disk := size.DiskMiB; disk > 0 {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(disk*sizes.Mebibyte, resource.BinarySI)
	}
	return capacity
}
