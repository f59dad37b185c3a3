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

// providers is the registry: the clouds that --cloud-provider chooses from. The first is the default.
func providers() []provider {
	return []provider{vcdProvider(), vsphereProvider(), cloudStackProvider()}
}

// A provider is a cloud that --cloud-provider can choose.
type provider struct {
	// name is the value of --cloud-provider, and the scheme of provider IDs.
	name string
	// config is where the configuration is unless --cloud-config names another file; empty: it has to. That file need
	// not exist.
	config string
	// flags adds the provider's own flags; nil: there are none.
	flags func(*pflag.FlagSet)
	// validate checks these flags; nil: all values are right.
	validate func() error
	// load reads the configuration. The error has all problems, one on each line.
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

// A source is where a provider reads its configuration from.
type source struct {
	file        []byte
	path        string // of the file; empty: it is in none
	credentials string // directory with the files of a Secret
	env         ccmconfig.Environment
}

// A configuration is what a provider has read, with the settings that all clouds have.
type configuration struct {
	warnings []string
	// about are the keys and values that identify the cloud and the cluster in the log.
	about []any
	// credentials checks them; nil: they are not in files.
	credentials func() error
	settings    cpi.Settings
	// manifest is the name of the file of a release with the rights of load balancers.
	manifest string
	// open returns the backend, ready to use.
	open func(host) (*backend, error)
}

// A host is what the program offers to a backend.
type host struct {
	client    kubernetes.Interface
	informers coreinformers.Interface
	nodes     corelisters.NodeLister
	services  corelisters.ServiceLister
	recorder  record.EventRecorder
	namespace string // of the controller's own Secrets
	stop      <-chan struct{}
}

// A backend is a cloud in use.
type backend struct {
	cpi.Backend
	// debug is served besides the probes, by path.
	debug map[string]http.Handler
}
