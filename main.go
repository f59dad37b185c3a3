// SPDX-License-Identifier: Apache-2.0

// Command manager runs the controllers of the Cluster API provider for VMware Cloud Director.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/conversion"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/inplace"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/options"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/webhooks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/wirelog"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions;customresourcedefinitions/status,verbs=patch,resourceNames=vcdclusters.infrastructure.cluster.x-k8s.io;vcdclustertemplates.infrastructure.cluster.x-k8s.io;vcdmachines.infrastructure.cluster.x-k8s.io;vcdmachinetemplates.infrastructure.cluster.x-k8s.io;vcdidentities.infrastructure.cluster.x-k8s.io;vcdclusteridentities.infrastructure.cluster.x-k8s.io;vcdfailuredomains.infrastructure.cluster.x-k8s.io;vcddeploymentzones.infrastructure.cluster.x-k8s.io;vcdremediations.infrastructure.cluster.x-k8s.io;vcdremediationtemplates.infrastructure.cluster.x-k8s.io
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclustertemplates;vcdmachinetemplates;vcdremediations;vcdremediationtemplates;vcdfailuredomains;vcddeploymentzones,verbs=get;list;patch

const (
	defaultNamespace = "capvcd-system"
	// logoutTimeout is the time limit for logging out of all sessions on exit.
	logoutTimeout = 5 * time.Second
	// templateConcurrency is the number of VCDMachineTemplates, zones, failure domains or remediations that are
	// reconciled concurrently. There are few of them, and nothing waits long for them.
	templateConcurrency = 2
	// podProxyConcurrency is the number of clusters whose pod proxy policies or serving certificates are reconciled
	// concurrently.
	podProxyConcurrency = 2
	// handoverConcurrency is the number of Machines whose virtual IPs are moved concurrently. Each may wait for a workload
	// cluster that does not respond.
	handoverConcurrency = 10
	// rdeConcurrency is the number of runtime defined entities that are written concurrently. It is lower than the
	// number of unanswered requests after which a site counts as unavailable.
	rdeConcurrency = 2
)

