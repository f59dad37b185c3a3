// Package options holds the flags of the manager: their names, defaults and help, and what controller-runtime makes of
// them. It knows nothing of VMware Cloud Director and starts nothing.
package options

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the json format of --logging-format
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// Options are the flags of the manager.
type Options struct {
	Logs    *logs.Options
	Manager flags.ManagerOptions
	Version bool

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

	ClusterConcurrency     int
	MachineConcurrency     int
	IdentityConcurrency    int
	SkipCRDMigrationPhases []string

	CloudProviderRegistry string
	CloudProviderVersion  string
	CloudProviderLook     time.Duration

	VCDRequestsPerSecond float64
	VCDBurst             int
	VCDInFlight          int
	VCDTaskPoll          time.Duration
	VCDRequestTimeout    time.Duration
	VCDLookupTTL         time.Duration
	VCDSessionIdle       time.Duration
	VCDWireLogDuration   time.Duration

	sections cliflag.NamedFlagSets
}

// New returns the flags of the manager, to be parsed by fs, which also learns to explain them. The namespace is the
// manager's own.
func New(fs *pflag.FlagSet, namespace string) *Options {
	o := &Options{Logs: logs.NewOptions()}
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	o.sections.NormalizeNameFunc = cliflag.WordSepNormalizeFunc
	o.addScopeFlags(namespace)
	o.addVCDFlags()
	o.addCloudProviderFlags()
	o.addWorkFlags()
	o.addLeaderFlags()
	o.addServingFlags()
	o.addLogFlags()
	o.sections.FlagSet("Else").BoolVar(&o.Version, "version", false, "Print the version and end.")
	for _, name := range o.sections.Order {
		fs.AddFlagSet(o.sections.FlagSets[name])
	}
	return o
}

func (o *Options) addScopeFlags(namespace string) {
	fs := o.sections.FlagSet("What is looked after")
	fs.StringVar(&o.Namespace, "namespace", "", "The only namespace whose objects are looked after; all if empty.")
	fs.StringVar(&o.WatchFilter, "watch-filter", "", fmt.Sprintf("Look only after objects with this value of label %s; after all if empty.", clusterv1.WatchLabel))
	fs.StringVar(&o.ManagerNamespace, "manager-namespace", namespace, "The namespace of the manager: that of its lease and of the Secrets of VCDClusterIdentities.")
}

func (o *Options) addVCDFlags() {
	fs := o.sections.FlagSet("VMware Cloud Director")
	fs.Float64Var(&o.VCDRequestsPerSecond, "vcd-requests-per-second", 20, "The most calls per second to each site, in the long run. Other users of the site need some, too.")
	fs.IntVar(&o.VCDBurst, "vcd-burst", 40, "How many calls to each site may be made at once after a while without any.")
	fs.IntVar(&o.VCDInFlight, "vcd-in-flight", 8, "The most calls to each site that wait for its answer at the same time.")
	fs.DurationVar(&o.VCDTaskPoll, "vcd-task-poll", 2*time.Second, "How often running tasks are asked for, all of a session by one call.")
	fs.DurationVar(&o.VCDRequestTimeout, "vcd-request-timeout", time.Minute, "How long one call may take, with its answer.")
	fs.DurationVar(&o.VCDLookupTTL, "vcd-lookup-ttl", 10*time.Minute, "How long it is remembered what networks, templates and policies were found by name.")
	fs.DurationVar(&o.VCDSessionIdle, "vcd-session-idle", 30*time.Minute, "After how long without use a session is logged out.")
	fs.DurationVar(&o.VCDWireLogDuration, "vcd-wire-log-duration", 10*time.Minute, "How long calls are logged after the signal SIGUSR1, or until a second one. At --v=7 they are logged always.")
}

func (o *Options) addCloudProviderFlags() {
	fs := o.sections.FlagSet("Cloud controller manager of workload clusters")
	fs.StringVar(&o.CloudProviderRegistry, "cloud-provider-registry", addons.Registry, "The registry, and folder in it, that workload clusters pull the image "+addons.Repository+" from.")
	fs.StringVar(&o.CloudProviderVersion, "cloud-provider-version", "", "The tag of that image; the version of this manager if empty.")
	fs.DurationVar(&o.CloudProviderLook, "cloud-provider-look", 5*time.Minute, "How often workload clusters are looked at whose cloud controller manager is as it should be.")
}

// unreleased is the tag of an image that belongs to no release.
const unreleased = "dev"

// CloudProviderImage is the whole reference of the image of the cloud controller manager.
func (o *Options) CloudProviderImage() string {
	return addons.Image(o.CloudProviderRegistry, cmp.Or(o.CloudProviderVersion, version.Version, unreleased))
}

