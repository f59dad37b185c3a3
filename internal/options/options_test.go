// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestDefaultsAreSafe(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	g.Expect(fs.Parse(nil)).To(Succeed())

	m, err := o.ControllerManager(runtime.NewScheme(), nil)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.LeaderElection).To(BeTrue())
	g.Expect(m.LeaderElectionNamespace).To(Equal("capvcd-system"))
	g.Expect(*m.GracefulShutdownTimeout).To(BeNumerically("<=", 25*time.Second),
		"sessions are logged out before the pod is killed")
	g.Expect(m.LeaderElectionReleaseOnCancel).To(BeTrue(), "the next manager need not wait for the lease to expire")
	g.Expect(m.Metrics.SecureServing).To(BeTrue())
	g.Expect(m.Metrics.FilterProvider).NotTo(BeNil(), "callers are authenticated and authorized")
	g.Expect(m.Cache.DefaultNamespaces).To(BeEmpty())
	g.Expect(*m.Cache.SyncPeriod).To(Equal(10 * time.Minute))
	g.Expect(m.PprofBindAddress).To(BeEmpty())
}

func TestSecretDataIsNotCached(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	g.Expect(fs.Parse([]string{"--namespace=team-a"})).To(Succeed())
	m, err := o.ControllerManager(runtime.NewScheme(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	applied := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name:            "credentials",
		Labels:          map[string]string{"of": "a"},
		Finalizers:      []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
		Annotations:     map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"password":"cGFzc3dvcmQ="}}`},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}

	var held any
	for kind, of := range m.Cache.ByObject {
		if _, ok := kind.(*corev1.Secret); ok {
			held, err = of.Transform(applied)
		}
	}

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(held).To(Equal(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name:            "credentials",
		Labels:          map[string]string{"of": "a"},
		Finalizers:      []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
	}}))
}

func TestCachesDropManagedFieldsExceptThoseToMigrate(t *testing.T) {
	o := New(pflag.NewFlagSet("manager", pflag.ContinueOnError), "capvcd-system")
	m, err := o.ControllerManager(runtime.NewScheme(), nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	tests := []struct {
		kind client.Object
		want types.GomegaMatcher
	}{
		{&clusterv1.Machine{}, BeEmpty()},
		{&apiextensionsv1.CustomResourceDefinition{}, BeEmpty()},
		{&infrav1.VCDMachine{}, HaveLen(1)},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%T", tt.kind), func(t *testing.T) {
			g := NewWithT(t)
			transform := m.Cache.DefaultTransform
			for kind, of := range m.Cache.ByObject {
				if reflect.TypeOf(kind) == reflect.TypeOf(tt.kind) {
					transform = of.Transform
				}
			}
			tt.kind.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
			tt.kind.SetAnnotations(map[string]string{clusterv1.CRDMigrationObservedGenerationAnnotation: "1"})

			got, err := transform(tt.kind)

			g.Expect(err).NotTo(HaveOccurred())
			object, ok := got.(client.Object)
			g.Expect(ok).To(BeTrue())
			g.Expect(object.GetManagedFields()).To(tt.want)
			g.Expect(object.GetAnnotations()).To(HaveLen(1), "the managed fields identify a migrated CRD")
		})
	}
}

func TestNamespaceLimitsTheCache(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	g.Expect(fs.Parse([]string{"--namespace=team-a", "--vcdmachine-concurrency=3"})).To(Succeed())

	m, err := o.ControllerManager(runtime.NewScheme(), nil)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Cache.DefaultNamespaces).To(HaveKey("team-a"))
	g.Expect(Concurrency(o.MachineConcurrency).MaxConcurrentReconciles).To(Equal(3))
}

func TestInvalidTLSVersionIsRejected(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	g.Expect(fs.Parse([]string{"--tls-min-version=VersionTLS99"})).To(Succeed())

	_, err := o.ControllerManager(runtime.NewScheme(), nil)

	g.Expect(err).To(HaveOccurred())
}

func TestEveryFlagIsDocumented(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	New(fs, "capvcd-system")

	fs.VisitAll(func(f *pflag.Flag) { g.Expect(f.Usage).NotTo(BeEmpty(), f.Name) })
}

func TestDebugHandlersAreServedOnlyWhereProtected(t *testing.T) {
	for insecure, served := range map[string]bool{"true": false, "false": true} {
		g := NewWithT(t)
		fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
		o := New(fs, "capvcd-system")
		g.Expect(fs.Parse([]string{"--insecure-diagnostics=" + insecure})).To(Succeed())

		m, err := o.ControllerManager(runtime.NewScheme(), map[string]http.Handler{"/debug/x": http.NotFoundHandler()})

		g.Expect(err).NotTo(HaveOccurred())
		_, found := m.Metrics.ExtraHandlers["/debug/x"]
		g.Expect(found).To(Equal(served))
	}
}

func TestHelpFitsTheWidthOfATerminal(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	var help strings.Builder

	g.Expect(o.WriteHelp(&help)).To(Succeed())

	fs.VisitAll(func(f *pflag.Flag) { g.Expect(help.String()).To(ContainSubstring("--" + f.Name)) })
	for line := range strings.Lines(help.String()) {
		g.Expect(len(line)).To(BeNumerically("<=", width+1), line)
	}
	g.Expect(help.String()).To(ContainSubstring("(default 8)"))
}

func TestFlagsAreValidated(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{name: "the defaults are valid"},
		{
			name: "disabled servers",
			args: []string{"--diagnostics-address=0", "--health-addr=0", "--profiler-address="},
		},
		{name: "underscores as in CAPVCD's flags", args: []string{"--vcd_burst=3"}},
		{name: "a rate of zero", args: []string{"--vcd-requests-per-second=0"}, want: []string{"--vcd-requests-per-second: is 0"}},
		{name: "no workers", args: []string{"--vcdmachine-concurrency=0"}, want: []string{"--vcdmachine-concurrency"}},
		{name: "a negative limit", args: []string{"--vcd-in-flight=-1"}, want: []string{"--vcd-in-flight"}},
		{
			name: "continuous polling",
			args: []string{"--vcd-task-poll=1ms"},
			want: []string{"--vcd-task-poll: is 1ms, but must be from 500ms to 1m0s"},
		},
		{name: "a call log for too long", args: []string{"--vcd-wire-log-duration=48h"}, want: []string{"--vcd-wire-log-duration"}},
		{
			name: "a lease shorter than its renewal deadline",
			args: []string{"--leader-elect-lease-duration=5s"},
			want: []string{"--leader-elect-lease-duration", "--leader-elect-renew-deadline (10s)"},
		},
		{name: "a renewal deadline without a second attempt", args: []string{"--leader-elect-retry-period=9s"}, want: []string{"1.2 times"}},
		{name: "no retry", args: []string{"--leader-elect-retry-period=0s"}, want: []string{"--leader-elect-retry-period"}},
		{name: "an invalid namespace", args: []string{"--namespace=a/b"}, want: []string{"--namespace"}},
		{name: "no separate namespace", args: []string{"--manager-namespace="}, want: []string{"--manager-namespace"}},
		{name: "an invalid label", args: []string{"--watch-filter=a b"}, want: []string{"--watch-filter"}},
		{name: "an unknown phase", args: []string{"--skip-crd-migration-phases=All"}, want: []string{"CleanupManagedFields"}},
		{name: "an invalid port", args: []string{"--webhook-port=0"}, want: []string{"--webhook-port"}},
		{name: "an address without a port", args: []string{"--health-addr=localhost"}, want: []string{"--health-addr"}},
		{name: "an unknown TLS version", args: []string{"--tls-min-version=VersionTLS99"}, want: []string{"--tls-*"}},
		{
			name: "several problems at once",
			args: []string{"--vcd-burst=0", "--kube-api-qps=0", "--sync-period=0s"},
			want: []string{"--vcd-burst", "--kube-api-qps", "--sync-period"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
			o := New(fs, "capvcd-system")
			g.Expect(fs.Parse(tt.args)).To(Succeed())

			err := o.Validate()

			if tt.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, want := range tt.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
}
