package options

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestDefaultsAreSafe(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	g.Expect(fs.Parse(nil)).To(Succeed())

	m, err := o.ControllerManager(runtime.NewScheme())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.LeaderElection).To(BeTrue())
	g.Expect(m.LeaderElectionNamespace).To(Equal("capvcd-system"))
	g.Expect(m.Metrics.SecureServing).To(BeTrue())
	g.Expect(m.Cache.DefaultNamespaces).To(BeEmpty())
	g.Expect(*m.Cache.SyncPeriod).To(Equal(10 * time.Minute))
	g.Expect(m.PprofBindAddress).To(BeEmpty())
}

func TestNamespaceLimitsWhatIsWatched(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	g.Expect(fs.Parse([]string{"--namespace=team-a", "--vcdmachine-concurrency=3"})).To(Succeed())

	m, err := o.ControllerManager(runtime.NewScheme())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Cache.DefaultNamespaces).To(HaveKey("team-a"))
	g.Expect(Concurrency(o.MachineConcurrency).MaxConcurrentReconciles).To(Equal(3))
}

func TestWrongTLSVersionIsRefused(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := New(fs, "capvcd-system")
	g.Expect(fs.Parse([]string{"--tls-min-version=VersionTLS99"})).To(Succeed())

	_, err := o.ControllerManager(runtime.NewScheme())

	g.Expect(err).To(HaveOccurred())
}

func TestEveryFlagIsExplained(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	New(fs, "capvcd-system")

	fs.VisitAll(func(f *pflag.Flag) { g.Expect(f.Usage).NotTo(BeEmpty(), f.Name) })
}
