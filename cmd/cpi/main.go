// Command cpi is the cloud controller manager for clusters on VMware Cloud Director.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	cloudconfig "k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

func main() {
	command, err := newCommand(genericapiserver.SetupSignalHandler())
	if err != nil {
		fmt.Fprintln(os.Stderr, "cpi:", err)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}

// newCommand returns the program with our defaults of the flags of k8s.io/cloud-provider, and ours.
func newCommand(stop <-chan struct{}) (*cobra.Command, error) {
	o, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("setting the defaults of flags: %w", err)
	}
	o.KubeCloudShared.CloudProvider.Name = cpivcd.ProviderName
	o.KubeCloudShared.CloudProvider.CloudConfigFile = "/etc/kubernetes/vcloud/vcloud-ccm-config.yaml"
	o.KubeCloudShared.ConfigureCloudRoutes = false
	o.ServiceController.ConcurrentServiceSyncs = 10
	o.Authentication.SkipInClusterLookup = true

	flags := cliflag.NamedFlagSets{}
	validate := flags.FlagSet("vcd").Bool("validate-config", false, "Say everything that is wrong with the configuration and the secrets, and exit.")
	initCloud := func(*cloudconfig.CompletedConfig) cloudprovider.Interface {
		return cpi.New(cpi.Options{Name: cpivcd.ProviderName})
	}
	command := app.NewCloudControllerManagerCommand(o, initCloud, app.DefaultInitFuncConstructors, names.CCMControllerAliases(), flags, stop)
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		switch {
		case command.Flags().Lookup("version").Changed:
			fmt.Fprintln(command.OutOrStdout(), version.Long())
			return nil
		case *validate:
			return nil
		}
		return run(command, args)
	}
	return command, nil
}
