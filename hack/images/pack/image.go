// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An Image is an image for one architecture.
type Image struct {
	Name      string // for errors
	Arch      string
	User      string // numeric user and group; empty means root
	Path      string // search path for programs
	CreatedBy string // for the history
	Created   time.Time
	Labels    map[string]string

	Entrypoint, Args, Ports []string
	// Layers are the layers from bottom to top. Put layers that rarely change first.
	Layers []Tree
}

// Pack packs the image.
func (i Image) Pack() (v1.Image, error) {
	created := v1.Time{Time: i.Created.UTC()}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), i.config(created))
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of %s: %w", i.Name, err)
	}
	for _, t := range i.Layers {
		layer, err := t.layer(created.Time)
		if err != nil {
			return nil, fmt.Errorf("packing a layer of %s: %w", i.Name, err)
		}
		if image, err = mutate.Append(image, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: created, CreatedBy: i.CreatedBy},
		}); err != nil {
			return nil, fmt.Errorf("adding a layer to %s: %w", i.Name, err)
		}
	}
	return runnable{image}, nil
}

func (i Image) config(created v1.Time) *v1.ConfigFile {
	ports := map[string]struct{}{}
	for _, port := range i.Ports {
		ports[port] = struct{}{}
	}
	return &v1.ConfigFile{
		Architecture: i.Arch,
		OS:           "linux",
		Created:      created,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:         i.User,
			Entrypoint:   i.Entrypoint,
			Cmd:          i.Args,
			ExposedPorts: ports,
			WorkingDir:   "/",
			Env:          []string{"PATH=" + i.Path},
			Labels:       i.Labels,
		},
	}
}

func (t Tree) layer(created time.Time) (v1.Layer, error) {
	raw, err := t.Tar(created)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(raw)), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// A runnable is an image that the index does not mark as an artifact. The library marks every image with a
// configuration as one.
type runnable struct{ v1.Image }

func (runnable) ArtifactType() (string, error) { return "", nil }
