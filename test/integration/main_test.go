// SPDX-License-Identifier: Apache-2.0

// Package integration tests the provider as it is shipped. The manager runs as a process with the permissions of its
// role, against a real API server, the core manager of Cluster API, and simulated VMware Cloud Director sites over
// HTTPS.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
)

// shared is the management cluster of all tests. Each test has its own namespace and simulators, so tests run in
// parallel.
var shared struct {
	*framework.ManagementCluster

	client    client.Client
	workloads *workload.Workloads // the simulated guests of complete clusters
	replica   replica             // reconciles the objects of most tests
}

// A replica is a manager and the label of the objects that it reconciles. A test that kills its replica does not
// disturb other tests.
type replica struct {
	*stack.Manager

	label     string
	namespace string      // the only one that it watches, or empty
	down      *sync.Mutex // held while the manager is stopped
}

// Kill kills the manager. No other test can kill or start it until Start returns.
func (c replica) Kill() error {
	c.down.Lock()
	return c.Manager.Kill()
}

// Start starts the manager again.
func (c replica) Start(ctx context.Context) error {
	defer c.down.Unlock()
	return c.Manager.Start(ctx)
}

const (
	sharedLabel = "shared"
	// tests is the number of parallel tests. It is the number of tests, so that those that wait for timeouts
	// start early.
	tests = "32"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", tests); err != nil {
		os.Exit(report(err))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		fmt.Fprintln(os.Stderr, "skipped: these tests start a management cluster, and -short is set")
		return 0
	}
	dir, err := os.MkdirTemp("", "integration-")
	if err != nil {
		return report(err)
	}
	log.SetLogger(klog.Background())
	ctx := context.Background()
	if shared.workloads, err = workload.New(ctx, workload.Options{}); err != nil {
		return report(err)
	}
	shared.ManagementCluster, err = framework.Start(ctx, framework.Options{
		Dir: dir,
		Out: os.Stderr,
		Env: shared.workloads.Env(),
		// One test updates machines in place. Without an ExtensionConfig, this has no effect on the others.
		Variables: map[string]string{"EXP_RUNTIME_SDK": "true", "EXP_IN_PLACE_UPDATES": "true"},
		// The tests of conversions are in test/capvcd.
		StorageVersionsOnly: true,
		// The tests search the most verbose log for secrets.
		ManagerArgs: []string{"--watch-filter=" + sharedLabel, "--v=5", "--in-place-updates"},
	})
	if err != nil {
		return report(err)
	}
	defer func() {
		if err := errors.Join(shared.Stop(), shared.workloads.Close()); err != nil {
			report(err)
		}
	}()
	if shared.client, err = client.New(shared.RESTConfig(), client.Options{Scheme: scheme()}); err != nil {
		return report(err)
	}
	shared.replica = replica{Manager: shared.Manager, label: sharedLabel, down: &sync.Mutex{}}
	code := auditRights(m.Run())
	if code != 0 {
		fmt.Fprintln(os.Stderr, "Logs are kept in", shared.LogDir())
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		return report(err)
	}
	return 0
}

func report(err error) int {
	fmt.Fprintln(os.Stderr, "Error:", err)
	return 1
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme,
		addonsv1.AddToScheme, ipamv1.AddToScheme, infrav1.AddToScheme, runtimev1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}
