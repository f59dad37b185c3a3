// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// providers returns the registry of clouds for --cloud-provider. The first is the default.
func providers() []provider {
	return []provider{vcdProvider(), vsphereProvider(), cloudStackProvider()}
}

// A provider is a cloud that --cloud-provider can select.
type provider struct {
	// name is the value of --cloud-provider and the scheme of provider IDs.
	name string
	// config is the default path of the configuration if --cloud-config is not set. That file need not exist. An empty
	// config means that --cloud-config is required.
	config string
	// flags adds the flags of the provider. It may be nil.
	flags func(*pflag.FlagSet)
	// validate validates these flags. It may be nil.
	validate func() error
	// load reads the configuration. Its error lists all problems, one per line.
	load func(source) (*configuration, error)
}

// find returns the provider with a name.
func find(all []provider, name string) (provider, error) {
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	if i := slices.Index(names, name); i >= 0 {
		return all[i], nil
	}
	return provider{}, fmt.Errorf("--cloud-provider: is %q, but must be %s", name, strings.Join(names, " or "))
}

// A source contains the inputs for the configuration of a provider.
type source struct {
	file        []byte
	path        string // of the file; empty if there is no file
	credentials string // directory with the keys of a Secret
	env         ccmconfig.Environment
}

// A configuration is the parsed configuration of a provider, with the settings that all clouds share.
type configuration struct {
	warnings []string
	// about contains keys and values for the log that identify the cloud and the cluster.
	about []any
	// credentials validates the credentials. It is nil if they are not in files.
	credentials func() error
	settings    cpi.Settings
	// manifest is the name of the release file with the rights for load balancers.
	manifest string
	// open returns a backend that is ready to use.
	open func(host) (*backend, error)
}

// A host contains the services of the program for a backend.
type host struct {
	client    kubernetes.Interface
	informers coreinformers.Interface
	nodes     corelisters.NodeLister
	services  corelisters.ServiceLister
	recorder  record.EventRecorder
	namespace string // for the controller's own Secrets
	stop      <-chan struct{}
}

// A backend is an opened cloud.
type backend struct {
	cpi.Backend
	// debug contains handlers by path that are served in addition to the probes.
	debug map[string]http.Handler
}