func (o *Options) addWorkFlags() {
	fs := o.sections.FlagSet("Work")
	fs.IntVar(&o.ClusterConcurrency, "vcdcluster-concurrency", 10, "How many VCDClusters are reconciled at once.")
	fs.IntVar(&o.MachineConcurrency, "vcdmachine-concurrency", 20, "How many VCDMachines are reconciled at once. No reconcile waits for VCD to finish a task.")
	fs.IntVar(&o.IdentityConcurrency, "vcdidentity-concurrency", 2, "How many identities of each kind are reconciled at once.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute, "How often every object is looked at although nothing changed. Short periods cost calls to VCD.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 100, "The most requests per second to the Kubernetes API server.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", 200, "The most requests to the Kubernetes API server at once.")
	fs.StringSliceVar(&o.SkipCRDMigrationPhases, "skip-crd-migration-phases", nil, "Phases of the migration of stored objects to skip: StorageVersionMigration, CleanupManagedFields.")
}

func (o *Options) addLeaderFlags() {
	fs := o.sections.FlagSet("Leader election")
	fs.BoolVar(&o.LeaderElect, "leader-elect", true, "Let only one of several managers work. Turn it off only where there is never a second one.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long other managers wait before they take over from one that is silent.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the working manager tries to stay it before it gives up.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "How long managers wait between tries to become the working one.")
}

func (o *Options) addServingFlags() {
	fs := o.sections.FlagSet("Webhooks, health, metrics")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "The port of the webhook server.")
	fs.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "The folder with tls.crt and tls.key of the webhook server. They are read again when they change.")
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "The address of /healthz and /readyz; 0 turns them off.")
	fs.StringVar(&o.ProfilerAddress, "profiler-address", "", "The address of the pprof profiler without protection, such as localhost:6060; off if empty.")
	flags.AddManagerOptions(fs, &o.Manager)
	for name, meaning := range map[string]string{
		"diagnostics-address":   "The address of /metrics and /debug, by HTTPS; 0 turns them off. Who asks needs the right to get that path (a non-resource URL).",
		"insecure-diagnostics":  "Serve /metrics by HTTP to everybody, and no /debug.",
		"tls-min-version":       "The oldest version of TLS that the webhook and metrics servers speak: VersionTLS12 or VersionTLS13.",
		"tls-cipher-suites":     "The cipher suites of TLS 1.2 that the webhook and metrics servers take, by Go's names; Go's choice if empty.",
		"tls-curve-preferences": "The key exchanges that the webhook and metrics servers take, by the numbers of Go's crypto/tls.CurveID; Go's choice if empty.",
	} {
		fs.Lookup(name).Usage = meaning
	}
}

func (o *Options) addLogFlags() {
	fs := o.sections.FlagSet("Logs")
	logsv1.AddFlags(o.Logs, fs)
	fs.Lookup("v").Usage = "How much is logged: 0 what is done, 5 what libraries do, too, 7 every call to VCD, without secrets."
	fs.Lookup("logging-format").Usage = "text or json."
}

// shutdownTimeout is how long reconciles may take to end. With the logging out of VCD after it, it is less than a pod is given.
const shutdownTimeout = 20 * time.Second

// ControllerManager returns what the manager is made with. The handlers, by path, are served beside the metrics where those
// are protected.
func (o *Options) ControllerManager(scheme *runtime.Scheme, debug map[string]http.Handler) (ctrl.Options, error) {
	tlsOptions, metrics, err := flags.GetManagerOptions(o.Manager)
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("reading the flags: %w", err)
	}
	if o.Manager.InsecureDiagnostics {
		debug = nil // who may ask cannot be known
	}
	maps.Copy(metrics.ExtraHandlers, debug)
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
		// The lease is given back when all reconciles have ended, and the process ends with it.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.RetryPeriod,
		HealthProbeBindAddress:        o.HealthAddr,
		PprofBindAddress:              o.ProfilerAddress,
		Metrics:                       *metrics,
		Cache: cache.Options{
			DefaultNamespaces: namespaces, SyncPeriod: &o.SyncPeriod,
			ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Transform: withoutContents}},
		},
		// No Secret is ever held in memory; what is watched of them is their metadata.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: o.WebhookPort, CertDir: o.WebhookCertDir, TLSOpts: tlsOptions,
		}),
	}, nil
}

// withoutContents drops from the metadata of a Secret what nobody here reads: annotations, in one of which kubectl repeats all that
// was applied, and who wrote which field.
func withoutContents(obj any) (any, error) {
	if secret, err := meta.Accessor(obj); err == nil { // What ends a watch has none.
		secret.SetAnnotations(nil)
		secret.SetManagedFields(nil)
	}
	return obj, nil
}

// Concurrency returns the options of a controller that reconciles n objects at once.
func Concurrency(n int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: n}
}
