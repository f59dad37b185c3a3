// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

const proxyHeaderTimeout = 10 * time.Second

// A booted runs VMs that boot, instead of simulated ones.
type booted struct {
	bootedImage

	hypervisor *hypervisor.Hypervisor
	proxy      *http.Server
	proxyURL   string
	stop       func()
}

// checkReal is the preflight check for --real. It returns an error if VMs cannot boot on this machine.
func (o options) checkReal(context.Context) error {
	if !o.realNodes {
		return nil
	}
	if err := hypervisor.Check(bootedDir); err != nil {
		return err
	}
	_, err := findImage(o.imagesDir(), nodeImage(o.kubernetes))
	return err
}

func (o options) imagesDir() string { return filepath.Join(o.cache, "nodes") }

func findImage(dir, name string) (bootedImage, error) {
	found, err := hypervisor.Images(dir)
	for _, img := range found {
		if img.Name == name {
			return bootedImage{name: img.Name, network: img.Network, images: img.Images}, nil
		}
	}
	return bootedImage{}, errors.Join(
		fmt.Errorf("no image %s in %s: run make node-image as root", name, dir), err)
}

// openBooted starts the hypervisor of the VMs and the proxy to their networks, and makes the simulator use them.
func (q *quickstart) openBooted(ctx context.Context, config *vcdsim.Config) error {
	img, err := findImage(q.imagesDir(), nodeImage(q.kubernetes))
	if err != nil {
		return err
	}
	found, err := hypervisor.Images(q.imagesDir())
	if err != nil {
		return err
	}
	b := &booted{bootedImage: img}
	b.hypervisor, err = hypervisor.New(hypervisor.Options{
		Images: q.imagesDir(),
		Dir:    bootedDir,
		Log:    config.Log,
	})
	if err != nil {
		return err
	}
	q.booted = b
	listener, err := b.hypervisor.Listen(insideAddress) //nolint:contextcheck // it is closed with the simulator
	if err != nil {
		return err
	}
	config.Guest = b.hypervisor
	config.Further = append(config.Further, listener)
	hypervisor.AddTemplates(&config.Model, found)
	outside, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the proxy: %w", err)
	}
	b.proxy = &http.Server{Handler: b.hypervisor.Outside(), ReadHeaderTimeout: proxyHeaderTimeout}
	b.proxyURL = "http://" + outside.Addr().String()
	go func() { _ = b.proxy.Serve(outside) }() // until close
	return nil
}

// follow implements the edge gateways of the simulator until close.
func (b *booted) follow(ctx context.Context, sim *vcdsim.Simulator) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	b.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		b.hypervisor.Follow(ctx, sim)
	}()
}

func (b *booted) close() error {
	if b.stop != nil {
		b.stop()
	}
	var err error
	if b.proxy != nil {
		err = b.proxy.Close()
	}
	return errors.Join(err, b.hypervisor.Close())
}

// stage returns the boot stage of a VM, or "" if VMs do not boot.
func (b *booted) stage(vm string) string {
	if b == nil {
		return ""
	}
	return string(hypervisor.StageOf(bootedDir, vm))
}

// keepLogs copies the logs of the VMs to a folder, before the VMs are removed.
func (*booted) keepLogs(to string) error { return hypervisor.CopyLogs(bootedDir, to) }
