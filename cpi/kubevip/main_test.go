// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

func TestMain(m *testing.M) { testtime.Main(m) }
