// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
)

// archive writes the index as the only entry of an archive, and returns the digest of the index.
func (b build) archive(name string, index v1.ImageIndex) (v1.Hash, error) {
	err := pack.Archive(filepath.Join(b.out, b.file(name)+".tar"), b.created, pack.Entry{
		Image:     index,
		Reference: b.reference(name),
		Tag:       b.version,
	})
	if err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}
