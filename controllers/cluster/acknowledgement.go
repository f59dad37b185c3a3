// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// acceptAcknowledgement replaces the acknowledgement of a user with the time at which it was given, clears the recorded
// stop, and reports whether there was an acknowledgement. It does so in the first pass that sees the annotation, even
// if no VMs are missing, because an acknowledgement that stays would apply to the next outage.
func acceptAcknowledgement(ctx context.Context, live client.Reader, to *store, now time.Time) (bool, error) {
	c := to.vcdCluster
	if c.Annotations[infrav1.GoneAcknowledgedAnnotation] != "true" {
		return false, nil
	}
	at, err := acknowledgedAt(ctx, live, c, now)
	if err != nil {
		return false, err
	}
	notes.Set(c, infrav1.GoneAcknowledgedAnnotation, at.UTC().Format(time.RFC3339))
	c.Spec.RecordedState.GoneStoppedSince = nil
	if err := to.patcher.Save(ctx); err != nil {
		return false, fmt.Errorf("storing the time of the acknowledgement of missing VMs: %w", err)
	}
	return true, nil
}

// acknowledgedAt returns when the annotation was written. That may be long ago if the cluster was paused or no manager
// ran. The acknowledgement does not cover VMs that went missing later. The API server keeps the time in managedFields,
// which the cache drops.
func acknowledgedAt(ctx context.Context, from client.Reader, c *infrav1.VCDCluster, now time.Time) (time.Time, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(infrav1.GroupVersion.WithKind("VCDCluster"))
	if err := from.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
		return time.Time{}, fmt.Errorf("reading the time of the acknowledgement of missing VMs: %w", err)
	}
	return writtenAt(live.ManagedFields, infrav1.GoneAcknowledgedAnnotation, now), nil
}

// writtenAt returns when an annotation was written; now if that is not recorded.
func writtenAt(fields []metav1.ManagedFieldsEntry, key string, now time.Time) time.Time {
	at := now
	for _, entry := range fields {
		if entry.Time != nil && entry.Time.Time.Before(at) && ownsAnnotation(entry, key) {
			at = entry.Time.Time
		}
	}
	return at
}

// ownsAnnotation reports whether an entry of managedFields contains an annotation.
func ownsAnnotation(entry metav1.ManagedFieldsEntry, key string) bool {
	var fields struct {
		Metadata struct {
			Annotations map[string]any `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, found := fields.Metadata.Annotations["f:"+key]
	return found
}

// reportStop sets the condition that shows whether machines of the cluster are held back until a user acknowledges that
// they are gone.
func reportStop(r events.EventRecorder, c *infrav1.VCDCluster) {
	if c.Spec.RecordedState.GoneStoppedSince == nil {
		phases.Drop(c, infrav1.VMLossSuspectedCondition)
		return
	}
	phases.Report(c, infrav1.VMLossSuspectedCondition, phases.Note(infrav1.VMLossUnacknowledgedReason,
		"VMs of several clusters of the site went missing at the same time, so the provider treats none of them as deleted. Check VCD. If the missing VMs of this cluster are deleted, or all have returned, annotate the VCDCluster with %s=true",
		infrav1.GoneAcknowledgedAnnotation), r)
}
