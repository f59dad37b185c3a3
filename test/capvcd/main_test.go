// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
)

// all enables tests that take minutes.
var all = flag.Bool("all", false, "run all tests, and adopt every fixture instead of one")

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(klog.Background())
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// scratch is a temporary folder that all tests share, or empty if it was not needed.
var scratch string

// A product is a release build of this provider.
type product struct {
	root       string // of the repository
	components []byte
	manager    string // the path of the manager binary
}

// builtProduct builds the provider once for all tests.
var builtProduct = sync.OnceValues(func() (product, error) {
	root, err := framework.Root()
	if err != nil {
		return product{}, err
	}
	components, err := framework.Components(context.Background(), root)
	if err != nil {
		return product{}, err
	}
	scratch, err = os.MkdirTemp("", "capvcd-")
	if err != nil {
		return product{}, fmt.Errorf("creating a folder for the manager: %w", err)
	}
	binary := filepath.Join(scratch, "manager")
	if err := framework.BuildManager(context.Background(), root, binary); err != nil {
		return product{}, err
	}
	return product{
		root:       root,
		components: components,
		manager:    binary,
	}, nil
})

// requireAll skips a test without -all.
func requireAll(t *testing.T) {
	t.Helper()
	if !*all {
		t.Skip("takes minutes; make test-adoption runs it")
	}
}
