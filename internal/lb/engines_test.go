// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

func TestChoiceOfTheServiceEngineGroup(t *testing.T) {
	t.Parallel()
	group := func(name string, deployed, limit int) lb.EngineGroup {
		return lb.EngineGroup{Object: lb.Object{ID: "urn:" + name, Name: name}, Deployed: deployed, Max: limit}
	}
	full := group("full", 2, 2)
	roomy := group("roomy", 1, 2)
	unlimited := group("unlimited", 9, 0)
	tests := []struct {
		name     string
		groups   []lb.EngineGroup
		asked    string
		want     lb.EngineGroup
		shortage lb.Shortage
	}{
		{"the first with room", []lb.EngineGroup{full, roomy, unlimited}, "", roomy, lb.NoShortage},
		{"one without a limit", []lb.EngineGroup{full, unlimited}, "", unlimited, lb.NoShortage},
		{"the one that is asked for by name", []lb.EngineGroup{roomy, unlimited}, "unlimited", unlimited, lb.NoShortage},
		{"the one that is asked for by its URN", []lb.EngineGroup{roomy, unlimited}, "urn:unlimited", unlimited, lb.NoShortage},
		{"none, as the one that is asked for is full", []lb.EngineGroup{roomy, full}, "full", full, lb.AllGroupsFull},
		{"none, as all are full", []lb.EngineGroup{full}, "", full, lb.AllGroupsFull},
		{"none, as another one is asked for", []lb.EngineGroup{roomy}, "gold", lb.EngineGroup{}, lb.GroupNotAssigned},
		{"none, as there is none", nil, "", lb.EngineGroup{}, lb.NoGroupAssigned},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			found, shortage := lb.ChooseEngineGroup(tt.groups, tt.asked)

			g.Expect(found).To(Equal(tt.want))
			g.Expect(shortage).To(Equal(tt.shortage))
		})
	}
}
