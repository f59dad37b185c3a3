// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

const (
	clusterName      = "demo"
	clusterNamespace = "default"
	endpoint         = "192.168.100.200" // in the simulated network "nodes", outside its pools
	pollEvery        = 250 * time.Millisecond
)

// writeRepository writes the release with the templates for clusterctl, and the variables for the simulated VCD.
func (q *quickstart) writeRepository() error {
	files, err := simsite.ReleaseFiles(q.root, q.components, "templates/cluster-template*.yaml", "templates/clusterclass-*.yaml")
	if err != nil {
		return err
	}
	variables := q.variables()
	maps.Copy(variables, map[string]string{
		"VCD_CONTROL_PLANE_SIZING_POLICY": "small",
		"VCD_WORKER_SIZING_POLICY":        "small",
		"CONTROL_PLANE_ENDPOINT_IP":       endpoint,
	})
	maps.Copy(variables, q.options.variables)
	return q.stack.LocalRepository(stack.Repository{Version: framework.Version, Files: files, Variables: variables})
}

// prepareSite runs the preparation of a test before the cluster is created.
func (q *quickstart) prepareSite(context.Context) error {
	if q.prepare == nil {
		return nil
	}
	return q.prepare(q)
}

// createCluster creates the cluster as a user does: clusterctl generate cluster, kubectl apply.
func (q *quickstart) createCluster(ctx context.Context) error {
	args := []string{
		"generate",
		"cluster",
		clusterName,
		"--config=" + q.stack.ClusterctlConfig(),
		"--infrastructure=vcd:" + framework.Version,
		"--target-namespace=" + clusterNamespace,
		"--kubernetes-version=" + q.kubernetes,
		"--control-plane-machine-count=" + strconv.Itoa(q.controlPlanes),
		"--worker-machine-count=" + strconv.Itoa(q.workers),
	}
	if q.flavor != "" {
		args = append(args, "--flavor="+q.flavor)
	}
	path := filepath.Join(q.dir, clusterName+".yaml")
	q.printf("%s > %s", commandLine("clusterctl", args...), path)
	manifest, err := q.stack.Clusterctl(ctx, args...)
	if err != nil {
		return err
	}
	if q.change != nil {
		if manifest, err = q.change(manifest); err != nil {
			return err
		}
	}
	if err := os.WriteFile(path, manifest, 0o600); err != nil {
		return fmt.Errorf("writing the cluster's manifest: %w", err)
	}
	q.site.Simulator.ResetCounters()
	args = []string{"apply", "-f", path}
	q.printf("%s", commandLine("kubectl", args...))
	_, err = q.stack.Kubectl(ctx, nil, args...)
	return err
}

// commandLine formats a command for a shell, in lines for a terminal of 80 columns.
func commandLine(name string, args ...string) string {
	const width, indent = 60, "\n          "
	lines := []string{name}
	for _, arg := range args {
		last := &lines[len(lines)-1]
		if len(*last)+len(arg) < width {
			*last += " " + arg
			continue
		}
		lines = append(lines, arg)
	}
	return strings.Join(lines, " \\"+indent)
}

// awaitCluster installs the network plug-in, and shows the progress until the cluster and all its machines are
// available.
func (q *quickstart) awaitCluster(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return q.installNetwork(ctx) })
	group.Go(func() error {
		return q.watch(ctx, "come up", func(v *view) bool { return v.available(q.controlPlanes + q.workers) })
	})
	if err := group.Wait(); err != nil {
		return err
	}
	q.up = true
	q.printf("Cluster %s is available: control planes %d, workers %d, VCD calls %d", clusterName, q.controlPlanes,
		q.workers, q.calls())
	return nil
}

// watch shows the cluster until wanted returns true.
func (q *quickstart) watch(ctx context.Context, what string, wanted func(*view) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout,
		fmt.Errorf("the cluster did not %s within %s", what, q.timeout))
	defer cancel()
	defer q.screen.finish()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var last *view
	for {
		v, err := q.observe(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("reading the cluster: %w", err)
		}
		if err == nil {
			last = v
			q.screen.show(v)
			if wanted(v) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last.problem())
		case err := <-q.stack.Failed():
			return err
		case <-ticker.C:
		}
	}
}

// summary prints the tree of objects, and how to access and use the cluster.
func (q *quickstart) summary(ctx context.Context) error {
	args := []string{"describe", "cluster", clusterName, "--namespace=" + clusterNamespace}
	tree, err := q.stack.Clusterctl(ctx, args...)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(q.out, "\n$ %s\n%s\n", commandLine("clusterctl", args...), q.screen.table(tree))
	kubeconfig := q.kubeconfig()
	args = []string{"get", "kubeconfig", clusterName, "--namespace=" + clusterNamespace}
	data, err := q.stack.Clusterctl(ctx, args...)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(q.out, "$ %s > %s\n", commandLine("clusterctl", args...), kubeconfig)
	if err := q.writeKubeconfig(kubeconfig, data); err != nil {
		return err
	}
	if err := q.showNodes(ctx); err != nil {
		return err
	}
	return q.hints(kubeconfig)
}

// showNodes prints the nodes of the cluster. Booted nodes have more columns.
func (q *quickstart) showNodes(ctx context.Context) error {
	columns := "custom-columns=NAME:.metadata.name,VERSION:.status.nodeInfo.kubeletVersion,PROVIDER-ID:.spec.providerID"
	if q.booted != nil {
		columns = "wide"
	}
	args := []string{"--kubeconfig=" + q.kubeconfig(), "get", "nodes", "-o=" + columns}
	nodes, err := q.stack.Kubectl(ctx, nil, args...)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(q.out, "$ %s\n%s\n", commandLine("kubectl", args...), nodes)
	return nil
}

// hints prints lines to paste into another terminal, each at most 80 columns wide.
func (q *quickstart) hints(kubeconfig string) error {
	settings := fmt.Sprintf("export PATH=%s:$PATH KUBECONFIG=%s DEMO=%s\n", q.programs.Dir(), q.stack.Kubeconfig(),
		kubeconfig)
	file := filepath.Join(q.dir, "env")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return fmt.Errorf("writing the settings of a shell: %w", err)
	}
	stays := ""
	if !q.staysUp() {
		stays = " in a terminal, or with --keep"
	}
	_, _ = fmt.Fprintf(q.out, `What you can do now%s:
  source %s
  kubectl scale machinedeployment %s-md-0 --replicas=%d
  clusterctl describe cluster %s
  kubectl --kubeconfig=$DEMO get nodes
%s`, stays, file, clusterName, q.workers+1, clusterName,
		map[bool]string{true: "  make shell VM=NAME, in the sources, with the name of a node\n"}[q.booted != nil])
	return nil
}
