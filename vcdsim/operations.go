// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "maps"

// operations describes every operation by its key.
func operations() map[string]operation {
	out := map[string]operation{opDone: newOperation("jobEnqueue", "Updating", 0, nothing)}
	for _, of := range []map[string]operation{
		computeOperations(),
		catalogOperations(),
		vdcOperations(),
		entityOperations(),
		networkOperations(),
		collectionOperations(collections()),
		settingOperations(settings()),
	} {
		maps.Copy(out, of)
	}
	return out
}
