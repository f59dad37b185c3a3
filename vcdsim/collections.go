// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "slices"

// collections are all of them.
func collections() []*collection {
	return slices.Concat(roleCollections(), libraryCollections(), typeCollections(), namedCollections())
}

// namedCollections are those whose documents fault rules can name.
func namedCollections() []*collection { return append(networkCollections(), balancingCollections()...) }

// settings are all of them.
func settings() []*setting { return append(networkSettings(), balancingSettings()...) }
