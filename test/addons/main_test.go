// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

func TestMain(m *testing.M) {
	if node := os.Getenv(serveVariable); node != "" {
		fmt.Fprintln(os.Stderr, serveAs(node))
		os.Exit(1)
	}
	testtime.Main(m)
}
