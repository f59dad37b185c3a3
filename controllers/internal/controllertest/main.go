// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

// parallel is the number of tests that run in parallel. They mostly wait for a clock.
const parallel = "12"

// Main runs the tests of a package.
func Main(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	ctrl.SetLogger(logr.Discard())
	testtime.Main(m)
}
