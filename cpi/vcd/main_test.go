// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

// TestMain gives the fake API server's watches room for the events of hundreds of Nodes: a real one waits for who
// watches, the fake one panics after a hundred unread events.
func TestMain(m *testing.M) {
	watch.DefaultChanSize = 10_000
	testtime.Main(m)
}
