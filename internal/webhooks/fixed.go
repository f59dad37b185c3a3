// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// CRD rules make fields of objects immutable. The API server applies the rules of the version of a request, so requests
// in CAPVCD's versions are validated here.

// A fixedField is a field of a spec before and after an update.
type fixedField struct {
	name          string
	before, after any
}

func fixedErrors(fields []fixedField, problem string) field.ErrorList {
	var errs field.ErrorList
	for _, f := range fields {
		if !equality.Semantic.DeepEqual(f.before, f.after) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", f.name), problem))
		}
	}
	return errs
}

// clusterFixedErrors rejects changes of fields that determine the location of a cluster.
func clusterFixedErrors(oldC, newC *infrav1.VCDCluster) field.ErrorList {
	before := &oldC.Spec
	after := &newC.Spec
	if before.InfraID == "" {
		return nil
	}
	fixed := []fixedField{
		{"infraID", before.InfraID, after.InfraID},
		{"site", before.Site, after.Site},
		{"org", before.Org, after.Org},
		{"ovdc", before.OVDC, after.OVDC},
		{"ovdcNetwork", before.OVDCNetwork, after.OVDCNetwork},
		{"vApp", before.VApp, after.VApp},
		{"controlPlaneLoadBalancer.type", before.ControlPlaneLoadBalancer.Type, after.ControlPlaneLoadBalancer.Type},
		{
			"controlPlaneLoadBalancer.edgeGateway",
			before.ControlPlaneLoadBalancer.EdgeGateway,
			after.ControlPlaneLoadBalancer.EdgeGateway,
		},
	}
	if before.ControlPlaneEndpoint.Host != "" {
		fixed = append(fixed, fixedField{"controlPlaneEndpoint", before.ControlPlaneEndpoint, after.ControlPlaneEndpoint})
	}
	return fixedErrors(fixed, "is immutable once infraID is set: create another cluster")
}

// machineFixedErrors rejects changes of fields that were used to create the VM.
func machineFixedErrors(oldM, newM *infrav1.VCDMachine) field.ErrorList {
	before := &oldM.Spec
	after := &newM.Spec
	if before.ProviderID == "" {
		return nil
	}
	return fixedErrors([]fixedField{
		{"providerID", before.ProviderID, after.ProviderID},
		{"catalog", before.Catalog, after.Catalog},
		{"template", before.Template, after.Template},
		{"templateSelector", before.TemplateSelector, after.TemplateSelector},
		{"sizingPolicy", before.SizingPolicy, after.SizingPolicy},
		{"placementPolicy", before.PlacementPolicy, after.PlacementPolicy},
		{"storageProfile", before.StorageProfile, after.StorageProfile},
		{"diskIOPS", before.DiskIOPS, after.DiskIOPS},
		{"extraConfig", before.ExtraConfig, after.ExtraConfig},
		{"networks", before.Networks, after.Networks},
		{"vmNamingTemplate", before.VMNamingTemplate, after.VMNamingTemplate},
	}, immutableWithVM)
}

// immutableWithVM is the problem of a changed field that was used to create the VM.
const immutableWithVM = "is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"

// hardwareChangeErrors rejects other CPUs or memory of an existing VM. An in-place update may make these changes.
func hardwareChangeErrors(before, after *infrav1.VCDMachineSpec) field.ErrorList {
	if before.ProviderID == "" {
		return nil
	}
	return fixedErrors([]fixedField{
		{"cpus", before.CPUs, after.CPUs},
		{"memory", before.Memory, after.Memory},
	}, immutableWithVM)
}

// isInPlaceUpdate reports whether a request belongs to an in-place update: it sets the annotation of such updates, or it
// is a dry run, with which Cluster API determines whether it can update a machine in place.
func isInPlaceUpdate(ctx context.Context, m *infrav1.VCDMachine) (bool, error) {
	if _, ok := m.Annotations[clusterv1.UpdateInProgressAnnotation]; ok {
		return true, nil
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the admission request: %w", err)
	}
	return ptr.Deref(request.DryRun, false), nil
}
