// SPDX-License-Identifier: Apache-2.0

// Command cpi is the cloud controller manager for clusters on VMware Cloud Director, vSphere and Apache CloudStack.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

const (
	// defaultConfig and defaultCredentials are the paths in the manifests of VMware's CPI.
	defaultConfig      = "/etc/kubernetes/vcloud/vcloud-ccm-config.yaml"
	defaultCredentials = "/etc/kubernetes/vcloud/basic-auth" //nolint:gosec // a directory
	defaultProbes      = ":10268"
	defaultNamespace   = "kube-system"
)

// ourFlags are the flags that k8s.io/cloud-provider does not have.
type ourFlags struct {
	validate    bool
	credentials string
	clusterID   string
	namespace   string
	probes      string

	podName, podUID string // from the environment
}

// self returns the object for events of this process: its pod, or its Deployment if the name of the pod is unknown.
func (f *ourFlags) self() *corev1.ObjectReference {
	ref := &corev1.ObjectReference{
		APIVersion: "v1",
		Kind:       "Pod",
		Namespace:  f.namespace,
		Name:       f.podName,
		UID:        types.UID(f.podUID),
	}
	if f.podName == "" {
		ref.APIVersion = "apps/v1"
		ref.Kind = "Deployment"
		ref.Name = addons.DeploymentName
	}
	return ref
}

// sets returns our flags and those of all providers.
func (f *ourFlags) sets(providers []provider) cliflag.NamedFlagSets {
	sets := cliflag.NamedFlagSets{}
	fs := sets.FlagSet("vcd")
	fs.BoolVar(&f.validate, "validate-config", false,
		"Report all problems of the configuration and the credentials, and exit. Contacts neither Kubernetes nor the cloud.")
	fs.StringVar(&f.credentials, "credentials", defaultCredentials,
		"Directory of a mounted Secret with the files username and password, or refreshToken.")
	fs.StringVar(&f.clusterID, "cluster-id-file", "",
		"File with the ID of the cluster; used if neither the configuration nor the environment variable CLUSTER_ID contains it.")
	fs.StringVar(&f.namespace, "namespace", f.namespace, "Namespace of the controller's own Secrets.")
	fs.StringVar(&f.probes, "probe-address", defaultProbes,
		"Address of the HTTPS server for /readyz and, for authorized users, /debug/vcd-wire-log; disabled if empty.")
	for _, p := range providers {
		if p.flags != nil {
			p.flags(fs)
		}
	}
	return sets
}

// gcPercent makes garbage collection more frequent than the default: on nodes, memory is scarcer than CPU time.
const gcPercent = 50

// clusterIDVariable is the environment variable with the ID of the cluster.
const clusterIDVariable = "CLUSTER_ID"

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if err := os.Setenv("NO_PROXY", withoutProxy(os.Getenv)); err != nil {
		fmt.Fprintln(os.Stderr, "cpi:", err)
		os.Exit(1)
	}
	flags := &ourFlags{
		namespace: cmp.Or(os.Getenv("POD_NAMESPACE"), defaultNamespace),
		podName:   os.Getenv("POD_NAME"),
		podUID:    os.Getenv("POD_UID"),
	}
	command, err := newCommand(genericapiserver.SetupSignalHandler(), flags, os.Getenv, providers())
	if err != nil {
		fmt.Fprintln(os.Stderr, "cpi:", err)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}

// withoutProxy returns the value of NO_PROXY: the value from the environment plus the address of the API server in a
// pod, which users rarely know when they configure a proxy.
func withoutProxy(getenv func(string) string) string {
	named := cmp.Or(getenv("NO_PROXY"), getenv("no_proxy"))
	host := getenv("KUBERNETES_SERVICE_HOST")
	if named == "" || host == "" {
		return named + host
	}
	return named + "," + host
}

// newCommand returns the command with our flags, and with our defaults for the flags of k8s.io/cloud-provider.
func newCommand(
	stop <-chan struct{}, flags *ourFlags, getenv func(string) string, providers []provider,
) (*cobra.Command, error) {
	o, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("setting the defaults of flags: %w", err)
	}
	chosen := o.KubeCloudShared.CloudProvider
	chosen.Name = providers[0].name
	chosen.CloudConfigFile = defaultConfig
	// Most workers wait for a gateway, which runs one task at a time. The gateways and the rate limit of requests
	// restrict the work itself.
	o.ServiceController.ConcurrentServiceSyncs = 100
	o.Authentication.SkipInClusterLookup = true
	// The program has no webhooks. With a webhook port, each start would generate a key and a certificate, which takes
	// about half of its CPU time.
	o.WebhookServing.BindPort = 0

	var p *program
	initCloud := func(c *cloudconfig.CompletedConfig) cloudprovider.Interface {
		cloud, err := p.cloud(c, stop)
		if err != nil {
			klog.ErrorS(err, "Starting the cloud controller manager")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
		return cloud
	}
	command := app.NewCloudControllerManagerCommand(o, initCloud, app.DefaultInitFuncConstructors,
		names.CCMControllerAliases(), flags.sets(providers), stop)
	command.Use = "cpi"
	command.Long = "The cloud controller manager for clusters on VMware Cloud Director."
	command.SilenceUsage = true
	routes := command.Flags().Lookup("configure-cloud-routes") // its default is not set by an option
	if routes.DefValue = "false"; routes.Value.Set("false") != nil {
		return nil, errors.New("setting the default of --configure-cloud-routes")
	}
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		if command.Flags().Changed("version") {
			fmt.Fprintln(command.OutOrStdout(), version.Long())
			return nil
		}
		provider, err := find(providers, chosen.Name)
		if err != nil {
			return err
		}
		if provider.config != "" && !command.Flags().Changed("cloud-config") {
			chosen.CloudConfigFile = provider.config
		}
		if p, err = load(provider, chosen.CloudConfigFile, flags, getenv); err != nil {
			return err
		}
		if flags.validate {
			return p.check(command.OutOrStdout())
		}
		return errors.Join(run(command, args), p.close())
	}
	return command, nil
}
