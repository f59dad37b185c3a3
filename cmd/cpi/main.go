// Command cpi is the cloud controller manager for clusters on VMware Cloud Director.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	cloudconfig "k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

const (
	// defaultConfig and defaultCredentials are where the manifests of VMware's CPI mount them.
	defaultConfig      = "/etc/kubernetes/vcloud/vcloud-ccm-config.yaml"
	defaultCredentials = "/etc/kubernetes/vcloud/basic-auth" //nolint:gosec // a directory's name
	defaultProbes      = ":10268"
	defaultNamespace   = "kube-system"
)

// ourFlags are those that k8s.io/cloud-provider does not have.
type ourFlags struct {
	validate    bool
	credentials string
	clusterID   string
	namespace   string
	probes      string
	wireLog     time.Duration
	taskPoll    time.Duration

	podName, podUID string // from the environment
}

// self is where people look for events of this process: its pod, or its Deployment where the pod does not know its name.
func (f *ourFlags) self() *corev1.ObjectReference {
	if f.podName == "" {
		return &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: f.namespace, Name: addons.DeploymentName}
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: f.namespace, Name: f.podName, UID: types.UID(f.podUID)}
}

func (f *ourFlags) sets() cliflag.NamedFlagSets {
	sets := cliflag.NamedFlagSets{}
	fs := sets.FlagSet("vcd")
	fs.BoolVar(&f.validate, "validate-config", false, "Say everything that is wrong with the configuration and the credentials, and exit. Asks neither Kubernetes nor VCD.")
	fs.StringVar(&f.credentials, "credentials", defaultCredentials, "Directory with the files username and password, or refreshToken: a mounted Secret.")
	fs.StringVar(&f.clusterID, "cluster-id-file", "", "File with the id of the cluster, where neither the configuration nor the environment variable CLUSTER_ID has it.")
	fs.StringVar(&f.namespace, "namespace", f.namespace, "Namespace of the controller's own Secrets.")
	fs.StringVar(&f.probes, "probe-address", defaultProbes, "Where /readyz is served, and for those who may, /debug/vcd-wire-log, by HTTPS; empty: nowhere.")
	fs.DurationVar(&f.wireLog, "vcd-wire-log-duration", 10*time.Minute, "How long calls to VCD are logged after the signal SIGUSR1, or until a second one. At --v=7 they are logged always.")
	fs.DurationVar(&f.taskPoll, "vcd-task-poll", 2*time.Second, "How often running tasks are asked for, all by one call.")
	return sets
}

// garbage is how much memory may be garbage before it is collected, in percent of what is in use: it runs on nodes of every cluster, where
// memory is dearer than the little processor time that this takes.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	flags := &ourFlags{namespace: os.Getenv("POD_NAMESPACE"), podName: os.Getenv("POD_NAME"), podUID: os.Getenv("POD_UID")}
	if flags.namespace == "" {
		flags.namespace = defaultNamespace
	}
	command, err := newCommand(genericapiserver.SetupSignalHandler(), flags, os.Getenv("CLUSTER_ID"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cpi:", err)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}

// newCommand returns the program with our defaults of the flags of k8s.io/cloud-provider, and ours.
func newCommand(stop <-chan struct{}, flags *ourFlags, clusterID string) (*cobra.Command, error) {
	o, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("setting the defaults of flags: %w", err)
	}
	o.KubeCloudShared.CloudProvider.Name = cpivcd.ProviderName
	o.KubeCloudShared.CloudProvider.CloudConfigFile = defaultConfig
	o.ServiceController.ConcurrentServiceSyncs = 10
	o.Authentication.SkipInClusterLookup = true

	var p *program
	initCloud := func(c *cloudconfig.CompletedConfig) cloudprovider.Interface {
		cloud, err := p.cloud(c, stop)
		if err != nil {
			klog.ErrorS(err, "Starting the cloud controller manager")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
		return cloud
	}
	command := app.NewCloudControllerManagerCommand(o, initCloud, app.DefaultInitFuncConstructors, names.CCMControllerAliases(), flags.sets(), stop)
	command.Use, command.Long = "cpi", "The cloud controller manager for clusters on VMware Cloud Director."
	command.SilenceUsage = true
	routes := command.Flags().Lookup("configure-cloud-routes") // its default is not an option's
	if routes.DefValue = "false"; routes.Value.Set("false") != nil {
		return nil, errors.New("setting the default of --configure-cloud-routes")
	}
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		if command.Flags().Changed("version") {
			fmt.Fprintln(command.OutOrStdout(), version.Long())
			return nil
		}
		if name := o.KubeCloudShared.CloudProvider.Name; name != cpivcd.ProviderName {
			return fmt.Errorf("--cloud-provider: is %q, but must be %s", name, cpivcd.ProviderName)
		}
		if p, err = load(o.KubeCloudShared.CloudProvider.CloudConfigFile, flags, clusterID); err != nil {
			return err
		}
		if flags.validate {
			return p.validate(command.OutOrStdout())
		}
		return errors.Join(run(command, args), p.close())
	}
	return command, nil
}