func main() {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = defaultNamespace
	}
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o := options.New(fs, namespace)
	if status, end := parse(fs, o, os.Args[1:], os.Stdout, os.Stderr); end {
		os.Exit(status)
	}
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options.Options) (rerr error) {
	ctrl.SetLogger(klog.Background())
	klog.InfoS("Starting the manager", "version", version.Long())
	pool := vcd.NewPool(vcd.PoolOptions{
		Metrics:           metrics.Registry,
		UserAgent:         "cluster-api-provider-vcd/" + version.String(),
		RequestsPerSecond: o.VCDRequestsPerSecond,
		Burst:             o.VCDBurst,
		InFlight:          o.VCDInFlight,
		TaskPoll:          o.VCDTaskPoll,
		RequestTimeout:    o.VCDRequestTimeout,
		LookupTTL:         o.VCDLookupTTL,
		IdleTimeout:       o.VCDSessionIdle,
	})
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutTimeout)
		defer cancel()
		rerr = errors.Join(rerr, pool.Close(closing))
	}()
	wire := wirelog.New(klog.Background().WithName("vcd"), wirelog.Wanted(os.Getenv), pool.SetWireLog, clock.RealClock{})
	wire.OnSignal(ctx, o.VCDWireLogDuration)
	managerOptions, err := o.ControllerManager(newScheme(),
		map[string]http.Handler{wirelog.Path: wire.Handler(o.VCDWireLogDuration)})
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the Kubernetes API server: %w", err)
	}
	config.QPS = o.KubeAPIQPS
	config.Burst = o.KubeAPIBurst
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	for _, c := range controllers.Collectors(mgr.GetClient()) {
		if err := metrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	if err := setUp(ctx, mgr, o, pool); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme,
		ipamv1.AddToScheme, infrav1.AddToScheme, conversion.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// setUp registers all controllers, webhooks and checks with the manager.
func setUp(ctx context.Context, mgr manager.Manager, o *options.Options, pool *vcd.Pool) error {
	c := mgr.GetClient()
	live := mgr.GetAPIReader()
	r := controllers.New(controllers.Options{
		Client:           c,
		Live:             live,
		Metadata:         mgr.GetCache(),
		Pool:             pool,
		Recorder:         mgr.GetEventRecorder("capvcd-controller-manager"),
		Namespace:        o.ManagerNamespace,
		WatchFilterValue: o.WatchFilter,
	})
	r.CloudProvider.Image = o.CloudProviderImage()
	r.CloudProvider.SyncPeriod = o.CloudProviderSyncPeriod
	r.Machine.InPlaceUpdates = o.InPlaceUpdates
	r.PodProxy.SyncPeriod = o.CloudProviderSyncPeriod
	var skip []crdmigrator.Phase
	for _, phase := range o.SkipCRDMigrationPhases {
		skip = append(skip, crdmigrator.Phase(phase))
	}
	migrator := &crdmigrator.CRDMigrator{
		Client:                 c,
		APIReader:              live,
		SkipCRDMigrationPhases: skip,
		Config: map[client.Object]crdmigrator.ByObjectConfig{
			&infrav1.VCDCluster{}:             {UseCache: true, UseStatusForStorageVersionMigration: true},
			&infrav1.VCDMachine{}:             {UseCache: true, UseStatusForStorageVersionMigration: true},
			&infrav1.VCDIdentity{}:            {UseCache: true, UseStatusForStorageVersionMigration: true},
			&infrav1.VCDClusterIdentity{}:     {UseCache: true, UseStatusForStorageVersionMigration: true},
			&infrav1.VCDFailureDomain{}:       {UseCache: true, UseStatusForStorageVersionMigration: true},
			&infrav1.VCDDeploymentZone{}:      {UseCache: true, UseStatusForStorageVersionMigration: true},
			&infrav1.VCDRemediation{}:         {UseCache: true, UseStatusForStorageVersionMigration: true},
			&infrav1.VCDClusterTemplate{}:     {},
			&infrav1.VCDRemediationTemplate{}: {},
			&infrav1.VCDMachineTemplate{}:     {},
		},
	}
	return errors.Join(
		controllers.RegisterIndexes(ctx, mgr.GetFieldIndexer()),
		r.Identity.SetupWithManager(ctx, mgr, options.Concurrency(o.IdentityConcurrency)),
		r.ClusterIdentity.SetupWithManager(ctx, mgr, options.Concurrency(o.IdentityConcurrency)),
		r.Cluster.SetupWithManager(ctx, mgr, options.Concurrency(o.ClusterConcurrency)),
		r.Machine.SetupWithManager(ctx, mgr, options.Concurrency(o.MachineConcurrency)),
		r.MachineTemplate.SetupWithManager(ctx, mgr, options.Concurrency(templateConcurrency)),
		r.Affinity.SetupWithManager(ctx, mgr, options.Concurrency(o.ClusterConcurrency)),
		r.CloudProvider.SetupWithManager(ctx, mgr, options.Concurrency(o.ClusterConcurrency)),
		r.DeploymentZone.SetupWithManager(ctx, mgr, options.Concurrency(templateConcurrency)),
		r.FailureDomain.SetupWithManager(ctx, mgr, options.Concurrency(templateConcurrency)),
		r.PodProxy.SetupWithManager(ctx, mgr, options.Concurrency(podProxyConcurrency)),
		r.RDE.SetupWithManager(ctx, mgr, options.Concurrency(rdeConcurrency)),
		r.ServingCert.SetupWithManager(ctx, mgr, options.Concurrency(podProxyConcurrency)),
		r.Handover.SetupWithManager(ctx, mgr, options.Concurrency(handoverConcurrency)),
		r.Remediation.SetupWithManager(ctx, mgr, options.Concurrency(templateConcurrency)),
		migrator.SetupWithManager(ctx, mgr, options.Concurrency(1)),
		webhooks.Setup(mgr, webhooks.Options{InPlaceUpdates: o.InPlaceUpdates}),
		serveHooks(mgr, o),
		mgr.AddHealthzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
		mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
	)
}

// serveHooks serves the hooks for in-place updates, if they are enabled, on the port of the webhooks.
func serveHooks(mgr manager.Manager, o *options.Options) error {
	if !o.InPlaceUpdates {
		return nil
	}
	return inplace.Register(mgr.GetWebhookServer())
}
