// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

// A cluster is an API server with the manifest of the cloud controller manager except its Deployment.
type cluster struct {
	*stack.Stack

	client      client.Client
	binary      string
	shippedArgs []string
	objects     []unstructured.Unstructured

	mu    sync.Mutex
	views []*httptest.Server
}

// close stops the cluster.
func (h *cluster) close() error {
	err := h.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.views {
		v.CloseClientConnections()
		v.Close()
	}
	return err
}

// sharedCluster is the cluster of tests that only need a separate fixture or namespace.
var sharedCluster *cluster

const (
	serviceAccount = "cloud-controller-manager"
	// baseNodes is the number of nodes that always exist. They are those of the first machines.
	baseNodes = 3
	// fleet is the number of machines of each cloud. The other machines are for tests of nodes.
	fleet = 12
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "40"); err != nil { // The tests mostly wait.
		os.Exit(report(err))
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	if testing.Short() {
		fmt.Fprintln(os.Stderr, "skipped: these tests start an API server, and -short is set")
		return 0
	}
	log.SetLogger(klog.Background())
	dir, err := os.MkdirTemp("", "ccm-")
	if err != nil {
		return report(err)
	}
	ctx := context.Background()
	binary := filepath.Join(dir, "cpi")
	if err := build(ctx, binary); err != nil {
		return report(err)
	}
	machines, err := vcdBaseMachines()
	if err != nil {
		return report(err)
	}
	sharedCluster, err = newCluster(ctx, filepath.Join(dir, "home"), binary, addons.VCD(), machines)
	if err != nil {
		return report(err)
	}
	defer func() {
		if err := sharedCluster.close(); err != nil {
			code = report(err)
		}
		if code != 0 {
			fmt.Fprintln(os.Stderr, "Logs are in", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			code = report(err)
		}
	}()
	return auditRights(endSharedFixture(m.Run()))
}

func report(err error) int {
	fmt.Fprintln(os.Stderr, "Error:", err)
	return 1
}

// build builds the cloud controller manager.
func build(ctx context.Context, path string) error {
	root, err := framework.Root()
	if err != nil {
		return err
	}
	return framework.Build(ctx, root, "./cmd/cpi", path)
}

// newCluster starts an API server, creates Nodes for the given machines, and grants the cloud controller manager the
// permissions in its manifest.
func newCluster(
	ctx context.Context, dir, binary string, cloud addons.Cloud, machines []machine,
) (*cluster, error) {
	h := &cluster{binary: binary}
	objects, err := addons.CCM{Image: "registry.example.com/ccm:v1", Replicas: 1, Cloud: &cloud}.Objects()
	if err != nil {
		return nil, err
	}
	for i := range objects {
		if objects[i].GetKind() != cloud.Kind() {
			h.objects = append(h.objects, objects[i])
			continue
		}
		var d appsv1.Deployment // A DaemonSet has the same template.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &d); err != nil {
			return nil, err
		}
		h.shippedArgs = d.Spec.Template.Spec.Containers[0].Args
	}
	h.Stack, err = stack.Start(ctx,
		stack.Options{Dir: dir, Out: os.Stderr, Parts: []stack.Part{}, AuditNamespace: addons.Namespace})
	if err != nil {
		return nil, err
	}
	h.client = h.Client()
	if err := errors.Join(
		h.Apply(ctx, h.objects...),
		h.AwaitRights(ctx, h.objects...),
		h.createBaseNodes(ctx, machines),
	); err != nil {
		return nil, errors.Join(err, h.Stop())
	}
	return h, nil
}

// ownCluster starts a cluster for a test whose nodes would interfere with other tests.
func ownCluster(t *testing.T, name string) *cluster {
	t.Helper()
	machines, err := vcdBaseMachines()
	if err != nil {
		t.Fatal(err)
	}
	return clusterOf(t, name, addons.VCD(), machines)
}

// clusterOf starts a cluster on a cloud, with Nodes for the given machines.
func clusterOf(t *testing.T, name string, cloud addons.Cloud, machines []machine) *cluster {
	t.Helper()
	dir := filepath.Join(filepath.Dir(sharedCluster.Dir()), name)
	h, err := newCluster(t.Context(), dir, sharedCluster.binary, cloud, machines)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	})
	return h
}
