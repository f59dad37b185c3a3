package controllers

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// patience is for what comes quickly, unless the machine is busy.
const patience = time.Minute

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
