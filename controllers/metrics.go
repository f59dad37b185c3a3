// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// Collectors are the metrics of all controllers of the process. Objects are counted in reader.
func Collectors(reader client.Reader) []prometheus.Collector {
	return []prometheus.Collector{phases.Passes, phases.Provisioning, newObjectCounts(reader), version.Info()}
}

// collectTimeout bounds how long metrics wait for the cache.
const collectTimeout = 5 * time.Second

// objectCounts counts objects by the state of their conditions, for alerts. The number of series grows with the number
// of reasons, not of objects.
type objectCounts struct {
	reader     client.Reader
	conditions *prometheus.Desc
	deleting   *prometheus.Desc
}

func newObjectCounts(reader client.Reader) *objectCounts {
	return &objectCounts{
		reader: reader,
		conditions: prometheus.NewDesc("capvcd_conditions", "Number of objects by the state of their conditions.",
			[]string{"kind", "condition", "status", "reason"}, nil),
		deleting: prometheus.NewDesc("capvcd_oldest_deletion_age_seconds",
			"Age of the oldest pending deletion, in seconds; 0 if there is none.",
			[]string{"kind"}, nil),
	}
}

// Describe implements [prometheus.Collector].
func (c *objectCounts) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.conditions
	descs <- c.deleting
}

// Collect implements [prometheus.Collector]. It skips kinds that cannot be listed, because a missing number is better
// than a wrong one.
func (c *objectCounts) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	collectKind(ctx, c, &infrav1.VCDClusterList{},
		func(l *infrav1.VCDClusterList) []infrav1.VCDCluster { return l.Items }, to)
	collectKind(ctx, c, &infrav1.VCDMachineList{},
		func(l *infrav1.VCDMachineList) []infrav1.VCDMachine { return l.Items }, to)
	collectKind(ctx, c, &infrav1.VCDIdentityList{},
		func(l *infrav1.VCDIdentityList) []infrav1.VCDIdentity { return l.Items }, to)
	collectKind(ctx, c, &infrav1.VCDClusterIdentityList{},
		func(l *infrav1.VCDClusterIdentityList) []infrav1.VCDClusterIdentity { return l.Items }, to)
	collectKind(ctx, c, &infrav1.VCDMachineTemplateList{},
		func(l *infrav1.VCDMachineTemplateList) []infrav1.VCDMachineTemplate { return l.Items }, to)
}

// A series holds the labels of one series of conditions.
type series struct{ condition, status, reason string }

// maxSeries limits the series of a kind. It exceeds the number of this provider's conditions with their reasons, but
// other clients may write conditions, too.
const maxSeries = 300

var otherSeries = series{"other", "other", "other"}

// bounded merges the series beyond maxSeries into otherSeries.
func bounded(counts map[series]int) map[series]int {
	if len(counts) <= maxSeries {
		return counts
	}
	ordered := slices.SortedFunc(maps.Keys(counts), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.condition, b.condition), cmp.Compare(a.reason, b.reason),
			cmp.Compare(a.status, b.status))
	})
	for _, s := range ordered[maxSeries:] {
		counts[otherSeries] += counts[s]
		delete(counts, s)
	}
	return counts
}

// collectKind counts the objects of one kind.
func collectKind[L client.ObjectList, T any, P interface {
	*T
	client.Object
	conditions.Getter
}](ctx context.Context, c *objectCounts, list L, items func(L) []T, to chan<- prometheus.Metric) {
	if err := c.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.Log.WithName("metrics").V(2).Info("Skipped objects in metrics", "list", fmt.Sprintf("%T", list), "reason",
			err.Error())
		return
	}
	counts := map[series]int{}
	longest := time.Duration(0)
	now := time.Now()
	of := items(list)
	for i := range of {
		obj := P(&of[i])
		for _, cond := range obj.GetConditions() {
			counts[series{cond.Type, string(cond.Status), cond.Reason}]++
		}
		if at := obj.GetDeletionTimestamp(); at != nil {
			longest = max(longest, now.Sub(at.Time))
		}
	}
	kind := reflect.TypeFor[T]().Name()
	for s, n := range bounded(counts) {
		to <- prometheus.MustNewConstMetric(c.conditions, prometheus.GaugeValue, float64(n), kind, s.condition,
			s.status, s.reason)
	}
	to <- prometheus.MustNewConstMetric(c.deleting, prometheus.GaugeValue, longest.Seconds(), kind)
}
