// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

const (
	// containerdStartTimeout is the time limit for the container runtime to respond.
	containerdStartTimeout = time.Minute
	// containerdStopTimeout is the time limit for the container runtime to close its databases.
	containerdStopTimeout = 30 * time.Second
)

// runtimeConfig configures a container runtime that only imports images and writes only to the given folders.
const runtimeConfig = `version = 3
root = %q
state = %q
disabled_plugins = ['io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime', 'io.containerd.grpc.v1.cri',
  'io.containerd.nri.v1.nri', 'io.containerd.podsandbox.controller.v1.podsandbox']

[grpc]
  address = %q

[ttrpc]
  address = %q

[plugins.'io.containerd.internal.v1.opt']
  path = %q
`

// load imports archives into an image store with the container runtime itself.
func (b *builder) load(ctx context.Context, built kit, store string, archives ...string) (rerr error) {
	// The path of a socket must be short, so it is not in the store.
	state, err := os.MkdirTemp("", "node-image-*")
	if err != nil {
		return fmt.Errorf("making a folder for the container runtime: %w", err)
	}
	defer func() { _ = os.RemoveAll(state) }()
	socket := filepath.Join(state, "s")
	config := filepath.Join(state, "config.toml")
	content := fmt.Sprintf(runtimeConfig, store, filepath.Join(state, "state"), socket, socket+".ttrpc",
		filepath.Join(state, "opt"))
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		return fmt.Errorf("configuring the container runtime: %w", err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	// A separate mount namespace removes its mounts when it ends.
	runtime, err := process.Start(process.Spec{
		Name: "containerd",
		Path: unshare,
		Dir:  state,
		Env:  os.Environ(),
		Args: []string{"--mount", "--", built.bin("containerd", "containerd"), "--config", config},
	})
	if err != nil {
		return err
	}
	defer func() { rerr = errors.Join(rerr, runtime.Stop(containerdStopTimeout)) }()
	if err := waitReady(ctx, runtime, socket); err != nil {
		return err
	}
	for _, archive := range archives {
		if err := ctr(ctx, built, socket, "images", "import", "--snapshotter", "overlayfs", archive); err != nil {
			return fmt.Errorf("importing %s: %w", filepath.Base(archive), err)
		}
	}
	return nil
}

// waitReady waits until the container runtime responds.
func waitReady(ctx context.Context, runtime *process.Process, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, containerdStartTimeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("starting the container runtime: %w\n%s", ctx.Err(), runtime.Tail(10))
		case <-runtime.Done():
			return fmt.Errorf("the container runtime ended: %w\n%s", runtime.Err(), runtime.Tail(10))
		case <-ticker.C:
		}
		var dialer net.Dialer
		if conn, err := dialer.DialContext(ctx, "unix", socket); err == nil {
			return conn.Close()
		}
	}
}

func ctr(ctx context.Context, built kit, socket string, args ...string) error {
	args = append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)
	out, err := exec.CommandContext(ctx, built.bin("containerd", "ctr"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, lastLines(string(out), 10))
	}
	return nil
}

// copyStore copies a store with hard links. Its content never changes, but its databases do, so these are copied.
func copyStore(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", "--link", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copying the image store: %w\n%s", err, lastLines(string(out), 10))
	}
	return filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".db") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.WriteFile(path, content, 0o600)
	})
}
