// SPDX-License-Identifier: Apache-2.0

package verifysite_test

import (
	"fmt"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/verifysite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestEachAssumptionOfTheSimulatorHasOneRow(t *testing.T) {
	g := NewWithT(t)
	defaults := reflect.ValueOf(vcdsim.DefaultAssumptions())
	table := verifysite.Table()
	g.Expect(table).To(HaveLen(defaults.NumField()))
	for i, row := range table {
		g.Expect(row.Name).To(Equal(defaults.Type().Field(i).Name))
		g.Expect(row.Default).To(Equal(fmt.Sprint(defaults.Field(i))), row.Name)
		g.Expect(row.Probed()).To(Equal(row.Without == ""), row.Name)
	}
}
