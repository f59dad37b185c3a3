// SPDX-License-Identifier: Apache-2.0

// Package testtime defines the timeout of tests for events that are immediate unless the machine is busy. Longer
// timeouts need a reason; shorter ones fail on a busy machine.
package testtime

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// Patience is the timeout for events that depend only on the machine. Only failing tests wait that long.
const Patience = time.Minute

// BePatient sets the default timeout of Eventually. Gomega's default of a second is shorter than a busy machine
// sometimes takes to schedule a goroutine.
func BePatient() { gomega.SetDefaultEventuallyTimeout(Patience) }

// Main runs the tests of a package with the timeout Patience: func TestMain(m *testing.M) { testtime.Main(m) }.
func Main(m *testing.M) {
	BePatient()
	os.Exit(m.Run())
}
