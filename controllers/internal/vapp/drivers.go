// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
)

const (
	// driversAge is how long the result of an inspection is used.
	driversAge = 10 * time.Minute
	// driversMemory is how long the result is used while the workload cluster cannot be inspected.
	driversMemory = time.Hour
	// DriversRetry is the interval for workload clusters that run incompatible drivers, or that no longer respond.
	DriversRetry = time.Minute
	// UnknownRetry is the interval for workload clusters that have not responded yet: machines wait for them.
	UnknownRetry = 5 * time.Second
	// workloadTimeout bounds one inspection of a workload cluster.
	workloadTimeout = 5 * time.Second
	// workloadPage is the number of objects in one page of a list.
	workloadPage = 200
)

// A release is a version of a driver. Missing numbers are zero.
type release [3]int

// vAppBound maps drivers, by the last part of their image's name, to their last releases that search for nodes only in
// the vApp of their configuration.
var vAppBound = map[string]release{
	"cloud-director-named-disk-csi-driver": {1, 6, 999},
	"cloud-provider-for-cloud-director":    {1, 6, 1},
}

// Drivers finds the drivers in workload clusters that search for nodes by vApp. It inspects a workload cluster rarely,
// and only when a caller requests the result.
type Drivers struct {
	open   workload.Opener
	states local.Store[driverState] // by Cluster
}

// NewDrivers returns Drivers that list workloads with the clients of open.
func NewDrivers(open workload.Opener) *Drivers { return &Drivers{open: open} }

// A driverState caches the drivers in a workload cluster.
type driverState struct {
	listing sync.Mutex // held while the cluster is inspected

	mu     sync.Mutex
	tried  time.Time
	seen   time.Time // zero: never
	legacy []string
}

// In returns the drivers that need all nodes in one vApp, as image:tag. It returns false if they are unknown.
func (d *Drivers) In(ctx context.Context, cluster *clusterv1.Cluster, now time.Time) ([]string, bool) {
	if cluster == nil || !capicluster.Initialized(cluster) {
		return nil, true
	}
	found := d.states.Of(cluster.UID)
	if found.due(now) && found.listing.TryLock() {
		defer found.listing.Unlock()
		d.inspect(ctx, found, client.ObjectKeyFromObject(cluster), now)
	}
	return found.answer(now)
}

// Forget drops the state of a cluster that is being deleted.
func (d *Drivers) Forget(cluster *clusterv1.Cluster) {
	if cluster != nil {
		d.states.Drop(cluster.UID)
	}
}

// due reports whether to inspect the cluster. A cluster with incompatible drivers is inspected more often, because they
// are probably being removed.
func (l *driverState) due(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.tried.IsZero():
		return true
	case l.seen.IsZero():
		return now.Sub(l.tried) >= UnknownRetry
	case len(l.legacy) > 0, l.seen.Before(l.tried):
		return now.Sub(l.tried) >= DriversRetry
	}
	return now.Sub(l.seen) >= driversAge
}

func (l *driverState) answer(now time.Time) ([]string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen.IsZero() || now.Sub(l.seen) > driversMemory {
		return nil, false
	}
	return l.legacy, true
}

func (d *Drivers) inspect(ctx context.Context, l *driverState, cluster client.ObjectKey, now time.Time) {
	limited, cancel := context.WithTimeout(ctx, workloadTimeout)
	defer cancel()
	images, err := d.images(limited, cluster)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = now
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Cannot list the workloads of the workload cluster", "Cluster", cluster.String(),
			"reason", err.Error())
		return
	}
	l.seen = now
	l.legacy = nil
	for _, image := range images {
		if name, bound := boundToVApp(image); bound && !slices.Contains(l.legacy, name) {
			l.legacy = append(l.legacy, name)
		}
	}
	slices.Sort(l.legacy)
}

// images returns the images of the Deployments, DaemonSets and StatefulSets in a workload cluster, in all namespaces.
func (d *Drivers) images(ctx context.Context, cluster client.ObjectKey) ([]string, error) {
	opened, err := d.open(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var images []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{},
		&appsv1.DaemonSetList{},
		&appsv1.StatefulSetList{},
	} {
		for more := true; more; more = list.GetContinue() != "" {
			err := opened.List(ctx, list, client.Limit(workloadPage), client.Continue(list.GetContinue()))
			if err != nil && !meta.IsNoMatchError(err) { // A kind that is not served has no objects.
				return nil, fmt.Errorf("listing the workloads of Cluster %s: %w", cluster, err)
			}
			for _, spec := range podSpecs(list) {
				for _, c := range spec.Containers {
					images = append(images, c.Image)
				}
			}
		}
	}
	return images, nil
}

// podSpecs returns the pod specs of a list, except for the cloud controller manager that this provider installed. Its
// image has the same name as VMware's, but it finds nodes in any vApp.
func podSpecs(list client.ObjectList) []corev1.PodSpec {
	var specs []corev1.PodSpec
	add := func(of metav1.ObjectMeta, template corev1.PodTemplateSpec) {
		if of.Annotations[infrav1.CloudProviderOfAnnotation] == "" {
			specs = append(specs, template.Spec)
		}
	}
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		for i := range l.Items {
			add(l.Items[i].ObjectMeta, l.Items[i].Spec.Template)
		}
	case *appsv1.DaemonSetList:
		for i := range l.Items {
			add(l.Items[i].ObjectMeta, l.Items[i].Spec.Template)
		}
	case *appsv1.StatefulSetList:
		for i := range l.Items {
			add(l.Items[i].ObjectMeta, l.Items[i].Spec.Template)
		}
	}
	return specs
}

// boundToVApp reports whether an image is a driver that searches for nodes in one vApp. A driver of an unknown version
// counts as such.
func boundToVApp(image string) (string, bool) {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	repository, tag, _ := strings.Cut(name, ":")
	last, known := vAppBound[repository]
	if !known {
		return "", false
	}
	version, ok := parseRelease(tag)
	return name, !ok || slices.Compare(version[:], last[:]) <= 0
}

// parseRelease parses a version. Numbers may be missing, and a suffix after "-" or "+" is ignored.
func parseRelease(tag string) (release, bool) {
	var r release
	if i := strings.IndexAny(tag, "-+"); i >= 0 {
		tag = tag[:i]
	}
	parts := strings.Split(strings.TrimPrefix(tag, "v"), ".")
	if len(parts) > len(r) {
		return r, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return r, false
		}
		r[i] = n
	}
	return r, true
}
