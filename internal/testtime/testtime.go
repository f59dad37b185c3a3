// Package testtime says how long tests wait for what comes at once unless the machine is busy. Who waits longer than that has a reason of its
// own; nobody waits for less, because a busy machine is no bug of the product.
package testtime

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// Patience is how long is waited for what needs no clock but the machine's. Only a test that fails takes so long.
const Patience = time.Minute

// BePatient makes every Eventually without a time of its own wait that long. Gomega's one second is less than what a busy machine
// sometimes takes to let a goroutine go on.
func BePatient() { gomega.SetDefaultEventuallyTimeout(Patience) }

// Main runs the tests of a package patiently: func TestMain(m *testing.M) { testtime.Main(m) }.
func Main(m *testing.M) {
	BePatient()
	os.Exit(m.Run())
}
