// SPDX-License-Identifier: Apache-2.0

// Package options defines the flags of the manager, with their names, defaults and help, and converts them to options
// of controller-runtime. It is independent of VMware Cloud Director and starts nothing.
package options

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the json format of --logging-format
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/diagnostics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// Options are the flags of the manager.
type Options struct {
	Logs    *logs.Options
	Serving diagnostics.Serving
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
	InPlaceUpdates         bool

	CloudProviderRegistry   string
	CloudProviderVersion    string
	CloudProviderSyncPeriod time.Duration

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

// New adds the flags of the manager to fs. namespace is the namespace in which the manager runs.
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
	o.sections.FlagSet("Other").BoolVar(&o.Version, "version", false, "Print the version and exit.")
	for _, name := range o.sections.Order {
		fs.AddFlagSet(o.sections.FlagSets[name])
	}
	return o
}

func (o *Options) addScopeFlags(namespace string) {
	fs := o.sections.FlagSet("Scope")
	fs.StringVar(&o.Namespace, "namespace", "", "Namespace whose objects are reconciled; all namespaces if empty.")
	fs.StringVar(&o.WatchFilter, "watch-filter", "",
		fmt.Sprintf("Value of the label %s; only objects with it are reconciled. All objects if empty.", clusterv1.WatchLabel))
	fs.StringVar(&o.ManagerNamespace, "manager-namespace", namespace,
		"Namespace of the lease and of the Secrets of VCDClusterIdentities.")
}

func (o *Options) addVCDFlags() {
	fs := o.sections.FlagSet("VMware Cloud Director")
	fs.Float64Var(&o.VCDRequestsPerSecond, "vcd-requests-per-second", 20,
		"Maximum rate of requests to each site, per second.")
	fs.IntVar(&o.VCDBurst, "vcd-burst", 40, "Maximum burst of requests to each site.")
	fs.IntVar(&o.VCDInFlight, "vcd-in-flight", 8, "Maximum number of concurrent requests to each site.")
	fs.DurationVar(&o.VCDTaskPoll, "vcd-task-poll", 2*time.Second,
		"Interval for polling running tasks, with one request per session.")
	fs.DurationVar(&o.VCDRequestTimeout, "vcd-request-timeout", time.Minute,
		"Timeout of a request, including its response.")
	fs.DurationVar(&o.VCDLookupTTL, "vcd-lookup-ttl", 10*time.Minute,
		"Cache duration for lookups of networks, templates and policies by name.")
	fs.DurationVar(&o.VCDSessionIdle, "vcd-session-idle", 30*time.Minute,
		"Idle time after which a session is logged out.")
	fs.DurationVar(&o.VCDWireLogDuration, "vcd-wire-log-duration", 10*time.Minute,
		"Duration of the request log after the signal SIGUSR1; a second signal ends it. At --v=7 all requests are logged.")
}

func (o *Options) addCloudProviderFlags() {
	fs := o.sections.FlagSet("Cloud controller manager of workload clusters")
	fs.StringVar(&o.CloudProviderRegistry, "cloud-provider-registry", addons.Registry,
		"Registry and path of the image "+addons.Repository+".")
	fs.StringVar(&o.CloudProviderVersion, "cloud-provider-version", "",
		"Tag of this image; the version of the manager if empty.")
	fs.DurationVar(&o.CloudProviderSyncPeriod, "cloud-provider-sync-period", 5*time.Minute,
		"Interval for checking a healthy cloud controller manager in a workload cluster.")
}

// unreleased is the tag of images that are not part of a release.
const unreleased = "dev"

// CloudProviderImage returns the full image reference of the cloud controller manager.
func (o *Options) CloudProviderImage() string {
	return addons.Image(o.CloudProviderRegistry, cmp.Or(o.CloudProviderVersion, version.Version, unreleased))
}

func (o *Options) addWorkFlags() {
	fs := o.sections.FlagSet("Reconciliation")
	fs.IntVar(&o.ClusterConcurrency, "vcdcluster-concurrency", 10, "Number of VCDClusters that are reconciled concurrently.")
	fs.IntVar(&o.MachineConcurrency, "vcdmachine-concurrency", 20,
		"Number of VCDMachines that are reconciled concurrently. Reconciles do not wait for VCD tasks.")
	fs.IntVar(&o.IdentityConcurrency, "vcdidentity-concurrency", 2,
		"Number of identities of each kind that are reconciled concurrently.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute,
		"Interval for reconciling unchanged objects, except VCDMachines that are ready, which are reconciled every five minutes. A short interval increases the number of requests to VCD.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 100, "Maximum rate of requests to the Kubernetes API server, per second.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", 200, "Maximum burst of requests to the Kubernetes API server.")
	fs.BoolVar(&o.InPlaceUpdates, "in-place-updates", false,
		"Serve Cluster API's hooks for in-place updates, so that CPUs, memory and disks of machines change without replacement. Requires an ExtensionConfig, and the feature gates RuntimeSDK and InPlaceUpdates of Cluster API.")
	fs.StringSliceVar(&o.SkipCRDMigrationPhases, "skip-crd-migration-phases", nil,
		"Phases of the migration of stored objects to skip: StorageVersionMigration, CleanupManagedFields.")
}

func (o *Options) addLeaderFlags() {
	fs := o.sections.FlagSet("Leader election")
	fs.BoolVar(&o.LeaderElect, "leader-elect", true,
		"Enable leader election, so that only one manager is active. Disable it only if there is never a second manager.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"Time that other managers wait before they acquire a lease that is not renewed.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"Time that the leader retries to renew the lease before it gives up leadership.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second,
		"Time between attempts to acquire or renew the lease.")
}

func (o *Options) addServingFlags() {
	fs := o.sections.FlagSet("Webhooks, health, metrics")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "Port of the webhook server.")
	fs.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/",
		"Directory with tls.crt and tls.key of the webhook server; changed files are reloaded.")
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "Address of /healthz and /readyz; 0 disables them.")
	fs.StringVar(&o.ProfilerAddress, "profiler-address", "",
		"Address of the pprof profiler, which has no authentication, such as localhost:6060; disabled if empty.")
	fs.StringVar(&o.Serving.Address, "diagnostics-address", ":8443",
		"HTTPS address of /metrics and /debug, for users who may get these non-resource URLs; 0 disables them.")
	fs.BoolVar(&o.Serving.Insecure, "insecure-diagnostics", false,
		"Serve /metrics over HTTP without authentication, and disable /debug.")
	fs.StringVar(&o.Serving.TLSMinVersion, "tls-min-version", "VersionTLS12",
		"Minimum TLS version of the webhook and metrics servers: VersionTLS12 or VersionTLS13.")
	fs.StringSliceVar(&o.Serving.TLSCipherSuites, "tls-cipher-suites", nil,
		"TLS 1.2 cipher suites of the webhook and metrics servers, by their names in Go; the defaults of Go if empty.")
	fs.Int32SliceVar(&o.Serving.TLSCurves, "tls-curve-preferences", nil,
		"Key exchanges of the webhook and metrics servers, by number of crypto/tls.CurveID in Go; the defaults of Go if empty.")
}

