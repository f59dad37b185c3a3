// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// MergeExtraConfig sets keys; an empty value removes one.
func MergeExtraConfig(vm *store.VM, keys map[string]string) {
	if vm.ExtraConfig == nil {
		vm.ExtraConfig = map[string]string{}
	}
	for k, v := range keys {
		if v == "" {
			delete(vm.ExtraConfig, k)
			continue
		}
		vm.ExtraConfig[k] = v
	}
}
