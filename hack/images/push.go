// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes an image with all its architectures and SBOMs to its registry. It uses the credentials of docker login or
// podman login. Registries require valid TLS certificates, except on localhost.
func (b build) push(ctx context.Context, image string, index v1.ImageIndex) error {
	reference, err := name.ParseReference(b.reference(image))
	if err != nil {
		return fmt.Errorf("reading the name of the image: %w", err)
	}
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s (log in with docker login or podman login if the registry requires it): %w", reference, err)
	}
	return nil
}
