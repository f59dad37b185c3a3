// SPDX-License-Identifier: Apache-2.0

// Package options holds the flags of the manager: their names, defaults and help, and what controller-runtime makes of
// them. It knows nothing of VMware Cloud Director and starts nothing.
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

// New adds the flags of the manager to fs. The namespace is the manager's own.
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
	fs := o.sections.FlagSet("Scope")
	fs.StringVar(&o.Namespace, "namespace", "", "The only namespace whose objects are reconciled; all if empty.")
	fs.StringVar(&o.WatchFilter, "watch-filter", "",
		fmt.Sprintf("Reconcile only objects with this value of label %s; all if empty.", clusterv1.WatchLabel))
	fs.StringVar(&o.ManagerNamespace, "manager-namespace", namespace,
		"The namespace of the lease and of the Secrets of VCDClusterIdentities.")
}

func (o *Options) addVCDFlags() {
	fs := o.sections.FlagSet("VMware Cloud Director")
	fs.Float64Var(&o.VCDRequestsPerSecond, "vcd-requests-per-second", 20,
		"The most calls per second to each site, in the long run.")
	fs.IntVar(&o.VCDBurst, "vcd-burst", 40, "How many calls to each site may be made at once after a pause.")
	fs.IntVar(&o.VCDInFlight, "vcd-in-flight", 8, "The most concurrent calls to each site.")
	fs.DurationVar(&o.VCDTaskPoll, "vcd-task-poll", 2*time.Second,
		"How often running tasks are polled, all of a session by one call.")
	fs.DurationVar(&o.VCDRequestTimeout, "vcd-request-timeout", time.Minute,
		"How long one call may take, with its answer.")
	fs.DurationVar(&o.VCDLookupTTL, "vcd-lookup-ttl", 10*time.Minute,
		"How long results of finding networks, templates and policies by name are cached.")
	fs.DurationVar(&o.VCDSessionIdle, "vcd-session-idle", 30*time.Minute,
		"How long a session stays logged in without use.")
	fs.DurationVar(&o.VCDWireLogDuration, "vcd-wire-log-duration", 10*time.Minute,
		"How long calls are logged after SIGUSR1, or until a second one. At --v=7 they always are.")
}

func (o *Options) addCloudProviderFlags() {
	fs := o.sections.FlagSet("Cloud controller manager of workload clusters")
	fs.StringVar(&o.CloudProviderRegistry, "cloud-provider-registry", addons.Registry,
		"The registry, with folder, of the image "+addons.Repository+".")
	fs.StringVar(&o.CloudProviderVersion, "cloud-provider-version", "",
		"The tag of that image; the version of this manager if empty.")
	fs.DurationVar(&o.CloudProviderSyncPeriod, "cloud-provider-sync-period", 5*time.Minute,
		"How often a healthy cloud controller manager of a workload cluster is checked.")
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
	fs.IntVar(&o.MachineConcurrency, "vcdmachine-concurrency", 20,
		"How many VCDMachines are reconciled at once. No reconcile waits for a task of VCD.")
	fs.IntVar(&o.IdentityConcurrency, "vcdidentity-concurrency", 2,
		"How many identities of each kind are reconciled at once.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute,
		"How often objects are reconciled without a change. Short periods cost calls to VCD.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 100, "The most requests per second to the Kubernetes API server.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", 200, "The most requests to the Kubernetes API server at once.")
	fs.StringSliceVar(&o.SkipCRDMigrationPhases, "skip-crd-migration-phases", nil,
		"Phases of the migration of stored objects to skip: "+
			"StorageVersionMigration, CleanupManagedFields.")
}

func (o *Options) addLeaderFlags() {
	fs := o.sections.FlagSet("Leader election")
	fs.BoolVar(&o.LeaderElect, "leader-elect", true,
		"Let only one of several managers work. Disable it only where there is never a second one.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"How long other managers wait before they take over a lease that is not renewed.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"How long the leader tries to renew the lease before it gives up.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second,
		"How long managers wait between tries to get or renew the lease.")
}

func (o *Options) addServingFlags() {
	fs := o.sections.FlagSet("Webhooks, health, metrics")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "The port of the webhook server.")
	fs.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/",
		"The folder with tls.crt and tls.key of the webhook server, which may change.")
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "The address of /healthz and /readyz; 0 disables them.")
	fs.StringVar(&o.ProfilerAddress, "profiler-address", "",
		"The address of the unprotected pprof profiler, such as localhost:6060; off if empty.")
	fs.StringVar(&o.Serving.Address, "diagnostics-address", ":8443",
		"The address of /metrics and /debug, by HTTPS, for users with the right to get these non-resource URLs; 0 "+
			"disables them.")
	fs.BoolVar(&o.Serving.Insecure, "insecure-diagnostics", false,
		"Serve /metrics by HTTP without authentication, and no /debug.")
	fs.StringVar(&o.Serving.TLSMinVersion, "tls-min-version", "VersionTLS12",
		"The oldest version of TLS of the webhook and metrics servers: VersionTLS12 or VersionTLS13.")
	fs.StringSliceVar(&o.Serving.TLSCipherSuites, "tls-cipher-suites", nil,
		"The cipher suites of TLS 1.2 of the webhook and metrics servers, by Go's names; Go's default if empty.")
	fs.Int32SliceVar(&o.Serving.TLSCurves, "tls-curve-preferences", nil,
		"The key exchanges of the webhook and metrics servers, by the numbers of Go's crypto/tls.CurveID; Go's "+
			"default if empty.")
}

func (o *Options) addLogFlags() {
	fs := o.sections.FlagSet("Logs")
	logsv1.AddFlags(o.Logs, fs)
	fs.Lookup("v").Usage = "How much is logged: 0 actions, 5 those of libraries, too, 7 every call to VCD, " +
		"without secrets."
	fs.Lookup("logging-format").Usage = "text or json."
}

// shutdownTimeout is how long reconciles may take to end. With the logout from VCD after it, it is below the grace
// period of a pod.
const shutdownTimeout = 20 * time.Second

// ControllerManager returns the options of the manager. The debug handlers, by path, are served with the metrics if
// those are protected.
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
		// The lease is released when all reconciles have ended, and the process ends then.
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
			ByObject:          held(),
		},
		// No Secret is cached; only their metadata is watched.
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

// held is what caches hold of kinds that are not held as all others: whole, without managed fields.
func held() map[client.Object]cache.ByObject {
	asIs := cache.ByObject{Transform: func(obj any) (any, error) { return obj, nil }}
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Transform: withoutContents()},
		&apiextensionsv1.CustomResourceDefinition{}: {Transform: withoutContents(crdMigrated)},
		// Cluster API's migrator of CRDs removes managed fields of old versions from what it finds in the cache.
		&infrav1.VCDCluster{}:         asIs,
		&infrav1.VCDMachine{}:         asIs,
		&infrav1.VCDIdentity{}:        asIs,
		&infrav1.VCDClusterIdentity{}: asIs,
	}
}

// crdMigrated is the annotation of CRDs by which Cluster API's migrator of CRDs knows those that it has seen.
const crdMigrated = clusterv1.CRDMigrationObservedGenerationAnnotation

// withoutContents drops from metadata what no controller reads: managed fields, and annotations other than those to
// keep. In one of them kubectl repeats all that was applied.
func withoutContents(keep ...string) func(any) (any, error) {
	return func(obj any) (any, error) {
		object, err := meta.Accessor(obj)
		if err != nil { // A tombstone has no metadata.
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

// Concurrency returns the options of a controller that reconciles n objects at once.
func Concurrency(n int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: n}
}
