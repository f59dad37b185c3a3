// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

func TestMain(m *testing.M) { controllertest.Main(m) }
