package controllers

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

const patience = testtime.Patience

// worlds is how many tests run at a time. Mostly they wait for a clock.
const worlds = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", worlds); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
