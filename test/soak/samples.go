// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A sample is what was measured in one simulated hour.
type sample struct {
	At       time.Duration
	Clusters int
	VMs      int
	Actions  int     // of the plan
	Calls    int     // to all sites
	Events   int     // that were created
	Managers float64 // resident memory of all managers, in MiB
	CCMs     float64 // resident memory of the largest CCM, in MiB
	Load     string
}

// A meter takes samples.
type meter struct {
	samples []sample
	calls   int
	actions int
	since   time.Time
}

// measure takes a sample.
func (w *world) measure(ctx context.Context, m *meter, actions int) error {
	events := &metav1.PartialObjectMetadataList{}
	events.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("EventList"))
	clusters := &metav1.PartialObjectMetadataList{}
	clusters.SetGroupVersionKind(clusterKind)
	for _, list := range []client.ObjectList{events, clusters} {
		if err := w.client.List(ctx, list); err != nil {
			return fmt.Errorf("taking a sample: %w", err)
		}
	}
	s := sample{At: w.now(), Clusters: len(clusters.Items), Actions: actions - m.actions, Calls: w.calls() - m.calls}
	for _, site := range w.sites {
		s.VMs += len(site.State().VMs)
	}
	for i := range events.Items {
		if events.Items[i].CreationTimestamp.After(m.since) {
			s.Events++
		}
	}
	for _, manager := range w.managers {
		s.Managers += w.resident(manager.Name())
	}
	w.mu.Lock()
	for name := range w.ccms {
		s.CCMs = max(s.CCMs, w.resident("ccm-"+name))
	}
	w.mu.Unlock()
	load, _ := os.ReadFile("/proc/loadavg")
	s.Load, _, _ = strings.Cut(string(load), " ")
	m.samples = append(m.samples, s)
	m.calls += s.Calls
	m.actions = actions
	m.since = time.Now()
	return nil
}

// resident returns the resident memory of a program of the stack, in MiB, or 0 while it does not run.
func (w *world) resident(name string) float64 {
	pids, err := os.ReadFile(filepath.Join(w.dir, "pids", name+".pid")) //nolint:gosec // written by the framework
	if err != nil {
		return 0
	}
	pid, _, _ := strings.Cut(string(pids), "\n")
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status")) //nolint:gosec // of the kernel
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kib / 1024
		}
	}
	return 0
}

// table prints samples.
func table(out io.Writer, samples []sample) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "time\tclusters\tVMs\tactions\tcalls\tevents\tmanagers MiB\tlargest CCM MiB\tload\t")
	for _, s := range samples {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.0f\t%.0f\t%s\t\n", hours(s.At), s.Clusters, s.VMs, s.Actions, s.Calls,
			s.Events, s.Managers, s.CCMs, s.Load)
	}
	return w.Flush()
}

// A limit is the permitted growth of a measure: by a factor, and by an amount in addition.
type limit struct {
	name   string
	value  func(sample) float64
	factor float64
	slack  float64
}

// limits returns what must not grow. Calls and events depend on the number of actions, which is about the same in each
// hour.
func limits() []limit {
	return []limit{
		{"memory of the managers (MiB)", func(s sample) float64 { return s.Managers }, 1.25, 40},
		{"memory of the largest CCM (MiB)", func(s sample) float64 { return s.CCMs }, 1.25, 20},
		{"calls per hour", func(s sample) float64 { return float64(s.Calls) }, 1.5, 500},
		{"events per hour", func(s sample) float64 { return float64(s.Events) }, 1.5, 200},
	}
}

// minSamples is the number of samples from which growth is judged.
const minSamples = 8

// growth compares the last quarter of the samples with the second one: the first contains the creation of all clusters.
// It returns a description of each measure that grew beyond its limit.
func growth(samples []sample) []string {
	if len(samples) < minSamples {
		return nil
	}
	quarter := len(samples) / 4
	early := samples[quarter : 2*quarter]
	late := samples[len(samples)-quarter:]
	var out []string
	for _, l := range limits() {
		before := mean(early, l.value)
		after := mean(late, l.value)
		if bound := before*l.factor + l.slack; after > bound {
			out = append(out, fmt.Sprintf("%s grew from %.0f to %.0f, more than %.0f", l.name, before, after, bound))
		}
	}
	return out
}

func mean(samples []sample, value func(sample) float64) float64 {
	total := 0.0
	for _, s := range samples {
		total += value(s)
	}
	return total / float64(len(samples))
}
