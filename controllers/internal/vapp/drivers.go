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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
)

const (
	// driversAge is how long it is believed what runs in a workload cluster.
	driversAge = 10 * time.Minute
	// driversMemory is how long it is believed while the workload cluster cannot be asked.
	driversMemory = time.Hour
	// DriversRetry is how often a workload cluster is asked that runs what it should not, or that does not answer any
	// more.
	DriversRetry = time.Minute
	// UnknownRetry is how often one is asked that has not answered yet: machines wait for it.
	UnknownRetry = 5 * time.Second
	// workloadTimeout bounds one inspection of a workload cluster.
	workloadTimeout = 5 * time.Second
	// workloadPage is how many objects of a workload cluster are held at once.
	workloadPage = 200
)

// A release is a version of a driver, of which only the first numbers may be given.
type release [3]int

// vAppBound holds the last releases of the drivers that search for nodes in the one vApp that their configuration
// names, by the last word of their image.
var vAppBound = map[string]release{
	"cloud-director-named-disk-csi-driver": {1, 6, 999},
	"cloud-provider-for-cloud-director":    {1, 6, 1},
}

// Drivers knows which drivers in workload clusters find nodes by their vApp. They are looked for seldom, and only for
// those who ask.
type Drivers struct {
	open   workload.Opener
	states local.Store[driverState] // by Cluster
}

// NewDrivers returns Drivers that list what runs by clients of open.
func NewDrivers(open workload.Opener) *Drivers { return &Drivers{open: open} }

// A driverState is what runs in a workload cluster.
type driverState struct {
	listing sync.Mutex // held while the cluster is inspected

	mu     sync.Mutex
	tried  time.Time
	seen   time.Time // zero: never
	legacy []string
}

// In returns the drivers that need all nodes in one vApp, as image:tag. It reports false if that is not known.
func (d *Drivers) In(ctx context.Context, cluster *clusterv1.Cluster, now time.Time) ([]string, bool) {
	if cluster == nil || !workload.Initialized(cluster) {
		return nil, true
	}
	found := d.states.Of(cluster.UID)
	if found.due(now) && found.listing.TryLock() {
		defer found.listing.Unlock()
		d.inspect(ctx, found, client.ObjectKeyFromObject(cluster), now)
	}
	return found.answer(now)
}

// Forget drops what is known of a cluster that goes.
func (d *Drivers) Forget(cluster *clusterv1.Cluster) {
	if cluster != nil {
		d.states.Drop(cluster.UID)
	}
}

// due reports whether to inspect the cluster. Drivers that should not run are checked more often: they are being
// removed.
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

// images returns the images of what runs in a workload cluster for good, in any namespace.
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
			if err != nil && !meta.IsNoMatchError(err) { // There is none of a kind that is not served.
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

// podSpecs returns what the objects of a list run, without the cloud controller manager that was installed by us: its
// image has the name of VMware's, and it finds nodes wherever they are.
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

// boundToVApp reports whether an image is that of a driver which searches for nodes in one vApp. One of an unknown
// version is.
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

// parseRelease reads the numbers of a version, of which some may be missing; what follows "-" or "+" does not count.
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
