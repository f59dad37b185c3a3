// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/program"
)

const usage = `vcdsim-nodes is vcdsim with VMs that boot. Each VM is a Linux system from the image of its template, on isolated
networks. It requires root and node images (make node-image).

Usage:
  vcdsim-nodes [flags]                          accepts all flags of vcdsim except --state
  vcdsim-nodes console [--follow] VM            print the console output of a VM
  vcdsim-nodes shell VM                         open a root shell in a VM
  vcdsim-nodes exec VM COMMAND [ARGUMENT...]    run a command as root in a VM

Examples:
  vcdsim-nodes                                  use images from the cache of make node-image
  vcdsim-nodes --images ./images                from another folder
  curl --proxy 127.0.0.1:3128 http://203.0.113.20/
                                                request a virtual service from outside

Flags:
`

// nodes is an extension of vcdsim with VMs that boot.
type nodes struct {
	images, dir, proxy, inside string
	flags                      *pflag.FlagSet
}

// Name implements program.Extension.
func (*nodes) Name() string { return "vcdsim-nodes" }

// Usage implements program.Extension.
func (*nodes) Usage() string { return usage }

// Flags implements program.Extension.
func (n *nodes) Flags(fs *pflag.FlagSet) {
	n.flags = fs
	fs.StringVar(&n.images, "images", defaultImages(), "directory of images, which are named after their templates")
	fs.StringVar(&n.dir, "nodes-dir", stateDir(),
		"state directory of VMs, which is cleared at the start; default from the environment variable VCDSIM_NODES_DIR")
	fs.StringVar(&n.proxy, "proxy", "127.0.0.1:3128",
		"listen address of the HTTP proxy to the networks of VMs, virtual services and NAT rules")
	fs.StringVar(&n.inside, "inside", "192.0.2.1:443", "address of the simulator's API for VMs")
}

func defaultImages() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "images"
	}
	return filepath.Join(cache, "cluster-api-provider-vcd", "nodes")
}

// quickstartDir is the state folder of make quickstart-real.
const quickstartDir = "/var/lib/vcdsim-quickstart"

func stateDir() string {
	if dir := os.Getenv("VCDSIM_NODES_DIR"); dir != "" {
		return dir
	}
	return "/var/lib/vcdsim-nodes"
}

// Open implements program.Extension. Each image becomes a template of the first tenant.
func (n *nodes) Open(cfg *vcdsim.Config) (program.Running, error) {
	if n.flags.Changed("state") {
		return nil, errors.New("--state is not supported because the state does not contain the disks of VMs")
	}
	inside, err := netip.ParseAddrPort(n.inside)
	if err != nil {
		return nil, fmt.Errorf("--inside %q is not an address and a port", n.inside)
	}
	found, err := hypervisor.Images(n.images)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no images in %s: run make node-image, or set another directory with --images",
			n.images)
	}
	h, err := hypervisor.New(hypervisor.Options{Images: n.images, Dir: n.dir, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	listener, err := h.Listen(inside)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	hypervisor.AddTemplates(&cfg.Model, found)
	cfg.Guest = h
	cfg.Further = append(cfg.Further, listener)
	return &running{hypervisor: h, proxy: n.proxy, inside: n.inside}, nil
}

// running is the hypervisor of a running simulator.
type running struct {
	hypervisor    *hypervisor.Hypervisor
	proxy, inside string
	server        *http.Server
	stop          func() // stops following the simulator
}

const headerTimeout = 10 * time.Second

// Serve implements program.Running.
func (r *running) Serve(ctx context.Context, sim *vcdsim.Simulator, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.proxy)
	if err != nil {
		return fmt.Errorf("listening for the proxy: %w", err)
	}
	r.server = &http.Server{Handler: r.hypervisor.Outside(), ReadHeaderTimeout: headerTimeout}
	go func() { _ = r.server.Serve(listener) }() // until Close
	following, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		r.hypervisor.Follow(following, sim)
	}()
	_, err = fmt.Fprintf(out, `
# VMs boot and use this API at https://%[2]s. To reach VMs, virtual services and NAT rules from this machine:
#   curl --proxy %[1]s http://ADDRESS/          export HTTPS_PROXY=http://%[1]s NO_PROXY=127.0.0.1,localhost
#   vcdsim-nodes console VM     vcdsim-nodes shell VM     vcdsim-nodes exec VM COMMAND
`, listener.Addr(), r.inside)
	return err
}

// Close implements program.Running.
func (r *running) Close() error {
	var err error
	if r.server != nil {
		err = r.server.Close()
		r.stop()
	}
	return errors.Join(err, r.hypervisor.Close())
}
