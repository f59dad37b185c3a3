// SPDX-License-Identifier: Apache-2.0

// Package firsthour makes the typical mistakes of users who set up their first cluster, on a real API server with
// Cluster API and this provider as it is shipped. It measures the time until the object that they look at reports the
// remedy, and the time until it recovers.
package firsthour

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

// api is the client of the management cluster, which all trials share.
var api client.Client

// enabled enables the tests, which take minutes and start a management cluster.
var enabled = flag.Bool("firsthour", false, "Make the mistakes; without it they are skipped.")

// idle requires the limits of an idle machine.
var idle = flag.Bool("idle", false, "fail beyond the figures of an idle machine")

func TestMain(m *testing.M) {
	flag.Parse()
	parallel := "40" // Trials mostly wait.
	if *idle {
		parallel = "3" // Parallel trials are load, too.
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		os.Exit(report(err))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if !*enabled {
		fmt.Fprintln(os.Stderr, "skipped: run make test-firsthour")
		return 0
	}
	dir, err := os.MkdirTemp("", "firsthour-")
	if err != nil {
		return report(err)
	}
	log.SetLogger(klog.Background())
	management, err := framework.Start(context.Background(), framework.Options{
		Dir:   dir,
		Out:   os.Stderr,
		Parts: []stack.Part{stack.Core},
	})
	if err != nil {
		return report(err)
	}
	defer func() { report(management.Stop()) }()
	if api, err = client.New(management.RESTConfig(), client.Options{Scheme: scheme()}); err != nil {
		return report(err)
	}
	code := m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, "Logs are kept in", management.LogDir())
		return code
	}
	return report(os.RemoveAll(dir))
}

// report prints an error and returns the exit code.
func report(errs ...error) int {
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}
