// Package integration tests this provider as it is shipped: its manager as a process with the rights of its role, a
// real API server with Cluster API's core manager, and simulated VMware Cloud Directors over HTTPS.
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
)

// house is the management cluster that all tests share. Each test has a namespace and simulators of its own, so all run
// at the same time.
var house struct {
	*framework.ManagementCluster

	client    client.Client
	workloads *workload.Workloads // the pretend guests of whole clusters
	crew      crew                // looks after the objects of most tests
}

// A crew is a manager and the label of what it looks after: who kills one must not disturb others.
type crew struct {
	*stack.Manager

	label string
	hands *sync.Mutex // held from its death to its next life
}

// Kill kills the manager. Nobody else does, or starts it, until Start.
func (c crew) Kill() error {
	c.hands.Lock()
	return c.Manager.Kill()
}

// Start starts the manager again.
func (c crew) Start(ctx context.Context) error {
	defer c.hands.Unlock()
	return c.Manager.Start(ctx)
}

const (
	sharedLabel = "shared"
	// tests is how many run at a time. Mostly they wait.
	tests = "20"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", tests); err != nil {
		os.Exit(complain(err))
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
		return complain(err)
	}
	log.SetLogger(klog.Background())
	ctx := context.Background()
	if house.workloads, err = workload.New(ctx, workload.Options{}); err != nil {
		return complain(err)
	}
	house.ManagementCluster, err = framework.Start(ctx, framework.Options{
		Dir: dir, Out: os.Stderr, Env: house.workloads.Env(),
		ManagerArgs: []string{"--watch-filter=" + sharedLabel, "--v=5"}, // Canaries are looked for in the most talkative log.
	})
	if err != nil {
		return complain(err)
	}
	defer func() {
		if err := errors.Join(house.Stop(), house.workloads.Close()); err != nil {
			complain(err)
		}
	}()
	if house.client, err = client.New(house.RESTConfig(), client.Options{Scheme: scheme()}); err != nil {
		return complain(err)
	}
	house.crew = crew{house.Manager, sharedLabel, &sync.Mutex{}}
	code := auditRights(m.Run())
	if code != 0 {
		fmt.Fprintln(os.Stderr, "Logs are kept in", house.LogDir())
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		return complain(err)
	}
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "Error:", err)
	return 1
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, ipamv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}