func (o *Options) addLogFlags() {
	fs := o.sections.FlagSet("Logs")
	logsv1.AddFlags(o.Logs, fs)
	fs.Lookup("v").Usage = "Log level: 0 for actions, 5 also for those of libraries, 7 for all requests to VCD, without secrets."
	fs.Lookup("logging-format").Usage = "Log format: text or json."
}

// shutdownTimeout is the time for running reconciles to finish. Together with the logout from VCD after it, it is
// shorter than the grace period of a pod.
const shutdownTimeout = 20 * time.Second

// ControllerManager returns the options of the manager. The debug handlers, by path, are served with the metrics if the
// metrics are protected.
func (o *Options) ControllerManager(scheme *runtime.Scheme, debug map[string]http.Handler) (ctrl.Options, error) {
	tlsOptions, err := o.Serving.TLS()
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("reading the flags: %w", err)
	}
	var namespaces map[string]cache.Config
	if o.Namespace != "" {
		namespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return ctrl.Options{
		Scheme: scheme,
		Controller: config.Controller{
			CacheSyncTimeout:      5 * time.Minute,
			ReconciliationTimeout: 5 * time.Minute,
		},
		LeaderElection:             o.LeaderElect,
		LeaderElectionID:           "controller-leader-election-capvcd",
		LeaderElectionNamespace:    o.ManagerNamespace,
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		// The lease is released after all reconciles have finished, and then the process exits.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.RetryPeriod,
		HealthProbeBindAddress:        o.HealthAddr,
		PprofBindAddress:              o.ProfilerAddress,
		Metrics:                       o.Serving.Metrics(tlsOptions, debug),
		Cache: cache.Options{
			DefaultNamespaces: namespaces,
			SyncPeriod:        &o.SyncPeriod,
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject:          cacheExceptions(),
		},
		// Secrets are not cached; only their metadata are watched.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{},
			&corev1.ConfigMap{},
		}}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Port:    o.WebhookPort,
			CertDir: o.WebhookCertDir,
			TLSOpts: tlsOptions,
		}),
	}, nil
}

// cacheExceptions returns the cache options of kinds that differ from the default, which is the whole object without
// managed fields.
func cacheExceptions() map[client.Object]cache.ByObject {
	asIs := cache.ByObject{Transform: func(obj any) (any, error) { return obj, nil }}
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Transform: withoutContents()},
		&apiextensionsv1.CustomResourceDefinition{}: {Transform: withoutContents(crdMigrated)},
		// Cluster API's CRD migrator removes managed fields of old versions from cached objects, so they keep their
		// managed fields.
		&infrav1.VCDCluster{}:         asIs,
		&infrav1.VCDMachine{}:         asIs,
		&infrav1.VCDIdentity{}:        asIs,
		&infrav1.VCDClusterIdentity{}: asIs,
	}
}

// crdMigrated is the annotation with which Cluster API's CRD migrator marks CRDs that it has processed.
const crdMigrated = clusterv1.CRDMigrationObservedGenerationAnnotation

// withoutContents returns a transform that removes metadata that no controller reads: managed fields, and all
// annotations except those to keep. One annotation of kubectl repeats the whole applied object.
func withoutContents(keep ...string) func(any) (any, error) {
	return func(obj any) (any, error) {
		object, err := meta.Accessor(obj)
		if err != nil { // a tombstone has no metadata
			return obj, nil //nolint:nilerr // It stays as it is.
		}
		var annotations map[string]string
		for _, key := range keep {
			if value, ok := object.GetAnnotations()[key]; ok {
				annotations = map[string]string{key: value}
			}
		}
		object.SetAnnotations(annotations)
		object.SetManagedFields(nil)
		return obj, nil
	}
}

// Concurrency returns the options of a controller that reconciles n objects concurrently.
func Concurrency(n int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: n}
}
