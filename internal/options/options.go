// Package options holds the flags of the manager: their names, defaults and help, and what controller-runtime makes of
// them. It knows nothing of VMware Cloud Director and starts nothing.
package options

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the json format of --logging-format
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Options are the flags of the manager.
type Options struct {
	Logs    *logs.Options
	Manager flags.ManagerOptions

	LeaderElect      bool
	LeaseDuration    time.Duration
	RenewDeadline    time.Duration
	RetryPeriod      time.Duration
	Namespace        string
	WatchFilter      string
	ManagerNamespace string
	SyncPeriod       time.Duration
	HealthAddr       string
	ProfilerAddress  string
	WebhookPort      int
	WebhookCertDir   string
	KubeAPIQPS       float32
	KubeAPIBurst     int

	ClusterConcurrency  int
	MachineConcurrency  int
	IdentityConcurrency int

	VCDRequestsPerSecond   float64
	VCDBurst               int
	VCDTaskPoll            time.Duration
	SkipCRDMigrationPhases []string
}

// New returns the flags of the manager, to be parsed by fs. The namespace is the manager's own.
func New(fs *pflag.FlagSet, namespace string) *Options {
	o := &Options{Logs: logs.NewOptions()}
	logsv1.AddFlags(o.Logs, fs)
	flags.AddManagerOptions(fs, &o.Manager)
	o.addManagerFlags(fs, namespace)
	o.addVCDFlags(fs)
	return o
}

func (o *Options) addManagerFlags(fs *pflag.FlagSet, namespace string) {
	fs.BoolVar(&o.LeaderElect, "leader-elect", true, "Let only one of several managers work. Turn it off only where there is never a second one.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long other managers wait before they take over from one that is silent.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the working manager tries to stay it before it gives up.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "How long managers wait between tries to become the working one.")
	fs.StringVar(&o.Namespace, "namespace", "", "The only namespace whose objects are looked after; all if empty.")
	fs.StringVar(&o.WatchFilter, "watch-filter", "", fmt.Sprintf("Look only after objects with this value of label %s; after all if empty.", clusterv1.WatchLabel))
	fs.StringVar(&o.ManagerNamespace, "manager-namespace", namespace, "The namespace of the manager: that of its lease and of the Secrets of VCDClusterIdentities.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute, "How often every object is looked at although nothing changed. Short periods cost calls to VCD.")
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "The address of /healthz and /readyz.")
	fs.StringVar(&o.ProfilerAddress, "profiler-address", "", "The address of the pprof profiler, such as localhost:6060; off if empty.")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "The port of the webhook server.")
	fs.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "The folder with tls.crt and tls.key of the webhook server.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 100, "The most requests per second to the Kubernetes API server.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", 200, "The most requests to the Kubernetes API server at once.")
	fs.IntVar(&o.ClusterConcurrency, "vcdcluster-concurrency", 10, "How many VCDClusters are reconciled at once.")
	fs.IntVar(&o.MachineConcurrency, "vcdmachine-concurrency", 20, "How many VCDMachines are reconciled at once. No reconcile waits for VCD to finish a task.")
	fs.IntVar(&o.IdentityConcurrency, "vcdidentity-concurrency", 2, "How many identities of each kind are reconciled at once.")
	fs.StringSliceVar(&o.SkipCRDMigrationPhases, "skip-crd-migration-phases", nil, "Phases of the migration of stored objects to skip: StorageVersionMigration, CleanupManagedFields.")
}

func (o *Options) addVCDFlags(fs *pflag.FlagSet) {
	fs.Float64Var(&o.VCDRequestsPerSecond, "vcd-requests-per-second", 20, "The most requests per second to each VMware Cloud Director.")
	fs.IntVar(&o.VCDBurst, "vcd-burst", 40, "The most requests to each VMware Cloud Director at once.")
	fs.DurationVar(&o.VCDTaskPoll, "vcd-task-poll", 2*time.Second, "How often running tasks are asked for, all of a session by one request.")
}

// ControllerManager returns what the manager is made with.
func (o *Options) ControllerManager(scheme *runtime.Scheme) (ctrl.Options, error) {
	tlsOptions, metrics, err := flags.GetManagerOptions(o.Manager)
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("reading the flags: %w", err)
	}
	var namespaces map[string]cache.Config
	if o.Namespace != "" {
		namespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return ctrl.Options{
		Scheme:                     scheme,
		Controller:                 config.Controller{CacheSyncTimeout: 5 * time.Minute, ReconciliationTimeout: 5 * time.Minute},
		LeaderElection:             o.LeaderElect,
		LeaderElectionID:           "controller-leader-election-capvcd",
		LeaderElectionNamespace:    o.ManagerNamespace,
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		LeaseDuration:              &o.LeaseDuration,
		RenewDeadline:              &o.RenewDeadline,
		RetryPeriod:                &o.RetryPeriod,
		HealthProbeBindAddress:     o.HealthAddr,
		PprofBindAddress:           o.ProfilerAddress,
		Metrics:                    *metrics,
		Cache:                      cache.Options{DefaultNamespaces: namespaces, SyncPeriod: &o.SyncPeriod},
		// No Secret is ever held in memory; what is watched of them is their metadata.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: o.WebhookPort, CertDir: o.WebhookCertDir, TLSOpts: tlsOptions,
		}),
	}, nil
}

// Concurrency returns the options of a controller that reconciles n objects at once.
func Concurrency(n int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: n}
}
