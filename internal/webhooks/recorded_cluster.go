// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// CRD rules protect the state that the controllers record for a cluster. This file contains the rules that depend on
// the version of a request, its user, or the deletion of the cluster.

var recordedPath = field.NewPath("spec", "recordedState")

// clusterRecordChangeErrors rejects changes of recorded state by requests in CAPVCD's versions, to which the CRD rules
// do not apply. It also rejects invalid entries in deletedVAppIDs, because disks are deleted once the vApps are
// recorded as deleted.
func clusterRecordChangeErrors(ctx context.Context, before, c *infrav1.VCDCluster) field.ErrorList {
	if isOfOtherVersion(ctx) && !equality.Semantic.DeepEqual(before.Spec.RecordedState, c.Spec.RecordedState) {
		return field.ErrorList{field.Forbidden(recordedPath, "is set by the controllers and cannot be changed in this version: keep annotation cluster.x-k8s.io/conversion-data unchanged")}
	}
	return deletedVAppErrors(before, c)
}

// isOfOtherVersion reports whether a request uses a version other than the validated one.
func isOfOtherVersion(ctx context.Context) bool {
	request, err := admission.RequestFromContext(ctx)
	return err == nil && request.RequestKind != nil && request.RequestKind.Version != request.Kind.Version
}

// deletedVAppErrors rejects new entries in deletedVAppIDs for vApps that do not belong to the cluster, or while the
// cluster is not being deleted.
func deletedVAppErrors(before, c *infrav1.VCDCluster) field.ErrorList {
	known := slices.Clone(before.Spec.RecordedState.VAppIDs)
	for _, zone := range before.Spec.RecordedState.Zones {
		known = append(known, zone.VAppIDs...)
	}
	refused := func(id string) bool { return c.DeletionTimestamp.IsZero() || !slices.Contains(known, id) }
	if !slices.ContainsFunc(newlyDeleted(before, c), refused) {
		return nil
	}
	return field.ErrorList{field.Forbidden(recordedPath.Child("deletedVAppIDs"),
		"lists only vApps that the controller deleted with the cluster: to keep a vApp in VCD, use "+
			infrav1.KeepVAppAnnotation)}
}

// newlyDeleted returns the URNs of vApps that an update adds to deletedVAppIDs.
func newlyDeleted(before, c *infrav1.VCDCluster) []string {
	was := before.Spec.RecordedState.DeletedVAppIDs
	return slices.DeleteFunc(slices.Clone(c.Spec.RecordedState.DeletedVAppIDs),
		func(id string) bool { return slices.Contains(was, id) })
}

// clusterRecordAdditionErrors rejects additions that only the controllers may make: a new location after the recorded
// one was removed, and deleted vApps.
func clusterRecordAdditionErrors(before, c *infrav1.VCDCluster) field.ErrorList {
	var errs field.ErrorList
	was := &before.Spec.RecordedState
	is := &c.Spec.RecordedState
	const problem = "is set by the controller: remove the field, and correct the name in the spec"
	if was.OVDCID == "" && is.OVDCID != "" {
		errs = append(errs, field.Forbidden(recordedPath.Child("ovdcID"), problem))
	}
	if was.OVDCNetworkID == "" && is.OVDCNetworkID != "" {
		errs = append(errs, field.Forbidden(recordedPath.Child("ovdcNetworkID"), problem))
	}
	if len(newlyDeleted(before, c)) > 0 {
		errs = append(errs, field.Forbidden(recordedPath.Child("deletedVAppIDs"),
			"is set by the controller: to keep a vApp in VCD, use "+infrav1.KeepVAppAnnotation))
	}
	return errs
}

// entityInTemplateErrors rejects an entity ID in a template, because an entity belongs to a single cluster.
func entityInTemplateErrors(t *infrav1.VCDClusterTemplate) field.ErrorList {
	if t.Spec.Template.Spec.RDE.ID == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "template", "spec", "rde", "id"),
		"belongs to a single cluster: remove the field to create an entity for each cluster")}
}
